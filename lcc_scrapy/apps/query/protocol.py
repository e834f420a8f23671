"""The Twisted side of one conversation at the query socket: carries bytes and time, decides nothing."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IDelayedCall,
    IHalfCloseableProtocol,
    IHandshakeListener,
    IPushProducer,
    ISSLTransport,
)
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from lcc_scrapy.apps.query import session
from lcc_scrapy.apps.query.answering import Answer, Answering, Step, refusal_of
from lcc_scrapy.apps.query.deadlines import Deadlines
from lcc_scrapy.apps.query.session import Effect, Session
from lcc_scrapy.apps.query.settings import Limits
from lcc_scrapy.apps.query.states import (
    Answered,
    Event,
    LookAgain,
    NothingYet,
    Portion,
    Refused,
    State,
    StreamEnded,
    Vanished,
)
from lcc_scrapy.apps.query.wire.messages import Query
from lcc_scrapy.apps.query.wire.reading import NotUnderstood, QueryReader
from lcc_scrapy.domain.errors import Refusal
from lcc_scrapy.listeners.conversation import Conversation, ConversationService

log = logging.getLogger(__name__)

_TICK = 1.0
_REASON_MAX = 300
"""Characters of what is said of a query that is not understood: it repeats parts of it."""


@dataclass(slots=True)
class Shared:
    """What conversations work with. ``answer`` blocks, with a query and the peer who asks it."""

    answer: Callable[[Query, str], Answer]
    in_thread: Callable[[Callable[[], Any]], Deferred[Any]]
    clock: Any
    limits: Limits


@implementer(IHalfCloseableProtocol, IHandshakeListener, IPushProducer)
class QueryProtocol(Conversation):
    """One content user's connection; ``peer`` is its address in plain form."""

    def __init__(self, shared: Shared, peer: str, service: ConversationService[Any, Any]) -> None:
        super().__init__(peer, service)
        self._shared = shared
        self._session = Session()
        self._reader = QueryReader(shared.limits.query_bytes)
        self._patience = Deadlines(shared.limits, shared.clock.seconds())
        self._answering: Answering | None = None
        self._wait_until = 0.0
        self._timers: dict[str, IDelayedCall] = {}
        self._held = False
        self._busy = False
        self._wants_more = False
        self._ended = False
        self._silent = False

    # --- bytes and time -----------------------------------------------------------------------

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        super().connectionMade()
        self._wire.registerProducer(self, True)
        self._call("tick", _TICK, self._look_at_the_clock)
        refusal = self._service.entered(self)
        if refusal is not None:
            self._hear(Refused(refusal))

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        if self._session.state is not State.ASKING:
            self._patience.discarded(len(data))
            self._cut_if_over()
            return
        try:
            query = self._reader.feed(data)
        except NotUnderstood as error:
            self._hear(Refused(Refusal(805, str(error)[:_REASON_MAX])))
        else:
            if query is not None:
                self._hear(query)

    def readConnectionLost(self) -> None:  # noqa: N802 - Twisted's name
        """The content user has closed its side; it may still read."""
        if self._session.state is State.ASKING and self._reader.begun:
            self._hear(Refused(Refusal(805, "cut short")))
        self._ended = True
        self._hear(StreamEnded())

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802 - Twisted's name
        del reason
        self._gone = True
        for timer in self._timers.values():
            if timer.active():
                timer.cancel()
        self._hear(Vanished())
        if not self._busy:
            self._give_back()
        outcome = {"peer": self.peer, "outcome": self._session.outcome, "size": self._session.said}
        log.info("query over peer=%(peer)s bytes=%(size)d: %(outcome)s", outcome)
        self._service.left(self)

    def _call(self, name: str, delay: float, work: Callable[[], None]) -> None:
        self._timers[name] = self._shared.clock.callLater(delay, work)

    def _look_at_the_clock(self) -> None:
        late = self._session.state is State.ASKING and self._patience.query_is_late(self._now())
        if late and self._shaking_hands:
            self._wire.abortConnection()
        if self._cut_if_over() or self._gone:
            return
        self._call("tick", _TICK, self._look_at_the_clock)
        if late:
            self._hear(Refused(Refusal(806, f"no query within {self._shared.limits.query_seconds:g} s")))

    def _cut_if_over(self) -> bool:
        over = self._patience.is_over(self._now())
        if over:
            self._wire.abortConnection()
        return over

    def _now(self) -> float:
        now: float = self._shared.clock.seconds()
        return now

    # --- the transport consumes our answer -----------------------------------------------------

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's name
        self._held = True
        self._patience.hold(self._now())

    def resumeProducing(self) -> None:  # noqa: N802 - Twisted's name
        self._held = False
        self._patience.go_on(self._now())
        self._work()

    # --- events and effects --------------------------------------------------------------------

    def stop(self) -> None:
        """Let those go who wait for a change or have not asked yet; others have some time left."""
        if self._session.state is State.ASKING:
            self._hear(Refused(Refusal(803, "", self._shared.limits.retry_after)))
        elif self._answering is not None:
            self._answering.wait_no_more()
            self._wait_until = 0.0
            self._look_again()

    def _hear(self, event: Event) -> None:
        was_over = self._session.over
        for effect in self._session.take(event):
            self._perform(effect)
        if self._session.over and not was_over:
            self._patience.over(self._now())
            if self._ended:
                self._hear(StreamEnded())

    def _perform(self, effect: Effect) -> None:
        match effect:
            case session.Write(data):
                self._patience.said(len(data))
                self._wire.write(data)
            case session.Begin(query):
                self._begin(query)
            case session.GoOn():
                self._wants_more = True
                self._work()
            case session.WaitAMoment():
                self._wait(self._shared.limits.poll_seconds)
            case session.HalfClose():
                self._half_close()
            case session.Close():
                self._end_with(self._wire.loseConnection)

    def _begin(self, query: Query) -> None:
        shared, peer = self._shared, self.peer
        self._wait_until = self._now() + min(query.wait, shared.limits.wait_seconds)
        self._answering = Answering(lambda: shared.answer(query, peer))
        self._wants_more = True
        self._work()

    def _work(self) -> None:
        """Have the next portion made, in a thread, if it is wanted and there is room for it."""
        if self._busy or self._held or self._gone or not self._wants_more or self._answering is None:
            return
        self._busy, self._wants_more = True, False
        self._shared.in_thread(self._answering.step).addCallbacks(self._stepped, self._failed).addErrback(
            lambda failure: log.error("query failed: %s", failure.getTraceback())
        )

    def _stepped(self, step: Step) -> None:
        self._busy = False
        if self._session.over:
            self._give_back()
        elif step.portion is not None:
            self._hear(Portion(step.portion))
        else:
            self._hear(Answered() if step.ended else NothingYet())

    def _failed(self, failure: Failure) -> None:
        self._busy = False
        limits = self._shared.limits
        refusal = refusal_of(failure.value, limits.retry_after)
        if refusal is None:
            log.error("query peer=%s failed: %s", self.peer, failure.getTraceback())
        self._hear(Refused(refusal or Refusal(803, "internal error", limits.retry_after)))
        self._give_back()

    def _wait(self, seconds: float) -> None:
        left = self._wait_until - self._now()
        if left <= seconds and self._answering is not None:
            self._answering.wait_no_more()
        self._call("look", max(0.0, min(seconds, left)), self._look_again)

    def _look_again(self) -> None:
        timer = self._timers.get("look")
        if timer is not None and timer.active():
            timer.cancel()
        self._hear(LookAgain())

    def _half_close(self) -> None:
        # TLS says its own goodbye and receives until the content user has said it too.
        tls = ISSLTransport.providedBy(self._wire)
        self._end_with(self._wire.loseConnection if tls else self._wire.loseWriteConnection)

    def _end_with(self, close: Callable[[], object]) -> None:
        if self._gone:
            return
        if not self._silent:
            self._silent = True
            self._wire.unregisterProducer()
        close()

    def _give_back(self) -> None:
        if self._answering is not None:
            self._answering.close()
            self._answering = None
