"""Conversations over TCP, TLS and Unix sockets: the common base of the UNS and the query socket.

``ConversationService`` listens, counts connections, and knows when all are gone. ``Conversation`` is the part
of a connection that does not depend on what is said.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, ISSLTransport
from twisted.internet.protocol import Factory, Protocol

from lcc_scrapy.domain.errors import Refusal
from lcc_scrapy.domain.listen_rules import ListenRules
from lcc_scrapy.listeners.endpoints import Listeners
from lcc_scrapy.listeners.peers import plain_address
from lcc_scrapy.listeners.proxy_protocol import ProxyProtocol, ProxyRules

LAST_WORDS_SECONDS = 2.0
"""For a conversation that was told to end, until its connection is cut."""


class Conversation(Protocol):
    """One connection; ``peer`` is its address in plain form. It implements ``IHandshakeListener``."""

    def __init__(self, peer: str, service: "ConversationService[Any, Any]") -> None:
        self.peer = peer
        self._service = service
        self._shaking_hands = False
        self._gone = False

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        self._shaking_hands = ISSLTransport.providedBy(self._wire)

    def handshakeCompleted(self) -> None:  # noqa: N802 - Twisted's name
        """TLS is there; nothing could be heard or said before."""
        self._shaking_hands = False

    def writeConnectionLost(self) -> None:  # noqa: N802 - Twisted's name
        """Our own end of stream has gone out."""

    def stopProducing(self) -> None:  # noqa: N802 - Twisted's name
        """The connection is going; ``connectionLost`` follows."""

    def cut(self) -> None:
        """Drop the connection now."""
        self._wire.abortConnection()

    @property
    def _wire(self) -> Any:
        """The transport: what it provides beyond ITransport no single interface of Twisted names."""
        return self.transport


C = TypeVar("C", bound=Conversation)
D = TypeVar("D", bound=ListenRules)


class ConversationService(Factory, ABC, Generic[C, D]):
    """Listens as ``name`` (``LCC_NAME_ENDPOINTS``); ``reactor`` is Twisted's, passed in.

    A subclass makes conversations (``_converse``), counts them (``entered``, ``left``) and ends them.
    ``header_seconds`` says how long a proxy may take to name its client. ``danger`` completes "this endpoint
    …" where it would listen beyond loopback without TLS.
    """

    noisy = False

    def __init__(
        self, reactor: Any, name: str, listen_rules: D, header_seconds: Callable[[], float], danger: str
    ) -> None:
        self._reactor = reactor
        self._name = name
        self._listen_rules = listen_rules
        self._header_seconds = header_seconds
        self._danger = danger
        self._proxy_protocol = ProxyProtocol(self._converse_by_proxy, self._proxy_rules, reactor)
        self._listeners = Listeners(reactor, name, self, self._proxy_protocol)
        self._open: set[C] = set()
        self._all_gone: Deferred[None] | None = None

    def start(self) -> Deferred[list[Any]]:
        """Listen; the result is the list of addresses. Fails with ``ConfigurationError``."""
        danger = "" if self._listen_rules.allow_plain_remote else self._danger
        opened: Deferred[list[Any]] = self._listeners.open(self._endpoints(), danger)
        return opened

    def renew_certificates(self) -> Any:
        """Read the certificates again (see ``Listeners``)."""
        return self._listeners.renew_certificates()

    def buildProtocol(self, addr: IAddress | None) -> C | None:  # noqa: N802 - Twisted's name
        return self._converse(plain_address(getattr(addr, "host", None)))

    @abstractmethod
    def entered(self, conversation: C) -> Refusal | None:
        """Count a new connection; a refusal is told to it, and it leaves later all the same."""

    def left(self, conversation: C) -> None:
        """Nothing is left of a connection that had entered."""
        self._open.discard(conversation)
        if not self._open:
            self._stop_waiting()

    def _endpoints(self) -> Sequence[str]:
        return self._listen_rules.endpoints

    def _go_by(self, listen_rules: D) -> None:
        """Go on with other bounds; endpoints stay as they are."""
        self._listen_rules = replace(listen_rules, endpoints=self._listen_rules.endpoints)

    def _proxy_rules(self) -> ProxyRules:
        listen_rules = self._listen_rules
        return ProxyRules(
            listen_rules.proxies, listen_rules.connections_max, self._header_seconds(), self._name
        )

    @abstractmethod
    def _converse(self, peer: str) -> C | None:
        """Make a conversation, or None where there are too many to refuse one more."""

    def _converse_by_proxy(self, peer: str) -> C | None:
        return self._converse(peer)

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
