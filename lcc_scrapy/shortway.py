"""The short way: from ticket to outcome past Scrapy's engine, where nobody looks on (``onlookers.py``).

Request, response, spider and item are what a team's components are handed. Where there are none of these,
they are not made: they cost more than all the rest of a page. What is promised is the same on either way.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from scrapy.crawler import Crawler
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from lcc_scrapy import signals
from lcc_scrapy.counting import Count, Downloads, Tally
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.queue import Outcome, Served, Ticket, is_found
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.getting import ACCEPT_ENCODING, Fields, Getter, Reply
from lcc_scrapy.outcomes import NOT_STORED, answer_of, failed, not_answered, not_served, status_line
from lcc_scrapy.queue_manager import TurnPass
from lcc_scrapy.robots import MOST_READ, RobotsAnswer, RobotsTxt
from lcc_scrapy.settings import BODIES_IN_MEMORY, default_headers
from lcc_scrapy.storage.settling import STORED, Settled
from lcc_scrapy.storage.turnstile import Member
from lcc_scrapy.turn import REDIRECTS, FetchFailed, TurnKeeper, first_target, redirect_target
from lcc_scrapy.wiring import Worker

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Arrival:
    """The answer at the end of all redirects, and its URL."""

    url: str
    reply: Reply

    @property
    def status(self) -> int:
        return self.reply.status


class ShortWay:
    """Fetches and settles tickets, as many at a time as may run. Must be made and used in the event loop."""

    def __init__(self, worker: Worker, crawler: Crawler) -> None:
        self._worker = worker
        self._crawler = crawler
        self._loop = asyncio.get_running_loop()
        self._tally = Tally(crawler.stats, self._loop)
        self._count = self._tally.count
        self._requests = _Requests(worker, crawler, self._count)
        self._turns: TurnKeeper[_Arrival] = TurnKeeper(
            worker, self._count, lambda arrival, name: header(arrival.reply, name)
        )
        self._fetching: set[asyncio.Task[None]] = set()
        self._unsettled = 0
        self._going = False

    def go(self) -> None:
        """Fetch whatever may be fetched now, once whoever calls is through; several calls make one look."""
        if not self._going:
            self._going = True
            self._loop.call_soon(self._take)

    def _take(self) -> None:
        self._going = False
        while self._unsettled < BODIES_IN_MEMORY:
            ticket = self._worker.manager.next_ticket()
            if ticket is None:
                return
            task = self._loop.create_task(self._fetch(ticket))
            self._fetching.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._fetching.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a fetch ended badly: %s", error, exc_info=error)
        self.go()

    async def stop(self) -> None:
        """Wait for what is under way, and close all connections; nothing more may be handed out by then."""
        if self._fetching:
            await asyncio.wait(self._fetching)
        await self._requests.close()
        self._tally.close()

    async def _fetch(self, ticket: Ticket) -> None:
        outcome: Outcome | None
        try:
            outcome = _outcome(ticket, await self._turns.keep(ticket, self._follow))
        except Exception as error:  # noqa: BLE001 - whatever it is, the provider is told of it
            outcome = not_answered(ticket, error)
        if outcome is not None:
            self._settle(outcome)

    async def _follow(self, ticket: Ticket, member: Member) -> "_Arrival":
        url = first_target(ticket, member)
        for _ in range(self._worker.config.redirects + 1):
            reply = await self._requests.get(url, ticket, member)
            if reply.status not in REDIRECTS:
                self._count("response_received_count")
                return _Arrival(str(url), reply)
            location = header(reply, "Location", "utf-8").strip()
            url = redirect_target(ticket.trip, str(url), reply.status, location, member)
        raise FetchFailed(606, str(url))

    # --- outcomes --------------------------------------------------------------------------------

    def _settle(self, outcome: Outcome) -> None:
        size = outcome.body.length if isinstance(outcome, Served) and outcome.body.data else 0
        self._unsettled += size
        settling: Deferred[Settled] = self._worker.manager.settle(outcome)
        settling.addBoth(self._left, size)
        settling.addCallbacks(self._settled, self._not_settled, errbackArgs=(outcome,))
        settling.addErrback(_log_failure)

    def _left(self, result: Any, size: int) -> Any:
        if self._unsettled >= BODIES_IN_MEMORY:
            self.go()
        self._unsettled -= size
        return result

    def _settled(self, settled: Settled) -> None:
        if settled.result == STORED:
            self._count("item_scraped_count")
        signals.announce(self._crawler, self._count, settled)

    def _not_settled(self, failure: Failure, outcome: Outcome) -> None:
        """Give up one outcome that cannot be settled, as the long way does for a pipeline that fails.

        When the process stops before the database answers, the URL stays where it is in the queue.
        """
        if isinstance(failure.value, StoreUnavailable):
            return
        _log.error("not settled: %s", failure.getErrorMessage(), exc_info=failure.value)
        wrong = failed(outcome.ticket, NOT_STORED, f"not settled: {failure.getErrorMessage()}")
        self._worker.manager.settle(wrong).addErrback(lambda _: None)


class _Requests:
    """Requests to sites, each after a look at robots.txt."""

    def __init__(self, worker: Worker, crawler: Crawler, count: Count) -> None:
        settings = crawler.settings
        self._worker = worker
        self._robots = RobotsTxt(crawler) if settings.getbool("ROBOTSTXT_OBEY") else None
        self._getter = Getter(worker, verify=settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"))
        self._downloads = Downloads(count)
        self._headers = _fields({**default_headers(settings), "Accept-Encoding": ACCEPT_ENCODING})

    async def get(self, url: HttpUrl, ticket: Ticket, member: Member) -> Reply:
        """Get a URL if robots.txt permits it; raises as ``Getter.get`` and ``RobotsTxt.permission`` do."""
        turn, private = TurnPass(ticket.turnkey, ticket.token), url.netloc in member.private_hosts
        if self._robots is not None and not member.provider.ignorerobots:
            permission = self._robots.known(url, private=private)
            if permission is None:
                ask = partial(self._ask, turn=turn, private_hosts=member.private_hosts)
                permission = await self._robots.permission(url, ask, private=private)
            self._worker.space(turn, permission.crawl_delay)
        types = (
            member.provider.accepted_types(self._worker.config.mimetypes) if is_found(ticket.row) else None
        )
        headers = self._headers
        if ticket.etag or ticket.last_modified:
            headers = [*headers, *_conditions(ticket)]
        return await self._get(url, headers, turn=turn, private_hosts=member.private_hosts, types=types)

    async def _ask(self, url: HttpUrl, **options: Any) -> RobotsAnswer:
        reply = await self._get(url, self._headers, in_memory=MOST_READ, **options)
        return RobotsAnswer(reply.status, reply.body.data or b"", header(reply, "Location", "utf-8"))

    async def _get(self, url: HttpUrl, headers: Fields, **options: Any) -> Reply:
        self._downloads.begun()
        try:
            reply = await self._getter.get(url, headers, **options)
        except Exception as error:
            self._downloads.failed(error)
            raise
        self._downloads.answered(reply.status, reply.body.length)
        return reply

    async def close(self) -> None:
        """Close all connections."""
        await self._getter.close()


def _fields(headers: Mapping[str, str]) -> Fields:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]


def _conditions(ticket: Ticket) -> Fields:
    conditions = {"If-None-Match": ticket.etag, "If-Modified-Since": ticket.last_modified}
    return _fields({name: value for name, value in conditions.items() if value})


def header(reply: Reply, name: str, charset: str = "latin-1") -> str:
    """Return the first header of a name, empty = none."""
    wanted = name.lower().encode()
    found = (value for field, value in reply.headers if field.lower() == wanted)
    return next(found, b"").decode(charset, "replace")


def _outcome(ticket: Ticket, arrival: _Arrival) -> Outcome:
    refused = not_served(ticket, arrival.status)
    if refused is not None:
        return refused
    reply = arrival.reply
    line = status_line(f"HTTP/{reply.version}", reply.status, reply.reason)
    answer = answer_of(reply.status, arrival.url, reply.headers, line, reply.peer)
    return Served(ticket, answer, reply.body)


def _log_failure(failure: Failure) -> None:
    _log.error("after a document was settled: %s", failure.getErrorMessage(), exc_info=failure.value)
