"""The audit log as a page."""

from collections.abc import Sequence

from markupsafe import Markup

from lcc_scrapy.apps.dashboard.layout import link, table
from lcc_scrapy.domain.audit import AuditEntry
from lcc_scrapy.domain.shown import moment

LIMIT = 100
"""Entries of one page."""


def entries(found: Sequence[AuditEntry]) -> Markup:
    """Return entries, newest first."""
    if not found:
        return Markup("<p>Nothing was done yet.</p>")
    return table(["At", "Who", "Where", "What", "Provider", "More"], [_row(one) for one in found])


def _row(one: AuditEntry) -> list[object]:
    whose = link(f"/dashboard/providers/{one.pid}", one.pid) if one.pid else Markup("all")
    return [moment(one.at), one.who, one.place, one.action, whose, one.detail]


def body(found: Sequence[AuditEntry]) -> Markup:
    """Return a page of entries; one more than ``LIMIT`` says that there are older ones."""
    listed = entries(found[:LIMIT])
    if len(found) <= LIMIT:
        return listed
    older = link(f"/dashboard/audit?before={found[LIMIT - 1].entryid}", "Older ones")
    return listed + Markup("<p>{}</p>").format(older)
