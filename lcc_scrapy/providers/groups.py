"""Groups of providers that share a turn and a limit, and the pause of everything."""

from lcc_scrapy.db.records import PAUSED, PROVIDERS_CHANGED, TurnDelta
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.providers.registration import lock, tell
from lcc_scrapy.queue.leases import reap


def regroup(store: Store, pid: int, group: str, now: float) -> None:
    """Move a provider to a group; the empty one is a turn of its own.

    Raises ``LccError`` while a worker holds one of the two turns: two fetches could be under way then.
    """
    with store.begin() as tx:
        provider = lock(tx, pid)
        old, new = provider.turnkey, group or str(pid)
        if old == new:
            return
        _insist_on_rest(tx, old, new, now)
        tx.update_provider(pid, {"turngroup": group})
        if provider.nurlproc:
            count = provider.nurlproc
            arrived = TurnDelta(count, arrived=True, priority=provider.priority)
            tx.add_to_turns({old: TurnDelta(-count), new: arrived})
        tell(tx, pid)


def _insist_on_rest(tx: Tx, old: str, new: str, now: float) -> None:
    reap(tx, "", now)
    held = [turn for turn in tx.lock_turns([old, new]).values() if turn.owner]
    if held:
        members = tx.members([turn.turnkey for turn in held])
        raise LccError(
            f"worker {held[0].owner} fetches for turn {held[0].turnkey}:"
            f" `lcc provider pause` {_pids(members)}, and try again when nothing is in flight"
        )


def _pids(members: list[Provider]) -> str:
    return ", ".join(str(member.pid) for member in members)


def pause_everything(store: Store, now: int) -> None:
    """Let no worker begin a fetch, until ``resume_everything``."""
    _set_paused(store, str(now))


def resume_everything(store: Store) -> None:
    """Let workers fetch again."""
    _set_paused(store, "")


def _set_paused(store: Store, value: str) -> None:
    with store.begin() as tx:
        tx.set_info(PAUSED, value)
        tx.take(PROVIDERS_CHANGED, 1)
