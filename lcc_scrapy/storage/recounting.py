"""The books that can be made anew: quota counters, set parts and turns, from the rows they count."""

from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.storage.records import TurnDelta
from lcc_scrapy.storage.tx import Tx

Waiting = dict[tuple[int, str], int]
"""How many URLs wait, by (psetid, mask)."""


def miscounts(tx: Tx, provider: Provider) -> list[str]:
    """Return what is wrong in a provider's books, in words."""
    waiting = tx.waiting(provider.pid)
    wrong = [
        f"provider {provider.pid}: {name} is {getattr(provider, name)}, counted {count}"
        for name, count in _counters(tx, provider, waiting).items()
        if getattr(provider, name) != count
    ]
    if waiting != _parts(tx, provider):
        wrong.append(f"provider {provider.pid}: its set parts are not those of its queue")
    noted, counted = _in_turn(tx, provider), _in_group(tx, provider, waiting)
    if noted != counted:
        wrong.append(f"turn {provider.turnkey}: {noted} URLs wait in it, counted {counted}")
    return wrong


def recount(tx: Tx, provider: Provider) -> None:
    """Make a provider's books right; all providers of its turn are locked."""
    waiting, parts = tx.waiting(provider.pid), _parts(tx, provider)
    missing = _in_group(tx, provider, waiting) - _in_turn(tx, provider)
    tx.update_provider(provider.pid, _counters(tx, provider, waiting))
    deltas = {
        (psetid, mask, provider.pid): waiting.get((psetid, mask), 0) - parts.get((psetid, mask), 0)
        for psetid, mask in waiting.keys() | parts.keys()
    }
    tx.add_to_parts(deltas, {provider.pid: provider.priority})
    tx.add_to_turns({provider.turnkey: TurnDelta(missing, arrived=True, priority=provider.priority)})


def _counters(tx: Tx, provider: Provider, waiting: Waiting) -> dict[str, int]:
    files, space = tx.usage(provider.pid)
    return {
        "fileused": files,
        "spaceused": space,
        "nurlproc": sum(waiting.values()),
        "heldremovals": tx.count_held(provider.pid),
    }


def _parts(tx: Tx, provider: Provider) -> Waiting:
    return {(part.psetid, part.timeofday): part.nurls for part in tx.parts(provider.pid)}


def _in_turn(tx: Tx, provider: Provider) -> int:
    turn = tx.turn(provider.turnkey)
    return turn.waiting if turn is not None else 0


def _in_group(tx: Tx, provider: Provider, waiting: Waiting) -> int:
    """Count the URLs that wait in a provider's turn; for other members of its group their counters stand."""
    others = sum(one.nurlproc for one in tx.members([provider.turnkey]) if one.pid != provider.pid)
    return sum(waiting.values()) + others


def clear_stray_turns(tx: Tx, turnkeys: list[str]) -> list[str]:
    """Remove those of the turns that no provider has any more; returns them."""
    owned = {provider.turnkey for provider in tx.members(turnkeys)}
    stray = {key: turn for key, turn in tx.lock_turns(turnkeys).items() if key not in owned and turn.waiting}
    tx.add_to_turns({key: TurnDelta(-turn.waiting) for key, turn in stray.items()})
    return sorted(stray)
