"""Long queues, written straight into a store as intake would leave them."""

from collections import Counter
from collections.abc import Iterable, Iterator

from lcc_scrapy.db.records import TurnDelta
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.queue import QueuedUrl
from lcc_scrapy.intake.absorbing import PSETID

AT_ONCE = 20_000


def lengthen(store: Store, pid: int, urls: Iterable[str], per_set: int) -> None:
    """Append URLs of a provider to its queue, in sets of ``per_set``."""
    for some in _parts(iter(urls)):
        with store.begin() as tx:
            first = tx.take(PSETID, -(-len(some) // per_set))
            rows = [
                _row(pid, url, first + number // per_set, number % per_set + 1)
                for number, url in enumerate(some)
            ]
            tx.insert_queued(rows)
            sets = Counter(row.psetid for row in rows)
            tx.add_to_parts({(psetid, "", pid): count for psetid, count in sets.items()}, {})
            tx.add_to_turns({str(pid): TurnDelta(len(rows), arrived=True)})
            tx.add_to_provider(pid, {"nurlproc": len(rows)})


def _parts(urls: Iterator[str]) -> Iterator[list[str]]:
    while some := [url for _, url in zip(range(AT_ONCE), urls, strict=False)]:
        yield some


def _row(pid: int, url: str, psetid: int, position: int) -> QueuedUrl:
    key = urlkey(pid, url, "text/html")
    return QueuedUrl(
        key, pid, url, "text/html", "", url, url, None, None, None, "", psetid, position, "fetch", 1, 0, 0
    )
