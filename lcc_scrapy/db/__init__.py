"""Tables, transactions, migrations, and the thread that runs them.

Verbs over rows, no rules.
"""
