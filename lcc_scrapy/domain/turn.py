"""One turn: the next URLs of a provider, how many of them may be under way, and what its hosts permit."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lcc_scrapy.domain.bandwidth import Pace
from lcc_scrapy.domain.queue import Ticket
from lcc_scrapy.domain.retries import Backoff, next_to_ask

NEVER = float("inf")

Standing = tuple[int, bool, float]
"""(priority, whether it has a limit, when its delay ends or 0)"""

Session = tuple[int, int, float]
"""(number of the entry with which it began, fetches that may follow, when none begins any more)"""


@dataclass(slots=True, eq=False)
class Turn:
    """A provider (or group) from which ``at_once`` URLs at a time are fetched, begun in their order.

    ``window`` holds its next tickets in order; ``more`` tells whether the store may hold further ones.
    ``look_at`` is when the store is to be asked again although nothing happens: an hour opens, or a URL
    that was set aside is due. ``waiting`` is the number of its entry in the queues, 0 = none; an entry
    with another number is stale. ``standing`` tells in which queue that is: priority, whether among those
    with a limit, and until when it is delayed (0 = it is ready). ``spacing`` is what the site asks to be left
    alone for (seconds) after the fetch under way, ``spaced_until`` when that is over. ``session`` is the
    session of the fetch that began last. ``answering`` are hosts that answered last time and did not ask to
    be left alone, ``spaced`` those that did: others than ``answering`` get one fetch at a time, whatever
    ``at_once`` is.

    ``hosts`` are those that failed of late. Of a failing one the window has no ticket while it waits, and
    one when its wait is over: ``asking`` are the hosts whose one ticket is in the window or under way.
    ``earlier`` are the keys of fetches under way that began before their host failed. While all of the
    turn's ``roothosts`` wait, till ``closed_until``, the turn does, and its window stays as it is.
    """

    key: str
    token: int
    priority: int = 0
    pace: Pace = field(default_factory=Pace)
    window: deque[Ticket] = field(default_factory=deque)
    at_once: int = 1
    fetching: dict[bytes, Ticket] = field(default_factory=dict)
    answering: set[str] = field(default_factory=set)
    spaced: set[str] = field(default_factory=set)
    more: bool = True
    look_at: float = NEVER
    hosts: dict[str, Backoff] = field(default_factory=dict)
    asking: set[str] = field(default_factory=set)
    earlier: set[bytes] = field(default_factory=set)
    roothosts: frozenset[str] = frozenset()
    closed_until: float = 0.0
    waiting: int = 0
    standing: Standing = (0, False, 0.0)
    spacing: float = 0.0
    spaced_until: float = 0.0
    session: Session = (0, 0, 0.0)

    def may_begin(self) -> bool:
        """Tell whether another fetch may begin beside those that are under way."""
        if not self.fetching:
            return True
        if len(self.fetching) >= self.at_once or not self.window:
            return False
        first = self.window[0]
        return first.host in self.answering and first.row.urlkey not in self.fetching

    def space(self, ticket: Ticket, seconds: float) -> None:
        """Leave the site alone for so long after the fetches under way; 0 = it does not ask for that."""
        self.spacing = seconds if len(self.fetching) == 1 else max(self.spacing, seconds)
        if seconds:
            self.spaced.add(ticket.host)
            self.answering.discard(ticket.host)

    def free_at(self) -> float:
        """Return when bandwidth and hosts let this turn go on."""
        return max(self.pace.ready_at if self.pace.limit else 0.0, self.closed_until, self.spaced_until)

    # --- its hosts ---------------------------------------------------------------------------------

    def failing(self) -> dict[str, Backoff]:
        """Return the hosts that failed and have not answered since."""
        return {host: one for host, one in self.hosts.items() if one.failures} if self.hosts else {}

    def waits(self, now: float) -> dict[str, float]:
        """Return until when hosts wait whose URLs stand in the way of those of other hosts."""
        if self.closed_until > now:
            return {}
        return {host: one.not_before for host, one in self.failing().items() if one.asked_from() > now}

    def hurry(self, moments: Mapping[str, float]) -> None:
        """Let failing hosts be asked at some moments, where those are earlier: somebody wants to know."""
        for host, at in moments.items():
            one = self.hosts.get(host)
            if one is not None and one.failures and at < one.not_before:
                self.hosts[host] = replace(one, not_before=at)

    def is_to_ask(self, now: float) -> bool:
        """Tell whether a failing host has waited for long enough."""
        return any(one.asked_from() <= now for one in self.failing().values())

    def has_failed_since(self, ticket: Ticket, now: float) -> bool:
        """Tell whether the host of a ticket has failed since its fetch began, and not answered."""
        one = self.hosts.get(ticket.host) if self.hosts else None
        if one is None or not one.failures:
            return False
        return one.asked_from() > now or ticket.row.urlkey in self.earlier

    def weigh_hosts(self) -> None:
        """Close the turn while all its hosts wait, after any of them changed."""
        failing = self.failing() if self.hosts else {}
        closed = bool(self.roothosts) and self.roothosts <= failing.keys()
        self.closed_until = min(failing[host].asked_from() for host in self.roothosts) if closed else 0.0

    def admitted(self, tickets: Iterable[Ticket], now: float) -> Iterable[Ticket]:
        """Leave out what failing hosts do not permit now; of each that has waited, one ticket is left."""
        failing = self.failing()
        if not failing or self.closed_until > now:
            return tickets
        tickets, due = list(tickets), dict[str, list[Ticket]]()
        for one in tickets:
            if one.host in failing and one.host not in self.asking and failing[one.host].asked_from() <= now:
                due.setdefault(one.host, []).append(one)
        chosen = dict[str, Ticket]()
        for host, waiting in due.items():
            which = next_to_ask([one.row.furl for one in waiting], failing[host])
            if which is not None:
                chosen[host] = waiting[which]
        self.asking |= chosen.keys()
        return [one for one in tickets if one.host not in failing or chosen.get(one.host) is one]

    def forgive(self, now: float) -> bool:
        """Ask for URLs that failed again, where their host has waited and no other URL of it was found.

        A host that was to be asked early waits instead. Tells whether anything changed.
        """
        changed = False
        for host, one in self.failing().items():
            if one.asked_from() <= now and host not in self.asking and (one.early or one.blamed):
                changes = {"early": False} if one.early else {"blamed": ()}
                self.hosts[host] = replace(one, **changes)
                changed = True
        self.weigh_hosts()
        return changed

    def opens_at(self, now: float) -> float:
        """Return the first moment from ``now`` on at which there is something to do for this turn."""
        return max(now, self.free_at()) if self.window else max(now, self.look_at)

    def standing_at(self, now: float) -> Standing:
        """Return where it queues now."""
        at = self.opens_at(now)
        return self.priority, bool(self.pace.limit), 0.0 if self.window and at <= now else at
