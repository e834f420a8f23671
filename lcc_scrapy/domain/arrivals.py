"""What the rules make of updates that are new: neither waiting nor cached, and named once.

Most URLs of most sets are like that, and for each of them ``queue.update_row`` gives the same row but for
what was declared. So their rows are made here many at a time, straight from the *records* of the set, the
values of which stand in the order of the spool file: letter, curl, mimetype, furl, burl, subtype, mtime,
len, md5, timeofday, form (``uns.spool_file``); a removal ends after the mimetype.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from lcc_scrapy.domain.entries import ANY_TYPE, Origin, furlkey, namehashes
from lcc_scrapy.domain.queue import FETCH

NEW_COLUMNS = (
    "urlkey", "curl", "mimetype", "furl", "burl", "subtype", "mtime", "len", "md5", "timeofday",
    "sent", "position", "curlhash", "furlhash", "furlkey",
)  # fmt: skip
"""What the values of a new row are, in order; the last one is left out where nobody asks for it."""

STORED_COLUMNS = NEW_COLUMNS[: NEW_COLUMNS.index("curlhash")]
"""Those that are no index's."""

MASK = NEW_COLUMNS.index("timeofday")
_WITH_FORM = STORED_COLUMNS.index("position")
_FURL = NEW_COLUMNS.index("furl")

Record = Sequence[Any]
NewRow = tuple[Any, ...]


def keys_of(pid: int, records: Iterable[Record]) -> list[bytes]:
    """Return the ``urlkey`` of each."""
    begin = f"{pid}\0"
    texts = (f"{begin}{record[1]}\0{record[2]}" for record in records)
    return [sha256(text.encode("utf-8", "surrogatepass")).digest()[:16] for text in texts]


def visits_of(pid: int, updates: Iterable[Record]) -> list[bytes]:
    """Return the key of a spider's visit to the same place, for each update."""
    return keys_of(pid, (("", record[3], ANY_TYPE) for record in updates))


def repeated(keys: Sequence[bytes]) -> set[bytes]:
    """Return the keys that are there more than once."""
    if len(set(keys)) == len(keys):
        return set()
    return {key for key, count in Counter(keys).items() if count > 1}


def new_rows(pid: int, updates: Iterable[tuple[int, bytes, Record]], *, by_furl: bool) -> list[NewRow]:
    """Return the rows of new updates, given with position and key; ``by_furl``: with their ``furlkey``."""
    rows = (
        (key, *_complete(record), number, *namehashes(record[1], record[3]))
        for number, key, record in updates
    )
    return [(*row, furlkey(pid, row[_FURL])) for row in rows] if by_furl else list(rows)


def _complete(record: Record) -> Record:
    """Return the values of a record; those that an earlier version spooled have no form."""
    return record[1:] if len(record) == _WITH_FORM else (*record[1:], None)


OF_ALL_NEW: Mapping[str, str | int] = {
    "operation": FETCH, "version": 1, "tries": 0, "not_before": 0, "origin": Origin.PUSH.value,
    "last_etag": "",
}  # fmt: skip
"""Columns that are the same in all new rows, as ``queue.update_row`` gives them."""


def of_one_set(pid: int, psetid: int) -> dict[str, int]:
    """Return the columns that are the same in the new rows of a set."""
    return {"pid": pid, "psetid": psetid, "seen": psetid}


def same_in_all(pid: int, psetid: int) -> dict[str, str | int]:
    """Return all columns of the new rows of a set that ``new_rows`` does not give."""
    return {**of_one_set(pid, psetid), **OF_ALL_NEW}
