"""The arrival of many records at once: those that are new are queued together, the rules see the rest.

New is what neither waits nor is cached, is named once among these records, and takes over no spider's
visit. Nothing that the rules do with the rest can depend on it, nor it on them, so the order between both
is of no account; ``tests/contract/test_arrivals.py`` compares with the rules alone.
"""

from collections.abc import Sequence
from itertools import compress, count
from operator import not_

from lcc_scrapy.domain.arrivals import Record, keys_of, new_rows, repeated, visits_of
from lcc_scrapy.storage.batch import Batch
from lcc_scrapy.storage.tx import Tx
from lcc_scrapy.uns.spoolfile import UPDATE


def queue_new(
    batch: Batch, pid: int, psetid: int, first: int, records: Sequence[Record]
) -> list[tuple[int, Record]]:
    """Queue what is new of a provider's records, numbered from ``first``; return the rest by number."""
    tx, keys = batch.tx, keys_of(pid, records)
    special = tx.known(keys) | repeated(keys)
    new = [record[0] == UPDATE and key not in special for key, record in zip(keys, records, strict=True)]
    spidered = tx.scan(pid) is not None
    if spidered:
        new = _without_visits(tx, pid, records, new)
    numbered = compress(zip(count(first), keys, records, strict=False), new)
    batch.append(pid, psetid, new_rows(pid, numbered, by_furl=spidered))
    if all(new):
        return []
    return list(compress(zip(count(first), records, strict=False), map(not_, new)))


def _without_visits(tx: Tx, pid: int, records: Sequence[Record], new: Sequence[bool]) -> list[bool]:
    """Leave those out whose place may be that of a spider's visit."""
    visits = iter(visits_of(pid, compress(records, new)))
    asked = [next(visits) if one else b"" for one in new]
    known = tx.known([visit for visit in asked if visit])
    return [one and visit not in known for one, visit in zip(new, asked, strict=True)]
