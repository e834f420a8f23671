"""Verbs about recipients and what they are told."""

from lcc_scrapy.db.sql.rows import OnConnection


class AlertVerbs(OnConnection):
    """Verbs about recipients and what they are told."""
