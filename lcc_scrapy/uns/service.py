"""The Update Notification Server: listens, counts connections, and stops in an orderly way."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredList, inlineCallbacks
from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IListeningPort, IStreamServerEndpoint
from twisted.internet.protocol import Factory
from twisted.internet.threads import deferToThreadPool

from lcc_scrapy.domain.errors import ConfigurationError, Refusal
from lcc_scrapy.uns.clerk import Office
from lcc_scrapy.uns.conversations import Conversations, plain_address
from lcc_scrapy.uns.limits import DEFAULT_LIMITS, Limits
from lcc_scrapy.uns.ports import Doorstep, ProviderDesk
from lcc_scrapy.uns.protocol import UnsProtocol
from lcc_scrapy.uns.spool import SpoolFolder
from lcc_scrapy.uns.tls import TlsEndpoint, TlsError, tls_endpoint

log = logging.getLogger(__name__)

DEFAULT_ENDPOINTS = ("tcp:9000:interface=127.0.0.1",)
_PRIVATE_BY_ITSELF = ("ssl:", "tls:", "unix:")
_LAST_WORDS_SECONDS = 2.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Doors:
    """Where and for how many the UNS is open."""

    endpoints: Sequence[str] = DEFAULT_ENDPOINTS
    """Twisted endpoint strings; empty = do not listen."""
    allow_plain_remote: bool = False
    """Listen beyond loopback without TLS, passwords in plain sight."""
    connections_per_address: int = 20
    """An IPv6 /64 counts as one address; more are answered with 104."""
    connections_max: int = 500
    """In all; more are answered with 104, and twice as many are cut without a word."""
    stop_seconds: float = 5.0
    """For conversations to end by themselves when the server stops; then 103 or 203 ends them."""


class UnsService(Factory):
    """Built by the wiring; ``reactor`` is Twisted's, passed in."""

    noisy = False

    def __init__(
        self,
        reactor: Any,
        desk: ProviderDesk,
        doorstep: Doorstep,
        spool: SpoolFolder,
        *,
        doors: Doors = Doors(),
        limits: Limits = DEFAULT_LIMITS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._reactor = reactor
        self._doors = doors
        self._conversations = Conversations(doors.connections_per_address, doors.connections_max)
        self._office = Office(
            desk, doorstep, spool, self._conversations, limits, reactor, now, self._in_thread
        )
        self._ports: list[IListeningPort] = []
        self._tls: list[TlsEndpoint] = []
        self._open: set[UnsProtocol] = set()
        self._all_gone: Deferred[None] | None = None

    def in_conversation(self, pid: int, seq: int) -> bool:
        """Tell whether a login at this UNS may still bring a set."""
        return self._conversations.is_open(pid, seq)

    @inlineCallbacks
    def start(self) -> Any:
        """Listen; the result is the list of addresses. Fails with ``ConfigurationError``."""
        try:
            for endpoint in self._doors.endpoints:
                port = yield self._listen(endpoint)
                self._ports.append(port)
                self._check_privacy(endpoint, port.getHost())
        except ConfigurationError:
            yield self._close_ports()
            raise
        return [port.getHost() for port in self._ports]

    @inlineCallbacks
    def stop(self) -> Any:
        """Stop listening, let conversations end, then end them; done within ``stop_seconds`` and 4 s."""
        yield self._close_ports()
        for seconds, end in (
            (self._doors.stop_seconds, UnsProtocol.stop),
            (_LAST_WORDS_SECONDS, UnsProtocol.cut),
            (_LAST_WORDS_SECONDS, UnsProtocol.cut),
        ):
            yield self._wait_until_all_gone(seconds)
            for protocol in list(self._open):
                end(protocol)

    def apply(self, doors: Doors, limits: Limits) -> None:
        """Go on with other bounds, for connections from now on; endpoints stay as they are."""
        self._doors = replace(doors, endpoints=self._doors.endpoints)
        self._conversations.allow(doors.connections_per_address, doors.connections_max)
        self._office = replace(self._office, limits=limits)

    @inlineCallbacks
    def renew_certificates(self) -> Any:
        """Read all certificates again, for connections from now on; the result is how many there are.

        Fails with ``ConfigurationError`` when one of them cannot be used; all old ones stay in use then.
        """
        try:
            ready = yield self._in_thread(lambda: [one.certificates.read() for one in self._tls])
        except TlsError as error:
            raise ConfigurationError(f"the old certificates stay in use: {error}") from None
        for use in ready:
            use()
        return len(ready)

    def buildProtocol(self, addr: IAddress | None) -> UnsProtocol | None:  # noqa: N802 - Twisted's name
        if self._conversations.crowded:
            return None
        protocol = UnsProtocol(self._office, plain_address(getattr(addr, "host", None)), self)
        protocol.factory = self
        return protocol

    def entered(self, protocol: UnsProtocol) -> Refusal | None:
        """Count a connection (for ``UnsProtocol``)."""
        self._open.add(protocol)
        if self._conversations.arrive(protocol.peer):
            return None
        crowd = {"peer": protocol.peer, "all": len(self._conversations), "code": 104}
        log.warning("uns too many connections peer=%(peer)s in all=%(all)d", crowd)
        return Refusal(104, "", self._office.limits.retry_after)

    def left(self, protocol: UnsProtocol) -> None:
        """Count a connection out (for ``UnsProtocol``)."""
        self._open.discard(protocol)
        self._conversations.leave(protocol.peer)
        if not self._open and self._all_gone is not None:
            waiting, self._all_gone = self._all_gone, None
            waiting.callback(None)

    @inlineCallbacks
    def _listen(self, endpoint: str) -> Any:
        try:
            server = _server(self._reactor, endpoint)
            port = yield server.listen(self)
        except CannotListenError as error:
            raise ConfigurationError(
                f"port {error.port} at {error.interface or 'all addresses'} is taken or not ours "
                f"({error.socketError}); set LCC_UNS_ENDPOINTS or stop the other process"
            ) from None
        except (ValueError, TypeError, OSError) as error:
            raise ConfigurationError(f"LCC_UNS_ENDPOINTS: {endpoint!r} cannot be used: {error}") from None
        if isinstance(server, TlsEndpoint):
            self._tls.append(server)
        return port

    def _check_privacy(self, endpoint: str, address: IAddress) -> None:
        if self._doors.allow_plain_remote or endpoint.startswith(_PRIVATE_BY_ITSELF):
            return
        host = getattr(address, "host", None)
        if host is not None and not ip_address(host.partition("%")[0]).is_loopback:
            raise ConfigurationError(
                f"LCC_UNS_ENDPOINTS: {endpoint!r} would take passwords in plain text from other machines; "
                "use ssl:, or set LCC_UNS_ALLOW_PLAIN_REMOTE"
            )

    def _close_ports(self) -> Deferred[Any]:
        ports, self._ports = self._ports, []
        return DeferredList([Deferred.fromCoroutine(_stop_port(port)) for port in ports])

    def _wait_until_all_gone(self, seconds: float) -> Deferred[None]:
        gone: Deferred[None] = Deferred()
        if not self._open:
            gone.callback(None)
            return gone
        self._all_gone = gone
        timer = self._reactor.callLater(seconds, self._stop_waiting)
        return gone.addBoth(lambda result: (timer.active() and timer.cancel(), result)[1])

    def _stop_waiting(self) -> None:
        waiting, self._all_gone = self._all_gone, None
        if waiting is not None:
            waiting.callback(None)

    def _in_thread(self, work: Callable[[], T]) -> Deferred[T]:
        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), work)


def _server(reactor: Any, endpoint: str) -> IStreamServerEndpoint:
    secure = tls_endpoint(reactor, endpoint)
    return secure or serverFromString(reactor, endpoint)  # type: ignore[no-untyped-call]


async def _stop_port(port: IListeningPort) -> None:
    stopped = port.stopListening()
    if stopped is not None:
        await stopped
