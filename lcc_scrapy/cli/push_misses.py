"""Unpushed changes of a provider, as ``lcc status`` and ``lcc provider show`` print them."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lcc_scrapy.domain.misses import share_missed

if TYPE_CHECKING:
    from lcc_scrapy.db.tx import Tx
    from lcc_scrapy.domain.misses import Counts
    from lcc_scrapy.domain.providers import Provider


def facts_of(tx: "Tx", provider: "Provider", now: int, grace: float) -> dict[str, Any] | None:
    """Return what is known of a provider's changes; None when none of its documents was sampled."""
    from lcc_scrapy.cache.misses import counts_of

    counts = counts_of(tx, provider, now, grace)
    waiting = tx.count_suspects(provider.pid, now) - tx.count_suspects(provider.pid, now - int(grace))
    return _facts(provider, counts, waiting) if counts.sampled else None


def all_facts(tx: "Tx", providers: "list[Provider]", now: int, grace: float) -> dict[int, dict[str, Any]]:
    """Return the same of every provider that was sampled, by pid."""
    from lcc_scrapy.cache.misses import all_counts

    known, judged = tx.all_suspects(now), tx.all_suspects(now - int(grace))
    waiting = {pid: count - judged.get(pid, 0) for pid, count in known.items()}
    of_pid = {one.pid: one for one in providers}
    found = all_counts(tx, providers, now, grace)
    return {pid: _facts(of_pid[pid], counts, waiting.get(pid, 0)) for pid, counts in found.items()}


def _facts(provider: "Provider", counts: "Counts", waiting: int) -> dict[str, Any]:
    share = share_missed(counts)
    return {
        **asdict(counts),
        "suspected": waiting,
        "share": share and asdict(share),
        "fallback": provider.fallback,
        "falling_back": provider.fallingback,
    }


def in_words(facts: dict[str, Any]) -> str:
    """Say it in a line."""
    share = facts["share"]
    if share is None:
        told = "no change is known"
    else:
        told = f"{share['value']:.0%} of its changes ({share['lowest']:.0%} to {share['highest']:.0%})"
    judged = f", {facts['suspected']} may still be pushed" if facts["suspected"] else ""
    visited = "; its documents are visited" if facts["falling_back"] else ""
    seen = f"{facts['missed']} in {facts['sampled']} samples{judged}, {facts['pushed']} pushed"
    return f"{told}: {seen}{visited}"
