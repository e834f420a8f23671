"""A conversation that is passed on to the sub-LCC of its provider, byte for byte in both directions."""

import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as LookupTimeout
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.error import ConnectError, ConnectionDone
from twisted.internet.interfaces import IDelayedCall, IHalfCloseableProtocol, ISSLTransport
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from lcc_scrapy.domain.errors import Refusal, StoreUnavailable
from lcc_scrapy.domain.front import SubLcc
from lcc_scrapy.listeners.conversation import ConversationService
from lcc_scrapy.listeners.proxy_header import header_for
from lcc_scrapy.uns import effects
from lcc_scrapy.uns.effects import Effect
from lcc_scrapy.uns.protocol import ProviderProtocol
from lcc_scrapy.uns.set_receiver import Context
from lcc_scrapy.uns.states import LoginRefused
from lcc_scrapy.wire.messages import Init

CONNECT_SECONDS = 10.0
"""For the front's database to answer, and for a sub-LCC to take a connection; then it is 103."""

_KEEPALIVE = (
    (socket.TCP_KEEPIDLE, 30),
    (socket.TCP_KEEPINTVL, 10),
    (socket.TCP_KEEPCNT, 3),
)
"""A silent machine that has vanished is noticed after a minute: seconds, seconds, probes.

No TCP_USER_TIMEOUT: it would also cut a sub-LCC that is alive and only does not read for a while.
"""

SILENCE = 900.0
"""Seconds for which nothing may pass in either direction: longer than any deadline of a UNS, or a commit."""

_LET_IN = b"<lococa:init_accepted"
"""The beginning of what a UNS says to a good login."""

_SHOWN = 20
_log = logging.getLogger(__name__)


@implementer(IHalfCloseableProtocol)
class Upstream(Protocol):
    """The connection to a sub-LCC. What it says goes to ``client``, the transport of the provider.

    ``heard`` is called when it said something, with True when that was all.
    """

    def __init__(self, client: Any, heard: Callable[[bool], None]) -> None:
        self._client = client
        self._heard = heard
        self._said_all = self._heard_all = False
        self._beginning = b""

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        self._wire.setTcpKeepAlive(True)
        for name, value in _KEEPALIVE:
            self._wire.getHandle().setsockopt(socket.IPPROTO_TCP, name, value)

    def begin(self, said: bytes, *, ended: bool) -> None:
        """Pass on what the provider said so far; each side then waits until the other one reads."""
        self._wire.write(said)
        self._client.registerProducer(self._wire, True)
        self._wire.registerProducer(self._client, True)
        if ended:
            self.end()

    def write(self, data: bytes) -> None:
        """Pass on what the provider says."""
        self._wire.write(data)

    @property
    def let_in(self) -> bool:
        """Tell whether the sub-LCC has let the provider in."""
        return self._beginning == _LET_IN

    def end(self) -> None:
        """The provider has said all, and still reads."""
        self._heard_all = True
        self._wire.unregisterProducer()
        self._wire.loseWriteConnection()
        self._close_if_all_is_said()

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        self._client.write(data)
        self._beginning += data[: len(_LET_IN) - len(self._beginning)]
        self._heard(False)

    def readConnectionLost(self) -> None:  # noqa: N802 - Twisted's name
        """The sub-LCC has said all; it reads what the provider still sends."""
        self._finish()

    def writeConnectionLost(self) -> None:  # noqa: N802 - Twisted's name
        """The end of what the provider says has gone out."""

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802 - Twisted's name
        if isinstance(reason.value, ConnectionDone):
            self._finish()
            self._client.loseConnection()
        else:
            self._client.abortConnection()

    def close(self, *, cleanly: bool) -> None:
        """The provider is gone."""
        self._wire.unregisterProducer()
        if cleanly:
            self._wire.loseConnection()
        else:
            self.cut()

    def cut(self) -> None:
        """Drop the connection now."""
        self._wire.abortConnection()

    def _finish(self) -> None:
        """Send the provider what is left, and then an end of stream."""
        if not self._said_all:
            self._said_all = True
            self._heard(True)
            self._client.unregisterProducer()
            tls = ISSLTransport.providedBy(self._client)
            (self._client.loseConnection if tls else self._client.loseWriteConnection)()
        self._close_if_all_is_said()

    def _close_if_all_is_said(self) -> None:
        """Close both connections when both sides have ended their streams."""
        if self._said_all and self._heard_all:
            self._client.loseConnection()
            self._wire.loseConnection()

    @property
    def _wire(self) -> Any:
        """The transport: what it provides beyond ITransport no single interface of Twisted names."""
        return self.transport


@dataclass(frozen=True, slots=True)
class Routes:
    """Where conversations go. ``sub_of`` (provider's id as sent → sub-LCC, None = there is none) may fail."""

    reactor: Any
    sub_of: Callable[[str], Deferred[SubLcc | None]]

    def connect(self, sub: SubLcc, client: Any, heard: Callable[[bool], None]) -> Deferred[Upstream]:
        """Connect to the UNS of a sub-LCC; fails when it is down."""
        host, _, port = sub.uns.rpartition(":")
        factory = Factory.forProtocol(lambda: Upstream(client, heard))
        factory.noisy = False
        where = HostnameEndpoint(self.reactor, host.strip("[]"), int(port), timeout=CONNECT_SECONDS)
        connected: Deferred[Any] = where.connect(factory)
        return connected.addTimeout(CONNECT_SECONDS, self.reactor)  # looking its name up, too


class FrontProtocol(ProviderProtocol):
    """A conversation of the front. It reads up to the login; from then on the sub-LCC decides."""

    def __init__(
        self, context: Context, peer: str, service: ConversationService[Any, Any], routes: Routes
    ) -> None:
        super().__init__(context, peer, service)
        self._routes = routes
        self._heard = bytearray()
        self._upstream: Upstream | None = None
        self._silence: IDelayedCall | None = None
        self._told = False
        self._let_in = False

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        if self._upstream is not None:
            self._upstream.write(data)
            self._passed(False)
            return
        if not self._session.over:
            self._heard += data
        super().dataReceived(data)

    def readConnectionLost(self) -> None:  # noqa: N802 - Twisted's name
        if self._upstream is not None:
            self._upstream.end()
        else:
            super().readConnectionLost()

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802 - Twisted's name
        if self._silence is not None and self._silence.active():
            self._silence.cancel()
        if self._upstream is not None:
            self._upstream.close(cleanly=isinstance(reason.value, ConnectionDone))
        super().connectionLost(reason)

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, effects.Authenticate):
            self._find(effect.init).addErrback(self._not_now, effect.init)

    def _find(self, init: Init) -> Deferred[None]:
        finding = self._routes.sub_of(init.provider_id).addTimeout(CONNECT_SECONDS, self._routes.reactor)
        return finding.addCallback(self._connect, init)

    def _connect(self, sub: SubLcc | None, init: Init) -> Deferred[None] | None:
        if sub is None:
            self._hear(LoginRefused(Refusal(101)))
            return None
        return self._routes.connect(sub, self._wire, self._passed).addCallback(self._pass_on, sub, init)

    def _pass_on(self, upstream: Upstream, sub: SubLcc, init: Init) -> None:
        """Hand the conversation over, from its first byte on."""
        if self._session.over:  # it left, or the front stops
            upstream.cut()
            return
        what = {"pid": _shown(init), "sub": sub.name, "peer": self.peer}
        line = "front passes on pid=%(pid)s sub=%(sub)s peer=%(peer)s"
        self._context.journal.note(logging.INFO, line, what)
        self._upstream = upstream
        self._silence = self._context.clock.callLater(SILENCE, self._wire.abortConnection)
        self._forget()
        self._wire.unregisterProducer()
        upstream.begin(header_for(self.peer) + bytes(self._heard), ended=self._ended)
        self._heard.clear()
        if not self._ended:
            self._wire.resumeProducing()

    def _passed(self, over: bool) -> None:
        """Count the silence anew: something was passed on. ``over``: the provider has only to read and leave.

        The operating system tells nothing of a connection that is neither read nor written.
        """
        if self._upstream is not None and self._upstream.let_in and not self._let_in:
            self._let_in = True
            self._context.conversations.note_home(self.peer)
        if self._silence is not None and self._silence.active() and not self._told:
            self._told = over
            self._silence.reset(self._context.limits.linger_seconds if over else SILENCE)

    def _advance(self) -> None:
        """Decide nothing any more once the sub-LCC has the conversation."""
        if self._upstream is None:
            super()._advance()

    def _hold_or_go_on(self) -> None:
        if self._upstream is None:
            super()._hold_or_go_on()

    def _not_now(self, failure: Failure, init: Init) -> None:
        """Tell the provider to try again later: its sub-LCC, or the front's database, is down."""
        if isinstance(failure.value, ConnectError | StoreUnavailable | LookupTimeout | OSError):
            what = {"pid": _shown(init), "why": failure.getErrorMessage(), "peer": self.peer}
            line = "front cannot pass on pid=%(pid)s peer=%(peer)s: %(why)s"
            self._context.journal.note(logging.WARNING, line, what)
        else:
            _log.error("front: %s", failure.getErrorMessage(), exc_info=failure.value)
        self._hear(LoginRefused(Refusal(103, "", self._context.limits.retry_after)))


def _shown(init: Init) -> str:
    """Return an id for the log; what is no number was perhaps meant as the password."""
    return init.provider_id[:_SHOWN] if init.provider_id.isdecimal() else "(no number)"
