"""The feed of a front: the feeds of all its sub-LCCs, each in its order, merged as their answers come.

A sub-LCC that does not answer holds up none of the others: its part of the cursor stays, and it is named.
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TypeVar

from lcc_scrapy.domain.cache import NO_ANSWERS, CachedUrl, UrlMeta
from lcc_scrapy.domain.cursor import StartOver
from lcc_scrapy.domain.directives import NO_OWNERS, Owners
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.front import SubLcc
from lcc_scrapy.domain.front_cursor import PARTS_MAX, FrontPosition
from lcc_scrapy.domain.front_moves import Moves, begun, lowest, noted, read_on
from lcc_scrapy.domain.selection import Change, Selection
from lcc_scrapy.feed.content import ContentElsewhere, ContentGone
from lcc_scrapy.feed.row_formats import Record, record
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.rows import Page
from lcc_scrapy.front.sub_http import SubFailed, SubHttp, SubRefuses
from lcc_scrapy.http.blocking import Exchanges

T = TypeVar("T")

ROWS = 4000
"""Rows of all sub-LCCs that may be in memory at a time."""

PAGE = 500
"""Rows of one answer of a sub-LCC."""

WHOLE_PAGE = 100
"""Rows with all columns and the answers of their sites."""

FIRST_REST, LONGEST_REST = 1.0, 60.0
"""Seconds for which a sub-LCC that failed is not asked: doubled after each failure."""


@dataclass(frozen=True, slots=True)
class _Rest:
    seconds: float
    until: float
    why: str


class FrontFeed:
    """Asks the sub-LCCs of a directory; ``patience``: seconds that one has for an answer. Close it."""

    def __init__(
        self, directory: Directory, patience: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.directory = directory
        self._patience = patience
        self._clock = clock
        self._exchanges = Exchanges(2 * PARTS_MAX)
        self._threads = ThreadPoolExecutor(PARTS_MAX, "sub-lcc")
        self._resting: dict[str, _Rest] = {}

    def subs(self) -> list[SubLcc]:
        """Return all sub-LCCs; raises ``ConfigurationError`` where a front has none, or too many."""
        subs = self.directory.subs()
        if not subs:
            raise ConfigurationError("the front has no sub-LCC yet: `lcc front add`")
        if nameless := [sub.name for sub in subs if not sub.lccid]:
            name = nameless[0]
            told = f"tell `lcc front set {name}` its --web and --token-file, or its --database"
            raise ConfigurationError(f"the id of sub-LCC {name} is not known: {told}")
        if len(subs) > PARTS_MAX:
            raise ConfigurationError(f"content users read {PARTS_MAX} sub-LCCs at most, of {len(subs)}")
        return subs

    def ask(
        self, sub: SubLcc, position: FrontPosition, selection: Selection, rows: int, *, whole: bool = False
    ) -> "Future[Page]":
        """Begin to read on in a sub-LCC; raises what ``SubHttp.changes`` does when it is waited for.

        One that failed is not asked again at once: who follows would wait for it in every round. One that
        refused a request answers those of others.
        """
        part = position.part(sub.lccid)
        since = part.since if part else None
        return self._threads.submit(
            self._asked, sub, lambda one: one.changes(since, selection, rows, whole=whole)
        )

    def lccid(self, sub: SubLcc) -> str:
        """Ask a sub-LCC for its id; raises ``SubFailed``."""
        return self._http(sub).lccid()

    def document(self, pid: int, docid: str) -> CachedUrl | None:
        """Return the row of a provider's document, None where there is none; raises ``SubFailed``."""
        sub = self.directory.sub_of(pid)
        found = self._http(sub).document(docid) if sub else None
        return found[0] if found is not None and found[0].pid == pid else None

    def find(self, sub: SubLcc, docids: Sequence[str]) -> "Future[list[tuple[CachedUrl, tuple[str, ...]]]]":
        """Begin to ask a sub-LCC for the rows and owners of documents; raises as ``ask`` does."""
        return self._threads.submit(
            self._asked, sub, lambda one: [found for docid in docids if (found := one.document(docid))]
        )

    def ids(self, sub: SubLcc, selection: Selection) -> Iterator[tuple[str, int]]:
        """Yield docid and seq of all that a sub-LCC has, by rising docid; raises ``SubFailed``."""
        return self._http(sub).ids(selection)

    def open(self, row: CachedUrl) -> IO[bytes]:
        """Return the content of a document, decoded, from the sub-LCC where its provider is now.

        Raises ``ContentGone`` (read on) or ``ContentElsewhere``.
        """
        before = None
        while (sub := self.directory.sub_of(row.pid)) is not None and sub != before:
            try:
                return self._http(sub).open(row)
            except FileNotFoundError:
                before = sub  # unless its provider has moved on at this moment
            except SubFailed as error:
                raise ContentElsewhere(str(error)) from None
        raise ContentGone(f"document {row.docid} was removed meanwhile: read on")

    def close(self) -> None:
        """Close connections; what is asked still is not waited for longer than the patience."""
        self._threads.shutdown(cancel_futures=True)
        self._exchanges.close()

    def _asked(self, sub: SubLcc, read: Callable[[SubHttp], T]) -> T:
        rest = self._resting.get(sub.lccid)
        if rest is not None and self._clock() < rest.until:
            raise SubFailed(rest.why)
        try:
            answer = read(self._http(sub))
        except SubRefuses:
            raise
        except SubFailed as error:
            seconds = min(2 * rest.seconds, LONGEST_REST) if rest else FIRST_REST
            self._resting[sub.lccid] = _Rest(seconds, self._clock() + seconds, str(error))
            raise
        self._resting.pop(sub.lccid, None)
        return answer

    def _http(self, sub: SubLcc) -> SubHttp:
        """Return a sub-LCC; raises ``SubFailed`` where it cannot be asked."""
        if not (sub.web and sub.token_file):
            raise SubFailed(f"sub-LCC {sub.name}: tell `lcc front set {sub.name}` its --web and --token-file")
        try:
            token = Path(sub.token_file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SubFailed(f"sub-LCC {sub.name}: token file {sub.token_file!r}: {error}") from None
        return SubHttp(sub, token, self._exchanges, self._patience)


class FrontReader:
    """Reads the feeds once, from ``since`` (None = everything) to their ends.

    It is a ``feed.reader.Reading``: of ``limit`` changes at most, 0 = all. ``failed`` says by their names why
    sub-LCCs were not read to their ends, ``start_over`` which cannot go on from the cursor: their parts of it
    stay. ``anew`` names those to be read from their starts. With ``whole``, rows have all
    columns, and there are ``answers``. Raises ``BadCursor`` or ``StartOver`` at once.
    """

    def __init__(
        self,
        feed: FrontFeed,
        selection: Selection,
        since: FrontPosition | None = None,
        limit: int = 0,
        *,
        anew: Collection[str] = (),
        whole: bool = False,
    ) -> None:
        self._feed = feed
        self._whole = whole
        self._selection = selection
        self._limit = limit
        self._subs = feed.subs()
        self._rows = min(WHOLE_PAGE if whole else PAGE, ROWS // len(self._subs))
        self._page: Page | None = None
        self._known = Moves()
        self._web = ""
        self.failed: dict[str, str] = {}
        self.start_over: dict[str, str] = {}
        self.position = self.reached = self._begun(since, anew)
        self._begin_parts()

    def pages(self) -> Iterator[list[Change]]:
        """Yield lists of selected changes, never empty, each of one sub-LCC."""
        left = self._limit or float("inf")
        for sub, page, asked in self._looks(self._all()):
            told = self._take(page, sub, left)
            if told:
                left -= len(told)
                yield told
            self.position = self.reached
            if not left:
                return
            if page.more and sub.name not in self.failed:
                asked[self._ask(sub, self._rows)] = sub

    def looks(self) -> Iterator[list[Change]]:
        """Yield the same: sub-LCCs do not tell of looks in which nothing was selected."""
        return self.pages()

    def owners(self, page: Sequence[Change]) -> Owners:
        """Return the owners of the page that was yielded last."""
        del page
        return self._page.owners if self._page else NO_OWNERS

    def answers(self, rows: Sequence[CachedUrl]) -> dict[bytes, UrlMeta]:
        """Return the answers that rows of the page came with that was yielded last, if rows are ``whole``."""
        known = self._page.answers if self._page else NO_ANSWERS
        return {row.urlkey: known[row.urlkey] for row in rows if row.urlkey in known}

    def behind(self, row: Change) -> FrontPosition:
        """Return the position right behind a change of the page that was yielded last."""
        assert self._page is not None
        reached = replace(self._page.reached, seq=row.seq)
        return read_on(self.position, self._known, reached, (), {})[1]

    def records(self, page: Sequence[Change]) -> list[Record]:
        """Return the columns of the page that was yielded last; ``path`` is the URL of the content."""
        owners, documents = self.owners(page), f"{self._web}/v1/documents"
        return [
            record(row, lambda *_, docid=row.docid: f"{documents}/{docid}/content", owners) for row in page
        ]

    # --- the beginning -------------------------------------------------------------------------------

    def _begun(self, since: FrontPosition | None, anew: Collection[str]) -> FrontPosition:
        lccs = {sub.name: sub.lccid for sub in self._subs}
        if unknown := sorted(set(anew) - lccs.keys()):
            raise ConfigurationError(f"the front has no sub-LCC {unknown[0]}: it has {', '.join(lccs)}")
        if since is None:
            return self._new().within(lccs.values())
        since.check(self._selection.digest)
        position = noted(since, self._moves(since)) or since  # before parts of LCCs that are gone are dropped
        position = position.within(lccs.values())
        for name in anew:
            position = position.anew(lccs[name])
        return position

    def _new(self) -> FrontPosition:
        directory = self._feed.directory
        newest = directory.newest_move()  # first: those behind it are noted when they show
        oldest = directory.oldest_open_move()
        fresh = FrontPosition(selection=self._selection.digest)
        return begun(fresh, oldest if oldest <= newest else 0, newest)

    def _begin_parts(self) -> None:
        """Get a position to keep before the first row, where there is none yet (as in ``Reader``)."""
        new = [sub for sub in self._subs if not self._since(sub)]
        for sub, page, _ in self._looks({self._ask(sub, 0): sub for sub in new}):
            self._take(page, sub, 0)
            self.position = self.reached

    def _since(self, sub: SubLcc) -> object:
        part = self.position.part(sub.lccid)
        return part and part.since

    # --- pages ---------------------------------------------------------------------------------------

    def _all(self) -> "dict[Future[Page], SubLcc]":
        """Ask for no more than is wanted; what moved elsewhere is not told, so pages behind are whole."""
        rows = min(self._rows, self._limit or self._rows)
        return {self._ask(sub, rows): sub for sub in self._subs if sub.name not in self.failed}

    def _ask(self, sub: SubLcc, rows: int) -> "Future[Page]":
        return self._feed.ask(sub, self.position, self._selection, rows, whole=self._whole)

    def _looks(
        self, asked: "dict[Future[Page], SubLcc]"
    ) -> "Iterator[tuple[SubLcc, Page, dict[Future[Page], SubLcc]]]":
        """Yield pages as they come, until nobody is asked any more."""
        while asked:
            done, _ = wait(asked, return_when=FIRST_COMPLETED)
            for future in done:
                sub = asked.pop(future)
                try:
                    yield sub, future.result(), asked
                except StartOver as error:
                    self.start_over[sub.name] = str(error)
                except SubFailed as error:
                    self.failed[sub.name] = str(error)

    def _take(self, page: Page, sub: SubLcc, left: float) -> list[Change]:
        """Return what is to be told of a page; ``reached`` is the position behind that."""
        self._known = self._moves(self.position)
        told, self.reached = read_on(self.position, self._known, page.reached, page.rows, page.came)
        if told:
            self._page, self._web = page, sub.web.rstrip("/")
        if len(told) > left:
            told = told[: int(left)]
            self.reached = self.behind(told[-1])
        if page.more and page.rows and self.reached == self.position:
            self.failed[sub.name] = f"sub-LCC {sub.name} waits until those are read to which providers moved"
        return told

    def _moves(self, position: FrontPosition) -> Moves:
        return Moves.made_of(self._feed.directory.moves(lowest(position)))
