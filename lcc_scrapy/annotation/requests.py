"""The request scheduler: asks for the pages of URDs that are due (seed 002 section 4, "Request Scheduler").

A request becomes directives of the provider in whose roots the page lies. A page that is cached already is
queued all the same, and its fetch is conditional. One look takes ``MOST`` URDs, in transactions of ``DUE``.
After a kill between two of these, the rest is still due.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lcc_scrapy.annotation.irrelevant import Irrelevance
from lcc_scrapy.cache.owners import tell_owners
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.directives import Territories
from lcc_scrapy.domain.entries import furlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.requests import Request, is_asked_for, requests
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.domain.urd_rules import NEVER
from lcc_scrapy.domain.urds import LEVELS, Urd
from lcc_scrapy.spidering.directives import Directives, NotTaken, territories
from lcc_scrapy.spidering.submitting import Spidering, Terms
from lcc_scrapy.spidering.withdrawing import carry_out, withdraw

DUE = 100
"""URDs that are looked at together."""

EQUAL = 1000
"""Other URDs of one page that are checked with it."""

MOST = 2000
"""Due URDs that one look takes."""

STEPS = 50
"""Transactions of withdrawals in one look."""

AGAIN = 60_000
"""Milliseconds until a page is asked for again that could not be, for want of room."""

OUTSIDE_AGAIN = 3_600_000
"""Milliseconds until it is looked again whether a page lies inside a root."""

OUTSIDE = "lies inside the roots of no provider"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look did: ``asked`` pages were requested, ``queued`` of them are to be fetched for that.

    ``refused`` URDs could not be served, ``withdrawn`` interests ended, ``dropped`` pages concerned nobody.
    ``next_due`` is when to look again (epoch milliseconds, may be over); None = not before a URD changes.
    """

    asked: int = 0
    queued: int = 0
    refused: int = 0
    withdrawn: int = 0
    dropped: int = 0
    next_due: int | None = None


class RequestRounds:
    """Looks for URDs that are due. ``queue_max`` as in LCC_QUEUE_MAX; ``now`` gives epoch seconds."""

    def __init__(
        self, store: Store, policy: QueuePolicy, queue_max: int, now: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._policy = policy
        self._terms = Terms(queue_max=queue_max)
        self._clock = now
        self._located: set[int] = set()
        self._irrelevance = Irrelevance(store, policy, now)

    def look(self, now: int) -> Looked:
        """Ask for what is due at ``now`` (epoch milliseconds), the most urgent first; bounded work."""
        asked = queued = refused = left = 0
        where = territories(self._store)
        for urgency in reversed(LEVELS):
            while left < MOST and (portion := self._due(now, urgency)):
                done = self._ask(portion, where, now)
                asked, queued, refused = asked + done.asked, queued + done.queued, refused + done.refused
                left += len(portion)
        withdrawn = self._withdraw_some()
        dropped = self._irrelevance.round()
        with self._store.read() as tx:
            due = tx.next_due_urd()
            more = bool(tx.withdrawals(1))
        return Looked(
            asked, queued, refused, withdrawn, dropped, now if more else None if due == NEVER else due
        )

    def preview(self, now: int) -> Iterator[tuple[Request, str]]:
        """Yield what a look would ask for first, ``MOST`` URDs of each urgency, and what refuses it ("")."""
        where, told = territories(self._store), set()
        with self._store.read() as tx:
            for urgency in reversed(LEVELS):
                due = [one for one in tx.due_urds(now, MOST, urgency) if one.uri not in told]
                for request in self._requests(tx, due, now):
                    told.add(request.uri)
                    pid = where.nearest(HttpUrl.parse(request.uri))
                    yield request, "" if pid is not None else OUTSIDE

    def _due(self, now: int, urgency: int) -> list[Urd]:
        with self._store.read() as tx:
            return tx.due_urds(now, DUE, urgency)

    def _requests(self, tx: Tx, due: Sequence[Urd], now: int) -> list[Request]:
        uris = dict.fromkeys(one.uri for one in due)
        equal = [one for uri in uris for one in tx.urds_at(uri, EQUAL)]
        return requests([*due, *equal], now)

    # --- asking -----------------------------------------------------------------------------------

    def _ask(self, due: Sequence[Urd], where: Territories, now: int) -> Looked:
        with self._store.read() as tx:
            wanted = self._requests(tx, due, now)
        self._end_expired([one for one in due if not is_asked_for(one, now)])
        queued = refused = asked = 0
        for pid, some in self._by_provider(wanted, where).items():
            if pid is None:
                refused += self._refuse(some, now + OUTSIDE_AGAIN, OUTSIDE)
                continue
            try:
                queued += self._ask_provider(pid, some, now)
                asked += len(some)
            except NotTaken as error:
                refused += self._refuse(some, now + AGAIN, str(error))
        return Looked(asked, queued, refused)

    def _by_provider(self, wanted: Sequence[Request], where: Territories) -> dict[int | None, list[Request]]:
        found: dict[int | None, list[Request]] = {}
        for one in wanted:
            found.setdefault(where.nearest(HttpUrl.parse(one.uri)), []).append(one)
        return found

    def _ask_provider(self, pid: int, wanted: Sequence[Request], now: int) -> int:
        spidering = Spidering(self._store, pid, self._terms, self._policy)
        while pid not in self._located and spidering.locate():
            pass
        self._located.add(pid)
        asked = [one for request in wanted for one in request.directives(HttpUrl.parse(request.uri))]
        seconds = int(self._clock())
        with self._store.begin() as tx:
            queued, owned = Directives(spidering).ask_in(tx, asked, seconds, by_hand=False)
            queued += spidering.ask_again(tx, [furlkey(pid, str(one.link)) for one in asked], seconds)
            tx.note_checks([one.urdid for request in wanted for one in request.urds], now)
            tell_owners(tx, owned)
        return queued

    def _refuse(self, wanted: Sequence[Request], again: int, reason: str) -> int:
        urdids = [one.urdid for request in wanted for one in request.urds]
        with self._store.begin() as tx:
            tx.defer_urds(urdids, again, reason)
        _log.debug("%(count)d URDs are not asked for: %(why)s", {"count": len(urdids), "why": reason})
        return len(urdids)

    def _end_expired(self, expired: Sequence[Urd]) -> None:
        """Never look at these again, unless they are changed; what they reached is withdrawn."""
        if expired:
            with self._store.begin() as tx:
                tx.defer_urds([one.urdid for one in expired], NEVER, "")
                withdraw(tx, {one.owner for one in expired})

    def _withdraw_some(self) -> int:
        steps = carry_out(self._store, self._clock)
        gone = 0
        for _ in range(STEPS):
            gone += next(steps, 0)
        return gone
