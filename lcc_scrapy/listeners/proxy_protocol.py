"""Connections behind a proxy: they wait for the PROXY header before anything else is read.

Twisted's own ``haproxy:`` wrapper lets a conversation begin before that, when its peer is the proxy still,
and hides from the transport that the conversation can be half-closed. Here the conversation begins when the
peer is known, on the bare transport.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any

from twisted.internet.interfaces import IAddress, IDelayedCall, IProtocol, IReactorTime
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from lcc_scrapy.listeners.peers import plain_address
from lcc_scrapy.listeners.proxy_header import NotIntroduced, read_header

_log = logging.getLogger(__name__)

Networks = Sequence[IPv4Network | IPv6Network]


@dataclass(frozen=True, slots=True)
class ProxyRules:
    """Whom to let wait, and for how long."""

    proxies: Networks
    """Who is believed; others are cut at once."""
    most: int
    """Connections that wait for their header at a time; more are cut."""
    seconds: float
    """For the header; then the connection is cut."""
    name: str = "uns"
    """Of the server, for the log."""


class ProxyProtocol(Factory):
    """Takes connections of trusted proxies, and begins conversations.

    ``converse`` makes the protocol of a conversation with a peer, or None when there are too many; ``rules``
    are asked for each connection. A Unix socket has no address: whoever may open it is trusted.
    """

    noisy = False

    def __init__(
        self,
        converse: Callable[[str], IProtocol | None],
        rules: Callable[[], ProxyRules],
        clock: IReactorTime,
    ) -> None:
        self.converse = converse
        self.rules = rules
        self.clock = clock
        self.waiting: set[Arrival] = set()

    def buildProtocol(self, addr: IAddress | None) -> "Arrival | None":  # noqa: N802 - Twisted's name
        proxy = plain_address(getattr(addr, "host", None))
        if getattr(addr, "host", None) is not None and not self._trusts(proxy):
            name = self.rules().name
            _log.warning("%s %s is not in LCC_%s_PROXIES: cut", name, proxy, name.upper())
            return None
        if len(self.waiting) >= self.rules().most:
            return None
        return Arrival(self, proxy)

    def _trusts(self, proxy: str) -> bool:
        return any(ip_address(proxy) in network for network in self.rules().proxies)

    def close(self) -> None:
        """Cut connections whose client is not known yet."""
        for arrival in list(self.waiting):
            arrival.cut()


class Arrival(Protocol):
    """One connection of which the proxy has not said yet whose it is."""

    def __init__(self, proxy_protocol: ProxyProtocol, proxy: str) -> None:
        self._proxy_protocol = proxy_protocol
        self._proxy = proxy
        self._heard = b""
        self._timer: IDelayedCall | None = None

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        self._proxy_protocol.waiting.add(self)
        self._timer = self._proxy_protocol.clock.callLater(self._proxy_protocol.rules().seconds, self.cut)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        self._heard += data
        try:
            introduced = read_header(self._heard)
        except NotIntroduced as error:
            _log.warning("%s %s from proxy %s: cut", self._proxy_protocol.rules().name, error, self._proxy)
            self.cut()
            return
        if introduced is not None:
            self._hand_over(introduced.peer or self._proxy, self._heard[introduced.size :])

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802 - Twisted's name
        del reason
        self._leave()

    def cut(self) -> None:
        """Drop the connection; nothing was promised to it."""
        self._wire.abortConnection()

    def _hand_over(self, peer: str, rest: bytes) -> None:
        self._leave()
        conversation = self._proxy_protocol.converse(peer)
        if conversation is None:
            self.cut()
            return
        self._wire.protocol = conversation
        conversation.makeConnection(self._wire)
        if rest:
            conversation.dataReceived(rest)

    def _leave(self) -> None:
        self._proxy_protocol.waiting.discard(self)
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    @property
    def _wire(self) -> Any:
        """The transport: what it provides beyond ITransport no single interface of Twisted names."""
        return self.transport
