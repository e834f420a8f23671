"""Registration: one transaction for each change of a provider, which running workers then notice.

A pid is never used again: the fact ``removed:PID`` (table ``lccinfo``) stays when a provider goes, so
that nobody reads a new provider's documents under an old one's number.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

from lcc_scrapy.cache import full_set_requests
from lcc_scrapy.cache.versions import drop_all
from lcc_scrapy.db.records import PROVIDERS_CHANGED
from lcc_scrapy.db.retrying import repeated
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import FIRST_PID, FRONT_FIRST_PID, FRONT_PIDS, PIDS, Provider, State
from lcc_scrapy.queue.unit_of_work import UnitOfWork

CHUNK = 1000
"""Documents per transaction while a provider is removed."""

REMOVED = "provider removed"
"""The reason that its documents' tombstones give."""

_GIVEN_OUT = "pid %d was given out by registration; a pid is never used again"


class ProviderHook(Protocol):
    """What an app does with its rows of a provider. It is asked also while the app is left out."""

    def removed(self, tx: Tx, pid: int, limit: int) -> bool:
        """Forget some ``limit`` rows of a provider that goes; True = more are left. A kill repeats it."""


class NoSuchProvider(LccError):
    """There is no provider with this pid."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"there is no provider {pid}; `lcc provider list` shows all")


class PidUsed(LccError):
    """A pid is or was in use."""


class Moves(LccError):
    """A provider goes to another sub-LCC, or a root of it gets another URL: nobody else may change it."""

    def __init__(self, pid: int, *, renaming: bool = False) -> None:
        super().__init__(
            f"a root of provider {pid} is being renamed:"
            " run `lcc provider rename-root` again, to its end, or with --give-up"
            if renaming
            else f"provider {pid} moves to another sub-LCC:"
            f" run `lcc front move {pid}` to its end, or with --give-up"
        )


def lock(tx: Tx, pid: int) -> Provider:
    """Return a provider and lock it; raises ``NoSuchProvider``, or ``Moves`` for one in transit."""
    provider = tx.lock_providers([pid]).get(pid)
    if provider is None:
        raise NoSuchProvider(pid) if tx.provider(pid) is None else Moves(pid)
    return provider


def find(tx: Tx, pid: int) -> Provider:
    """Return a provider; raises ``NoSuchProvider``."""
    provider = tx.provider(pid)
    if provider is None:
        raise NoSuchProvider(pid)
    return provider


def all_providers(store: Store) -> list[Provider]:
    """Return every provider by rising pid, read in short transactions."""
    return [one for page in pages(store) for one in page]


def pages(store: Store) -> Iterator[list[Provider]]:
    """Yield every provider by rising pid, a page in each short transaction."""
    last = -1
    while True:
        with store.read() as tx:
            page = tx.providers(last)
        if not page:
            return
        last = page[-1].pid
        yield page


def add(store: Store, provider: Provider, roots: Sequence[str]) -> None:
    """Add a provider; raises ``LccError`` when its pid is or was in use."""
    with store.begin() as tx:
        given_out = GivenOut.locked(tx)
        if tx.provider(provider.pid) is not None:
            raise LccError(f"provider {provider.pid} exists already; `lcc provider set` changes it")
        if tx.info(gone(provider.pid)):
            raise LccError(f"provider {provider.pid} was removed; a pid is never used again, take another")
        if provider.pid in given_out:
            raise LccError(f"{_GIVEN_OUT % provider.pid}; take another")
        insert(tx, provider, roots)


def insert(tx: Tx, provider: Provider, roots: Sequence[str]) -> None:
    """Add a provider whose pid nobody has."""
    tx.insert_provider(provider, roots)
    tell(tx, provider.pid)


@dataclass(frozen=True, slots=True)
class GivenOut:
    """The pids that registration has given out, here and at a front: the last one of each."""

    last: int
    last_of_front: int

    @classmethod
    def locked(cls, tx: Tx) -> Self:
        """Read them, and keep registration from giving out more until the commit."""
        here, front = tx.take(PIDS, 0) - 1, tx.take(FRONT_PIDS, 0) - 1
        return cls(FIRST_PID - 1 + here, FRONT_FIRST_PID - 1 + front)

    @classmethod
    def read(cls, tx: Tx) -> Self:
        """Read them."""
        return cls(FIRST_PID - 1 + tx.peek(PIDS), FRONT_FIRST_PID - 1 + tx.peek(FRONT_PIDS))

    def __contains__(self, pid: int) -> bool:
        return FIRST_PID <= pid <= self.last or FRONT_FIRST_PID <= pid <= self.last_of_front


def give_out(tx: Tx) -> int:
    """Return a pid that nobody has or had, and that nobody else is given.

    Each is given out once, also when its registration comes to nothing.
    """
    last = GivenOut.locked(tx).last
    free = first_free(last, lambda pids: _taken(tx, pids))
    tx.take(PIDS, free - last)
    return free


def first_free(last: int, taken: Callable[[Sequence[int]], Container[int]]) -> int:
    """Return the first pid behind ``last`` that is not among those that are ``taken``."""
    count = 1
    while True:
        candidates = range(last + 1, last + 1 + count)
        used = taken(candidates)
        free = next((pid for pid in candidates if pid not in used), None)
        if free is not None:
            return free
        last, count = candidates[-1], min(2 * count, CHUNK)


def reserve(tx: Tx, pid: int) -> int:
    """Note that a front gave out a pid, from ``FRONT_FIRST_PID`` on; raises ``PidUsed``."""
    given_out = GivenOut.locked(tx)
    for why in _used(tx, [pid], given_out).values():
        raise PidUsed(why)
    tx.take(FRONT_PIDS, pid - given_out.last_of_front)
    return pid


def used_pids(store: Store, pids: Sequence[int]) -> dict[int, str]:
    """Return the pids among these that cannot be given to a new provider, with the reason."""
    with store.read() as tx:
        return _used(tx, pids, GivenOut.read(tx))


def _used(tx: Tx, pids: Sequence[int], given_out: GivenOut) -> dict[int, str]:
    ours = {pid: _GIVEN_OUT % pid for pid in pids if pid in given_out}
    return ours | _taken(tx, pids)


def _taken(tx: Tx, pids: Sequence[int]) -> dict[int, str]:
    """Return the pids among these that providers have or had."""
    removed = tx.infos([gone(pid) for pid in pids])
    used = {
        pid: f"provider {pid} was removed; a pid is never used again" for pid in pids if gone(pid) in removed
    }
    return {**used, **{pid: f"provider {pid} exists already" for pid in tx.known_pids(pids)}}


def add_many(store: Store, fresh: Sequence[tuple[Provider, Sequence[str]]]) -> None:
    """Add providers with their roots, all or none; raises ``LccError`` when a pid is or was in use."""
    with store.begin() as tx:
        for why in _used(tx, [provider.pid for provider, _ in fresh], GivenOut.locked(tx)).values():
            raise LccError(why)
        revision = tx.take(PROVIDERS_CHANGED, 1)
        tx.insert_providers([(replace(provider, revision=revision), its) for provider, its in fresh])
        for turnkey in sorted({provider.turnkey for provider, _ in fresh if provider.turngroup}):
            _tell_turn(tx, turnkey)


def change(
    store: Store,
    pid: int,
    values: Mapping[str, object],
    roots: Callable[[list[str]], list[str]] | None = None,
) -> None:
    """Set columns of a provider, and its roots to what ``roots`` makes of those it has.

    When its roots are others then, ``narrowing.Narrowing`` has work to do.
    """
    with store.begin() as tx:
        if lock(tx, pid).state == State.MOVING:
            raise Moves(pid, renaming=bool(tx.info(renaming_fact(pid))))
        change_locked(tx, pid, values, roots)


def change_locked(
    tx: Tx, pid: int, values: Mapping[str, object], roots: Callable[[list[str]], list[str]] | None = None
) -> None:
    """Do what ``change`` does, for a provider that is locked."""
    tx.update_provider(pid, values)
    before = tx.roots(pid)
    after = before if roots is None else roots(before)
    if after != before:
        tx.replace_roots(pid, after)
        tx.update_provider(pid, {"narrowing": True})
    tell(tx, pid)


def want_full_set(store: Store, pid: int, reason: str) -> str:
    """Ask a provider for a full set, or withdraw the request when ``reason`` is empty.

    Returns the reason that the provider is told: a graver one that stands already stays.
    """
    with store.begin() as tx:
        lock(tx, pid)
        if reason:
            return full_set_requests.want(tx, pid, reason)
        full_set_requests.withdraw(tx, pid)
        return ""


def remove(
    store: Store,
    pid: int,
    now: int,
    policy: QueuePolicy,
    progress: Callable[[int], None] = lambda _: None,
    *,
    hooks: Sequence[ProviderHook] = (),
) -> int:
    """Remove a provider with its documents and queue; returns how many documents went.

    It is disabled first, so that nothing new comes; then its rows go in bounded transactions, each of
    which leaves tombstones. After a kill, the same call goes on. ``progress`` is told the documents so far.
    """
    repeated(change, store, pid, {"state": State.DISABLED})
    documents = 0
    while (count := repeated(_remove_some, store, pid, now, policy, hooks)) is not None:
        documents += count
        progress(documents)
    return documents


def _remove_some(
    store: Store, pid: int, now: int, policy: QueuePolicy, hooks: Sequence[ProviderHook]
) -> int | None:
    """Remove some rows of a provider, or, when it has none, the provider itself (None).

    What alerts hold back of its documents goes before it.
    """
    with store.begin() as tx:
        if not tx.lock_providers([pid]):
            return None
        cached = [row.urlkey for row in tx.cached_of(pid, b"", CHUNK)]
        queued = [row.urlkey for row in tx.queued_of(pid, 0, CHUNK)]
        dropped = tx.irrelevant_of(pid, CHUNK)
        tx.delete_links(dropped)
        tx.delete_irrelevant(dropped)
        if not cached and not queued and not dropped:
            if drop_all(tx, pid, now, policy) or any(one.removed(tx, pid, CHUNK) for one in hooks):
                return 0
            tx.delete_provider(pid)
            tx.set_info(gone(pid), str(now))
            tx.take(PROVIDERS_CHANGED, 1)
            return None
        batch = UnitOfWork(tx, [pid], [*cached, *queued], now, policy)
        for key in [*cached, *queued]:
            batch.drop_queued(key)
            batch.drop_cached(key, REMOVED, guarded=False)
        batch.flush()
        return len(cached)


def renaming_fact(pid: int) -> str:
    """Return the name of the fact that a root of a provider is being renamed."""
    return f"rename:{pid}"


def gone(pid: int) -> str:
    """Return the name of the fact that a provider was here once, and when it went."""
    return f"removed:{pid}"


def tell(tx: Tx, pid: int) -> None:
    """Let workers look at a provider again, at once if its turn is at rest."""
    tx.update_provider(pid, {"revision": tx.take(PROVIDERS_CHANGED, 1)})
    _tell_turn(tx, find(tx, pid).turnkey)


def _tell_turn(tx: Tx, turnkey: str) -> None:
    priority = max(member.priority for member in tx.members([turnkey]))
    tx.change_turn(turnkey, {"look_at": 0.0, "priority": priority})
