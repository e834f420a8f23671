"""How ``lcc status`` and ``lcc provider show`` tell what share of a provider's changes was not pushed."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lcc_scrapy.domain.misses import first_day, share_missed

if TYPE_CHECKING:
    from lcc_scrapy.domain.providers import Provider
    from lcc_scrapy.storage.tx import Tx


def facts_of(tx: "Tx", provider: "Provider", now: int, grace: float) -> dict[str, Any] | None:
    """Return what is known of a provider's changes; None when none of its documents was sampled."""
    from lcc_scrapy.storage.misses import counts_of

    counts = counts_of(tx, provider, now, grace)
    if not counts.sampled:
        return None
    share = share_missed(counts)
    waiting = tx.count_suspects(provider.pid, now) - tx.count_suspects(provider.pid, now - int(grace))
    return {
        **asdict(counts),
        "suspected": waiting,
        "share": share and asdict(share),
        "fallback": provider.fallback,
        "falling_back": provider.fallingback,
    }


def all_facts(tx: "Tx", providers: "list[Provider]", now: int, grace: float) -> dict[int, dict[str, Any]]:
    """Return the same of every provider that was sampled, by pid."""
    sampled = set(tx.sampled_providers(first_day(now)))
    found = {one.pid: facts_of(tx, one, now, grace) for one in providers if one.pid in sampled}
    return {pid: facts for pid, facts in found.items() if facts}


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
