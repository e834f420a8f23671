"""Which replica a cache is sent to, if any: one that is better than the server that was asked (seed 004)."""

from collections.abc import Sequence
from dataclasses import dataclass

from lcc_scrapy.apps.tracker.answering import Answering
from lcc_scrapy.apps.tracker.comparison import COMPARED
from lcc_scrapy.apps.tracker.lookup import Replica, name_of, server_of
from lcc_scrapy.apps.tracker.rules.policy import Rules
from lcc_scrapy.apps.tracker.rules.tracked import Place
from lcc_scrapy.apps.tracker.store import TrackerRows, rows_in
from lcc_scrapy.db.tx import Store

FETCHED = ("http://", "https://", "ftp://")
"""What a cache can fetch."""

Order = tuple[bool, bool, int, int]


@dataclass(frozen=True, slots=True)
class Better:
    """A replica to go to; ``redirects`` if the client is to be told (policy: ``answer``)."""

    url: str
    redirects: bool


def better(answering: Answering, url: str, address: str) -> Better | None:
    """Return the best replica of a URL for an address, None if none is better than the URL's own server.

    So nobody is sent in a circle: each step leads to a server that comes earlier in one order. Raises
    ``UrlRefused``, ``BadAddress``. Blocking.
    """
    answer = answering.of_url(url, address, limit=max(answering.limit, COMPARED))
    to_be_had = [one for one in answer.found.replicas if one.url.startswith(FETCHED)]
    best = _best(answering.store, Place.parse(url), to_be_had, answer.rules) if to_be_had else None
    return None if best is None else Better(best.url, answer.rules.answer == "redirect")


def _best(store: Store, asked: Place, replicas: Sequence[Replica], rules: Rules) -> Replica | None:
    with store.snapshot() as tx:
        rows = rows_in(tx)
        orders = {one.url: order(rows, Place.parse(one.url), rules) for one in replicas}
        ours = order(rows, asked, rules)
    best = min(replicas, key=lambda one: orders[one.url])
    return best if orders[best.url] < ours else None


def order(rows: TrackerRows, place: Place, rules: Rules) -> Order:
    """Return where a server stands among others: permitted, its last scan went well, rank, freshness."""
    host = server_of(rows, place)
    if host is None:
        return (True, True, 0, 0)
    permitted = rules.permits(host.domain, name_of(host.url))
    return (not permitted, host.failures > 0, rules.rank(host.domain), -host.scanned)
