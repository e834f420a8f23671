"""Listening at Twisted's endpoint strings: with TLS, behind proxies, at sockets from systemd."""

import os
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

from twisted.internet.defer import Deferred, DeferredList, inlineCallbacks
from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort, IStreamServerEndpoint
from twisted.internet.protocol import Factory
from twisted.internet.threads import deferToThreadPool

from lcc_scrapy.domain.errors import ConfigurationError, InUse
from lcc_scrapy.listeners import socket_handover
from lcc_scrapy.listeners.proxy_protocol import ProxyProtocol
from lcc_scrapy.listeners.tls import TlsEndpoint, TlsError, tls_endpoint
from lcc_scrapy.wire.sockets import send_at_once

_BEHIND_A_PROXY = "haproxy:"
_PRIVATE_BY_ITSELF = ("ssl:", "tls:", "unix:")
_SEND_BUFFER = 64 * 1024
"""Bytes of answers that the operating system keeps for one connection: by itself it takes megabytes."""
_BACKLOG = 1024
"""Connections that wait to be accepted; of Twisted's 50 and more that come at once, some would be reset."""


class Listeners:
    """The endpoints of one server, which is called ``name`` in its settings (``LCC_NAME_ENDPOINTS``).

    ``factory`` takes connections, ``proxy_protocol`` those that a proxy passes on. Sockets that a supervisor
    kept (``socket_handover``) are taken over by their endpoint strings.
    """

    def __init__(self, reactor: Any, name: str, factory: Factory, proxy_protocol: ProxyProtocol) -> None:
        self._reactor = reactor
        self._setting = f"LCC_{name.upper()}_ENDPOINTS"
        self._factory = factory
        self._proxy_protocol = proxy_protocol
        self._ports: list[IListeningPort] = []
        self._tls: list[TlsEndpoint] = []

    @inlineCallbacks
    def open(self, endpoints: Sequence[str], danger: str) -> Any:
        """Listen; the result is the list of addresses. Fails with ``ConfigurationError``.

        ``danger`` says what listening beyond loopback without TLS would do; empty = it may be done.
        """
        try:
            for endpoint in endpoints:
                port = yield self._listen(endpoint)
                self._ports.append(port)
                _make_ready_for_many(port)
                self._check_privacy(endpoint, port, danger)
        except ConfigurationError:
            yield self.close()
            raise
        socket_handover.give(os.environ, endpoints, [port.fileno() for port in self._ports])  # type: ignore[attr-defined]
        return [port.getHost() for port in self._ports]

    def close(self) -> Deferred[Any]:
        """Stop listening; cut connections whose PROXY header is incomplete."""
        ports, self._ports = self._ports, []
        self._proxy_protocol.close()
        return DeferredList([Deferred.fromCoroutine(_stop_port(port)) for port in ports])

    @inlineCallbacks
    def renew_certificates(self) -> Any:
        """Read all certificates again, for connections from now on; the result is how many there are.

        Fails with ``ConfigurationError`` when one of them cannot be used; all old ones stay in use then.
        """
        pool = self._reactor.getThreadPool()
        try:
            ready = yield deferToThreadPool(
                self._reactor, pool, lambda: [one.certificates.read() for one in self._tls]
            )
        except TlsError as error:
            raise ConfigurationError(f"the old certificates stay in use: {error}") from None
        for use in ready:
            use()
        return len(ready)

    @inlineCallbacks
    def _listen(self, endpoint: str) -> Any:
        place, receiver = self._receiver(endpoint)
        try:
            server = _server(self._reactor, place)
            kept = socket_handover.kept_for_us(os.environ).get(endpoint)
            port = self._adopt(kept, server, receiver) if kept else (yield server.listen(receiver))
            port.getHost()  # fails, as listening does, for a socket of another domain than was said
        except CannotListenError as error:
            raise InUse(
                f"port {error.port} at {error.interface or 'all addresses'} is taken or not ours "
                f"({error.socketError}); set {self._setting} or stop the other process"
            ) from None
        except (ValueError, TypeError, LookupError, AttributeError, OSError) as error:
            raise ConfigurationError(f"{self._setting}: {endpoint!r} cannot be used: {error}") from None
        if isinstance(server, TlsEndpoint):
            self._tls.append(server)
        return port

    def _adopt(self, descriptor: int, server: IStreamServerEndpoint, receiver: Factory) -> Any:
        """Go on listening where the process before this one did."""
        secure = isinstance(server, TlsEndpoint)
        factory = server.around(receiver) if secure else receiver  # type: ignore[attr-defined]
        with socket.socket(fileno=os.dup(descriptor)) as kept:  # noqa: TID251 - one that listens
            family = kept.family
        return self._reactor.adoptStreamPort(descriptor, family, factory)

    def _receiver(self, endpoint: str) -> tuple[str, Factory]:
        """Return the endpoint and the factory for its connections."""
        if not endpoint.startswith(_BEHIND_A_PROXY):
            return endpoint, self._factory
        place = endpoint.removeprefix(_BEHIND_A_PROXY)
        if place.startswith("ssl:"):
            raise ConfigurationError(
                f"{self._setting}: {endpoint!r}: the PROXY header comes before TLS; end TLS at the proxy"
            )
        return place, self._proxy_protocol

    def _check_privacy(self, endpoint: str, port: IListeningPort, danger: str) -> None:
        private = endpoint.startswith(_PRIVATE_BY_ITSELF) or _is_loopback(_bound_to(port))
        if danger and not private:
            raise ConfigurationError(f"{self._setting}: {endpoint!r} {danger}")


def _is_loopback(host: str | None) -> bool:
    return host is None or ip_address(host.partition("%")[0]).is_loopback


def _server(reactor: Any, endpoint: str) -> IStreamServerEndpoint:
    secure = tls_endpoint(reactor, endpoint)
    return secure or serverFromString(reactor, endpoint)  # type: ignore[no-untyped-call]


def _make_ready_for_many(port: IListeningPort) -> None:
    """Let more connections wait, and give them small buffers and no delay of small writes."""
    with _socket_of(port) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        same.listen(_BACKLOG)
        send_at_once(same)


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


def shown(address: Any) -> str:
    """Return an address as people write it."""
    host, port = getattr(address, "host", None), getattr(address, "port", None)
    if host is None:
        return os.fsdecode(getattr(address, "name", None) or str(address))
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
