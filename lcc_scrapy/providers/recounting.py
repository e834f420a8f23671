"""The books that can be made anew: quota counters, set parts and turns, from the rows they count."""

from collections.abc import Mapping
from dataclasses import dataclass

from lcc_scrapy.db.records import TurnDelta
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.providers import Provider

Waiting = dict[tuple[int, str], int]
"""How many URLs wait, by (psetid, mask)."""


@dataclass(frozen=True, slots=True)
class Miscount:
    """What is wrong in a provider's books, ``said`` in words (empty = nothing), and what has to be added."""

    provider: Provider
    said: tuple[str, ...]
    counters: Mapping[str, int]
    parts: Mapping[tuple[int, str, int], int]
    turn: int


def miscount(tx: Tx, provider: Provider) -> Miscount:
    """Compare a provider's books with the rows; ``tx`` sees one moment (``Store.snapshot``)."""
    waiting, parts = tx.waiting(provider.pid), _parts(tx, provider)
    counted = _counters(tx, provider, waiting)
    counters = {name: count - getattr(provider, name) for name, count in counted.items()}
    said = [
        f"provider {provider.pid}: {name} is {getattr(provider, name)}, counted {count}"
        for name, count in counted.items()
        if counters[name]
    ]
    if waiting != parts:
        said.append(f"provider {provider.pid}: its set parts are not those of its queue")
    noted, in_group = _in_turn(tx, provider), _in_group(tx, provider, waiting)
    if noted != in_group:
        said.append(f"turn {provider.turnkey}: {noted} URLs wait in it, counted {in_group}")
    missing = {
        (psetid, mask, provider.pid): waiting.get((psetid, mask), 0) - parts.get((psetid, mask), 0)
        for psetid, mask in waiting.keys() | parts.keys()
    }
    return Miscount(provider, tuple(said), counters, missing, in_group - noted)


def put_right(tx: Tx, found: Miscount) -> None:
    """Add what is missing in the books: what changed since then was counted in both."""
    pid, turnkey, priority = found.provider.pid, found.provider.turnkey, found.provider.priority
    tx.add_to_provider(pid, {name: delta for name, delta in found.counters.items() if delta})
    tx.add_to_parts(found.parts, {pid: priority})
    tx.add_to_turns({turnkey: TurnDelta(found.turn, arrived=True, priority=priority)})


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
