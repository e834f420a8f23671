"""The scheduler: Scrapy's way in to the Queue Manager. It decides nothing."""

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from twisted.internet.defer import Deferred

from lcc_scrapy.app.wiring import Worker, required_worker
from lcc_scrapy.domain.queue import Ticket, is_found
from lcc_scrapy.engine.statistics import tally_of
from lcc_scrapy.fetch import component_faults
from lcc_scrapy.fetch.client import ACCEPT_ENCODING, Fields
from lcc_scrapy.fetch.download_handler import PRIVATE_HOSTS, ROW, TURN, TYPES, TicketRequest
from lcc_scrapy.queue.held_turn import TurnPass
from lcc_scrapy.queue.leases import Member
from lcc_scrapy.settings import headers_to_give

_log = logging.getLogger(__name__)

TICKET: Final = "lcc_ticket"
"""Key of ``request.meta`` under which a request's ticket is found."""

BELL: Final = Request("lcc://bell", dont_filter=True)
"""Given to ``engine.crawl`` to say that ``next_request`` has something; never fetched."""


class ProviderScheduler(BaseScheduler):
    """Hands out one URL at a time per provider, in the order of submission, when it may be fetched."""

    def __init__(self, worker: Worker, crawler: Crawler) -> None:
        self._worker = worker
        self._crawler = crawler
        self._fields = _fields({**headers_to_give(crawler.settings), "Accept-Encoding": ACCEPT_ENCODING})

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "ProviderScheduler":
        """Build it for one of the LCC's spiders."""
        return cls(required_worker(crawler), crawler)

    def open(self, spider: Spider) -> Deferred[None]:
        """Open the store and take the first turns."""
        self._callback = getattr(spider, "document_served")  # noqa: B009 - any LccSpider has it
        self._errback = getattr(spider, "fetch_failed")  # noqa: B009
        return self._worker.open(self._ring)

    def close(self, reason: str) -> Deferred[None]:
        """Settle what is under way and give the turns back."""
        _log.debug("closing the queue (%s)", reason)
        tally_of(self._crawler).close()
        return self._worker.close()

    def has_pending_requests(self) -> bool:
        """Keep the spider alive for as long as its worker wants more."""
        return self._worker.keeps_alive()

    def enqueue_request(self, request: Request) -> bool:
        """Accept the bell only: every other URL comes through the queue, with its limits."""
        if request is BELL:
            return True
        _log.warning("not fetched, because only the queue brings URLs here: %(url)s", {"url": request.url})
        return False

    def next_request(self) -> Request | None:
        """Return the next request, or None when nothing may be fetched now. Constant time."""
        while (
            component_faults.may_fetch(self._worker)
            and (ticket := self._worker.manager.next_ticket()) is not None
        ):
            member = self._worker.manager.member(ticket)
            if member is not None:
                component_faults.fetch_begins(self._worker)
                return self._request(ticket, member)
            self._worker.manager.fetch_ended(ticket)
        return None

    def _ring(self) -> None:
        if not self._worker.closing:
            with suppress(RuntimeError):  # the engine has not begun, or has ended
                self._crawler.engine.crawl(BELL)

    def _request(self, ticket: Ticket, member: Member) -> Request:
        found = is_found(ticket.row)
        meta = {
            TICKET: ticket,
            TURN: TurnPass.of(ticket),
            PRIVATE_HOSTS: member.private_hosts,
            ROW: ticket.row,
            TYPES: member.provider.accepted_types(self._worker.config.policy.mimetypes) if found else None,
            "verbatim_url": True,
            "dont_obey_robotstxt": member.provider.ignorerobots,
            "download_timeout": self._worker.config.fetch_deadline,
        }
        request = TicketRequest(
            ticket.row.furl, callback=self._callback, errback=self._errback, meta=meta, dont_filter=True
        )
        request.fields = [*self._fields, *_of_retry(ticket)]
        return request


def _of_retry(ticket: Ticket) -> Fields:
    """Have caches on the way ask the site itself: one of them may have caused the retry."""
    return [(b"Cache-Control", b"no-cache")] if ticket.is_retry else ()


def _fields(headers: Mapping[str, str]) -> Fields:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
