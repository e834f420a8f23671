"""Requests for full sets (seed 003 section 5): raised, withdrawn and fulfilled here and nowhere else.

A request stands until a full set came that was sent *after* it. A set that is on its way already knows
nothing of what was lost or has grown old since.
"""

from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.providers import Wanted, graver


def want(tx: Tx, pid: int, reason: str) -> str:
    """Ask a provider for a full set; returns the reason it is told, "" when there is no such provider."""
    provider = tx.lock_providers([pid]).get(pid)
    if provider is None:
        return Wanted.NO
    told = graver(provider.fullsetwanted, reason)
    tx.update_provider(pid, {"fullsetwanted": told, "wantedseq": provider.lastconnseq})
    return told


def withdraw(tx: Tx, pid: int) -> None:
    """Want no full set any more."""
    tx.update_provider(pid, {"fullsetwanted": Wanted.NO.value})


def fulfil(tx: Tx, pid: int, connseq: int) -> None:
    """Take note that the full set of a login was absorbed: a request raised before that login ends."""
    provider = tx.lock_providers([pid]).get(pid)
    if provider is not None and connseq > provider.wantedseq:
        withdraw(tx, pid)
