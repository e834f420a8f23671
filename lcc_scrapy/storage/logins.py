"""The order between a provider's sets is that of its logins, at however many UNSes they were."""

from collections.abc import Sequence

from lcc_scrapy.domain.absorption import View, Waiting
from lcc_scrapy.storage.records import OpenLogin
from lcc_scrapy.storage.tx import Store


def look_at(store: Store, heads: Sequence[Waiting], queue_max: int) -> tuple[View, dict[int, OpenLogin]]:
    """Return what decides which of some sets, of different providers, may go on.

    The other part is for which login each of those that have to wait for one waits first.
    """
    seqs = {head.pid: head.seq for head in heads}
    with store.read() as tx:
        earlier = tx.earlier_logins(seqs)
        return View(queue_max, tx.queued_total(), tx.waiting_urls(seqs), earlier.keys()), earlier


def signs_of_life(store: Store) -> dict[str, int]:
    """Return when each UNS last gave a sign of life (epoch seconds of its own clock)."""
    with store.read() as tx:
        return {uns.uns: uns.seen for uns in tx.unses()}


def pass_over(store: Store, pid: int, before: int, uns: str) -> int:
    """Let sets of a provider wait no more for its logins before ``before`` at a UNS; return how many.

    From then on these sets cannot be absorbed (``PassedOver``): newer data would be overwritten.
    """
    with store.begin() as tx:
        tx.lock_providers([pid])
        return tx.pass_over(pid, before, uns)
