"""The query socket: listens, counts connections, and stops in an orderly way."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_network
from typing import Any

from twisted.internet.defer import Deferred, inlineCallbacks
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory

from lcc_scrapy.domain.errors import Refusal
from lcc_scrapy.doors.gatehouse import Gatehouse, HouseRules, Networks
from lcc_scrapy.doors.listening import Entrance
from lcc_scrapy.doors.peers import LOCAL, neighbourhood, plain_address
from lcc_scrapy.users.queries.answering import Answer
from lcc_scrapy.users.queries.limits import DEFAULT_LIMITS, Limits
from lcc_scrapy.users.queries.protocol import Desk, QueryProtocol
from lcc_scrapy.wire.queries.messages import Query

log = logging.getLogger(__name__)

DEFAULT_PROXIES = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
_LAST_WORDS_SECONDS = 2.0
UNNAMED = "unnamed"
"""The peer of whom a proxy at a Unix socket does not say who it is."""


@dataclass(frozen=True, slots=True)
class Doors:
    """Where and for how many the query socket is open."""

    endpoints: Sequence[str] = ()
    """Twisted endpoint strings."""
    allow_plain_remote: bool = False
    """Listen beyond loopback without TLS, tokens and documents in plain sight."""
    connections_per_address: int = 10
    """An IPv6 /64 counts as one address; more are answered with 804. Unix sockets have no address."""
    connections_max: int = 100
    """In all; more are answered with 804, and twice as many are cut without a word."""
    stop_seconds: float = 5.0
    """For answers to be completed when the server stops; then they are cut."""
    proxies: Networks = DEFAULT_PROXIES
    """Whose PROXY header is believed at ``haproxy:`` endpoints; others are cut there."""


class QueryService(Factory):
    """``answer`` makes an answer to a query of a peer; ``in_thread`` runs what blocks."""

    noisy = False

    def __init__(
        self,
        reactor: Any,
        answer: Callable[[Query, str], Answer],
        in_thread: Callable[[Callable[[], Any]], Deferred[Any]],
        *,
        doors: Doors = Doors(),
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._reactor = reactor
        self._doors = doors
        self._desk = Desk(answer, in_thread, reactor, limits)
        self._gatehouse = Gatehouse(self._converse_by_proxy, self._house_rules, reactor)
        self._entrance = Entrance(reactor, "query", self, self._gatehouse)
        self._places: Counter[str] = Counter()
        self._open: set[QueryProtocol] = set()
        self._all_gone: Deferred[None] | None = None

    def start(self) -> Any:
        """Listen; the result is the list of addresses. Fails with ``ConfigurationError``."""
        danger = (
            "would take tokens and give documents in plain text over the network;"
            " use ssl:, or set LCC_QUERY_ALLOW_PLAIN_REMOTE"
        )
        endpoints = [_for_few(endpoint) for endpoint in self._doors.endpoints]
        return self._entrance.open(endpoints, "" if self._doors.allow_plain_remote else danger)

    @inlineCallbacks
    def stop(self) -> Any:
        """Stop listening, let answers end, then cut them; done within ``stop_seconds`` and 2 s."""
        yield self._entrance.close()
        for protocol in list(self._open):
            protocol.stop()
        yield self._wait_until_all_gone(self._doors.stop_seconds)
        for protocol in list(self._open):
            protocol.cut()
        yield self._wait_until_all_gone(_LAST_WORDS_SECONDS)

    def apply(self, doors: Doors, limits: Limits) -> None:
        """Go on with other bounds, for connections from now on; endpoints stay as they are."""
        self._doors = replace(doors, endpoints=self._doors.endpoints)
        self._desk = replace(self._desk, limits=limits)

    def renew_certificates(self) -> Any:
        """Read the certificates again (see ``Entrance``)."""
        return self._entrance.renew_certificates()

    def buildProtocol(self, addr: IAddress | None) -> QueryProtocol | None:  # noqa: N802 - Twisted's name
        return self._converse(plain_address(getattr(addr, "host", None)))

    def _house_rules(self) -> HouseRules:
        doors = self._doors
        return HouseRules(doors.proxies, doors.connections_max, self._desk.limits.query_seconds, "query")

    def _converse(self, peer: str) -> QueryProtocol | None:
        if len(self._open) >= 2 * self._doors.connections_max:
            return None
        protocol = QueryProtocol(self._desk, peer, self)
        protocol.factory = self
        return protocol

    def _converse_by_proxy(self, peer: str) -> QueryProtocol | None:
        """Begin a conversation with one who is not local, whether the proxy said who it is or not."""
        return self._converse(UNNAMED if peer == LOCAL else peer)

    def entered(self, protocol: QueryProtocol) -> Refusal | None:
        """Count a connection (for ``QueryProtocol``)."""
        self._open.add(protocol)
        place = neighbourhood(protocol.peer)
        self._places[place] += 1
        too_near = protocol.peer != LOCAL and self._places[place] > self._doors.connections_per_address
        if not too_near and len(self._open) <= self._doors.connections_max:
            return None
        log.warning("query too many connections peer=%s in all=%d", protocol.peer, len(self._open))
        return Refusal(804, "", self._desk.limits.retry_after)

    def left(self, protocol: QueryProtocol) -> None:
        """Count a connection out (for ``QueryProtocol``)."""
        self._open.discard(protocol)
        self._places[neighbourhood(protocol.peer)] -= 1
        self._places += Counter()
        if not self._open and self._all_gone is not None:
            waiting, self._all_gone = self._all_gone, None
            waiting.callback(None)

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


def _for_few(endpoint: str) -> str:
    """Let only the owner and its group open a Unix socket, unless it says who may; Twisted lets everybody."""
    is_unix = endpoint.removeprefix("haproxy:").startswith("unix:")
    return f"{endpoint}:mode=660" if is_unix and ":mode=" not in endpoint else endpoint
