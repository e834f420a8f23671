"""Verbs about documents that wait for the annotation engine, and what it found."""

from lcc_scrapy.db.sql.rows import OnConnection


class AciVerbs(OnConnection):
    """Verbs about documents that wait for the annotation engine, and what it found."""
