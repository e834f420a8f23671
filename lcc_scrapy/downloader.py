"""The downloader: a fetch with all its redirects is one turn, which ends exactly once."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn
from urllib.parse import urljoin

from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
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
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from lcc_scrapy import logs
from lcc_scrapy.domain import retries
from lcc_scrapy.domain.errors import DiskFailed, Exhausted, NotDurable, UrlRefused
from lcc_scrapy.domain.httpdates import retry_after_seconds
from lcc_scrapy.domain.printable import without_passwords
from lcc_scrapy.domain.queue import Delayed, Ticket
from lcc_scrapy.domain.roots import HttpUrl, inside
from lcc_scrapy.fetching import BODY, AddressRefused, BodyTooLarge, ConnectTimedOut, FetchAborted, TlsFailed
from lcc_scrapy.middlewares import RobotsForbidden
from lcc_scrapy.scheduler import TICKET
from lcc_scrapy.storage.turnstile import Member
from lcc_scrapy.wiring import required_worker

_log = logging.getLogger(__name__)

REDIRECTS = frozenset({301, 302, 303, 307, 308})


class FetchFailed(IgnoreRequest):
    """A fetch ended without a document, for a reason of the LCC's own; ``code`` is the wire code."""

    def __init__(self, code: int, detail: str = "") -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class TurnDelayed(IgnoreRequest):
    """The host failed, or our own means: the URL is back in its place and waits. Nothing to settle."""


_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (CannotResolveHostError, 601),
    (AddressRefused, 615),
    (TlsFailed, 612),
    (DownloadConnectionRefusedError, 602),
    (ConnectTimedOut, 602),
    (DownloadTimeoutError, 603),
    (BodyTooLarge, 604),
    (RobotsForbidden, 611),
    (ResponseDataLossError, 614),
    (UnsupportedURLSchemeError, 705),
    (NotSupported, 705),
    (DownloadCancelledError, 614),
    (DownloadFailedError, 614),
)


_ANSWERED = (FetchFailed, RobotsForbidden, BodyTooLarge, ResponseDataLossError)
"""Failures by which one can tell that the host answers."""


def code_of(error: BaseException) -> int:
    """Return the wire code of a failed fetch; what is none of the site's doing is 616."""
    if isinstance(error, FetchFailed):
        return error.code
    return next((code for kind, code in _CODES if isinstance(error, kind)), 616)


class LccDownloader(Downloader):
    """Scrapy's downloader, with turns. Requests without a ticket pass through unchanged."""

    def __init__(self, crawler: Crawler) -> None:
        self._worker = required_worker(crawler)
        logs.install(self._worker.config.log_format)  # Scrapy has just made its handler anew
        super().__init__(crawler)
        self._stats = crawler.stats
        self._begun = 0

    def needs_backout(self) -> bool:
        """Tell whether as many fetches run as may; each counts from the moment it is handed out."""
        return self._begun >= self._worker.config.fetches

    def fetch(self, request: Request, spider: Any = None) -> Deferred[Response | Request]:  # noqa: ARG002
        """Fetch a request with its redirects; the turn has ended when the Deferred fires."""
        if TICKET not in request.meta:
            return super().fetch(request)
        self._begun += 1
        return deferred_from_coro(self._fetch_turn(request, request.meta[TICKET])).addBoth(self._ended)

    def _ended(self, result: Any) -> Any:
        self._begun -= 1
        return result

    async def _fetch_turn(self, request: Request, ticket: Ticket) -> Response | Request:
        manager = self._worker.manager
        with self._turn(ticket):
            try:
                response = await self._follow(request, self._member(ticket))
            except FetchAborted:
                manager.put_back(ticket)
                raise
            except (NotDurable, Exhausted, DiskFailed) as error:
                self._worker.means.notice(error)
                manager.put_back(ticket)
                raise TurnDelayed(str(error)) from error
            except Exception as error:
                self._judge(ticket, code_of(error), error, 0.0)
                raise
            self._judge(ticket, response.status, None, _retry_after(response))
            return response

    def _member(self, ticket: Ticket) -> Member:
        member = self._worker.manager.member(ticket)
        if member is None:
            raise FetchAborted("the turn was lost, or its provider went")
        return member

    @contextmanager
    def _turn(self, ticket: Ticket) -> Iterator[None]:
        try:
            yield
        finally:
            charged = self._worker.manager.fetch_ended(ticket)
            row = ticket.row
            what = {"bytes": charged, "url": row.furl, "pid": row.pid, "psetid": row.psetid}
            _log.debug("charged %(bytes)d bytes for %(url)s", what)
            if self._stats is not None:
                self._stats.inc_value("lcc/bytes_charged", charged)

    async def _follow(self, request: Request, member: Member) -> Response:
        if not inside(HttpUrl.parse(request.url), member.roots):
            raise FetchFailed(704, request.url[:200])
        for _ in range(self._worker.config.redirects + 1):
            response = await maybe_deferred_to_future(super().fetch(request))
            if isinstance(response, Request):
                raise FetchFailed(616, "a middleware replaced the request")
            if response.status not in REDIRECTS:
                return response
            request.meta.pop(BODY, None)
            request = request.replace(url=_redirect_target(response, member))
        raise FetchFailed(606, request.url)

    def _judge(self, ticket: Ticket, code: int, error: Exception | None, retry_after: float) -> None:
        """Delay the turn when the host failed; after long enough the URL is given up instead."""
        manager = self._worker.manager
        if not retries.is_host_level(code):
            if error is None or isinstance(error, _ANSWERED):
                manager.host_answered(ticket)
            return
        failing = manager.host_failed(ticket, retry_after)
        if failing < self._worker.config.host_patience:
            self._put_off(ticket, code, error)

    def _put_off(self, ticket: Ticket, code: int, error: Exception | None) -> NoReturn:
        self._worker.manager.delay(Delayed(ticket, code, str(error or "")[:200], self._worker.now()))
        raise TurnDelayed(str(error or code)) from error


def _redirect_target(response: Response, member: Member) -> str:
    location = (response.headers.get(b"Location") or b"").decode("utf-8", "replace").strip()
    if not location:
        raise FetchFailed(613, f"status {response.status} without Location")
    try:
        target = HttpUrl.parse(urljoin(response.url, location))
    except (UrlRefused, ValueError) as error:
        raise FetchFailed(613, f"{without_passwords(location)[:200]}: {error}") from None
    if not inside(target, member.roots):
        raise FetchFailed(605, str(target)[:200])
    return str(target)


def _retry_after(response: Response) -> float:
    header = response.headers.get(b"Retry-After") or b""
    return retry_after_seconds(
        header.decode("latin-1"), (response.headers.get(b"Date") or b"").decode("latin-1")
    )
