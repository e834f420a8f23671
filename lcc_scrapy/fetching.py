"""The download handler: HTTP over aiohttp, bodies streamed, paced and guarded.

* Bodies up to ``LCC_MEMORY_BODY`` are handled in memory, larger ones go to a temporary content file as
  they arrive, so that a body of any size costs the same memory.
* Every byte transferred is charged to the turn it belongs to; a body that runs ahead of its limit is
  paused while it arrives (back-pressure down to TCP).
* Connections are made by ``outgoing``, which guards where they go.
"""

import asyncio
import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from ipaddress import ip_address
from itertools import count
from typing import Any
from weakref import WeakSet

import aiohttp
import yarl
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from scrapy import Request
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    NotConfigured,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from lcc_scrapy.content import decoding
from lcc_scrapy.content.sink import Sink, TooLarge
from lcc_scrapy.domain.cache import Body
from lcc_scrapy.domain.errors import Exhausted, LeaseLost, UrlRefused
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.outgoing import NotPublic, Outgoing, tls_context
from lcc_scrapy.queue_manager import TurnPass
from lcc_scrapy.wiring import Worker, worker_of

BODY = "lcc_body"
"""Key of ``request.meta`` under which the ``Body`` of the answer is found."""

TURN = "lcc_turn"
"""Key of ``request.meta`` with the ``TurnPass`` of the turn whose bandwidth pays for a request."""

PRIVATE_HOSTS = "lcc_private_hosts"
"""Key of ``request.meta``: ``host:port`` of the roots that were approved for private addresses."""

IN_MEMORY = "lcc_in_memory"
"""Key of ``request.meta``: the largest body in bytes, all of it wanted in memory."""

STREAMED = "lcc-streamed"
"""Flag of a response whose body lies in a file instead of ``response.body``."""

INFORMATIONAL = 20
"""Answers of status 1xx that may come before the real one."""

WINDOW = 0.5
"""Seconds' worth of its limit that a site may send in advance: a round trip and more."""

LEAST_WINDOW, LARGEST_WINDOW = 8_192, 200_000
"""Bytes. Every system grants the largest; beyond it the operating system's own measure serves better."""

ACCEPT_ENCODING = ", ".join(decoding.ACCEPTED)
_READ_BUFFER = 65_536
_window: ContextVar[int] = ContextVar("window", default=0)
_patience: ContextVar[float | None] = ContextVar("patience", default=None)
_bounded: WeakSet[object] = WeakSet()


class FetchAborted(IgnoreRequest):
    """The turn was lost or the process stops: the URL stays in its place. Nothing to settle."""


class AddressRefused(DownloadConnectionRefusedError):
    """The address is private, loopback, link-local or otherwise not for this provider (615)."""


class TlsFailed(DownloadConnectionRefusedError):
    """No TLS connection, or a certificate that does not verify (612)."""


class ConnectTimedOut(DownloadTimeoutError):
    """No connection within the time allowed (602: it speaks of the host)."""


class BodyTooLarge(DownloadCancelledError):
    """The decoded body is larger than ``LCC_FETCH_MAX_BYTES`` (604)."""


class LccDownloadHandler(BaseDownloadHandler):
    """Fetches the http and https URLs of the LCC's turns."""

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        worker = worker_of(crawler)
        if worker is None:
            raise NotConfigured("the LCC's download handler serves the LCC's spiders only")
        self._worker: Worker = worker
        verify = crawler.settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES", default=True)
        self._outgoing = Outgoing(
            worker.config.fetches * 2,
            tls_context(verify=verify),
            response_class=_Answer,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        )
        self._under_way: set[asyncio.Task[Response]] = set()
        worker.on_abort.append(self._cut_off)

    async def download_request(self, request: Request) -> Response:
        """Fetch one request; raises Scrapy's download exceptions, or ``FetchAborted``."""
        if self._worker.aborting:
            raise FetchAborted("the process stops")
        fetching = asyncio.ensure_future(self._fetch(request))
        self._under_way.add(fetching)
        try:
            return await fetching
        except asyncio.CancelledError:
            if self._worker.aborting:
                raise FetchAborted("the process stops") from None
            raise
        finally:
            self._under_way.discard(fetching)

    def _cut_off(self) -> None:
        for fetching in self._under_way:
            fetching.cancel()

    async def _fetch(self, request: Request) -> Response:
        target = _target(request.url)
        session = self._outgoing.session(private=may_be_private(target, request))
        window = _window_for(self._worker.manager.limit(request.meta.get(TURN)))
        _window.set(window)
        _patience.set(self._worker.config.fetch_timeout or None)
        try:
            async with session.request(
                request.method,
                yarl.URL(str(target), encoded=True),
                data=request.body or None,
                headers=request.headers.to_tuple_list(),
                allow_redirects=False,
                proxy=request.meta.get("proxy"),
                read_bufsize=min(window // 4 or _READ_BUFFER, _READ_BUFFER),
                timeout=self._timeout(),
            ) as answer:
                body = await self._read_body(request, answer)
                request.meta[BODY] = body
                return _response(request, answer, body)
        except LeaseLost as error:
            raise FetchAborted(str(error)) from error
        except (aiohttp.ClientError, TimeoutError, TooLarge, decoding.BadCoding) as error:
            raise _translated(error, request.url) from error

    def _timeout(self) -> aiohttp.ClientTimeout:
        config = self._worker.config
        return aiohttp.ClientTimeout(
            total=config.fetch_deadline,
            connect=config.fetch_timeout,
            sock_connect=config.fetch_timeout,
            sock_read=config.fetch_timeout,
        )

    async def _read_body(self, request: Request, answer: aiohttp.ClientResponse) -> Body:
        wanted = request.meta.get(IN_MEMORY)
        memory, limit = self._worker.config.memory_body, self._worker.config.fetch_max_bytes
        sink = Sink(self._worker.content, wanted or memory, wanted or limit)
        try:
            await self._pour(answer, sink, request.meta.get(TURN))
            if not sink.spilled:
                return sink.finish()
            return await asyncio.get_running_loop().run_in_executor(None, sink.finish)
        except BaseException:
            sink.discard()
            raise

    async def _pour(self, answer: aiohttp.ClientResponse, sink: Sink, turn: TurnPass | None) -> None:
        decoder = decoding.decoder(_coding(answer))
        unbroken = 0
        async for chunk in answer.content.iter_any():
            pause = self._worker.manager.charge(turn, len(chunk))
            sink.come(len(chunk))
            for piece in decoder.feed(chunk):
                sink.write(piece)
                unbroken += len(piece)
                if unbroken > decoding.PIECE:
                    unbroken = 0
                    await asyncio.sleep(0)
            await self._rest(turn, pause)
        decoder.end()

    async def _rest(self, turn: TurnPass | None, pause: float) -> None:
        """Let others run, for ``pause`` seconds or until the limit is raised.

        Gives up when the process stops or the turn is lost meanwhile.
        """
        while True:
            if self._worker.aborting:
                raise FetchAborted("the process stops")
            if pause <= 0:
                break
            await asyncio.sleep(min(pause, 1.0))
            pause = min(pause - 1.0, self._worker.manager.charge(turn, 0))

    async def close(self) -> None:
        """Close all connections."""
        await self._outgoing.close()


def may_be_private(url: HttpUrl, request: Request) -> bool:
    """Tell whether the host of ``url`` may have a private address: it is one of the approved roots'."""
    return url.netloc in request.meta.get(PRIVATE_HOSTS, ())


class _Answer(aiohttp.ClientResponse):
    """Remembers the peer, which aiohttp forgets with the connection, and bounds what it sends in advance.

    Its head must be complete within the time allowed for silence, however many bits of it keep coming.

    The system would take in megabytes that nobody reads yet, whatever the limit. What was bounded once
    cannot be left to the system again, so a connection that goes to a faster turn keeps a bound.
    """

    peer = ""

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        transport, window = connection.transport, _window.get()
        if transport is not None:
            peer = transport.get_extra_info("peername")
            self.peer = str(peer[0]) if peer else ""
            if window or connection.protocol in _bounded:
                inner = transport.get_extra_info("socket")
                inner.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window or LARGEST_WINDOW)
                _bounded.add(connection.protocol)
        with _few_informational(connection.protocol):
            async with asyncio.timeout(_patience.get()):
                return await super().start(connection)


def _coding(answer: aiohttp.ClientResponse) -> str:
    return ",".join(answer.headers.getall("Content-Encoding", ()))


@contextmanager
def _few_informational(protocol: Any) -> Iterator[None]:
    """Bound the informational answers before the one that counts; aiohttp takes them without end."""
    read, answers = protocol.read, count()

    async def counted() -> Any:
        if next(answers) > INFORMATIONAL:
            raise HttpProcessingError(message="too many informational answers")
        return await read()

    protocol.read = counted
    try:
        yield
    finally:
        del protocol.read


def _window_for(limit: int) -> int:
    """Return how much may arrive in advance (bytes) where ``limit`` holds; 0 = as the system likes it."""
    window = max(LEAST_WINDOW, int(limit * WINDOW))
    return window if limit and window <= LARGEST_WINDOW else 0


def _target(url: str) -> HttpUrl:
    """Read a URL as the roots do, so that nobody goes where somebody else has read another host."""
    try:
        return HttpUrl.parse(url)
    except UrlRefused as error:
        raise UnsupportedURLSchemeError(f"{url[:200]}: {error}") from error


def _response(request: Request, answer: aiohttp.ClientResponse, body: Body) -> Response:
    headers = Headers(answer.raw_headers)
    if decoding.is_decoded(_coding(answer)):
        headers.pop(b"Content-Encoding", None)
    data = body.data or b""
    kind = responsetypes.from_args(headers=headers, url=request.url, body=data[:5000])
    peer = getattr(answer, "peer", "")
    return kind(
        request.url,
        status=answer.status,
        headers=headers,
        body=data,
        request=request,
        flags=[STREAMED] if body.path else [],
        ip_address=ip_address(peer.partition("%")[0]) if peer else None,
        protocol=f"HTTP/{answer.version.major}.{answer.version.minor}" if answer.version else None,
    )


_SCRAPYS: tuple[tuple[type[BaseException], type[Exception]], ...] = (
    (TooLarge, BodyTooLarge),
    (decoding.BadCoding, ResponseDataLossError),
    (aiohttp.InvalidURL, UnsupportedURLSchemeError),
    (aiohttp.NonHttpUrlClientError, UnsupportedURLSchemeError),
    (aiohttp.ClientConnectorDNSError, CannotResolveHostError),
    (aiohttp.ClientSSLError, TlsFailed),
    (aiohttp.ClientConnectorError, DownloadConnectionRefusedError),
    (aiohttp.ConnectionTimeoutError, ConnectTimedOut),
    (TimeoutError, DownloadTimeoutError),
    (aiohttp.ClientPayloadError, ResponseDataLossError),
)


def _translated(error: BaseException, url: str) -> Exception:
    """Return Scrapy's exception for one of aiohttp's, so that a team's middlewares know it.

    What this process lacks itself is ``Exhausted``, whatever aiohttp makes of it.
    """
    text = f"{url}: {error}"
    if _is_exhausted(error):
        return Exhausted(text)
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, NotPublic):
        return AddressRefused(text)
    kind = next((theirs for ours, theirs in _SCRAPYS if isinstance(error, ours)), DownloadFailedError)
    return kind(text)


_OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""What ``socket`` and ``connect`` say when the system has no descriptor or buffer left for us."""


def _is_exhausted(error: BaseException) -> bool:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return not _has_descriptors()
    return isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno in _OURS


def _has_descriptors() -> bool:
    """Tell whether a name server could be asked: the resolver does not say why it could not."""
    try:
        for _ in range(2):
            os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True
