"""Turns: who fetches next (seed 003 section 6 "Fetching of URLs", "Bandwidth Delay").

The seed's tables are all here: *fetch-now* is ``_ready`` (one queue per priority), *being-fetched* is
``fetching`` of a turn (``turn.py``), *bandwidth-delay* and *time-of-day-delay* are ``_delayed``. A decision
costs the same whatever the number of providers.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Generic, TypeVar

from lcc_scrapy.domain.bandwidth import Pace
from lcc_scrapy.domain.queue import Ticket
from lcc_scrapy.domain.retries import HOST_BACKOFF_FIRST, NO_BACKOFF, UNAVAILABLE, Backoff, section_of
from lcc_scrapy.domain.turn import NEVER, Turn

PRIORITIES = (2, 1, 0)

STALE = 1000
"""Stale entries that may lie among the delayed ones before they are cleared away."""

CROWD = 1000
"""Ready turns from which on each is fetched from in sessions: sites would close the connections of a ring."""

SESSION, SESSION_SECONDS = 4, 1.0
"""Fetches of a session at most, and the seconds after which no further one of it begins."""

EVERY = 4
"""At most one of so many fetches of a provider is a retry, as long as others wait: they are not to starve."""

One = TypeVar("One")
AnyTurn = TypeVar("AnyTurn", bound=Turn)

_Queue = deque[tuple[int, Turn]]

IsOpen = Callable[[int, bool], bool]
"""Tells whether a turn of a priority may begin a fetch now; the second: whether it has a limit of its own."""


def _always(_priority: int, _limited: bool) -> bool:
    return True


class Turns(Generic[AnyTurn]):
    """All turns that one worker holds. Times are epoch seconds, always given.

    ``backoff`` is the first wait (seconds) of a host that fails; it may be changed at any time. While
    the limits of all turns fit into the common one together, only turns without a limit wait for it: they
    share what the others leave.
    Of each priority there are two queues, one of turns without a limit and one of turns with. Where more
    than ``crowd`` turns are ready in one, a turn keeps its place in the ring for a session of fetches.
    """

    def __init__(self, everything: Pace, backoff: float = HOST_BACKOFF_FIRST, crowd: int = CROWD) -> None:
        self.everything = everything
        self._crowd = crowd
        self.backoff = backoff
        self._turns: dict[str, AnyTurn] = {}
        self._ready: dict[int, tuple[_Queue, _Queue]] = {one: (deque(), deque()) for one in PRIORITIES}
        self._fit = False
        self._start_at = NEVER
        self._delayed: list[tuple[float, int, Turn]] = []
        self._due: list[str] = []
        self._ticks = 0

    def __contains__(self, key: str) -> bool:
        return key in self._turns

    def __iter__(self) -> Iterator[AnyTurn]:
        return iter(self._turns.values())

    def __len__(self) -> int:
        return len(self._turns)

    def get(self, key: str) -> AnyTurn | None:
        """Return a turn that this worker holds."""
        return self._turns.get(key)

    def those(self, keys: Iterable[str]) -> list[AnyTurn]:
        """Return those of some turns that this worker holds."""
        return [self._turns[key] for key in keys if key in self._turns]

    def add(self, turn: AnyTurn) -> None:
        """Take a turn in; its tickets follow with ``refill``."""
        self._turns[turn.key] = turn

    def drop(self, key: str) -> None:
        """Forget a turn, its window and its fetch, which must not go on (its rows stay in the store)."""
        turn = self._turns.pop(key, None)
        if turn is not None:
            turn.window.clear()
            turn.fetching.clear()
            turn.waiting = 0

    def refill(
        self,
        key: str,
        tickets: Iterable[Ticket],
        now: float,
        *,
        more: bool,
        look_at: float = NEVER,
        outdated: bool = False,
    ) -> None:
        """Replace the window of a turn by its next tickets, in order.

        ``outdated``: something changed while they were read; what is not among them may be there.
        """
        turn = self._turns.get(key)
        if turn is None:
            return
        if turn.hosts:
            failing = turn.failing()
            turn.asking = {one.host for one in turn.fetching.values() if one.host in failing}
            look_at = min([look_at, *(one.not_before for one in failing.values() if one.not_before > now)])
        turn.window = deque(turn.admitted(tickets, now))
        turn.more, turn.look_at = more, look_at
        if turn.hosts and not outdated and turn.forgive(now):
            turn.look_at = now  # for what was forgiven
        self.requeue(turn, now)

    def extend(self, key: str, tickets: Iterable[Ticket], now: float, *, more: bool) -> None:
        """Add further tickets to the window of a turn, in order."""
        turn = self._turns.get(key)
        if turn is not None:
            turn.window.extend(turn.admitted(tickets, now))
            turn.more = more
            self.requeue(turn, now)

    def look_by(self, key: str, at: float, now: float) -> None:
        """Have the window of a turn read again at some moment, if not before."""
        turn = self._turns.get(key)
        if turn is not None and at < turn.look_at:
            turn.look_at = at
            self.requeue(turn, now)

    def put_back(self, ticket: Ticket, now: float) -> None:
        """Return a ticket that was not used to its place at the head; ``done`` still ends its turn."""
        turn = self._turns.get(ticket.turnkey)
        if turn is not None and ticket.host not in turn.failing():
            turn.window.appendleft(ticket)
            self._queue(turn, now)

    def next(self, now: float, is_open: "IsOpen" = _always) -> Ticket | None:
        """Hand out the next ticket: higher priority first, in a ring within one priority.

        ``is_open`` tells who may have a place; what changes in that is not asked for by itself.
        """
        self._release_delayed(now)
        for priority in PRIORITIES:
            while (queue := self._first(priority, now, is_open)) is not None:
                number, turn = queue.popleft()
                if number == turn.waiting and self._may_start(turn, now):
                    if turn.session[0] != number:
                        turn.session = (number, SESSION - 1, now + SESSION_SECONDS)
                    ticket = turn.window.popleft()
                    turn.fetching[ticket.row.urlkey] = ticket
                    self._queue(turn, now)
                    return ticket
        return None

    def _first(self, priority: int, now: float, is_open: "IsOpen") -> _Queue | None:
        """Return the queue with the turn that has waited for longest, of those that may start now."""
        free, limited = self._ready[priority]
        first = free if free and is_open(priority, False) else None
        second = limited if limited and is_open(priority, True) else None
        if (first or (second and not self._fit)) and not self._common_permits(now):
            first, second = None, second if self._fit else None
        if first and second:
            return first if first[0][0] < second[0][0] else second
        return first or second

    def _common_permits(self, now: float) -> bool:
        """Tell whether the common limit lets a fetch start.

        Starting waits in line like a body in flight does: when its time has come, it does not matter what
        others took meanwhile.
        """
        if self.everything.pause(now) > 0 and now < self._start_at:
            self._start_at = min(self._start_at, self.everything.may_start_at())
            return False
        self._start_at = NEVER
        return True

    def weigh(self) -> None:
        """Compare the limits of all turns with the common one, after either changed."""
        self._fit = sum(turn.pace.limit for turn in self) <= self.everything.limit

    def pause(self, turn: Turn, now: float) -> float:
        """Return the seconds for which a body in flight should stop arriving."""
        return max(self.pauses(turn, now))

    def pauses(self, turn: Turn, now: float) -> tuple[float, float]:
        """Return the same, behind the limit of all turns together and behind the turn's own."""
        common = 0.0 if self._fit and turn.pace.limit else self.everything.pause(now)
        return common, turn.pace.pause(now)

    def due(self) -> list[str]:
        """Return, once, the turns for which ``next`` found that the store is to be asked again."""
        due, self._due = self._due, []
        return due

    def done(self, ticket: Ticket, now: float) -> None:
        """End the fetch of a ticket, whatever came of it; the turn queues for its next one."""
        turn = self._turns.get(ticket.turnkey)
        if turn is not None and turn.fetching.get(ticket.row.urlkey) is ticket:
            del turn.fetching[ticket.row.urlkey]
            turn.earlier.discard(ticket.row.urlkey)
            turn.spaced_until = max(turn.spaced_until, now + turn.spacing)
            if not turn.fetching:
                turn.spacing = 0.0
            if ticket.host in turn.asking:  # nothing was learnt of it: another URL is asked for
                turn.asking.discard(ticket.host)
                turn.look_at = now
            if not self._continue(turn, now):
                self._queue(turn, now)

    def host_failed(self, ticket: Ticket, now: float, retry_after: float = 0.0, code: int = 0) -> float:
        """Let a host of a turn wait after a failure with a code; return how long it has been failing.

        What fails beside others while the host waits already is the same failure.
        """
        turn, host = self._turns.get(ticket.turnkey), ticket.host
        if turn is None:
            return 0.0
        turn.answering.discard(host)
        backoff = turn.hosts.get(host, NO_BACKOFF)
        section = section_of(ticket.row.furl) if code == UNAVAILABLE else None
        if turn.has_failed_since(ticket, now):
            failed = backoff.failed_beside(now, retry_after, section)
        else:
            failed = backoff.failed_again(now, retry_after, self.backoff, section)
            others = (one for one in turn.fetching.values() if one is not ticket and one.host == host)
            turn.earlier.update(one.row.urlkey for one in others)
        turn.hosts[host] = failed
        self.changed_host(turn, host, now)
        return now - failed.since

    def host_answered(self, ticket: Ticket, now: float) -> Backoff | None:
        """Note that a host answered, unless it has failed since that fetch began.

        Returns how it was failing until now, None if it was not.
        """
        turn, host = self._turns.get(ticket.turnkey), ticket.host
        if turn is None or turn.has_failed_since(ticket, now):
            return None
        backoff = turn.hosts.get(host) if turn.hosts else None
        if turn.at_once > 1 and host not in turn.spaced:
            turn.answering.add(host)
        if backoff is None or not (backoff.failures or backoff.broken):
            return None
        section = section_of(ticket.row.furl)
        if not backoff.failures:
            turn.hosts[host] = backoff.mended(section)
            return None
        turn.hosts[host] = backoff.answered(now, section)
        self.changed_host(turn, host, now)
        return backoff

    def changed_host(self, turn: Turn, host: str, now: float) -> None:
        """Leave no ticket in the window that a host does not permit any more; it has to be read anew."""
        turn.asking.discard(host)
        turn.weigh_hosts()
        if turn.hosts[host].not_before > now:
            turn.look_at = min(turn.look_at, turn.hosts[host].asked_from())
            if turn.closed_until <= now:
                turn.window = deque(one for one in turn.window if one.host != host)
        self.requeue(turn, now)

    def requeue(self, turn: Turn, now: float) -> None:
        """Look at a turn again after its window, limits or priority changed.

        It keeps its place in the ring if it can: who pushes often would never come to the head of it.
        """
        if self._turns.get(turn.key) is turn and not (
            turn.waiting and turn.standing == turn.standing_at(now)
        ):
            turn.waiting = 0
            self._queue(turn, now)

    def moved(self, step: float, now: float) -> None:
        """Take note that the clock was moved by ``step`` seconds: waits keep their length.

        Hours do not, so every window has to be read again.
        """
        self.everything.moved(step)
        self._start_at += step
        self._delayed.clear()
        for turn in self:
            turn.pace.moved(step)
            turn.hosts = {host: one.moved(step) for host, one in turn.hosts.items()}
            turn.weigh_hosts()
            turn.look_at += step
            turn.spaced_until += step
            turn.waiting = turn.waiting if turn.waiting and not turn.standing[2] else 0
            self._queue(turn, now)

    def wake_at(self) -> float:
        """Return when ``next`` may have something again without further events; infinity = unknown."""
        delayed = self._delayed[0][0] if self._delayed else NEVER
        waiting = any(any(queues) for queues in self._ready.values())
        return min(self._start_at if waiting else NEVER, delayed)

    def _queue(self, turn: Turn, now: float) -> None:
        if turn.waiting or not turn.may_begin():
            return
        priority, limited, at = turn.standing = turn.standing_at(now)
        if at == NEVER:
            return
        self._ticks += 1
        turn.waiting = self._ticks
        if at:
            self._clear_away()
            heapq.heappush(self._delayed, (at, turn.waiting, turn))
        else:
            self._ready[priority][limited].append((turn.waiting, turn))

    def _continue(self, turn: Turn, now: float) -> bool:
        """Put a turn back to the head of its queue while its session lasts: its connection is open now."""
        number, left, until = turn.session
        if turn.fetching or turn.waiting or not left or now >= until or len(self._turns) < self._crowd:
            return False
        standing = turn.standing_at(now)
        queue = self._ready[standing[0]][standing[1]]
        if standing[2] or len(queue) < self._crowd:
            return False
        turn.session = (number, left - 1, until)
        turn.standing, turn.waiting = standing, number
        queue.appendleft((number, turn))
        return True

    def _clear_away(self) -> None:
        """Bound what is stale among the delayed entries; those of tonight would else be kept till then."""
        if len(self._delayed) >= 2 * len(self._turns) + STALE:
            self._delayed = [entry for entry in self._delayed if entry[1] == entry[2].waiting]
            heapq.heapify(self._delayed)

    def _release_delayed(self, now: float) -> None:
        while self._delayed and self._delayed[0][0] <= now:
            _, number, turn = heapq.heappop(self._delayed)
            if number != turn.waiting:
                continue
            turn.waiting = 0
            if turn.window:
                self._queue(turn, now)
            else:
                self._ask(turn)

    def _may_start(self, turn: Turn, now: float) -> bool:
        turn.waiting = 0
        if not turn.window or not turn.may_begin():
            return False
        if turn.opens_at(now) > now:
            self._queue(turn, now)
            return False
        if turn.look_at <= now:
            self._ask(turn)
            return False
        return True

    def _ask(self, turn: Turn) -> None:
        """Have the window read again: an earlier URL than those in it may be fetched by now."""
        turn.look_at = NEVER
        self._due.append(turn.key)


def interleave(queues: Sequence[Iterable[One]]) -> list[One]:
    """Return the items of several queues in a ring, each queue's own order kept: a group's next URLs."""
    rounds = zip_longest(*([(one,) for one in queue] for queue in queues), fillvalue=())
    return [one for row in rounds for slot in row for one in slot]


def mixed(fresh: Iterable[One], retries: Iterable[One], since: int, *, more: bool) -> list[One]:
    """Return a provider's next URLs in the order in which they are fetched, retries among the fresh ones.

    Of ``EVERY`` fetches one at most is a retry, as long as others wait. ``since``: fresh ones since the last
    retry; ``more``: others wait behind the given ones.
    """
    due, found = deque(retries), list[One]()
    for one in fresh:
        if since >= EVERY - 1 and due:
            found.append(due.popleft())
            since = 0
        found.append(one)
        since += 1
    if not more:
        return [*found, *due]
    return [*found, due.popleft()] if since >= EVERY - 1 and due else found


def fair_share(turns: int, workers: int) -> int:
    """Return how many of ``turns`` one of ``workers`` may hold, so that every one has work."""
    return -(-turns // max(1, workers))
