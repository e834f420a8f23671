"""A turn that this worker holds: where it stands, whose URLs it fetches, and how far its window was read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lcc_scrapy.db.records import StoredTurn
from lcc_scrapy.domain.queue import Ticket
from lcc_scrapy.domain.retries import Backoff, Blamed
from lcc_scrapy.domain.slots import Key
from lcc_scrapy.domain.turn import NEVER, Turn
from lcc_scrapy.domain.turn_states import Event, State, TurnState
from lcc_scrapy.queue.leases import Member
from lcc_scrapy.queue.window_rows import Reach

FOREVER = float(1 << 40)
"""A moment that never comes: a turn waits for news."""


@dataclass(frozen=True, slots=True)
class TurnPass:
    """What a request carries to show whose turn pays for its bytes, for which URL of which provider."""

    turnkey: str
    token: int
    urlkey: bytes
    pid: int

    @classmethod
    def of(cls, ticket: Ticket) -> "TurnPass":
        """Return the pass of a ticket."""
        return cls(ticket.turnkey, ticket.token, ticket.row.urlkey, ticket.row.pid)

    @property
    def key(self) -> Key:
        """Return under which key its fetch is found among those under way."""
        return self.turnkey, self.token, self.urlkey


def key_of(ticket: Ticket) -> Key:
    """Return the same for the fetch of a ticket."""
    return ticket.turnkey, ticket.token, ticket.row.urlkey


@dataclass(slots=True, eq=False, kw_only=True)
class HeldTurn(Turn):
    """A turn from its grant until it is given back or lost; when it is leased again, that is another one.

    ``members`` by their pid; ``out`` are keys handed out and not settled, ``judged`` those of ``judge``.
    ``arrivals`` is what had arrived when it was last read, ``reach`` how far its window was read, None = it
    is read from the head next. ``size``: tickets that its windows have, ``read_at``: when one was read on.
    During a read, ``taken`` are keys handed out since it began, and ``due`` is when a URL that the read may
    not know of is to be fetched. ``since`` counts, for each member, the fetches that were no retries since
    the last one that was.
    """

    lease: StoredTurn
    state: TurnState = field(default_factory=TurnState)
    members: dict[int, Member] = field(default_factory=dict)
    out: set[bytes] = field(default_factory=set)
    judged: set[bytes] = field(default_factory=set)
    arrivals: int = 0
    reach: Reach | None = None
    size: int = 0
    read_at: float = 0.0
    taken: set[bytes] = field(default_factory=set)
    due: float = NEVER
    since: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, lease: StoredTurn, hosts: Mapping[str, Backoff]) -> "HeldTurn":
        """Return the turn of a lease that was just granted, with what its hosts have to wait for."""
        return cls(lease.turnkey, lease.token, lease.priority, hosts=dict(hosts), lease=lease)

    def kept_out(self) -> set[bytes]:
        """Return the keys of URLs that no window is to have: handed out, or blamed till others were tried."""
        if not self.hosts:
            return self.out
        blamed = {url[0] for one in self.failing().values() for url in one.blamed}
        return blamed | self.out | self.judged

    def judge(self, blamed: Iterable[Blamed]) -> None:
        """Note that it is being made durable what becomes of URLs that failed before their host answered."""
        self.judged.update(url[0] for url in blamed)

    def judged_all(self, blamed: Iterable[Blamed]) -> None:
        """Note that it is durable."""
        self.judged.difference_update(url[0] for url in blamed)
        self._is_all_settled()

    def hand_out(self, ticket: Ticket) -> bool:
        """Note that a ticket is fetched now; False if that may not be."""
        if not self.state.happens(Event.HAND_OUT):
            return False
        self.out.add(ticket.row.urlkey)
        _count(self.since, ticket)
        if self.is_being_read():
            self.taken.add(ticket.row.urlkey)
        return True

    def since_retries(self) -> dict[int, int]:
        """Return ``since`` as it will be behind the window, if that is read on."""
        since = dict(self.since)
        for ticket in self.window if self.reach is not None else ():
            _count(since, ticket)
        return since

    def fetch_ended(self) -> None:
        """Note that a fetch has ended, which is not among those under way any more."""
        if not self.fetching:
            self.state.happens(Event.FETCH_ENDS)
        self._is_all_settled()

    def settled(self, ticket: Ticket) -> None:
        """Note that the outcome of a ticket is durable, or that it was not used."""
        self.out.discard(ticket.row.urlkey)
        self._is_all_settled()

    def _is_all_settled(self) -> None:
        if not self.out and not self.judged:
            self.state.happens(Event.ALL_SETTLED)

    def is_idle(self) -> bool:
        """Tell whether nothing is under way in it."""
        return self.state.fetches is State.IDLE

    def is_being_read(self) -> bool:
        """Tell whether its window is being read now."""
        return self.state.window in {State.READING, State.OUTDATED}

    def is_to_be_read(self) -> bool:
        """Tell whether its window is being read, or is to be read."""
        return self.state.window is State.UNREAD or self.is_being_read()

    def is_leaving(self) -> bool:
        """Tell whether it goes to another worker as soon as nothing is under way in it."""
        return self.state.window is State.LEAVING

    def is_low(self) -> bool:
        """Tell whether its window should be read on: it is half empty, and there is more."""
        return self.more and len(self.window) <= (self.size - 1) // 2

    def given_back(self, look_at: float) -> StoredTurn:
        """Return the lease as it is given back, with what the turn has to wait for, to be looked at then."""
        return replace(
            self.lease,
            look_at=min(look_at, FOREVER),
            not_before=self.free_at(),
            arrivals=self.arrivals,
        )


def _count(since: dict[int, int], ticket: Ticket) -> None:
    pid = ticket.row.pid
    since[pid] = 0 if ticket.row.not_before else since.get(pid, 0) + 1
