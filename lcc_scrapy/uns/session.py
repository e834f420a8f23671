"""The conversation with one provider, after the table in ``states``: no I/O, no clock.

``Session.receive`` follows the table and raises ``OutOfTurn`` for what is not in it, without changing
anything; ``Session.take`` does what the LCC does then: a provider out of turn has left the protocol.
"""

from collections.abc import Callable
from typing import ClassVar

from lcc_scrapy.domain.errors import text_of
from lcc_scrapy.domain.uns_limits import DEFAULT_LIMITS, Limits
from lcc_scrapy.uns import effects
from lcc_scrapy.uns.codec import Malformed
from lcc_scrapy.uns.dialect import Answers
from lcc_scrapy.uns.effects import Effect
from lcc_scrapy.uns.ports import Login
from lcc_scrapy.uns.states import (
    TABLE,
    Event,
    FullSetSpent,
    LoginGranted,
    LoginRefused,
    SetCounted,
    SetStored,
    SpoolFailed,
    State,
    Stopping,
    StreamEnded,
    TooSlow,
    Vanished,
)
from lcc_scrapy.uns.url_validator import UrlValidator
from lcc_scrapy.wire import writing
from lcc_scrapy.wire.messages import (
    Init,
    InitRejected,
    SetAccepted,
    SetEnd,
    SetRejected,
    SetStart,
    Url,
    UrlRun,
)

_WAITING = frozenset({State.AUTHENTICATING, State.SETTLING})
_SAID_ALL = frozenset({State.LINGERING, State.CLOSED})


class OutOfTurn(Exception):
    """An event has no place in this state; nothing was changed."""


class Session:
    """One conversation. ``state`` is for looking at; ``answers`` words what is told to the provider."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, answers: Answers = writing) -> None:
        self.state = State.CONNECTED
        self.rejected: InitRejected | SetRejected | None = None
        """Why the login or the set was refused."""
        self._answers = answers
        self.login: Login | None = None
        self.outcome = "nothing sent"
        """For the log; may hold words of the provider."""
        self._faultless = True
        self._limits = limits
        self._start: SetStart | None = None
        self._validator: UrlValidator | None = None
        self._result_begun = False

    @property
    def waiting(self) -> bool:
        """Tell whether nothing may be taken from the provider until login service or spool has answered."""
        return self.state in _WAITING

    @property
    def over(self) -> bool:
        """Tell whether everything is said, so that what still comes from the provider is discarded."""
        return self.state in _SAID_ALL

    @property
    def refused_types(self) -> int:
        """How many URLs of the set were refused for their type; none of a dry run."""
        return self._validator.refused_types if self._validator is not None else 0

    @property
    def told(self) -> bool:
        """Tell whether the provider has got its whole answer, if the connection ends cleanly now."""
        return self.login is not None and self._faultless and (self.over or self.state is State.READY)

    def take(self, event: Event) -> list[Effect]:
        """Handle whatever may come; the provider is answered with an error when it is out of turn."""
        try:
            return self.receive(event)
        except OutOfTurn as error:
            from_provider = isinstance(event, Init | SetStart | Url | UrlRun | SetEnd)
            if not from_provider or self.waiting or self.over:
                return []
            return self.receive(Malformed(str(error)))

    def receive(self, event: Event) -> list[Effect]:
        """Follow the table; raises ``OutOfTurn`` for what is not in it."""
        event = self._weigh(event)
        following = TABLE.get((self.state, type(event)))
        if following is None:
            raise OutOfTurn(f"{type(event).__name__} while {self.state}")
        before, self.state = self.state, following
        return self._ACTIONS[type(event)](self, event, before)

    def _weigh(self, event: Event) -> Event:
        """A full set that may not come is another event than one that may."""
        if self.state is not State.READY or not isinstance(event, SetStart) or not event.full:
            return event
        assert self.login is not None
        free = (
            self.login.fullsets_left != 0
            or self.login.full_set_is_free
            or event.dryrun
            or event.set_id in self.login.counted_sets
        )
        return event if free else FullSetSpent()

    # --- what happens on each event; ``before`` is the state in which it came -------------------

    def _authenticate(self, event: Init, _before: State) -> list[Effect]:
        return [effects.Authenticate(event)]

    def _granted(self, event: LoginGranted, _before: State) -> list[Effect]:
        self.login = event.login
        self.outcome = "no set"
        return [effects.Write(self._answers.init_accepted(event.login.accepted))]

    def _refused(self, event: LoginRefused, before: State) -> list[Effect]:
        refusal = event.refusal
        return self._reject(before, refusal.code, retry_after=refusal.retry_after)

    def _open(self, event: SetStart, _before: State) -> list[Effect]:
        assert self.login is not None
        self._start = event
        self._validator = UrlValidator(self.login, event, self._limits.url_length)
        return [effects.OpenSet(event)]

    def _url(self, event: Url, _before: State) -> list[Effect]:
        assert self._validator is not None
        entry, error = self._validator.judge(event)
        done: list[Effect] = [effects.Record(entry)] if entry is not None else []
        if error is not None:
            done.append(effects.Write(self._begin_result() + self._answers.url_error(error)))
        return done

    def _run(self, event: UrlRun, _before: State) -> list[Effect]:
        assert self._validator is not None
        run = self._validator.judge_run(event)
        return [effects.TakeOneByOne(event) if run is None else effects.RecordRun(run)]

    def _end(self, _event: SetEnd, _before: State) -> list[Effect]:
        assert self._validator is not None
        assert self._start is not None
        unreadable = self._validator.unreadable
        return [effects.CountSet(unreadable) if self._start.dryrun else effects.CommitSet(unreadable)]

    def _stored(self, _event: SetStored, _before: State) -> list[Effect]:
        assert self._validator is not None
        refused = tuple(self._validator.refused)
        return [*self._accept(), *([effects.NoteRefused(refused)] if refused else [])]

    def _counted(self, event: SetCounted, _before: State) -> list[Effect]:
        return self._accept(event.would_remove, event.would_hold or None)

    def _spent(self, _event: FullSetSpent, before: State) -> list[Effect]:
        return self._reject(before, 202)

    def _spool_failed(self, event: SpoolFailed, before: State) -> list[Effect]:
        if event.too_large:
            return self._reject(before, 204)
        return self._reject(before, 203, retry_after=self._limits.retry_after)

    def _malformed(self, event: Malformed, before: State) -> list[Effect]:
        self._faultless = False
        if before is State.CONNECTED:
            answer = self._reject(before, 105, event.detail)
            self.outcome = f"refused 105 {text_of(105)}"  # the detail may name what was meant as a password
            return answer
        return self._reject(before, 204 if event.too_large else 201, event.detail)

    def _too_slow(self, event: TooSlow, before: State) -> list[Effect]:
        self._faultless = False
        return self._reject(before, 206, event.detail)

    def _stopping(self, _event: Stopping, before: State) -> list[Effect]:
        self._faultless = False
        code = 203 if before in {State.READY, State.RECEIVING} else 103
        return self._reject(before, code, retry_after=self._limits.retry_after)

    def _ended(self, event: StreamEnded, before: State) -> list[Effect]:
        if before is State.RECEIVING or (event.unfinished and before is not State.LINGERING):
            cut = self._malformed(Malformed("the stream ends too early"), before)
            return [*cut[:-1], effects.Close()]
        last = self._answers.no_set_result() if before is State.READY else b""
        return [*([effects.Write(last)] if last else []), effects.Close()]

    def _vanished(self, _event: Vanished, before: State) -> list[Effect]:
        if before in {State.RECEIVING, State.SETTLING}:
            self._faultless = False
            self.outcome = f"connection lost while {before}"
        return [effects.DropSet()] if before is State.RECEIVING else []

    # --- answers ------------------------------------------------------------------------------

    def _accept(self, would_remove: int | None = None, would_hold: int | None = None) -> list[Effect]:
        assert self._validator is not None
        self.outcome = f"accepted {self._validator.received}"
        verdict = SetAccepted(self._validator.received, would_remove, would_hold)
        answer = self._begin_result() + self._answers.set_result_end(verdict)
        return [effects.Write(answer), effects.HalfClose()]

    def _reject(self, before: State, code: int, detail: str = "", retry_after: int = 0) -> list[Effect]:
        reason = f"{text_of(code)}: {detail}" if detail else text_of(code)
        self.outcome = f"refused {code} {reason}"
        if before in {State.CONNECTED, State.AUTHENTICATING}:
            turned_away = self.rejected = InitRejected(code, reason, retry_after)
            return [effects.Write(self._answers.init_rejected(turned_away)), effects.HalfClose()]
        verdict = self.rejected = SetRejected(code, reason, retry_after)
        answer = self._begin_result() + self._answers.set_result_end(verdict)
        dropped: list[Effect] = [effects.DropSet()] if before is State.RECEIVING else []
        return [*dropped, effects.Write(answer), effects.HalfClose()]

    def _begin_result(self) -> bytes:
        if self._result_begun:
            return b""
        self._result_begun = True
        return self._answers.set_result_start()

    _ACTIONS: ClassVar[dict[type[Event], Callable[..., list[Effect]]]] = {
        Init: _authenticate,
        LoginGranted: _granted,
        LoginRefused: _refused,
        SetStart: _open,
        FullSetSpent: _spent,
        Url: _url,
        UrlRun: _run,
        SetEnd: _end,
        SetStored: _stored,
        SetCounted: _counted,
        SpoolFailed: _spool_failed,
        Malformed: _malformed,
        TooSlow: _too_slow,
        Stopping: _stopping,
        StreamEnded: _ended,
        Vanished: _vanished,
    }
