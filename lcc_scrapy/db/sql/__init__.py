"""The verbs of ``db.tx.Tx`` as SQL statements, by what they are about.

No rules, no use cases.
"""
