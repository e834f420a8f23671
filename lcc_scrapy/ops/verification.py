"""Verification (seed 000 "a simple verification script"): rows, files and counters against each other.

Looks through everything in pages, in short transactions, while crawls go on: what does not fit is looked
at again under the locks that settling takes, and only what does not fit then is reported, or repaired.
Rows are counted without a lock, as of one moment; a repair of books adds the difference.
"""

import errno
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import TypeVar

from lcc_scrapy.cache.file_ids import FILEID, block_of, without_row
from lcc_scrapy.cache.versions import portions, to_delete
from lcc_scrapy.content.decoding import BadCoding
from lcc_scrapy.content.store import ContentStore
from lcc_scrapy.content.stored import decoded
from lcc_scrapy.db.retrying import repeated
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.queue import Place, update_row
from lcc_scrapy.domain.rendering import fetched_for
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.intake.absorbing import PSETID
from lcc_scrapy.providers.recounting import Miscount, clear_stray_turns, miscount, put_right
from lcc_scrapy.queue.unit_of_work import UnitOfWork

Result = TypeVar("Result")

PAGE = 500
"""Rows or files per transaction."""

YOUNG = 300
"""Seconds for which a file without a row may belong to a settlement that has not ended."""

REPAIRS = "repairs"
"""The counter of corrections of books: two processes that count at a time do not correct twice."""

CONTENT_LOST = "content lost"
"""The reason given by the tombstone of a document whose file is gone or damaged; it is fetched again."""


class Kind(StrEnum):
    """What may not fit."""

    NO_FILE = "no file"
    WRONG_SIZE = "wrong size"
    WRONG_DIGEST = "wrong digest"
    UNREADABLE = "unreadable"
    NO_ROW = "no row"
    WRONG_COUNT = "wrong count"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not fit. ``docid`` or ``fileid`` is empty or 0 where there is none."""

    kind: Kind
    detail: str
    pid: int = 0
    docid: str = ""
    fileid: int = 0
    repaired: bool = False


class Verification:
    """Verifies one machine's files, their rows, and the counters of every provider.

    ``digests`` reads every file; ``repair`` puts right what is found. ``progress`` is told how many rows
    and files were looked at so far. Raises ``ConfigurationError`` when files may not be read at all.
    """

    def __init__(
        self,
        store: Store,
        content: ContentStore,
        policy: QueuePolicy,
        *,
        digests: bool = True,
        repair: bool = False,
        progress: Callable[[int], None] = lambda _: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._content = content
        self._policy = policy
        self._digests = digests
        self._repair = repair
        self._progress = progress
        self._now = now
        self.documents = 0
        self.files = 0

    def run(self) -> Iterator[Finding]:
        """Yield what does not fit, as it is found."""
        last_file = self._look(lambda tx: tx.peek(FILEID))
        for provider in self._providers():
            yield from self._rows_of(provider.pid)
        yield from self._orphans(last_file)
        for provider in self._providers():
            yield from self._counts_of(provider.pid)

    def _look(self, question: Callable[[Tx], Result]) -> Result:
        """Ask the database in a transaction of its own."""
        return repeated(self._look_once, question)

    def _look_once(self, question: Callable[[Tx], Result]) -> Result:
        with self._store.read() as tx:
            return question(tx)

    def _providers(self) -> Iterator[Provider]:
        pid = -1
        while page := self._providers_after(pid):
            yield from page
            pid = page[-1].pid

    def _providers_after(self, pid: int) -> list[Provider]:
        return self._look(lambda tx: tx.providers(pid))

    # --- rows without a good file ----------------------------------------------------------------

    def _rows_of(self, pid: int) -> Iterator[Finding]:
        key = b""
        while rows := self._rows_after(pid, key):
            key = rows[-1].urlkey
            bad = {row.urlkey: found for row in rows if (found := self._look_at(row))}
            self.documents += len(rows)
            self._progress(self.documents + self.files)
            if bad:
                yield from repeated(self._bad_rows, pid, bad)
        yield from self._versions_of(pid)

    def _rows_after(self, pid: int, key: bytes) -> list[CachedUrl]:
        return self._look(lambda tx: tx.cached_of(pid, key, PAGE))

    def _versions_of(self, pid: int) -> Iterator[Finding]:
        """Look at all versions; those that an alert holds back may be of documents that are gone."""
        after = b""
        while page := self._look(partial(_version_times, pid=pid, after=after)):
            keys = list(dict.fromkeys(key for key, _ in page))
            after = keys[-1]
            for part in portions(keys):
                yield from self._look_at_versions(pid, part)

    def _look_at_versions(self, pid: int, keys: Sequence[bytes]) -> list[Finding]:
        versions = self._look(lambda tx: tx.versions(keys)).values()
        looked_at = ((one, self._look_at(one)) for of_one in versions for one in of_one)
        bad = {one.seq: (one, found) for one, found in looked_at if found}
        return repeated(self._bad_versions, pid, bad) if bad else []

    def _look_at(self, row: CachedUrl | Version) -> Finding | None:
        """Compare a row with its file; rows of other machines' files are not ours to judge."""
        if row.fetched_machineid != self._content.machineid:
            return None
        path = self._content.name_of(row.fetched_fileid)
        try:
            kind, detail = self._compare(row)
        except FileNotFoundError:
            kind, detail = Kind.NO_FILE, ""
        except OSError as error:
            if error.errno != errno.EIO:
                raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
            kind, detail = Kind.UNREADABLE, ""
        if kind is None:
            return None
        return Finding(kind, f"{path}{detail}", row.pid, row.docid, row.fetched_fileid)

    def _compare(self, row: CachedUrl | Version) -> tuple[Kind | None, str]:
        size = self._content.stat(row.fetched_fileid).size
        if row.file_encoding:
            return self._compare_decoded(row, size)
        if size != row.fetched_len:
            return Kind.WRONG_SIZE, f": {size} bytes, {row.fetched_len} were stored"
        if self._digests and self._sha256(row) != row.sha256:
            return Kind.WRONG_DIGEST, ""
        return None, ""

    def _compare_decoded(self, row: CachedUrl | Version, size: int) -> tuple[Kind | None, str]:
        """Compare a compressed file, whose own size no row tells: it may not be empty, and has to decode."""
        if not size:
            return Kind.WRONG_SIZE, ": empty"
        try:
            right = not self._digests or self._sha256(row) == row.sha256
        except BadCoding as error:
            return Kind.WRONG_DIGEST, f": {error}"
        return (None, "") if right else (Kind.WRONG_DIGEST, "")

    def _sha256(self, row: CachedUrl | Version) -> str:
        with decoded(self._content.open(row.fetched_fileid), row.file_encoding) as content:
            return hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type] # it is buffered

    def _bad_rows(self, pid: int, bad: dict[bytes, Finding]) -> list[Finding]:
        with self._store.begin() as tx:
            batch = UnitOfWork(tx, [pid], bad, int(self._now()), replace(self._policy, alert_hold=0.0))
            same = [key for key, found in bad.items() if self._still(batch, key, found)]
            same = same if pid in batch.providers else []
            if self._repair and same:
                self._fetch_again(batch, same)
        return [replace(bad[key], repaired=self._repair) for key in same]

    def _still(self, batch: UnitOfWork, key: bytes, found: Finding) -> bool:
        """Tell whether a row still has the file that was looked at; file ids are never used again."""
        row = batch.cached.get(key)
        return row is not None and row.fetched_fileid == found.fileid

    def _fetch_again(self, batch: UnitOfWork, keys: list[bytes]) -> None:
        """Take rows out of the cache, and queue their URLs in a set of their own."""
        fetched = {key: fetched_for(batch.cached[key]) for key in keys}
        batch.add({row.urlkey for row in fetched.values()} - set(keys))
        psetid = batch.tx.take(PSETID, 1)
        for position, key in enumerate(keys, 1):
            row = fetched[key]
            if row.urlkey not in batch.queued:
                place = Place(psetid, position, row.origin)
                queued = update_row(row.as_entry(), row.urlkey, row.pid, place)
                batch.put_queued(replace(queued, seen=row.seen))
            batch.drop_cached(key, CONTENT_LOST, guarded=False)
        batch.flush()

    def _bad_versions(self, pid: int, bad: dict[int, tuple[Version, Finding]]) -> list[Finding]:
        """Look whether these versions are still kept; none can be fetched again, so repair drops them."""
        with self._store.begin() as tx:
            if not tx.lock_providers([pid]):
                return []
            kept = tx.versions({version.urlkey for version, _ in bad.values()}).values()
            same = [one for of_one in kept for one in of_one if one.seq in bad]
            if self._repair:
                tx.delete_versions([one.seq for one in same])
                tx.delete_later([to_delete(one, int(self._now()), self._policy) for one in same])
        return [replace(bad[one.seq][1], repaired=self._repair) for one in same]

    # --- files without a row ---------------------------------------------------------------------

    def _orphans(self, last_file: int) -> Iterator[Finding]:
        for page in _pages(self._content.all_files()):
            fileids = [fileid for fileid, _ in page]
            strangers = self._strangers(fileids)
            lone = [fileid for fileid in strangers if fileid <= last_file or self._is_old(fileid)]
            self.files += len(page)
            self._progress(self.documents + self.files)
            if lone:
                yield from repeated(self._lone_files, lone)

    def _strangers(self, fileids: list[int]) -> list[int]:
        return self._look(lambda tx: self._without_row(tx, fileids))

    def _without_row(self, tx: Tx, fileids: list[int]) -> list[int]:
        return without_row(tx, self._content.machineid, fileids)

    def _is_old(self, fileid: int) -> bool:
        """Tell whether a file has lain there longer than any settlement takes."""
        try:
            return self._content.stat(fileid).mtime < self._now() - YOUNG
        except FileNotFoundError:
            return False

    def _lone_files(self, fileids: list[int]) -> list[Finding]:
        """Look again while no settlement can be between its file and its row: each locks its blocks first."""
        with self._store.begin() as tx:
            tx.lock_blocks(self._content.machineid, map(block_of, fileids))
            lone = [fileid for fileid in self._without_row(tx, fileids) if self._is_there(fileid)]
            if self._repair:
                self._content.remove(lone)
        return [
            Finding(Kind.NO_ROW, self._content.name_of(fileid), fileid=fileid, repaired=self._repair)
            for fileid in lone
        ]

    def _is_there(self, fileid: int) -> bool:
        try:
            self._content.stat(fileid)
        except FileNotFoundError:
            return False
        return True

    # --- counters --------------------------------------------------------------------------------

    def rebuild_queue(self) -> Iterator[Finding]:
        """Rebuild everything that can be counted from the queue itself."""
        with self._store.begin() as tx:
            tx.wake_turns()
        for provider in self._providers():
            yield from self._counts_of(provider.pid)
        yield from self._stray_turns()

    def _counts_of(self, pid: int) -> list[Finding]:
        """Count without a lock, as of one moment; what is wrong then is still wrong by as much later."""
        while (counted := repeated(self._miscount, pid)) is not None:
            found, repairs = counted
            if not (found.said and self._repair) or repeated(self._put_right, found, repairs):
                return [Finding(Kind.WRONG_COUNT, text, pid, repaired=self._repair) for text in found.said]
        return []

    def _miscount(self, pid: int) -> tuple[Miscount, int] | None:
        with self._store.snapshot() as tx:
            provider = tx.provider(pid)
            return None if provider is None else (miscount(tx, provider), tx.peek(REPAIRS))

    def _put_right(self, found: Miscount, repairs: int) -> bool:
        """Correct the books, unless another repair did so since, or the provider has another turn now."""
        with self._store.begin() as tx:
            provider = tx.lock_providers([found.provider.pid]).get(found.provider.pid)
            if tx.take(REPAIRS, 1) != repairs + 1 or provider is None:
                return False
            if provider.turnkey == found.provider.turnkey:
                put_right(tx, found)
            return provider.turnkey == found.provider.turnkey

    def _turnkeys(self, after: str) -> list[str]:
        return self._look(lambda tx: tx.turnkeys(after, PAGE))

    def _stray_turns(self) -> Iterator[Finding]:
        after = ""
        while keys := self._turnkeys(after):
            after = keys[-1]
            with self._store.begin() as tx:
                stray = clear_stray_turns(tx, keys)
            for key in stray:
                yield Finding(Kind.WRONG_COUNT, f"turn {key} belongs to no provider", repaired=True)


def _version_times(tx: Tx, *, pid: int, after: bytes) -> list[tuple[bytes, int]]:
    return tx.version_times(pid, after, PAGE)


def _pages(files: Iterable[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    iterator = iter(files)
    while page := list(islice(iterator, PAGE)):
        yield page
