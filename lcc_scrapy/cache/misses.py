"""Changes that a provider did not push: they are counted here, and judged when their grace is over."""

from collections.abc import Iterable

from lcc_scrapy.cache import full_set_requests
from lcc_scrapy.db.records import Missed, Suspect
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.misses import DAY, Counts, begin_of, falls_back, first_day, share_missed
from lcc_scrapy.domain.providers import Provider, State

REASON = "missed changes"
"""Why a full set is wanted from a provider that misses too many."""

AT_ONCE = 1000
"""Suspects that one transaction forgets."""


def period_of(provider: Provider, now: int) -> int:
    """Return for how many seconds a provider's changes have been counted, as far as that still counts."""
    return max(0, now - begin_of(now, max(provider.created, provider.countedsince)))


def watched(provider: Provider, confirmed: int, now: int) -> int:
    """Return how many seconds of the period had passed since the document was last confirmed."""
    return min(max(0, now - confirmed), period_of(provider, now))


def counts_of(tx: Tx, provider: Provider, now: int, grace: float) -> Counts:
    """Return what counts of a provider now; suspects are missed when their grace is over."""
    suspects = tx.count_suspects(provider.pid, now - int(grace))
    return _counts(provider, tx.missed(provider.pid, first_day(now)), suspects, now)


def all_counts(tx: Tx, providers: Iterable[Provider], now: int, grace: float) -> dict[int, Counts]:
    """Return the same of each provider that was sampled, by pid, with few questions for all."""
    counted, suspects = tx.all_missed(first_day(now)), tx.all_suspects(now - int(grace))
    sampled = (one for one in providers if one.pid in counted)
    return {one.pid: _counts(one, counted[one.pid], suspects.get(one.pid, 0), now) for one in sampled}


def _counts(provider: Provider, counted: Missed, suspects: int, now: int) -> Counts:
    return Counts(
        provider.fileused,
        period_of(provider, now),
        counted.pushed,
        counted.sampled,
        counted.missed + suspects,
        counted.watched,
    )


def settle_late(tx: Tx, pid: int, now: int, grace: float, keys: Iterable[bytes]) -> None:
    """Count the suspects among ``keys`` as pushed, if late: their grace is not over."""
    late = tx.drop_suspects(pid, now - int(grace), now, list(keys))
    if late:
        tx.add_missed(pid, now // DAY, {"pushed": late})


def settle_all_late(tx: Tx, pid: int, now: int, grace: float) -> bool:
    """Do the same with the next ``AT_ONCE`` suspects of a provider; tell whether there may be more."""
    keys = tx.suspects(pid, now - int(grace), now, AT_ONCE)
    settle_late(tx, pid, now, grace, keys)
    return len(keys) == AT_ONCE


def judge(tx: Tx, pid: int, now: int, grace: float) -> bool:
    """Count suspects whose grace is over as missed, and tell whether their provider is to be visited.

    It forgets ``AT_ONCE`` of them; as long as there are more, ``needs_judging`` says so.
    """
    provider = tx.lock_providers([pid]).get(pid)
    if provider is None:
        return False
    ripe = now - int(grace)
    missed = tx.drop_suspects(pid, 0, ripe, tx.suspects(pid, 0, ripe, AT_ONCE))
    if missed:
        tx.add_missed(pid, now // DAY, {"missed": missed})
    share = share_missed(counts_of(tx, provider, now, grace))
    falling = falls_back(share, provider.fallback, falling=provider.fallingback)
    if falling != provider.fallingback:
        tx.update_provider(pid, {"fallingback": falling})
        _wish(tx, provider, falling=falling)
    return falling


def needs_judging(tx: Tx, provider: Provider, now: int, grace: float) -> bool:
    """Tell whether ``judge`` would change anything."""
    if provider.state == State.IN_TRANSIT:
        return False
    if tx.count_suspects(provider.pid, now - int(grace)):
        return True
    if not (provider.fallback or provider.fallingback):
        return False
    share = share_missed(counts_of(tx, provider, now, grace))
    return falls_back(share, provider.fallback, falling=provider.fallingback) != provider.fallingback


def _wish(tx: Tx, provider: Provider, *, falling: bool) -> None:
    if falling:
        full_set_requests.want(tx, provider.pid, REASON)
    elif provider.fullsetwanted == REASON:
        full_set_requests.withdraw(tx, provider.pid)


def suspect(tx: Tx, keys: Iterable[bytes], pid: int, now: int) -> None:
    """Take note of documents that had changed when they were sampled."""
    tx.put_suspects([Suspect(key, pid, now) for key in keys])
