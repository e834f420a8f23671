"""The Update Notification Server: listens, counts connections, and stops in an orderly way."""

import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_network
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredList, inlineCallbacks
from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress, IListeningPort, IStreamServerEndpoint
from twisted.internet.protocol import Factory
from twisted.internet.threads import deferToThreadPool

from lcc_scrapy.domain.errors import ConfigurationError, DiskFailed, InUse, Refusal
from lcc_scrapy.uns.clerk import Office
from lcc_scrapy.uns.conversations import Conversations, plain_address
from lcc_scrapy.uns.gatehouse import Gatehouse, HouseRules, Networks
from lcc_scrapy.uns.limits import DEFAULT_LIMITS, Limits
from lcc_scrapy.uns.ports import PLENTY, Doorstep, Means, ProviderDesk
from lcc_scrapy.uns.protocol import UnsProtocol
from lcc_scrapy.uns.spool import SpoolFolder
from lcc_scrapy.uns.tls import TlsEndpoint, TlsError, tls_endpoint

log = logging.getLogger(__name__)

DEFAULT_ENDPOINTS = ("tcp:9000:interface=127.0.0.1",)
DEFAULT_PROXIES = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
_BEHIND_A_PROXY = "haproxy:"
_PRIVATE_BY_ITSELF = ("ssl:", "tls:", "unix:")
_LAST_WORDS_SECONDS = 2.0
_SEND_BUFFER = 64 * 1024
"""Bytes of answers that the operating system keeps for one connection: by itself it takes megabytes."""
_BACKLOG = 1024
"""Connections that wait to be accepted; of Twisted's 50 and more that come at once, some would be reset."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Doors:
    """Where and for how many the UNS is open."""

    endpoints: Sequence[str] = DEFAULT_ENDPOINTS
    """Twisted endpoint strings; empty = do not listen."""
    allow_plain_remote: bool = False
    """Listen beyond loopback without TLS, passwords in plain sight."""
    connections_per_address: int = 10
    """An IPv6 /64 counts as one address; more are answered with 104."""
    connections_per_provider: int = 10
    """Conversations of one provider that is logged in; more are answered with 104."""
    connections_max: int = 1000
    """In all, a fifth of them for homes only; more get 104, and twice as many are cut without a word."""
    stop_seconds: float = 5.0
    """For conversations to end by themselves when the server stops; then 103 or 203 ends them."""
    proxies: Networks = DEFAULT_PROXIES
    """Whose PROXY header is believed at ``haproxy:`` endpoints; others are cut there."""


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
        means: Means = PLENTY,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._reactor = reactor
        self._doors = doors
        self._conversations = Conversations(
            doors.connections_per_address, doors.connections_max, doors.connections_per_provider
        )
        self._office = Office(
            desk, doorstep, spool, self._conversations, limits, reactor, now, self._in_thread, means
        )
        self._gatehouse = Gatehouse(self._converse, self._house_rules, reactor)
        self._ports: list[IListeningPort] = []
        self._tls: list[TlsEndpoint] = []
        self._open: set[UnsProtocol] = set()
        self._served: set[UnsProtocol] = set()
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
                _make_ready_for_many(port)
                self._check_privacy(endpoint, port)
        except ConfigurationError:
            yield self._close_ports()
            raise
        return [port.getHost() for port in self._ports]

    @inlineCallbacks
    def stop(self) -> Any:
        """Stop listening, let conversations end, then end them; done within ``stop_seconds`` and 4 s."""
        yield self._close_ports()
        self._gatehouse.close()
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
        self._conversations.allow(
            doors.connections_per_address, doors.connections_max, doors.connections_per_provider
        )
        self._office.limits = limits

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
        return self._converse(plain_address(getattr(addr, "host", None)))

    def _house_rules(self) -> HouseRules:
        doors, limits = self._doors, self._office.limits
        return HouseRules(doors.proxies, doors.connections_max, limits.login_seconds)

    def _converse(self, peer: str) -> UnsProtocol | None:
        if self._conversations.crowded(peer):
            return None
        protocol = UnsProtocol(self._office, peer, self)
        protocol.factory = self
        return protocol

    def entered(self, protocol: UnsProtocol) -> Refusal | None:
        """Count a connection (for ``UnsProtocol``)."""
        self._open.add(protocol)
        if self._conversations.arrive(protocol.peer):
            self._served.add(protocol)
            return None
        crowd = {"peer": protocol.peer, "all": len(self._conversations), "code": 104}
        line = "uns too many connections peer=%(peer)s in all=%(all)d"
        self._office.journal.note(logging.WARNING, line, crowd)
        return Refusal(104, "", self._office.limits.retry_after)

    def left(self, protocol: UnsProtocol) -> None:
        """Count a connection out (for ``UnsProtocol``)."""
        self._open.discard(protocol)
        self._conversations.leave(protocol.peer, served=protocol in self._served)
        self._served.discard(protocol)
        if not self._open and self._all_gone is not None:
            waiting, self._all_gone = self._all_gone, None
            waiting.callback(None)

    @inlineCallbacks
    def _listen(self, endpoint: str) -> Any:
        place, receiver = self._receiver(endpoint)
        try:
            server = _server(self._reactor, place)
            port = yield server.listen(receiver)
            port.getHost()  # fails, as listening does, for a socket of another domain than was said
        except CannotListenError as error:
            raise InUse(
                f"port {error.port} at {error.interface or 'all addresses'} is taken or not ours "
                f"({error.socketError}); set LCC_UNS_ENDPOINTS or stop the other process"
            ) from None
        except (ValueError, TypeError, LookupError, AttributeError, OSError) as error:
            raise ConfigurationError(f"LCC_UNS_ENDPOINTS: {endpoint!r} cannot be used: {error}") from None
        if isinstance(server, TlsEndpoint):
            self._tls.append(server)
        return port

    def _receiver(self, endpoint: str) -> tuple[str, Factory]:
        """Return where to listen, and who takes the connections."""
        if not endpoint.startswith(_BEHIND_A_PROXY):
            return endpoint, self
        place = endpoint.removeprefix(_BEHIND_A_PROXY)
        if place.startswith("ssl:"):
            raise ConfigurationError(
                f"LCC_UNS_ENDPOINTS: {endpoint!r}: the PROXY header comes before TLS; end TLS at the proxy"
            )
        return place, self._gatehouse

    def _check_privacy(self, endpoint: str, port: IListeningPort) -> None:
        if endpoint.startswith(_PRIVATE_BY_ITSELF):
            return
        host = _bound_to(port)
        if self._doors.allow_plain_remote or host is None:
            return
        if not ip_address(host.partition("%")[0]).is_loopback:
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
        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), self._watched, work)

    def _watched(self, work: Callable[[], T]) -> T:
        """Let nothing be answered any more once a disk has failed."""
        try:
            return work()
        except DiskFailed as error:
            self._office.means.notice(error)
            raise


def _server(reactor: Any, endpoint: str) -> IStreamServerEndpoint:
    secure = tls_endpoint(reactor, endpoint)
    return secure or serverFromString(reactor, endpoint)  # type: ignore[no-untyped-call]


def _make_ready_for_many(port: IListeningPort) -> None:
    """Bound what each connection of this port may keep in the operating system, and let more of them wait."""
    with _socket_of(port) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        same.listen(_BACKLOG)


def _bound_to(port: IListeningPort) -> str | None:
    """Return the IP address at which a port listens, None for a Unix socket.

    The socket is asked, for one that systemd handed over need not be what the endpoint says.
    """
    with _socket_of(port) as itself:
        return None if itself.family == socket.AF_UNIX else str(itself.getsockname()[0])


def _socket_of(port: Any) -> Any:
    """Return the socket of a port under a descriptor of its own."""
    return socket.socket(fileno=os.dup(port.fileno()))  # noqa: TID251 - one that listens


async def _stop_port(port: IListeningPort) -> None:
    stopped = port.stopListening()
    if stopped is not None:
        await stopped
