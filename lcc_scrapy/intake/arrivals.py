"""The arrival of many records at once: those that are new are queued together, the rules see the rest.

New is what neither waits nor is cached, is named once among these records, takes over no spider's visit, and
has not failed before. Nothing that the rules do with the rest can depend on it, nor it on them, so the order
between both is of no account; ``tests/contract/test_arrivals.py`` compares with the rules alone.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import compress, count
from operator import not_

from lcc_scrapy.db.records import ProviderSet
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.arrivals import Record, keys_of, new_rows, repeated, visits_of
from lcc_scrapy.domain.queue import Place
from lcc_scrapy.queue.unit_of_work import UnitOfWork
from lcc_scrapy.queue.unit_of_work import keys_of as keys_of_arrival
from lcc_scrapy.uns.spool_file import UPDATE, entry_of

Numbered = tuple[int, Record]
"""A record with its position in the set."""


@dataclass(frozen=True, slots=True)
class Arriving:
    """The next records of a set, behind those that were absorbed of it."""

    pset: ProviderSet
    records: Sequence[Record]
    ifabsent: bool = False


@dataclass(frozen=True, slots=True)
class Sorted:
    """Records of a set with their keys, and which of them are ``new``; ``spidered``: so is its provider."""

    arriving: Arriving
    keys: Sequence[bytes]
    new: Sequence[bool]
    spidered: bool

    @property
    def known(self) -> int:
        """How many of them the rules have to see, each of which costs ten times what a new one does."""
        return len(self.new) - sum(self.new)


def sort_out(tx: Tx, sets: Sequence[Arriving]) -> list[Sorted]:
    """Tell which records of sets of different providers are new."""
    keys = [keys_of(one.pset.pid, one.records) for one in sets]
    known = tx.known([key for some in keys for key in some])
    failing = tx.with_outcomes([one.pset.pid for one in sets])
    known |= tx.tried(
        [key for one, own in zip(sets, keys, strict=True) if one.pset.pid in failing for key in own]
    )
    spidered = tx.scanned([one.pset.pid for one in sets])
    return [_sorted(tx, one, own, known, spidered) for one, own in zip(sets, keys, strict=True)]


def _sorted(
    tx: Tx, arriving: Arriving, keys: Sequence[bytes], known: set[bytes], spidered: Collection[int]
) -> Sorted:
    twice, pid = repeated(keys), arriving.pset.pid
    new = [
        record[0] == UPDATE and key not in known and key not in twice
        for key, record in zip(keys, arriving.records, strict=True)
    ]
    if pid in spidered:
        new = _without_visits(tx, pid, arriving.records, new)
    return Sorted(arriving, keys, new, pid in spidered)


def arrive(batch: UnitOfWork, sets: Sequence[Sorted]) -> None:
    """Queue up records of sets of different providers, each in the order of its set."""
    rest = queue_new(batch, sets)
    entries = [[(number, entry_of(record)) for number, record in numbered] for numbered in rest]
    arriving = [one.arriving for one in sets]
    batch.add(
        key
        for one, numbered_entries in zip(arriving, entries, strict=True)
        for key in keys_of_arrival(one.pset.pid, (entry for _, entry in numbered_entries))
    )
    for one, numbered_entries in zip(arriving, entries, strict=True):
        for number, entry in numbered_entries:
            place = Place(one.pset.psetid, number)
            batch.arrive(one.pset.pid, entry, place, ifabsent=one.ifabsent, hold=one.pset.held > 0)


def queue_new(batch: UnitOfWork, sets: Sequence[Sorted]) -> list[list[Numbered]]:
    """Queue what is new of each set; return the rest."""
    return [_queue_new(batch, one) for one in sets]


def _queue_new(batch: UnitOfWork, one: Sorted) -> list[Numbered]:
    pset, records = one.arriving.pset, one.arriving.records
    first = count(pset.absorbed + 1)
    numbered = compress(zip(first, one.keys, records, strict=False), one.new)
    batch.append(pset.pid, pset.psetid, new_rows(pset.pid, numbered, by_furl=one.spidered))
    if not one.known:
        return []
    return list(compress(zip(count(pset.absorbed + 1), records, strict=False), map(not_, one.new)))


def _without_visits(tx: Tx, pid: int, records: Sequence[Record], new: Sequence[bool]) -> list[bool]:
    """Leave those out whose place may be that of a spider's visit."""
    visits = iter(visits_of(pid, compress(records, new)))
    asked = [next(visits) if one else b"" for one in new]
    known = tx.known([visit for visit in asked if visit])
    return [one and visit not in known for one, visit in zip(new, asked, strict=True)]
