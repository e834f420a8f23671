"""An operator has failing hosts asked before their waits are over."""

from dataclasses import replace
from math import ceil

from lcc_scrapy.db.tx import Store
from lcc_scrapy.providers.registration import lock, tell
from lcc_scrapy.queue.host_waits import failing


def ask_now(store: Store, pid: int, now: int) -> list[str]:
    """Let each failing host of a provider be asked once, now; return them. Earlier failures still count."""
    with store.begin() as tx:
        provider = lock(tx, pid)
        tx.lock_turns([provider.turnkey])
        waiting = [one for one in failing(tx, provider.turnkey) if one.not_before > now]
        pids = tx.member_pids([provider.turnkey])
        for one in waiting:
            tx.put_failing_host(replace(one, not_before=float(now)))
            for member, masks in tx.masks(pids).items():
                for mask in masks:
                    tx.bring_back(member, mask, ceil(one.not_before))
        if waiting:
            tx.change_turn(provider.turnkey, {"not_before": 0.0, "look_at": 0.0})
            tell(tx, pid)
        return [one.host for one in waiting]
