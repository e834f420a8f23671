"""Turns from the store: leases on turn keys, shared between the workers."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from zoneinfo import ZoneInfo

from lcc_scrapy.db.records import LEASE, PAUSED, PROVIDERS_CHANGED, LongFetch, StoredTurn, WorkerRow
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain import timeslots
from lcc_scrapy.domain.bandwidth import Demand, allotments
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.queue import host_of
from lcc_scrapy.domain.retries import Backoff
from lcc_scrapy.domain.roots import Root, hosts
from lcc_scrapy.domain.turns import fair_share

CHANGES_PER_LOOK = 200
"""Changed providers that are read in one look; the next one reads on."""


@dataclass(frozen=True, slots=True)
class Member:
    """A provider of a turn, with the roots inside which it may be fetched from.

    ``private_hosts`` (``host:port``) are those of its roots that may have private addresses, ``roothosts``
    all of them, written as in fetch URLs.
    """

    provider: Provider
    roots: tuple[Root, ...]
    private_hosts: frozenset[str] = field(init=False, compare=False)
    roothosts: frozenset[str] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Read the roots once."""
        object.__setattr__(self, "roothosts", frozenset(host_of(str(root)) for root in self.roots))
        private = hosts(self.roots) if self.provider.allowprivate else frozenset()
        object.__setattr__(self, "private_hosts", private)

    def zone(self, default: tzinfo) -> tzinfo:
        """Return the zone in which its hours are meant."""
        return ZoneInfo(self.provider.timezone) if self.provider.timezone else default

    def permits(self, mask: str, now: float, default: tzinfo) -> bool:
        """Tell whether a URL with this mask may be fetched now: both masks open, the provider active."""
        zone, provider = self.zone(default), self.provider
        open_ = timeslots.permits(mask, now, zone) and timeslots.permits(provider.timeofday, now, zone)
        return open_ and provider.state == State.ACTIVE


@dataclass(frozen=True, slots=True)
class Granted:
    """A turn that was leased, with the providers whose URLs it lets one fetch."""

    lease: StoredTurn
    members: tuple[Member, ...]
    hosts: Mapping[str, Backoff] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class News:
    """What a worker learns from one look.

    ``lost``: its leases ended, because it was taken for dead. ``share``: how many turns it may hold,
    ``surplus``: how many it holds beyond that. ``changed``: providers that changed since the last look, up
    to ``revision``, which are ``CHANGES_PER_LOOK`` at most; ``existing``: the members that its turns still
    have, None when none can have gone. ``refilled``: drained turns in which URLs arrived. ``bandwidth``: its
    part of the common limit (bytes per second, 0 = no limit). ``hosts``: those of the turns of what changed.
    """

    lost: bool
    granted: list[Granted]
    share: int
    surplus: int
    leased_until: int
    revision: int
    changed: list[Member]
    refilled: list[str]
    existing: frozenset[int] | None
    paused: bool
    bandwidth: int
    hosts: Mapping[str, Mapping[str, Backoff]] = field(default_factory=dict)


def look_around(
    tx: Tx,
    me: WorkerRow,
    now: float,
    *,
    dead: Collection[str],
    limit: int,
    only: int | None,
    seen: int,
    drained: Mapping[str, int],
    bandwidth: int = 0,
    known: Mapping[str, int] | None = None,
    lives: Callable[[WorkerRow], bool] | None = None,
) -> News:
    """Show that a worker lives, free the turns of dead ones, and take up to ``limit`` free ones.

    ``dead`` are owners known to have ended, ``seen`` the revision of providers it knows of (-1 = it
    begins), ``drained`` what had arrived in turns of which it has no URLs left, ``bandwidth`` the limit of
    all workers together. ``only`` restricts it to one provider. ``known`` are the turns it knows to hold,
    with their tokens, when it may have been leased others without hearing of it. ``lives`` tells whether
    another worker does; without it, its row says until when.
    """
    revision = tx.peek(PROVIDERS_CHANGED)
    lost = not register(tx, me)
    if known is not None:
        _free_unknown(tx, me.owner, known)
    workers = reap(tx, me.owner, now, dead, lives)
    held = 0 if lost else me.held
    share = (
        fair_share(tx.count_turns(now), sum(worker.places > 0 and not worker.pid for worker in workers))
        if only is None
        else held + 1
    )
    granted = take_turns(tx, me.owner, now, limit=min(limit, max(0, share - held)), only=only)
    changed = _members(tx, tx.changed_providers(seen, CHANGES_PER_LOOK)) if 0 <= seen < revision else []
    upto = changed[-1].provider.revision if len(changed) == CHANGES_PER_LOOK else revision
    return News(
        lost,
        granted,
        share,
        max(0, held - share),
        me.expires,
        upto,
        changed,
        [key for key, count in tx.arrivals(drained).items() if count != drained[key]],
        _existing(tx, me.owner) if 0 <= seen < upto - len(changed) else None,
        bool(tx.info(PAUSED)),
        _my_part(bandwidth, me, workers),
        _hosts(tx, (member.provider.turnkey for member in changed)) if changed else {},
    )


def register(tx: Tx, me: WorkerRow) -> bool:
    """Note that a worker lives; tell whether it was known under this token, so that its leases hold.

    A new one looks at every turn afresh: it may have other ideas of time zones.
    """
    if tx.beat(me):
        return True
    tx.free_turns_of(me.owner)
    tx.wake_turns()
    tx.put_worker(me)
    return False


def tell_of_fetches(tx: Tx, owner: str, long: Sequence[LongFetch], ended: Collection[str]) -> None:
    """Note which fetches of a worker take long, and in which turns those that it told of have ended."""
    tx.drop_fetches(owner, ended)
    tx.put_fetches(long)


def reap(
    tx: Tx,
    me: str,
    now: float,
    dead: Collection[str] = (),
    lives: Callable[[WorkerRow], bool] | None = None,
) -> list[WorkerRow]:
    """Free the turns of workers that ended, except those of ``me``; returns those that live.

    One whose lease ended goes as well: when it comes back, it has to hear that it lost its turns.
    """
    alive = []
    for worker in tx.workers():
        signs = lives(worker) if lives else worker.expires > now
        if worker.owner == me or (worker.owner not in dead and signs):
            alive.append(worker)
        else:
            tx.free_turns_of(worker.owner)
            tx.drop_worker(worker.owner)
    return alive


def _free_unknown(tx: Tx, owner: str, known: Mapping[str, int]) -> None:
    """Free the turns that were leased to a worker in a commit of which it did not hear."""
    unknown = [key for key, token in tx.leased_turns(owner).items() if known.get(key) != token]
    tx.rest_turns([replace(turn, look_at=0.0) for turn in tx.lock_turns(unknown).values()])


def _my_part(bandwidth: int, me: WorkerRow, workers: Iterable[WorkerRow]) -> int:
    if not bandwidth:
        return 0
    return allotments(bandwidth, {one.owner: Demand(one.rate, one.hungry) for one in workers})[me.owner]


def take_turns(tx: Tx, owner: str, now: float, *, limit: int, only: int | None = None) -> list[Granted]:
    """Lease turns that have URLs waiting and that nobody holds, those of higher priority first.

    Every lease gets a higher token than all before, so that late settlements can be told apart.
    """
    turnkey = _turnkey(tx, only) if only is not None else None
    if limit <= 0 or not tx.free_turns(now, 1, turnkey):
        return []
    token = tx.take(LEASE, 1)  # from here on other workers wait, so what is free is looked at again
    leases = [replace(row, owner=owner, token=token) for row in tx.free_turns(now, limit, turnkey)]
    turnkeys = [lease.turnkey for lease in leases]
    tx.lease_turns(turnkeys, owner, token)
    members: dict[str, list[Member]] = {turnkey: [] for turnkey in turnkeys}
    for member in _members(tx, tx.members(turnkeys)):
        if only in {None, member.provider.pid}:
            members[member.provider.turnkey].append(member)
    hosts = _hosts(tx, turnkeys)
    return [Granted(lease, tuple(members[lease.turnkey]), hosts.get(lease.turnkey, {})) for lease in leases]


def _hosts(tx: Tx, turnkeys: Iterable[str]) -> dict[str, dict[str, Backoff]]:
    """Return what turns have to remember of their hosts, by turn and host."""
    return {
        key: {host: row.backoff for host, row in hosts.items()}
        for key, hosts in tx.hosts_of(set(turnkeys)).items()
    }


def _existing(tx: Tx, owner: str) -> frozenset[int]:
    """Return the providers of a worker's turns; one that was removed cannot be read as changed."""
    return frozenset(tx.member_pids(tx.leased_turns(owner)))


def _turnkey(tx: Tx, pid: int) -> str:
    provider = tx.provider(pid)
    return provider.turnkey if provider else str(pid)


def _members(tx: Tx, providers: Sequence[Provider]) -> list[Member]:
    roots = tx.roots_of([provider.pid for provider in providers])
    return [Member(one, tuple(map(Root.parse, roots.get(one.pid, ())))) for one in providers]
