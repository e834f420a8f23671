"""An HTTP server for an application, which slow, deaf and silent clients cannot hold up.

uvicorn bounds what is in flight and how long a connection may be idle between requests. What it leaves open
is bounded here: connections that have asked for nothing yet, from their first byte on, also before TLS; how
long the head of a request may take, and an answer that nobody reads.
"""

import asyncio
import logging
import os
import re
import signal
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.http_serving import Endpoint, Service
from lcc_scrapy.listeners.peers import Networks, is_among, is_here, neighbourhood, plain_address
from lcc_scrapy.machine.forced_exit import leave
from lcc_scrapy.machine.watchdog import SignsOfLife
from lcc_scrapy.web.newcomers import Door, Newcomers
from lcc_scrapy.wire.sockets import send_at_once

_log = logging.getLogger(__name__)

HEAD_BYTES = 16 * 1024
"""Of one request: the line and all headers."""

HEAD_SECONDS = 10.0
"""From the first byte of a connection or request to the end of its head."""

STOP_GRACE = 5.0
"""Seconds after ``Service.stop_seconds``; then a thread that hangs is left."""

_END_OF_HEAD = re.compile(rb"\n\r?\n")
_LENGTH = re.compile(rb"^content-length[ \t]*:", re.IGNORECASE | re.MULTILINE)
_CODING = re.compile(rb"^transfer-encoding[ \t]*:", re.IGNORECASE | re.MULTILINE)
_BACKLOG = 1024
_SOCKET_MODE = 0o660


class Crowd:
    """How many connections each address has (an IPv6 /64 is one)."""

    def __init__(self, most: int, proxies: Networks) -> None:
        self._most = most
        self._proxies = proxies
        self._here: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._here)

    def arrive(self, peer: str) -> str | None:
        """Count a connection; returns as whose, to say so to ``leave``, or None when there are too many."""
        address = plain_address(peer)
        if is_here(address) or is_among(address, self._proxies):
            return ""
        whose = neighbourhood(address)
        if self._here.get(whose, 0) >= self._most:
            return None
        self._here[whose] += 1
        return whose

    def leave(self, whose: str) -> None:
        """A connection is over."""
        if whose:
            self._here[whose] -= 1
            if not self._here[whose]:
                del self._here[whose]


class _Protocol(H11Protocol):
    """uvicorn's own, with an end to waiting and to crowds."""

    def __init__(
        self, *args: Any, silence: float, crowd: Crowd, newcomers: Newcomers, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._silence = silence
        self._crowd = crowd
        self._newcomers = newcomers
        self._whose = ""
        self._head_timer: asyncio.TimerHandle | None = None
        self._deaf_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        whose = self._crowd.arrive((self.client or ("",))[0])
        if whose is None:
            transport.abort()
            return
        self._whose = whose
        self._newcomers.enter(transport)
        self._look_at_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._is_between_requests():
            self._newcomers.leave(self.transport)
        self._look_at_head()

    def handle_events(self) -> None:
        """Go on reading; a head that is wrong, however it was cut, ends the connection."""
        if self.conn.their_state is h11.IDLE and (fault := fault_of(self.conn.trailing_data[0])):
            self.send_400_response(fault)
            return
        super().handle_events()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head_timer, self._deaf_timer):
            if timer is not None:
                timer.cancel()
        self._crowd.leave(self._whose)
        self._newcomers.leave(self.transport)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._deaf_timer = self.loop.call_later(self._silence, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._deaf_timer is not None:
            self._deaf_timer.cancel()

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _look_at_head(self) -> None:
        if self._head_timer is not None and not self._is_between_requests():
            self._head_timer.cancel()
            self._head_timer = None
        elif self._head_timer is None and self._is_between_requests():
            seconds = min(HEAD_SECONDS, self._silence)
            self._head_timer = self.loop.call_later(seconds, self._head_is_late)

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self._is_between_requests():
            self.transport.abort()


def fault_of(begun: bytes) -> str:
    """Say what is wrong with a request that begins so, empty = nothing that h11 would not find."""
    end = _END_OF_HEAD.search(begun, 0, HEAD_BYTES)
    if end is None:
        return "The head of the request is too long." if len(begun) >= HEAD_BYTES else ""
    head = begun[: end.end()]
    if _LENGTH.search(head) and _CODING.search(head):
        return "Content-Length beside Transfer-Encoding."
    return ""


class Server(uvicorn.Server):
    """Serves an application until SIGTERM or SIGINT; SIGHUP reads the certificate again.

    ``stopping`` is called when the end begins: what waits has to stop waiting. ``renewing`` is called in a
    thread at SIGHUP: more is to be read again. Without ``lifespan``, whoever made the application begins and
    ends its life: several servers may share it.
    """

    def __init__(
        self,
        app: Any,
        endpoint: Endpoint,
        service: Service,
        stopping: Callable[[], None] = lambda: None,
        *,
        lifespan: bool = True,
        renewing: Callable[[], None] = lambda: None,
    ) -> None:
        self._endpoint = endpoint
        self._service = service
        self._stopping = stopping
        self._renewing = renewing
        self._serving: asyncio.Future[None] | None = None
        self._ready = asyncio.Event()
        self._signs_of_life: SignsOfLife | None = None
        _check_privacy(endpoint, service)
        self._secure: ssl.SSLContext | None = None
        self._newcomers = Newcomers(service.connections)
        self._crowd = Crowd(service.connections_per_address, service.proxies)
        super().__init__(
            uvicorn.Config(
                app,
                http=self._protocol,  # type: ignore[arg-type]
                uds=endpoint.path or None,
                ws="none",
                lifespan="on" if lifespan else "off",
                loop="asyncio",
                log_config=None,
                log_level=logging.WARNING,  # of uvicorn's own
                access_log=False,  # see guards
                proxy_headers=False,
                server_header=False,
                limit_concurrency=service.connections,
                backlog=_BACKLOG,
                timeout_graceful_shutdown=int(service.stop_seconds),
                h11_max_incomplete_event_size=HEAD_BYTES,
                ssl_context_factory=self._tls if service.certificate else None,
            )
        )

    def _protocol(self, *args: Any, **options: Any) -> asyncio.Protocol:
        """Return what serves a connection, behind a handshake where that is wanted."""
        made = _Protocol(
            *args, silence=self._service.silence, crowd=self._crowd, newcomers=self._newcomers, **options
        )
        return made if self._secure is None else Door(made, self._secure, self._newcomers, HEAD_SECONDS)

    def serve_until_told(self) -> None:
        """Run; raises ``ConfigurationError`` when it cannot listen."""
        endpoint = self._endpoint
        sockets = None if endpoint.path else [_listening(endpoint)]
        self._signs_of_life = SignsOfLife(health_file=self._service.health_file)
        if sockets:
            _log.info("listening on %s", _shown(sockets[0]))
        self.run(sockets)

    async def begin(self) -> str:
        """Listen, and serve beside what else runs on this loop; the result is the address.

        Raises ``ConfigurationError`` when it cannot. ``end`` ends it.
        """
        sockets = None if self._endpoint.path else [_listening(self._endpoint)]
        self._serving = asyncio.ensure_future(self._serve(sockets))
        ready = asyncio.ensure_future(self._ready.wait())
        await asyncio.wait({self._serving, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._serving.done():
            self._serving.result()
        return _shown(sockets[0]) if sockets else self._endpoint.path

    async def end(self) -> None:
        """Take no more connections, and let requests end within ``Service.stop_seconds``."""
        if self._serving is None:
            return
        self.should_exit = True
        self._stopping()
        await self._serving

    def check_certificate(self) -> bool:
        """Tell whether it is served over TLS; raises ``ConfigurationError`` for what cannot be used."""
        if self._service.certificate:
            self._load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        return bool(self._service.certificate)

    async def startup(self, sockets: list[Any] | None = None) -> None:
        """Listen; uvicorn would let any number of connections wait for their handshakes."""
        self._secure, self.config.ssl = self.config.ssl, None
        try:
            await super().startup(sockets)
        except OSError as error:
            raise ConfigurationError(f"cannot listen on {self._endpoint}: {error.strerror}") from None
        self._ready.set()
        if path := self._endpoint.path:
            os.chmod(path, _SOCKET_MODE)  # noqa: PTH101 - of a loop that serves nobody yet
        if self._signs_of_life is not None:
            self._signs_of_life.begin()

    async def on_tick(self, counter: int) -> bool:
        """Give signs of life; uvicorn calls this ten times a second."""
        if self._signs_of_life is not None:
            self._signs_of_life.give(time.monotonic())
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals on the loop; unlike uvicorn, exit with status 0."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        yield

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begin to stop."""
        super().handle_exit(sig, frame)
        if self._signs_of_life is not None:
            self._signs_of_life.stop()
        self._stopping()
        end = threading.Timer(self._service.stop_seconds + STOP_GRACE, leave)
        end.daemon = True
        end.start()

    def _tls(self, _config: uvicorn.Config, _default: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load(context)
        return context

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self._service.certificate, self._service.key or None)
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(f"LCC_HTTP_CERTIFICATE, LCC_HTTP_KEY: {error}") from None

    def renew_certificate(self) -> bool:
        """Read the certificate again, if there is one; raises ``ConfigurationError``, the old one stays."""
        if self._secure is None:
            return False
        try:
            self.check_certificate()  # a broken one must not get into use
        except ConfigurationError as error:
            raise ConfigurationError(f"{error}: the old certificate stays in use") from None
        self._load(self._secure)
        return True

    def _hang_up(self) -> None:
        self._renew_certificate()
        asyncio.get_running_loop().run_in_executor(None, self._renewing)

    def _renew_certificate(self) -> None:
        try:
            if self.renew_certificate():
                _log.info("the certificate was read again")
        except ConfigurationError as error:
            _log.error("%s", error)


def _check_privacy(endpoint: Endpoint, service: Service) -> None:
    if not (endpoint.is_private or service.certificate or service.allow_plain_remote):
        raise ConfigurationError(
            f"{endpoint.host}:{endpoint.port} is beyond loopback, and tokens would cross the network in plain"
            " text: set LCC_HTTP_CERTIFICATE, put a proxy with TLS in front of 127.0.0.1, or set"
            " LCC_HTTP_ALLOW_PLAIN_REMOTE"
        )


def _listening(endpoint: Endpoint) -> Any:
    family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    try:
        made = socket.create_server((endpoint.host, endpoint.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {endpoint.host}:{endpoint.port}: {os.strerror(error.errno or 0)}"
        ) from None
    send_at_once(made)
    return made


def _shown(listening: Any) -> str:
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
