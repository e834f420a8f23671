"""How the annotation engine is getting on, read from the database."""

from dataclasses import dataclass

from lcc_scrapy.annotation.queueing import cursor_of
from lcc_scrapy.db.records import AE_FAILED, AE_PAGES, AE_PEAK, AE_SKIPPED, FEED
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.selection import happened


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """Documents that wait now, and the most that ever did; what became of others, and how far the engine is.

    ``behind`` counts places of the feed that it has not read, ``seconds_behind`` is the age of the first one.
    ``coordinator`` is who does it, "" = nobody.
    """

    waiting: int
    peak: int
    annotated: int
    skipped: int
    failed: int
    acis: int
    urds: int
    urds_to_run: bool
    behind: int
    seconds_behind: int
    coordinator: str


def status_of(tx: Tx, now: int) -> EngineStatus:
    """Return how the engine is getting on; ``now`` in epoch seconds."""
    cursor, head = cursor_of(tx), tx.peek(FEED)
    first = [] if cursor is None else tx.changes(cursor, 1)
    until, _, owner = (tx.info("annotating engine") or "0 ").partition(" ")
    return EngineStatus(
        waiting=tx.waiting_count(),
        peak=tx.peek(AE_PEAK),
        annotated=tx.peek(AE_PAGES),
        skipped=tx.peek(AE_SKIPPED),
        failed=tx.peek(AE_FAILED),
        acis=tx.last_aci_number(),
        urds=tx.count_urds(),
        urds_to_run=bool(tx.urds_to_run(1)),
        behind=head - cursor if first and cursor is not None else 0,
        seconds_behind=max(now - happened(first[0]), 0) if first else 0,
        coordinator=owner if int(until) > now else "",
    )
