"""The order between a provider's sets is that of its logins, at however many UNSes they were."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lcc_scrapy.db.records import OpenLogin
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.absorption import View, Waiting, WaitRule

Earlier = Mapping[int, Sequence[OpenLogin]]
"""Logins before that of the first set of each provider, by pid; those that were passed over left out."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first set of a provider: for how long it has been complete (seconds), and what goes on here.

    ``sending`` = at this UNS a set of an earlier login of its provider is being received.
    """

    waited: float
    sending: bool


def look_at(
    store: Store, sets: Sequence[Waiting], heads: Mapping[int, Head], queue_max: int, patience: WaitRule
) -> tuple[View, Earlier]:
    """Return what decides which of some sets, of different providers, may go on, and what is before them."""
    seqs = {one.pid: one.seq for one in sets}
    earlier: dict[int, list[OpenLogin]] = {}
    with store.read() as tx:
        for login in tx.earlier_logins(seqs):
            earlier.setdefault(login.pid, []).append(login)
        queued = tx.queued_total() if queue_max else 0
        own = tx.waiting_urls(seqs) if queue_max else {}
    return View(queue_max, queued, own, _held_up(earlier, heads, patience)), earlier


def _held_up(earlier: Earlier, heads: Mapping[int, Head], patience: WaitRule) -> Collection[int]:
    return {
        pid
        for pid, before in earlier.items()
        if not patience.is_over(heads[pid].waited, sending_here=heads[pid].sending, earlier=before)
    }


def signs_of_life(store: Store) -> dict[str, int]:
    """Return when each UNS sent its last heartbeat (epoch seconds of its own clock)."""
    with store.read() as tx:
        return {uns.uns: uns.seen for uns in tx.unses()}


def pass_over(store: Store, pid: int, before: int, uns: str) -> int:
    """Let sets of a provider wait no more for its logins before ``before`` at a UNS; return how many.

    From then on these sets cannot be absorbed (``PassedOver``): newer data would be overwritten.
    """
    with store.begin() as tx:
        tx.lock_providers([pid])
        return tx.pass_over(pid, before, uns)
