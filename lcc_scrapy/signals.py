"""Signals that teams can connect to with ``crawler.signals.connect(handler, signal)``.

``lcc_set_accepted(pid, path)`` — a provider's set is on disk.
``lcc_document_stored(document, row)`` — a new or changed document and its row are durable.
``lcc_document_confirmed(document, row)`` — a fetch showed that the copy is still right; ``document`` is None
after a 304.
``lcc_document_removed(docid, pid, reason)`` — a document left the cache.
"""

from collections.abc import Callable

from scrapy.crawler import Crawler

from lcc_scrapy.items import LccDocument
from lcc_scrapy.queue import settlement
from lcc_scrapy.queue.settlement import Settled

lcc_set_accepted = object()
lcc_document_stored = object()
lcc_document_confirmed = object()
lcc_document_removed = object()

_BY_RESULT = {settlement.STORED: lcc_document_stored, settlement.CONFIRMED: lcc_document_confirmed}


def announce(
    crawler: Crawler, count: Callable[..., None], settled: Settled, document: LccDocument | None = None
) -> None:
    """Count what became of a fetch and send the signal that fits."""
    count(f"lcc/{settled.result}")
    if settled.code:
        count(f"lcc/code/{settled.code}")
    signal = _BY_RESULT.get(settled.result)
    if signal is not None and _is_heard(crawler, signal):
        crawler.signals.send_catch_log(signal, document=document, row=settled.row)
    if settled.removed:
        row = settled.outcome.ticket.row
        announce_removal(crawler, row.pid, row.urlkey, f"answered {settled.code}")


def _is_heard(crawler: Crawler, signal: object) -> bool:
    """Tell whether anybody may listen: rows are made for those who do."""
    is_heard = getattr(crawler.signals, "is_heard", None)  # Scrapy's own manager cannot tell
    return is_heard is None or bool(is_heard(signal))


def announce_removal(crawler: Crawler, pid: int, key: bytes, reason: str) -> None:
    """Tell that a document left the cache."""
    crawler.signals.send_catch_log(lcc_document_removed, docid=key.hex(), pid=pid, reason=reason)
