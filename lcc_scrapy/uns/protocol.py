"""The Twisted side of one conversation: carries bytes and time, decides nothing."""

import logging
from abc import abstractmethod
from collections import deque
from typing import Any

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import (
    IDelayedCall,
    IHalfCloseableProtocol,
    IHandshakeListener,
    IPushProducer,
)
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from lcc_scrapy.listeners.conversation import Conversation, ConversationService
from lcc_scrapy.listeners.tls import reason_of
from lcc_scrapy.uns import effects
from lcc_scrapy.uns.codec import Codec, Malformed
from lcc_scrapy.uns.deadlines import Deadlines
from lcc_scrapy.uns.dialect import Dialect
from lcc_scrapy.uns.effects import Effect
from lcc_scrapy.uns.outbox import Outbox
from lcc_scrapy.uns.session import Session
from lcc_scrapy.uns.set_receiver import Context, SetReceiver, Shared
from lcc_scrapy.uns.states import Event, LoginRefused, State, Stopping, StreamEnded, TooSlow, Vanished
from lcc_scrapy.wire import writing
from lcc_scrapy.wire.messages import Init, InitRejected, SetRejected, UrlRun

log = logging.getLogger(__name__)

_TICK = 1.0
_BITE = 4096
"""Bytes read at a time: what they say is kept, and the shortest URL takes fifty times its size in memory."""

_BITE_OF_A_SET, _TAGS = 4 * _BITE, 700
"""The same within a set, when there are no more tags in so many bytes than there may be in few."""

_TURN = 200
"""Events of one provider that are handled in one go; then the others have their turn."""

_RUN = 16
"""URLs that take together, in a run, about as long as one by itself."""


@implementer(IHalfCloseableProtocol, IHandshakeListener, IPushProducer)
class ProviderProtocol(Conversation):
    """One provider's connection; ``peer`` is its address in plain form.

    It speaks XML, or another ``dialect``. ``init``: the provider introduced itself already. A subclass
    carries out what is asked of it (``_carry_out``).
    """

    def __init__(
        self,
        context: Context,
        peer: str,
        service: ConversationService[Any, Any],
        dialect: Dialect | None = None,
        init: Init | None = None,
    ) -> None:
        super().__init__(peer, service)
        self._context = context
        self._init = init
        dialect = dialect or Dialect(Codec(context.limits), writing)
        self._session = Session(context.limits, dialect.answers)
        self._codec = dialect.reader
        self._deadlines = Deadlines(context.limits, context.clock.seconds())
        self._unread = bytearray()
        self._said: deque[Event] = deque()
        self._news: deque[Event] = deque()
        self._tick: IDelayedCall | None = None
        self._rest: IDelayedCall | None = None
        self._advancing = False
        self._holding = False
        self._ended = False
        self._finished = False
        self._end_told = False

    @property
    def rejected(self) -> InitRejected | SetRejected | None:
        """Why the login or the set was refused."""
        return self._session.rejected

    # --- bytes and time -----------------------------------------------------------------------

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        super().connectionMade()
        limits, backlog = self._context.limits, self._context.replies
        self._outbox = Outbox(self._wire, limits.reply_bytes, limits.replies_bytes, backlog)
        self._wire.registerProducer(self, True)
        self._tick = self._context.clock.callLater(_TICK, self._look_at_the_clock)
        refusal = self._service.entered(self)
        if refusal is not None:
            self._hear(LoginRefused(refusal))
        elif self._init is not None:
            self._hear(self._init)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        now = self._context.clock.seconds()
        self._deadlines.heard(len(data), now)
        if not self._session.over:
            self._unread += data
            self._advance()
        elif self._deadlines.linger_is_over(now):
            self._wire.abortConnection()

    def readConnectionLost(self) -> None:  # noqa: N802 - Twisted's name
        """The provider has closed its side; it may still read."""
        if not self._ended:
            self._ended = True
            self._advance()

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802 - Twisted's name
        self._gone = True
        if self._shaking_hands:
            why = {"peer": self.peer, "reason": reason_of(reason.value)}
            self._context.journal.note(logging.INFO, "uns no TLS with peer=%(peer)s: %(reason)s", why)
        self._forget()
        self._outbox.forget()
        self._hear(Vanished())
        self._has_left(told=self._session.told and isinstance(reason.value, ConnectionDone))
        self._service.left(self)

    def _forget(self) -> None:
        """Read nothing more: neither what came, nor what the clock says."""
        for timer in (self._tick, self._rest):
            if timer is not None and timer.active():
                timer.cancel()
        self._said.clear()
        self._unread.clear()

    def _look_at_the_clock(self) -> None:
        now = self._context.clock.seconds()
        nobody_hears = self._shaking_hands and self._deadlines.login_is_late(now)
        if nobody_hears or self._deadlines.linger_is_over(now):
            self._wire.abortConnection()
            return
        self._tick = self._context.clock.callLater(_TICK, self._look_at_the_clock)
        if complaint := self._deadlines.complaint(now):
            self._hear(TooSlow(complaint))

    # --- the transport consumes our answers ----------------------------------------------------

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's name
        self._outbox.pause()

    def resumeProducing(self) -> None:  # noqa: N802 - Twisted's name
        self._deadlines.heard(0, self._context.clock.seconds())
        self._outbox.resume()
        self._advance()

    # --- events and effects --------------------------------------------------------------------

    def break_off(self, detail: str) -> None:
        """Refuse what cannot be read before it is even given to the codec."""
        self._hear(Malformed(detail))

    def stop(self) -> None:
        """End the conversation with "try again later", unless its set is being committed."""
        self._hear(Stopping())

    def _hear(self, event: Event) -> None:
        """Take an event that does not come from the provider, before all that the provider said."""
        self._news.append(event)
        self._advance()

    def _advance(self) -> None:
        """Take news always, and the provider's words unless the session or the provider's reading waits."""
        if self._advancing:
            return
        self._advancing = True
        try:
            self._take_a_turn()
        finally:
            self._advancing = False
        self._hold_or_go_on()

    def _take_a_turn(self) -> None:
        left = _TURN
        while left > 0:
            event = self._next_event()
            if event is None:
                return
            self._step(event)
            left -= 1 + len(event) // _RUN if isinstance(event, UrlRun) else 1
        if self._rest is None and not self._gone:
            self._rest = self._context.clock.callLater(0, self._rested)

    def _rested(self) -> None:
        self._rest = None
        self._advance()

    def _next_event(self) -> Event | None:
        if self._news:
            return self._news.popleft()
        while not self._held_up:
            if self._said:
                return self._said.popleft()
            if not self._unread:
                return self._end_of_stream()
            self._read_a_bite()
        return None

    def _read_a_bite(self) -> None:
        """Read only what can be handled now: nothing of a set is parsed before its provider is let in."""
        if not self._session.over:
            bite = self._bite()
            self._said.extend(self._codec.feed(bite))
            del self._unread[: len(bite)]
        else:
            self._unread.clear()

    def _bite(self) -> bytes:
        size = _BITE_OF_A_SET if self._session.state is State.RECEIVING else _BITE
        bite = bytes(self._unread[:size])
        return bite if bite.count(self._codec.mark) <= _TAGS else bite[:_BITE]

    def _end_of_stream(self) -> Event | None:
        if not self._ended or self._end_told:
            return None
        if not self._finished:
            self._finished = True
            self._said.extend(self._codec.finish())
            if self._said:
                return self._said.popleft()
        self._end_told = True
        return StreamEnded(self._codec.unfinished)

    def _step(self, event: Event) -> None:
        was_over = self._session.over
        for effect in self._session.take(event):
            self._perform(effect)
        self._deadlines.watch(self._session.state, self._context.clock.seconds())
        if self._session.over:
            self._is_over()
            if not was_over:
                self._log_outcome()

    @property
    def _held_up(self) -> bool:
        if self._session.over:
            return False
        return self._session.waiting or self._outbox.full or self._rest is not None

    def _hold_or_go_on(self) -> None:
        holding = self._held_up
        if holding is self._holding or self._gone or self._session.state is State.CLOSED:
            return
        self._holding = holding
        if holding:
            self._wire.pauseProducing()
        elif not self._ended:
            self._wire.resumeProducing()

    def _perform(self, effect: Effect) -> None:
        match effect:
            case effects.TakeOneByOne(run):
                self._said.extendleft(reversed(list(run)))
            case effects.Write(data):
                if not self._gone:
                    self._outbox.write(data)
            case effects.HalfClose():
                if not self._gone:
                    self._outbox.half_close()
            case effects.Close():
                if not self._gone:
                    self._outbox.close()
            case _:
                self._carry_out(effect)

    @abstractmethod
    def _carry_out(self, effect: Effect) -> None:
        """Do what is neither said nor heard: let the provider in, keep its set."""

    def _is_over(self) -> None:
        """Everything is said; called after each event from then on."""

    def _has_left(self, *, told: bool) -> None:
        """The connection is gone; ``told``: the provider has got its whole answer."""

    def _log_outcome(self) -> None:
        login, outcome = self._session.login, self._session.outcome
        how = {"peer": self.peer, "outcome": outcome}
        if login is None:
            self._context.journal.note(logging.INFO, "uns conversation over peer=%(peer)s: %(outcome)s", how)
        else:
            who = {"pid": login.pid, "seq": login.seq, **how}
            log.info("uns conversation over pid=%(pid)d seq=%(seq)d peer=%(peer)s: %(outcome)s", who)


class UnsProtocol(ProviderProtocol):
    """A conversation of the UNS: it receives one set."""

    def __init__(
        self,
        shared: Shared,
        peer: str,
        service: ConversationService[Any, Any],
        dialect: Dialect | None = None,
        init: Init | None = None,
    ) -> None:
        super().__init__(shared, peer, service, dialect, init)
        self._receiver = SetReceiver(shared, peer, self._hear)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case effects.Record(entry):
                self._receiver.record(entry)
            case effects.RecordRun(run):
                self._receiver.record_run(run)
            case effects.Authenticate(init):
                self._receiver.authenticate(init)
            case effects.OpenSet(start):
                self._receiver.open(start)
            case effects.CommitSet(unreadable):
                self._receiver.commit(unreadable)
            case effects.CountSet(unreadable):
                self._receiver.count(unreadable)
            case effects.NoteRefused(refused):
                self._receiver.note_refused(refused)
            case effects.DropSet():
                self._receiver.drop()

    def _is_over(self) -> None:
        self._receiver.release()

    def _has_left(self, *, told: bool) -> None:
        if told:
            self._receiver.logout(self._session.refused_types)
