"""Whether a provider that may neither log in nor be fetched from (``State.MOVING``) is at rest."""

from lcc_scrapy.db.records import LAST_NUMBER
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.providers import Provider

LOOK = 0.5
"""Seconds between two looks whether it is."""

GONE = 60
"""Seconds after the end of its lease for which a worker that says nothing is still waited for."""


def why_busy(tx: Tx, provider: Provider, now: float) -> str:
    """Say what of a provider is still under way, "" = nothing is."""
    turn = tx.turn(provider.turnkey)
    busy = {one.owner for one in tx.workers() if one.expires + GONE > now}
    if turn is not None and turn.owner in busy:
        return f"worker {turn.owner} ends its fetch"
    return sets_under_way(tx, provider.pid)


def sets_under_way(tx: Tx, pid: int) -> str:
    """Say at which UNSes logins or sets of a provider are under way, "" = none are."""
    at = ", ".join(sorted({one.uns for one in tx.earlier_logins({pid: LAST_NUMBER})}))
    return f"logins or sets of it are under way, at UNS {at}" if at else ""
