"""Content files: one per stored document, named by a number that is never used again.

No database, no network.
"""
