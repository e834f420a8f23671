"""One URL got from its site: the answer's head and its body, streamed, paced and guarded.

* Bodies up to ``LCC_MEMORY_BODY`` are handled in memory, larger ones go to a temporary content file as
  they arrive, so that a body of any size costs the same memory.
* Every byte transferred is charged to the turn it belongs to; a body that runs ahead of its limit is
  paused while it arrives (``pacing.py``).
* Connections are made by ``outgoing``, which guards where they go.

What goes wrong is told in Scrapy's download exceptions, or those of ``download_errors``.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote

from scrapy.exceptions import UnsupportedURLSchemeError

from lcc_scrapy.app.wiring import Worker
from lcc_scrapy.content import decoding
from lcc_scrapy.content.sink import Sink, TooLarge
from lcc_scrapy.content.stored import open_body
from lcc_scrapy.domain.cache import Body, LazyBody
from lcc_scrapy.domain.compression import NONE, coding_for
from lcc_scrapy.domain.content_types import content_type
from lcc_scrapy.domain.entries import accepts
from lcc_scrapy.domain.errors import ConfigurationError, Exhausted, LeaseLost
from lcc_scrapy.domain.queue import QueuedUrl
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.domain.site_access import Proxy, Secret, basic, proxy_of
from lcc_scrapy.domain.sniffing import HEAD, sniffed
from lcc_scrapy.fetch.coded_bodies import CodedBody
from lcc_scrapy.fetch.download_errors import PasswordRefused, TypeNotAccepted, translated
from lcc_scrapy.fetch.pacing import FetchAborted, Pacer
from lcc_scrapy.http.answer import Answer, HttpError
from lcc_scrapy.http.connection import Connection, Unclosed
from lcc_scrapy.http.credentials import DIRECT, Access, brings_own, request_to
from lcc_scrapy.http.digest import DigestSession
from lcc_scrapy.http.draining import drained
from lcc_scrapy.http.outgoing import (
    NoConnection,
    NoProxy,
    Outgoing,
    refused_by_proxy,
    tls_context,
)
from lcc_scrapy.http.request import Request
from lcc_scrapy.queue.held_turn import TurnPass

BODIES_OF_COMPONENTS = 64_000_000
"""Bytes that a body may have in memory which a component asked for, without a turn: it looks nowhere else."""

DOCUMENT = frozenset({200, 203})
"""Answers that bring a document."""

_SUCCESS = range(200, 300)

WINDOW = 0.5
"""Seconds' worth of its limit that a site may send in advance: a round trip and more."""

LEAST_WINDOW, LARGEST_WINDOW = 8_192, 200_000
"""Bytes. Every system grants the largest; beyond it the operating system's own measure serves better."""

ACCEPT_ENCODING = ", ".join(decoding.ACCEPTED)
PROXY_REFUSES, PASSWORD_REFUSED = 407, 401
_PROXY_AUTHORIZATION = b"proxy-authorization"

Made = TypeVar("Made")
Fields = Sequence[tuple[bytes, bytes]]
"""Header fields in their order, as they stand on the wire."""


class _Challenged(Exception):
    """The site asks for the password by HTTP Digest, and was not told before."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. ``version`` is that of HTTP, ``peer`` the address of the site, empty = a proxy knows it.

    ``headers`` are as they came, without a Content-Encoding that the LCC knows. ``whole``: so is the body;
    else its status says all, and this is what came of the first 64 kB. ``head`` are the first bytes of a
    document of which the site says no type; None = it does.
    """

    status: int
    reason: str
    headers: Fields
    version: str
    peer: str
    body: Body
    whole: bool = True
    head: bytes | None = None


class Getter:
    """Gets URLs for one worker. ``verify``: whether the certificates of sites must verify."""

    def __init__(self, worker: Worker, *, verify: bool = True) -> None:
        self._worker = worker
        self._outgoing = Outgoing(worker.config.connections_out, tls_context(verify=verify))
        self._under_way: set[asyncio.Task[Any]] = set()
        worker.on_abort.append(self._cut_off)

    async def get(
        self,
        url: HttpUrl,
        headers: Fields,
        *,
        turn: TurnPass | None = None,
        private_hosts: Collection[str] = (),
        types: tuple[str, ...] | None = None,
        row: QueuedUrl | None = None,
        in_memory: int = 0,
        paced: bool = False,
        method: str = "GET",
        data: bytes = b"",
        proxy: str | None = None,
    ) -> Reply:
        """Get one URL, redirects not followed; raises Scrapy's download exceptions, or ``FetchAborted``.

        ``turn`` pays for what is transferred, and its provider's proxy, passwords and client certificates are
        used; ``proxy`` is that of a component. ``private_hosts`` (``host:port``) may have private addresses,
        ``types`` are patterns of the mimetypes wanted (None = any), ``row`` declares a document, and
        ``in_memory`` is the largest body in bytes if all of it is wanted in memory (0 = as configured): no
        limit holds it up unless it is ``paced``. Must run in a task, which is cancelled when the process
        stops.
        """
        task = asyncio.current_task()
        assert task is not None
        if self._worker.aborting:
            raise FetchAborted("the process stops")
        access, pid = self._access(url, headers, turn, proxy), turn.pid if turn else 0
        self._under_way.add(task)
        try:
            digest = None if access.digest is None or brings_own(headers) else access.digest
            exchange = partial(
                self._exchange,
                private=url.netloc in private_hosts,
                known=bool(access.authorization or digest),
                turn=turn,
                types=types,
                row=row,
                in_memory=in_memory,
                paced=paced,
            )
            try:
                return await exchange(request_to(url, headers, access, method, data, pid=pid), digest=digest)
            except _Challenged:
                return await exchange(request_to(url, headers, access, method, data, pid=pid))
        except LeaseLost as error:
            raise FetchAborted(str(error)) from error
        except (HttpError, NoConnection, TimeoutError, TooLarge, decoding.BadCoding) as error:
            is_proxys = access.proxy and not isinstance(error, NoProxy)  # of which NoProxy tells itself
            raise self._told(error, f"{url} by its proxy" if is_proxys else str(url)) from error
        except asyncio.CancelledError:
            if not self._worker.aborting:
                raise
            task.uncancel()
            raise FetchAborted("the process stops") from None
        finally:
            self._under_way.discard(task)

    def _access(self, url: HttpUrl, headers: Fields, turn: TurnPass | None, proxy: str | None) -> Access:
        access = DIRECT if turn is None else self._worker.credentials.of(turn.pid, url)
        if access.proxy is not None or proxy is None:
            return access
        return access._replace(proxy=_proxy(proxy, headers))

    def _told(self, error: Exception, url: str) -> Exception:
        told = translated(error, url)
        if isinstance(told, Exhausted):
            self._outgoing.relax()
        return told

    def _cut_off(self) -> None:
        for fetching in self._under_way:
            fetching.cancel()

    async def _exchange(
        self,
        request: Request,
        *,
        private: bool,
        known: bool,
        turn: TurnPass | None,
        types: tuple[str, ...] | None,
        row: QueuedUrl | None,
        in_memory: int,
        paced: bool,
        digest: DigestSession | None = None,
    ) -> Reply:
        """Send a request; with ``digest``, a 401 is a challenge to answer, and raises ``_Challenged``."""
        config = self._worker.config

        async def read(connection: Connection) -> Reply:
            answer = connection.answer
            _check_proxy(request, answer)
            if digest and answer.status == PASSWORD_REFUSED:
                await self._hear(digest, connection, turn)
            if known and answer.status == PASSWORD_REFUSED:
                raise PasswordRefused
            peer = "" if request.origin.proxy else connection.peer
            if not _brings_body(answer.status, in_memory):
                return _reply(connection, peer, *await self._drained(connection, turn))
            _check_type(types, answer)
            coded = _coded(answer, request.target, row)
            body = await self._read_body(
                connection, turn, in_memory, row=row, paced=paced, coded=coded, types=types
            )
            reply = _reply(connection, peer, body)
            _check_looks(types, reply.head)
            return reply

        return await self._outgoing.pool(private=private).exchange(
            request,
            read,
            patience=config.fetch_timeout,
            deadline=config.fetch_deadline,
            window=_window_for(self._worker.manager.limit(turn)),
            largest=LARGEST_WINDOW,
            final=(FetchAborted, LeaseLost, _Challenged),
        )

    async def _hear(self, digest: DigestSession, connection: Connection, turn: TurnPass | None) -> None:
        """Take a challenge from an answer; the turn pays for its body, of which not much is read."""
        if not digest.hear(connection.answer.headers):
            raise PasswordRefused("the site does not ask for the password by HTTP Digest")
        await self._drained(connection, turn)
        raise _Challenged

    async def _drained(self, connection: Connection, turn: TurnPass | None) -> tuple[Body, bool]:
        """Return the beginning of a body that changes nothing, and whether it is all; its turn pays."""
        body, whole = await drained(connection)
        self._worker.manager.charge(turn, connection.answer.arrived)
        if self._worker.aborting:
            raise FetchAborted("the process stops")
        return LazyBody(body), whole

    async def _read_body(
        self,
        connection: Connection,
        turn: TurnPass | None,
        in_memory: int,
        *,
        row: QueuedUrl | None,
        paced: bool,
        coded: CodedBody | None,
        types: tuple[str, ...] | None,
    ) -> Body:
        memory, limit = self._worker.config.memory_body, self._worker.config.fetch_max_bytes
        if turn is None:
            memory = BODIES_OF_COMPONENTS
        stored = "" if in_memory else self._stored_coding(connection.answer)
        make = partial(Sink, self._worker.content, in_memory or memory, in_memory or limit)
        as_it_comes = coded is not None and coded.is_kept_as_it_comes
        sink = make("" if as_it_comes else stored)
        coding = coded.to_undo if coded else connection.answer.field(b"content-encoding")
        decoder = decoding.decoder("" if as_it_comes else coding)
        if types is not None and not as_it_comes and _is_untyped(connection.answer):
            decoder = _Watched(decoder, types)
        try:
            pacer = Pacer(self._worker, turn, connection, sink, waits=paced or not in_memory)
            unclosed = await pour(connection, sink, pacer, decoder)
            body = await _finished(sink)
        except BaseException:
            sink.discard()
            raise
        if coded is not None and as_it_comes:
            body = await coded.content(body, lambda body, coding: _undone(body, coding, make(stored)))
        if unclosed is not None and not _is_declared(body, row):
            raise unclosed
        return body

    def _stored_coding(self, answer: Answer) -> str:
        """Return how the content file of a body is compressed, if it comes to one."""
        coding = self._worker.config.content_compression
        return "" if coding == NONE else coding_for(coding, _mimetype(answer))

    async def close(self) -> None:
        """Close all connections."""
        await self._outgoing.close()


async def pour(
    connection: Connection, sink: Sink, pacer: Pacer, decoder: decoding.Decoder
) -> Unclosed | None:
    """Read a body; returns the error of one that may be cut, for it may be all that was declared."""
    try:
        while pieces := await connection.more():
            for chunk in pieces:
                pacer.charge(len(chunk))
                sink.come(len(chunk))
                await _fill(sink, decoder, chunk)
            await pacer.rest()
    except Unclosed as error:
        return error
    decoder.end()
    return None


async def _fill(sink: Sink, decoder: decoding.Decoder, chunk: bytes) -> None:
    for piece in decoder.feed(chunk):
        sink.write(piece)
        if sink.behind > decoding.PIECE:
            await _beside(sink.work)


async def _finished(sink: Sink) -> Body:
    return await _beside(sink.finish) if sink.blocks else sink.finish()


async def _undone(body: Body, coding: str, sink: Sink) -> Body:
    """Return a body without one of its codings."""
    decoder = decoding.decoder(coding)
    try:
        with open_body(body) as file:
            while block := await _beside(partial(file.read, decoding.PIECE)):
                await _fill(sink, decoder, block)
        decoder.end()
        return await _finished(sink)
    except BaseException:
        sink.discard()
        raise


def _beside(work: Callable[[], Made]) -> "asyncio.Future[Made]":
    """Do work in another thread: digests and disks leave the interpreter to the event loop meanwhile."""
    return asyncio.get_running_loop().run_in_executor(None, work)


def _proxy(url: str, headers: Fields) -> Proxy:
    """Return a proxy that a component named; its user is in the URL, or in Proxy-Authorization."""
    scheme, _, rest = url.rpartition("://")
    user, _, host = rest.rpartition("@")
    try:
        proxy = proxy_of("proxy", f"{scheme or 'http'}://{host}")
    except ConfigurationError as error:
        raise UnsupportedURLSchemeError(str(error)) from None
    name, _, password = user.partition(":")
    said = basic(unquote(name), unquote(password)) if name else Secret()
    said = next((Secret(value) for field, value in headers if field.lower() == _PROXY_AUTHORIZATION), said)
    return proxy._replace(authorization=said)


def _check_proxy(request: Request, answer: Answer) -> None:
    """Raise ``NoProxy`` where a proxy refuses that reads the request: others only pass bytes on."""
    origin = request.origin
    is_read = origin.proxy and not (origin.proxy.socks or origin.tls)
    if is_read and answer.status == PROXY_REFUSES:
        raise refused_by_proxy(f"{answer.status} {answer.reason}".rstrip())


def _brings_body(status: int, in_memory: int) -> bool:
    """Tell whether an answer stands or falls with its body; the status of all others says all.

    Who wants a body in memory (robots.txt, a page that is rendered) takes it of any success.
    """
    return status in DOCUMENT or (in_memory > 0 and status in _SUCCESS)


def _is_declared(body: Body, row: QueuedUrl | None) -> bool:
    """Tell whether a body that may be cut is all that its provider declared."""
    return row is not None and (row.md5, row.len) == (body.md5, body.length)


def _mimetype(answer: Answer) -> str:
    """Return the type of an answer, empty = it says none."""
    return content_type(answer.field(b"content-type")).mimetype


def _check_type(types: tuple[str, ...] | None, answer: Answer) -> None:
    mimetype = _mimetype(answer)
    if types is not None and mimetype and not accepts(types, mimetype):
        raise TypeNotAccepted(mimetype)


def _check_looks(types: tuple[str, ...] | None, head: bytes | None) -> None:
    """Check the type of a document of which the site says none."""
    if types is not None and head is not None and not accepts(types, mimetype := sniffed(head)):
        raise TypeNotAccepted(mimetype)


def _coded(answer: Answer, target: str, row: QueuedUrl | None) -> CodedBody | None:
    """Return how to undo the codings of a document's body, None = there are none, or it is no document."""
    coding = answer.field(b"content-encoding")
    if row is None or not coding or answer.status not in DOCUMENT:
        return None
    codings = decoding.to_undo(coding)
    if not codings:
        return None
    length = answer.field(b"content-length")
    is_told = length.isdecimal() and not answer.field(b"transfer-encoding")
    return CodedBody(
        codings,
        length=length if is_told else "",
        mimetype=_mimetype(answer),
        path=target.partition("?")[0],
        row=row,
    )


class _Watched:
    """Ends a body by its first bytes when its site says no type and what it looks like is not wanted."""

    def __init__(self, decoder: decoding.Decoder, types: tuple[str, ...]) -> None:
        self._decoder = decoder
        self._types = types
        self._head = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        for piece in self._decoder.feed(data):
            if len(self._head) < HEAD:
                self._head += piece[:HEAD]
                if len(self._head) >= HEAD:
                    _check_looks(self._types, self._head[:HEAD])
            yield piece

    def end(self) -> None:
        self._decoder.end()


def _is_untyped(answer: Answer) -> bool:
    return answer.status in DOCUMENT and not _mimetype(answer)


def _head(answer: Answer, body: Body) -> bytes | None:
    if not _is_untyped(answer):
        return None
    with open_body(body) as file:
        return file.read(HEAD)


def _window_for(limit: int) -> int:
    """Return how much may arrive in advance (bytes) where ``limit`` holds; 0 = as the system likes it."""
    window = max(LEAST_WINDOW, int(limit * WINDOW))
    return window if limit and window <= LARGEST_WINDOW else 0


def _reply(connection: Connection, peer: str, body: Body, whole: bool = True) -> Reply:
    answer = connection.answer
    headers: Fields = answer.headers
    if decoding.is_decoded(answer.field(b"content-encoding")):
        headers = [field for field in headers if field[0].lower() != b"content-encoding"]
    head = _head(answer, body)
    return Reply(answer.status, answer.reason, headers, answer.version, peer, body, whole, head)
