"""Searches in an index of ``lcc export --format fts5``, which is only read and may be written meanwhile.

The errors are one line each: what is wrong with the index, and what to do.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from lcc_scrapy.domain.cursor import BadCursor, Position, StartOver
from lcc_scrapy.domain.errors import LccError

VERSION = 1
"""Of the tables in an index: ``user_version`` of the file."""

MOST = 2000
"""Documents that a search finds."""

AT_A_TIME = 100
SECONDS = 1.0
"""That a search takes at most."""

RANKING = 0.05
"""Seconds to find the best: FTS5 ranks all that have a word, and a word may be everywhere."""

TOGETHER = 2
"""Searches at a time in one process."""

_PATIENCE = 0.25
"""Seconds to wait for who writes a commit into the file."""

_STEPS = 100
"""Instructions of SQLite between two looks at the clock: one of them may read a whole document."""

_BEGIN, _END = "\x01", "\x02"
_EXCERPT_WORDS = 24
_TITLE = 200


class IndexTrouble(LccError):
    """The index cannot be searched, now or at all."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A document: its id in the index, and its docid."""

    rowid: int
    docid: str


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What is shown of a document: its title, and pieces of its text with whether they were looked for."""

    title: str
    pieces: list[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class Age:
    """How old an index is: the last change that it has, and when it was written (epoch seconds)."""

    seq: int
    written: float


class Fts5Search:
    """Searches in one file. Blocking; from any thread."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._room = threading.BoundedSemaphore(TOGETHER)

    def age(self, head: Position) -> Age:
        """Return how old the index is, ``head`` being the newest change; raises ``IndexTrouble``."""
        with self._opened() as database:
            return self._age(database, head)

    @contextmanager
    def search(self, query: str, head: Position) -> Iterator["Search"]:
        """Search for what an FTS5 query finds; raises ``IndexTrouble``."""
        if not self._room.acquire(timeout=SECONDS):
            raise IndexTrouble("others search just now: try again in a moment")
        try:
            with self._opened() as database:
                yield Search(database, query, self._age(database, head), self._clock)
        finally:
            self._room.release()

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        if not self.path.is_file():
            raise IndexTrouble("the index is not there: run `lcc export --format fts5`, see LCC_SEARCH_INDEX")
        uri = f"file:{quote(str(self.path.absolute()))}?mode=ro"
        try:
            with closing(sqlite3.connect(uri, timeout=_PATIENCE, uri=True)) as database:
                database.execute("pragma trusted_schema = off")
                yield database
        except sqlite3.Error as error:
            raise _trouble(error) from None

    def _age(self, database: sqlite3.Connection, head: Position) -> Age:
        (version,) = database.execute("pragma user_version").fetchone()
        if version != VERSION:
            raise IndexTrouble("the file is no index of `lcc export --format fts5`: name another one")
        (cursor,) = database.execute("select cursor from place").fetchone()
        if not cursor:
            raise IndexTrouble("the index is not written yet: `lcc export --format fts5` has to end once")
        try:
            position = Position.parse(str(cursor))
            replace(position, selection=head.selection).check(head, lags=True)  # it may be written just now
        except (StartOver, BadCursor) as error:
            raise IndexTrouble(f"the index has no right cursor ({error}): `lcc export --force`") from None
        return Age(position.seq, self.path.stat().st_mtime)


class Search:
    """One search: what is found, best first, within ``SECONDS`` for all of it."""

    def __init__(
        self, database: sqlite3.Connection, query: str, age: Age, clock: Callable[[], float]
    ) -> None:
        self.age = age
        self.in_order = True
        self._database = database
        self._query = query
        self._clock = clock
        self._end = clock() + SECONDS

    def hits(self) -> Iterator[list[Hit]]:
        """Yield what is found, ``AT_A_TIME`` at most, ``MOST`` of all.

        Where putting it in order takes too long, ``in_order`` is False, and the newest ones come first.
        """
        rowids = self._found()
        for start in range(0, len(rowids), AT_A_TIME):
            yield self._named(rowids[start : start + AT_A_TIME])

    def _found(self) -> list[int]:
        try:
            return self._rowids("rank", self._clock() + RANKING)
        except sqlite3.OperationalError as error:
            if not _is_interrupted(error):
                raise
        self.in_order = False
        return self._rowids("rowid desc", self._end)

    def _rowids(self, order: str, end: float) -> list[int]:
        with self._until(end):
            rows = self._database.execute(
                f"select rowid from pages where pages match ? order by {order} limit ?",  # noqa: S608 - of our own
                (self._query, MOST),
            )
            return [int(rowid) for (rowid,) in rows]

    def _named(self, rowids: Sequence[int]) -> list[Hit]:
        marks = ",".join("?" * len(rowids))
        rows = self._database.execute(f"select id, docid from documents where id in ({marks})", rowids)  # noqa: S608
        docids = dict(rows.fetchall())
        return [Hit(one, str(docids[one])) for one in rowids if one in docids]

    def excerpts(self, hits: Iterable[Hit]) -> dict[int, Excerpt]:
        """Return what is shown of some documents; of those that time does not suffice for, nothing."""
        found: dict[int, Excerpt] = {}
        try:
            with self._until(self._end):
                for hit in hits:
                    found |= self._excerpt(hit.rowid)
        except sqlite3.OperationalError as error:
            if not _is_interrupted(error):
                raise
        return found

    def _excerpt(self, rowid: int) -> dict[int, Excerpt]:
        row = self._database.execute(
            "select substr(title, 1, ?), snippet(pages, 1, ?, ?, '\u2026', ?) from pages"
            " where pages match ? and rowid = ?",
            (_TITLE, _BEGIN, _END, _EXCERPT_WORDS, self._query, rowid),
        ).fetchone()
        return {rowid: Excerpt(str(row[0] or ""), _pieces(str(row[1] or "")))} if row else {}

    @contextmanager
    def _until(self, end: float) -> Iterator[None]:
        """Interrupt what runs after ``end``."""
        self._database.set_progress_handler(lambda: int(self._clock() > end), _STEPS)
        try:
            yield
        finally:
            self._database.set_progress_handler(None, 0)


def _pieces(text: str) -> list[tuple[str, bool]]:
    """Cut an excerpt where what was looked for begins and ends."""
    first, *others = text.split(_BEGIN)
    found = [(first, False)]
    for other in others:
        marked, _, rest = other.partition(_END)
        found += [(marked, True), (rest, False)]
    return [(piece, is_it) for piece, is_it in found if piece]


def _is_interrupted(error: sqlite3.Error) -> bool:
    return error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT


def _trouble(error: sqlite3.Error) -> IndexTrouble:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_INTERRUPT:
        return IndexTrouble("the search takes too long: give more words, or rarer ones")
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return IndexTrouble("the index is being written: try again in a moment")
    if code == sqlite3.SQLITE_CANTOPEN:
        return IndexTrouble("the index cannot be opened: see the rights of the file and its folder")
    return IndexTrouble(f"the index cannot be read ({error}): make it anew with `lcc export --force`")
