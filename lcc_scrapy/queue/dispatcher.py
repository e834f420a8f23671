"""The dispatcher: hands out the next URL to fetch, and accounts for every fetch until its turn goes on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import ZoneInfo

from twisted.python.failure import Failure

from lcc_scrapy.db.thread import Clock
from lcc_scrapy.domain import retries
from lcc_scrapy.domain.bandwidth import Meter, shared_limit
from lcc_scrapy.domain.errors import LeaseLost
from lcc_scrapy.domain.queue import NOTHING, Cancelled, Delayed, HostNoted, Outcome, Ticket
from lcc_scrapy.domain.retries import NO_BACKOFF
from lcc_scrapy.domain.slots import Fetch, Pacing, Slots
from lcc_scrapy.domain.turn import NEVER
from lcc_scrapy.domain.turns import Turns
from lcc_scrapy.queue import settlement
from lcc_scrapy.queue.group_commit import Done, GroupCommit
from lcc_scrapy.queue.held_turn import HeldTurn, TurnPass, key_of
from lcc_scrapy.queue.leases import Member
from lcc_scrapy.queue.settlement import Settled
from lcc_scrapy.queue.turn_leases import TurnLeases
from lcc_scrapy.queue.windows import WindowReader


@dataclass(eq=False, kw_only=True)
class Dispatcher:
    """Hands out tickets of ``turns``; all methods run on the event loop.

    ``wake`` is called whenever ``next_ticket`` may have something to give; while ``short`` says so, it has
    nothing.
    """

    turns: Turns[HeldTurn]
    slots: Slots
    meter: Meter
    windows: WindowReader
    leases: TurnLeases
    group_commit: GroupCommit
    clock: Clock
    zone: ZoneInfo
    now: Callable[[], float]
    short: Callable[[], bool]
    wake: Callable[[], None]

    _held_up = False
    _wake_timer: Any = None
    _wake_at = NEVER

    def stop(self) -> None:
        """Wake nobody any more."""
        if self._wake_timer is not None and self._wake_timer.active():
            self._wake_timer.cancel()

    def next_ticket(self) -> Ticket | None:
        """Return the next URL to fetch now, or None. Constant time."""
        now = self.now()
        if self.short() or not self.leases.may_fetch(now):
            return None
        if self.group_commit.is_full():
            self._held_up = True
            return None
        ticket = self._next_usable(now)
        if due := self.turns.due():
            self.windows.read_anew(self.turns.those(due))
        if ticket is None:
            self._set_alarm(now)
        return ticket

    def _next_usable(self, now: float) -> Ticket | None:
        while (ticket := self.turns.next(now, self.slots.is_open)) is not None:
            turn = self.turns.get(ticket.turnkey)
            if turn is None or not self._hand_out(ticket, turn, now):
                self.turns.done(ticket, now)
            elif ticket.row.operation != NOTHING:
                self.slots.begin(Fetch(key_of(ticket), turn.priority, now))
                return ticket
            else:
                self._end(ticket, turn)
                self.settle(Cancelled(ticket))
        return None

    def _hand_out(self, ticket: Ticket, turn: HeldTurn, now: float) -> bool:
        member = turn.members.get(ticket.row.pid)
        if (
            member is None
            or not member.permits(ticket.row.timeofday, now, self.zone)
            or not turn.hand_out(ticket)
        ):
            self.windows.read_anew([turn])
            return False
        self.windows.read_on(turn)
        return True

    def _set_alarm(self, now: float) -> None:
        at = self.turns.wake_at()
        if at <= now:
            at = NEVER  # it has come already: there is no slot, and who gives one on wakes by himself
        if self._wake_timer is not None and self._wake_timer.active():
            if at == self._wake_at:
                return
            self._wake_timer.cancel()
        self._wake_timer, self._wake_at = None, at
        if at < NEVER:
            self._wake_timer = self.clock.callLater(max(0.001, at - now), self.wake)

    # --- the fetch under way -----------------------------------------------------------------------

    def in_flight(self) -> int:
        """Return how many fetches are under way."""
        return len(self.slots)

    def member(self, ticket: Ticket) -> Member | None:
        """Return whose URL a ticket is for, or None when its turn was lost."""
        turn = self.leases.of(ticket)
        return turn.members.get(ticket.row.pid) if turn is not None else None

    def limit(self, pass_: TurnPass | None) -> int:
        """Return the bytes per second that a fetch may take at most, 0 = no limit."""
        turn = self.leases.of(pass_)
        return shared_limit((self.turns.everything.limit, turn.pace.limit if turn is not None else 0))

    def charge(self, pass_: TurnPass | None, size: int) -> float:
        """Account for bytes transferred in a turn; returns the seconds to pause before reading on.

        Raises ``LeaseLost`` when the turn is another worker's by now, or may be.
        """
        now = self.now()
        self.meter.transferred += size
        self.turns.everything.charge(now, size)
        if pass_ is None:
            return self.turns.everything.pause(now)
        turn = self.leases.of(pass_)
        if turn is None or not self.leases.hold(now):
            raise LeaseLost(f"turn {pass_.turnkey} is no longer ours")
        turn.pace.charge(now, size)
        return self._pause(pass_, turn, now, size)

    def _pause(self, pass_: TurnPass, turn: HeldTurn, now: float, size: int) -> float:
        """Return the seconds that a fetch has to pause for; if it has to, it gives its slot on."""
        common, own = self.turns.pauses(turn, now)
        pause, fetch = max(common, own), self.slots.get(pass_.key)
        if fetch is not None:
            fetch.charged += size
            fetch.transferred += size
            if pause > 0 and self.slots.give_on(fetch, Pacing.OWN if own >= common else Pacing.COMMON, now):
                self.wake()
        return pause

    def charged(self, ticket: Ticket) -> int:
        """Return the bytes that were charged so far for the fetch under way."""
        fetch = self.slots.get(key_of(ticket))
        return fetch.charged if fetch is not None else 0

    def expect(self, pass_: TurnPass | None, size: int) -> float:
        """Note the length of the answer under way in bytes (0 = not said).

        Returns the seconds that the limit of its turn makes of it, 0 where there is none.
        """
        turn = self.leases.of(pass_)
        if pass_ is None or turn is None:
            return 0.0
        fetch = self.slots.get(pass_.key)
        if fetch is not None:
            fetch.transferred, fetch.size = 0, size
        return size / turn.pace.limit if turn.pace.limit else 0.0

    def space(self, pass_: TurnPass | None, seconds: float) -> None:
        """Leave the site alone for so long after the fetch under way, as it asks (``Crawl-delay``)."""
        turn = self.leases.of(pass_)
        ticket = turn.fetching.get(pass_.urlkey) if turn is not None and pass_ is not None else None
        if turn is not None and ticket is not None:
            turn.space(ticket, seconds)

    def host_failed(self, ticket: Ticket, retry_after: float = 0.0, code: int = 0) -> float:
        """Let the host of a ticket wait, which failed with a code; returns for how many seconds it has been.

        ``delay`` or ``host_noted`` have to follow: they make it durable.
        """
        if self.leases.of(ticket) is None:
            return 0.0
        return self.turns.host_failed(ticket, self.now(), retry_after, code)

    def is_failing(self, ticket: Ticket) -> bool:
        """Tell whether the host of a ticket has failed and not answered since."""
        turn = self.leases.of(ticket)
        return turn is not None and ticket.host in turn.failing()

    def host_noted(self, ticket: Ticket) -> None:
        """Make durable how the host of a ticket fails, whose failure is settled by itself."""
        turn = self.leases.of(ticket)
        if turn is not None:
            self.windows.read_anew([turn])
            self.group_commit.settle(HostNoted(ticket, turn.hosts[ticket.host], int(self.now())))

    def host_answered(self, ticket: Ticket) -> None:
        """Note that the host of a ticket answered: URLs of it that failed just before are to blame."""
        turn = self.leases.of(ticket)
        failing = self.turns.host_answered(ticket, self.now()) if turn is not None else None
        if turn is None or failing is None:
            return
        blamed = tuple(url for url in failing.blamed if url[0] != ticket.row.urlkey)
        turn.judge(blamed)

        def settled(_: Settled | Failure) -> None:
            turn.judged_all(blamed)
            self.windows.read_anew([turn])
            self.leases.give_back_if_idle(turn)

        noted = HostNoted(ticket, turn.hosts[ticket.host], int(self.now()), blamed)
        self.group_commit.settle(noted, settled)

    # --- its end -------------------------------------------------------------------------------------

    def put_back(self, ticket: Ticket) -> None:
        """Return a ticket that was not used; its turn still has to end with ``fetch_ended``."""
        turn = self.leases.of(ticket)
        if turn is not None:
            turn.settled(ticket)
            if not turn.is_leaving():
                self.turns.put_back(ticket, self.now())
            self.windows.read_anew([turn])

    def delay(self, outcome: Delayed) -> None:
        """Put back the ticket of a fetch whose host failed, and note why and for how long."""
        turn, row = self.leases.of(outcome.ticket), outcome.ticket.row
        backoff = turn.hosts.get(outcome.ticket.host, NO_BACKOFF) if turn is not None else NO_BACKOFF
        if turn is None or not backoff.failures:
            self.put_back(outcome.ticket)
            self.group_commit.settle(outcome)
            return
        if retries.is_host_level(outcome.code):
            backoff = backoff.blames((row.urlkey, row.pid, row.tries, retries.section_of(row.furl)))
            turn.hosts[outcome.ticket.host] = backoff
        self.windows.read_anew([turn])

        def settled(_: Settled | Failure) -> None:
            turn.settled(outcome.ticket)
            self.windows.read_anew([turn])
            self.leases.give_back_if_idle(turn)

        self.group_commit.settle(replace(outcome, backoff=backoff), settled)

    def fetch_ended(self, ticket: Ticket) -> int:
        """End a ticket's turn, whatever came of it; Scrapy's engine asks for the next one by itself.

        Returns the bytes that were charged for it.
        """
        charged = self.charged(ticket)
        self.slots.end(key_of(ticket))
        turn = self.leases.of(ticket)
        if turn is not None:
            self._end(ticket, turn)
            self.leases.give_back_if_idle(turn)
        return charged

    def _end(self, ticket: Ticket, turn: HeldTurn) -> None:
        if turn.fetching.get(ticket.row.urlkey) is ticket:
            self.turns.done(ticket, self.now())
            turn.fetch_ended()

    def settle(self, outcome: Outcome, done: Done = lambda _: None) -> None:
        """Make an outcome durable; ``done`` is called when it is, or with the ``Failure``."""

        def settled(result: Settled | Failure) -> None:
            self._settled(result, outcome.ticket)
            done(result)

        self.group_commit.settle(outcome, settled)

    def _settled(self, result: Settled | Failure, ticket: Ticket) -> None:
        if self._held_up and not self.group_commit.is_full():
            self._held_up = False
            self.wake()
        turn = self.leases.of(ticket)
        if turn is None:
            return
        turn.settled(ticket)
        if isinstance(result, Failure):
            turn.more, turn.reach = True, None
        elif result.result != settlement.DELAYED:  # that one is in its place in the window already
            self._is_to_be_fetched(turn, result.again)
        self.windows.read_on(turn)
        self.leases.give_back_if_idle(turn)

    def _is_to_be_fetched(self, turn: HeldTurn, again: float) -> None:
        """Take note of when a URL that was fetched is to be fetched again: its row lies behind the window."""
        if not again:
            self.windows.read_anew([turn])
        elif again < NEVER:
            self.windows.look_by(turn, again)
