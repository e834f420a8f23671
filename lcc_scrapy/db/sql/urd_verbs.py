"""Verbs about the interests of owners."""

from lcc_scrapy.db.sql.rows import OnConnection


class UrdVerbs(OnConnection):
    """Verbs about the interests of owners."""
