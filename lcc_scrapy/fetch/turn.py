"""A fetch with all its redirects is one turn, which ends exactly once."""

import logging
import time
from collections.abc import Awaitable, Callable
from math import ceil
from typing import Any, NoReturn

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    NotSupported,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.http import Response

from lcc_scrapy.app.wiring import Worker
from lcc_scrapy.domain import retries
from lcc_scrapy.domain.errors import DiskFailed, Exhausted, NotDurable
from lcc_scrapy.domain.http_dates import retry_after_seconds
from lcc_scrapy.domain.http_status import understood
from lcc_scrapy.domain.queue import Delayed, Ticket
from lcc_scrapy.engine.statistics import Count
from lcc_scrapy.fetch.download_errors import (
    AddressRefused,
    BodyTooLarge,
    ConnectTimedOut,
    PasswordRefused,
    TlsFailed,
    TypeNotAccepted,
)
from lcc_scrapy.fetch.download_handler import header_of
from lcc_scrapy.fetch.pacing import FetchAborted
from lcc_scrapy.fetch.robots import RobotsForbidden
from lcc_scrapy.machine import logs
from lcc_scrapy.queue.leases import Member

_log = logging.getLogger(__name__)

TOO_MANY_REQUESTS = 429


OUR_FAULT = 616
"""The wire code of what is none of the site's doing."""


class FetchFailed(IgnoreRequest):
    """A fetch ended without a document, for a reason of the LCC's own; ``code`` is the wire code."""

    def __init__(self, code: int, detail: str = "") -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class TurnDelayed(IgnoreRequest):
    """The host failed, or our own resources: the URL is back in its place and waits. Nothing to settle."""


_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (CannotResolveHostError, 601),
    (AddressRefused, 615),
    (TlsFailed, 612),
    (DownloadConnectionRefusedError, 602),
    (ConnectTimedOut, 602),
    (DownloadTimeoutError, 603),
    (PasswordRefused, 616),
    (BodyTooLarge, 604),
    (TypeNotAccepted, 703),
    (RobotsForbidden, 611),
    (ResponseDataLossError, 614),
    (UnsupportedURLSchemeError, 705),
    (NotSupported, 705),
    (DownloadCancelledError, 614),
    (DownloadFailedError, 614),
)


_ANSWERED = (
    FetchFailed,
    PasswordRefused,
    RobotsForbidden,
    BodyTooLarge,
    TypeNotAccepted,
    ResponseDataLossError,
)
"""Failures by which one can tell that the host answers."""


def code_of(error: BaseException) -> int:
    """Return the wire code of a failed fetch; what is none of the site's doing is 616."""
    if isinstance(error, FetchFailed):
        return error.code
    return next((code for kind, code in _CODES if isinstance(error, kind)), OUR_FAULT)


Fetch = Callable[[Ticket, Member], Awaitable[Response]]


class TurnKeeper:
    """Runs fetches in their turns: charged, judged, and ended whatever happens."""

    def __init__(self, worker: Worker, count: Count) -> None:
        self._worker = worker
        self._count = count

    async def keep(self, ticket: Ticket, fetch: Fetch) -> Response:
        """Run the fetch of a ticket; its turn has ended when this returns or raises.

        Raises what ``fetch`` does, and ``TurnDelayed`` where the URL waits in its place.
        """
        try:
            answer = await self._fetched(ticket, fetch)
            self._delay_if_host_failed(ticket, understood(answer.status), None, answer)
            return answer
        finally:
            self._end(ticket)

    async def _fetched(self, ticket: Ticket, fetch: Fetch) -> Response:
        try:
            return await self._measured(ticket, fetch)
        except FetchAborted:
            self._worker.manager.put_back(ticket)
            raise
        except (NotDurable, Exhausted, DiskFailed) as error:
            self._worker.resources.notice(error)
            self._worker.manager.put_back(ticket)
            raise TurnDelayed(str(error)) from error
        except Exception as error:
            self._delay_if_host_failed(ticket, code_of(error), error)
            raise

    async def _measured(self, ticket: Ticket, fetch: Fetch) -> Response:
        trip, began = ticket.trip, time.monotonic()
        trip.hops = 0
        try:
            return await fetch(ticket, self._member(ticket))
        finally:
            trip.ms = int((time.monotonic() - began) * 1000)
            trip.transferred = self._worker.manager.charged(ticket)

    def _member(self, ticket: Ticket) -> Member:
        member = self._worker.manager.member(ticket)
        if member is None:
            raise FetchAborted("the turn was lost, or its provider went")
        return member

    def _end(self, ticket: Ticket) -> None:
        charged = self._worker.manager.fetch_ended(ticket)
        if logs.tells_of_pages():
            row = ticket.row
            what = {"bytes": charged, "url": row.furl, "pid": row.pid, "psetid": row.psetid}
            _log.debug("charged %(bytes)d bytes for %(url)s", what)
        self._count("lcc/bytes_charged", charged)

    def _delay_if_host_failed(
        self, ticket: Ticket, code: int, error: Exception | None, answer: Response | None = None
    ) -> None:
        """Delay the URLs of a host that failed; after long enough the URL is given up instead.

        Retry-After of a 429 is meant for the whole host, that of a 503 for its URL. A URL that had a try of
        its own before, and answers 503 again, has failed by itself.
        """
        manager = self._worker.manager
        if not retries.is_host_level(code):
            if error is None or isinstance(error, _ANSWERED):
                manager.host_answered(ticket)
            return
        asked = _retry_after(answer) if answer is not None else 0.0
        of_all, of_one = (asked, 0.0) if code == TOO_MANY_REQUESTS else (0.0, asked)
        alone = retries.is_its_own(code, ticket.row.tries)
        if alone and not manager.is_failing(ticket):
            return
        failing = manager.host_failed(ticket, of_all, code)
        if not alone and failing < self._worker.config.host_patience:
            self._put_off(ticket, code, error, of_one)
        manager.host_noted(ticket)

    def wait(self, ticket: Ticket, error: Exception) -> NoReturn:
        """Let a host wait, longer each time, because something of our own is missing that it needs."""
        self._worker.manager.host_failed(ticket, 0.0)
        self._put_off(ticket, OUR_FAULT, error)

    def _put_off(self, ticket: Ticket, code: int, error: Exception | None, asked: float = 0.0) -> NoReturn:
        now = self._worker.now()
        until = now + 1 + ceil(min(asked, retries.RETRY_AFTER_MAX)) if asked else 0  # ``now`` is rounded down
        self._worker.manager.delay(Delayed(ticket, code, str(error or "")[:200], now, until=until))
        raise TurnDelayed(str(error or code)) from error


def _retry_after(answer: Response) -> float:
    said = header_of(answer, "Retry-After")
    return retry_after_seconds(said, header_of(answer, "Date"), time.time()) if said else 0.0


def short(detail: Any) -> str:
    """Return what is told of a failure: as much as a column holds, ASCII only."""
    return str(detail)[:200].encode("ascii", "backslashreplace").decode()
