"""The verbs of ``db.tx.Tx`` as SQL statements, by what they are about.

No rules, no use cases.
"""

from lcc_scrapy.db.sql.store import SqlStore

__all__ = ["SqlStore"]
