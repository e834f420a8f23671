"""Windows: the next tickets of turns, those of many turns with a few statements.

A window is read from the head of the queue, or *on*, behind the last row of the one before. Reading on is
right for as long as nothing arrived and no hour or delay ended since: the rows before that place are then
those that were read.

What tries again and is due by now is a queue of its own beside the fresh URLs of a provider: a *lane*. So
however many there are, and whichever set they are of, fresh ones come in between (``domain.turns.mixed``).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from math import ceil

from lcc_scrapy.cache.irrelevant import current_at
from lcc_scrapy.db.records import Head, Irrelevant, Queue, StoredTurn
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain import timeslots
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.convergence import strong
from lcc_scrapy.domain.entries import Origin, furlkey
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.queue import DUE, QueuedUrl, Ticket, host_of, is_among, is_found
from lcc_scrapy.domain.turn import NEVER
from lcc_scrapy.domain.turns import interleave, mixed
from lcc_scrapy.queue.leases import Member

MASKS_PER_LOOK = 256
"""Different hour masks of one provider, open now, that are looked at together; others follow after these."""

FEW_MASKS = 4
"""Up to so many, a whole window of each is read; with more of them, of each but a part."""

PART = 16
"""Rows of a mask that are read at least."""

_Rows = Mapping[Queue, Sequence[QueuedUrl]]

HEAD = (-1, -1)
"""The place before every row of a queue."""

_Place = tuple[int, int]
_Lane = tuple[int, bool]
"""A member, and whether of its rows the retries are meant, or the fresh ones."""


class RowsDue(Exception):
    """Rows have to be set aside, or brought back, before a window can be read."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a window was read.

    ``masks``: those of each active member that were open, of retries those of which any are due; ``ends``:
    the place (psetid, position) of the last row in it; ``last``: whose row came last. ``arrivals`` is what
    had arrived in the turn, ``look_at`` when an hour opens or a row that was set aside is due.
    """

    masks: Mapping[_Lane, tuple[str, ...]]
    ends: Mapping[_Lane, _Place]
    last: int
    arrivals: int
    look_at: float


@dataclass(frozen=True, slots=True)
class Wanted:
    """A window that is wanted: ``limit`` tickets, behind ``reach`` or, without it, from the head.

    ``out`` are keys already handed out and not settled, or kept out for another reason; ``since`` counts
    the fetches of each member that were no retries since the last one that was. Rows of the hosts in
    ``waits`` stand in the way of others: they are set aside until the moment (epoch seconds) given there.
    """

    lease: StoredTurn
    members: tuple[Member, ...]
    limit: int
    out: Collection[bytes] = ()
    reach: Reach | None = None
    since: Mapping[int, int] = field(default_factory=dict)
    waits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Window:
    """The next tickets of the turn that was leased.

    ``more`` = the store may hold further ones; ``on`` = they follow those of the window before.
    """

    lease: StoredTurn
    tickets: tuple[Ticket, ...]
    more: bool
    on: bool
    reach: Reach

    @property
    def look_at(self) -> float:
        """Return when to look again though nothing happens."""
        return self.reach.look_at

    @property
    def arrivals(self) -> int:
        """Return what had arrived by then."""
        return self.reach.arrivals


def windows_of(
    tx: Tx, wanted: Sequence[Wanted], now: float, *, zone: tzinfo, bring_back: bool = True
) -> list[Window]:
    """Return the next tickets of turns: those of their active members in a ring, each in its order.

    ``zone`` is the LCC's. Rows that were set aside are brought back when they are due; without
    ``bring_back``, ``RowsDue`` is raised instead.
    """
    keys = [one.lease.turnkey for one in wanted]
    arrived = tx.arrivals(keys)  # before the rows: what arrives in between is heard of later
    arrivals = {key: arrived.get(key, 0) for key in keys}
    goes_on = {key for key, one in zip(keys, wanted, strict=True) if _goes_on(one, arrivals[key], now)}
    anew = [one for one in wanted if one.lease.turnkey not in goes_on]
    starts = _starts(tx, anew, arrivals, now, zone=zone, bring_back=bring_back)
    starts |= {key: one.reach for key, one in zip(keys, wanted, strict=True) if key in goes_on and one.reach}
    asked = [_heads(one, starts[one.lease.turnkey]) for one in wanted]
    rows = _rows(tx, asked)
    drawn = [
        _drawn(one, starts[one.lease.turnkey], heads, rows) for one, heads in zip(wanted, asked, strict=True)
    ]
    if any(one.waits for one in wanted):
        aside = [
            _set_aside(tx, one.waits, found, write=bring_back)
            for one, (found, *_) in zip(wanted, drawn, strict=True)
        ]
        drawn = [(found, more, ends) for found, (_, more, ends) in zip(aside, drawn, strict=True)]
    cached = tx.cached(row.urlkey for found, *_ in drawn for row in found)
    left = _left_of(tx, [row for found, *_ in drawn for row in found if row.urlkey not in cached])
    return [
        Window(
            one.lease,
            tuple(_ticket(row, one.lease, cached.get(row.urlkey), left.get(row.urlkey)) for row in found),
            more,
            one.lease.turnkey in goes_on,
            _reached(starts[one.lease.turnkey], found, ends),
        )
        for one, (found, more, ends) in zip(wanted, drawn, strict=True)
    ]


def _goes_on(wanted: Wanted, arrivals: int, now: float) -> bool:
    """Tell whether what lies before the end of the last window is what was read then."""
    reach = wanted.reach
    return reach is not None and reach.arrivals == arrivals and now < reach.look_at


# --- from the head ------------------------------------------------------------------------------------


def _starts(
    tx: Tx,
    wanted: Sequence[Wanted],
    arrivals: Mapping[str, int],
    now: float,
    *,
    zone: tzinfo,
    bring_back: bool,
) -> dict[str, Reach]:
    """Return, for each turn, which masks of its members are open now, from the heads of their queues on."""
    active = {
        one.lease.turnkey: [member for member in one.members if member.provider.state == State.ACTIVE]
        for one in wanted
    }
    masks = tx.masks(member.provider.pid for members in active.values() for member in members)
    opened: dict[int, tuple[str, ...]] = {}
    closed: dict[int, float] = {}
    for members in active.values():
        for member in members:
            pid = member.provider.pid
            opened[pid], closed[pid] = _open_masks(member, masks[pid], now, zone)
    due, retries = _next_due(
        tx, [(pid, mask) for pid, open_ in opened.items() for mask in open_], now, bring_back=bring_back
    )
    return {
        key: Reach(
            {(member.provider.pid, False): opened[member.provider.pid] for member in members}
            | {(pid, True): retries[pid] for member in members if (pid := member.provider.pid) in retries},
            {},
            0,
            arrivals[key],
            min(
                (min(closed[one.provider.pid], due.get(one.provider.pid, NEVER)) for one in members),
                default=NEVER,
            ),
        )
        for key, members in active.items()
    }


def _open_masks(
    member: Member, masks: Iterable[str], now: float, default: tzinfo
) -> tuple[tuple[str, ...], float]:
    """Return which of a provider's masks are open, and when others open."""
    zone = member.zone(default)
    hours = {mask: timeslots.intersect(mask, member.provider.timeofday) for mask in masks}
    open_ = tuple(mask for mask, both in hours.items() if timeslots.permits(both, now, zone))
    closed = timeslots.unite(hours[mask] for mask in hours.keys() - set(open_))
    return open_[:MASKS_PER_LOOK], timeslots.next_permitted(closed, now, zone)


def _next_due(
    tx: Tx, queues: Sequence[Queue], now: float, *, bring_back: bool
) -> tuple[dict[int, float], dict[int, tuple[str, ...]]]:
    """Bring back what was set aside and is due.

    Returns when the first of the other rows that are set aside will be due, of each provider; and the masks
    of those that were brought back.
    """
    due = tx.next_due(queues)
    back = {queue for queue, at in due.items() if at == DUE}
    if back:
        due = {queue: at for queue, at in due.items() if at > DUE} | tx.next_due(sorted(back), DUE)
    overdue = sorted(queue for queue, at in due.items() if at <= now)
    if overdue:
        if not bring_back:
            raise RowsDue
        for pid, mask in overdue:
            tx.return_due(pid, mask, int(now))
        due = {queue: at for queue, at in due.items() if at > now} | dict(tx.next_due(overdue, DUE))
    first: dict[int, float] = {}
    for (pid, _), at in due.items():
        first[pid] = min(first.get(pid, NEVER), at)
    masks: defaultdict[int, tuple[str, ...]] = defaultdict(tuple)
    for pid, mask in sorted({*back, *overdue}):
        masks[pid] += (mask,)
    return first, dict(masks)


def _set_aside(tx: Tx, waits: Mapping[str, float], rows: list[QueuedUrl], *, write: bool) -> list[QueuedUrl]:
    """Set rows aside whose hosts wait, and return the others; without ``write``, ``RowsDue`` is raised."""
    waiting: dict[int, list[bytes]] = {}
    for row in rows:
        if host_of(row.furl) in waits:
            waiting.setdefault(ceil(waits[host_of(row.furl)]), []).append(row.urlkey)
    if not waiting:
        return rows
    if not write:
        raise RowsDue
    for until, keys in waiting.items():
        tx.set_aside(keys, until)
    return [row for row in rows if host_of(row.furl) not in waits]


# --- rows ---------------------------------------------------------------------------------------------


def _heads(wanted: Wanted, start: Reach) -> dict[_Lane, list[Head]]:
    """Return what to read of each queue; of many queues less each, for a window is filled by few of them."""
    heads = {}
    for lane, masks in start.masks.items():
        most, behind = wanted.limit, start.ends.get(lane, HEAD)
        if len(masks) > FEW_MASKS:
            most = max(PART, most * FEW_MASKS // len(masks))
        if (
            behind == HEAD
        ):  # what is out lies before the end of the last window, but for what became due since
            most += len(wanted.out)
        heads[lane] = [Head(lane[0], mask, behind, most) for mask in masks]
    return heads


def _rows(tx: Tx, asked: Sequence[Mapping[_Lane, Sequence[Head]]]) -> dict[bool, _Rows]:
    """Read what is wanted of fresh rows and of retries."""
    wanted: dict[bool, list[Head]] = {False: [], True: []}
    for one in asked:
        for (_, retries), heads in one.items():
            wanted[retries] += heads
    return {retries: tx.heads(heads, retries=retries) if heads else {} for retries, heads in wanted.items()}


def _drawn(
    wanted: Wanted, start: Reach, heads: Mapping[_Lane, Sequence[Head]], rows: Mapping[bool, _Rows]
) -> tuple[list[QueuedUrl], bool, dict[_Lane, _Place]]:
    """Return the next rows of a turn in order, whether there are more, and where each lane was read to.

    The ring goes on where it was.
    """
    merged = {lane: _merged(of_one, rows[lane[1]], wanted.out) for lane, of_one in heads.items()}
    pids = sorted({pid for pid, _ in heads}, key=lambda pid: (pid <= start.last, pid))
    found = interleave([_mixed(pid, merged, wanted.since.get(pid, 0)) for pid in pids])
    taken, more = found[: wanted.limit], any(more for _, more, _ in merged.values())
    drawn = Counter(map(_lane, taken))
    left = {lane for lane, (of_one, *_) in merged.items() if drawn[lane] < len(of_one)}
    # Also past rows that are out: a read that found nothing else would be repeated for as long as they are.
    read = {lane: end for lane, (*_, end) in merged.items() if end is not None and lane not in left}
    ends = {_lane(row): _place(row) for row in taken} | read
    return taken, more or bool(left), ends


def _mixed(
    pid: int, merged: Mapping[_Lane, tuple[list[QueuedUrl], bool, _Place | None]], since: int
) -> list[QueuedUrl]:
    """Return the next rows of a provider: its retries among the fresh ones."""
    fresh, more, _ = merged[pid, False]
    retries, *_ = merged.get((pid, True), ((), False, None))
    return mixed(fresh, retries, since, more=more) if retries else fresh


def _lane(row: QueuedUrl) -> _Lane:
    return row.pid, row.not_before > 0


def _merged(
    heads: Sequence[Head], rows: _Rows, out: Collection[bytes]
) -> tuple[list[QueuedUrl], bool, _Place | None]:
    """Return a provider's next rows by set and position, up to where all of its queues were read."""
    parts = [(head, rows.get((head.pid, head.mask), ())) for head in heads]
    cut = [_place(part[-1]) for head, part in parts if len(part) == head.limit]
    found = sorted((row for _, part in parts for row in part), key=_place)
    if cut:
        found = [row for row in found if _place(row) <= min(cut)]
    end = _place(found[-1]) if found else None
    return [row for row in found if not out or not is_among(row, out)], bool(cut), end


def _reached(start: Reach, rows: Sequence[QueuedUrl], ends: Mapping[_Lane, _Place]) -> Reach:
    return replace(start, ends={**start.ends, **ends}, last=rows[-1].pid if rows else start.last)


def _place(row: QueuedUrl) -> _Place:
    return row.psetid, row.position


def _left_of(tx: Tx, rows: Sequence[QueuedUrl]) -> dict[bytes, Irrelevant]:
    """Return what is left of found documents that were dropped, by the keys of what waits."""
    lies_at = {row.urlkey: furlkey(row.pid, row.furl) for row in rows if is_found(row)}
    left = current_at(tx, lies_at.values()) if lies_at else {}
    return {key: left[at] for key, at in lies_at.items() if at in left}


def _ticket(
    row: QueuedUrl, lease: StoredTurn, cached: CachedUrl | None, left: Irrelevant | None = None
) -> Ticket:
    ticket = Ticket(row, lease.turnkey, lease.token)
    if cached is None and left is not None:
        return replace(ticket, etag=left.etag, last_modified=left.last_modified)
    if row.last_etag:
        return replace(ticket, etag=row.last_etag)
    if cached is None or _says_changed(row, cached) or cached.furl != row.furl:
        return ticket
    ticket = replace(ticket, validated=cached.final_url)
    if row.origin == Origin.PUSH or ticket.is_retry:
        return replace(ticket, etag=strong(cached.etag))
    return replace(ticket, etag=cached.etag, last_modified=cached.last_modified)


def _says_changed(row: QueuedUrl, cached: CachedUrl) -> bool:
    """Tell whether the declaration itself says that the content is another one than ours."""
    return (row.md5 is not None and row.md5 != cached.fetched_md5) or (
        row.len is not None and row.len != cached.fetched_len
    )
