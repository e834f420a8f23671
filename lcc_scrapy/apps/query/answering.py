"""Answers to queries, as portions of XML out of the feed; everything here blocks, and runs in threads."""

import io
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Protocol

from lcc_scrapy.apps.query.sources import Found, Listed, Source, Told
from lcc_scrapy.apps.query.wire import writing
from lcc_scrapy.apps.query.wire.messages import Query, Reached, ResultBegins, ResultEnds, Row, Wanted, What
from lcc_scrapy.content.files import relative_path
from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.cursor import BadCursor, StartOver
from lcc_scrapy.domain.directives import Owners
from lcc_scrapy.domain.errors import LccError, Refusal, StoreUnavailable
from lcc_scrapy.domain.selection import Change, Leave, Selection, is_pattern
from lcc_scrapy.domain.tokens import NotAllowed
from lcc_scrapy.domain.tokens import Refused as TokenRefused
from lcc_scrapy.feed.content import ContentElsewhere, ContentGone, ContentLost

PORTION = 64 * 1024
"""Bytes after which a portion is handed over; a row, or a block of content, may stand above that."""
FILTERS_MAX = 100
"""Filters of one kind in a query: each row of the feed is held against all of them."""

_REST = b""
"""After a look that found nothing: other answers have their turn, however little a query selects."""

DOCUMENT = (
    "docid", "seq", "pid", "curl", "mimetype", "subtype", "burl", "furl", "mtime", "len", "md5",
    "fetched_time", "fetched_machineid", "fetched_fileid", "fetched_len", "fetched_md5", "sha256",
    "served_type", "served_charset", "final_url", "etag", "last_modified", "confirmed_time", "origin",
    "owners_seq",
)  # fmt: skip
"""Columns of ``lccurl`` that a document is told with; ``len`` and ``md5`` are as declared. All rows have
``owners`` behind these, where there are any."""
REMOVED = ("docid", "seq", "pid", "curl", "mimetype", "furl", "removed_time", "reason")
LEAVE = ("docid", "seq", "pid", "curl", "mimetype", "furl")
_COLUMNS = {CachedUrl: DOCUMENT, Tombstone: REMOVED, Leave: LEAVE}


class Asker(Protocol):
    """Who asks: what of the LCC is there for it (see ``domain.tokens.Token``)."""

    def narrowed(self, selection: Selection) -> Selection:
        """Return a selection of what it may see; raises ``NotAllowed``."""


@dataclass(frozen=True, slots=True)
class Everybody:
    """An asker who may see everything."""

    def narrowed(self, selection: Selection) -> Selection:
        """Return the selection as it is."""
        return selection


class Answer:
    """The answer to one query. Raises ``Refusal`` for one that makes no sense, others as they come.

    ``portions`` yields None when there is no change yet and the query waits for one: go on later, with
    ``patient`` = False when it has waited long enough.
    """

    def __init__(self, source: Source, query: Query, asker: Asker) -> None:
        self.patient = query.wait > 0
        self._source = source
        self._query = query
        if query.content is Wanted.REFERENCE and not source.has_files:
            raise Refusal(805, "content='reference' goes with one LCC only: a front has no files")
        self._selection = asker.narrowed(_selection_of(query))
        self._counts = {"upsert": 0, "remove": 0, "leave": 0}

    def portions(self) -> Iterator[bytes | None]:
        """Yield the answer in pieces of about ``PORTION`` bytes; smaller ones while little is selected."""
        kinds: dict[What, Callable[[], Iterator[bytes | None]]] = {
            What.CHANGES: self._changes,
            What.IDS: self._ids,
            What.ROWS: self._rows,
        }
        return _in_portions(kinds[self._query.what]())

    def _changes(self) -> Iterator[bytes | None]:
        query, source = self._query, self._source
        told = source.changes(self._selection, query.since, query.limit, query.anew)
        yield self._begin(told.position)
        yield from self._told(told)
        while self.patient and not any(self._counts.values()):
            yield None
            if later := source.later(told, self._selection, query.limit):
                told = later
                yield from self._told(told)
        yield self._end(told.position, told)

    def _told(self, told: Told) -> Iterator[bytes]:
        for page in told.looks():
            owners = told.owners(page)
            for change in page:
                yield from self._row(change, owners)
            yield writing.reached(Reached(str(told.reached)))
            if not page:
                yield _REST

    def _ids(self) -> Iterator[bytes]:
        found = self._source.inventory(self._selection)
        yield self._begin(found.position)
        for page in found.pages:
            for docid, seq in page:
                self._counts["upsert"] += 1
                yield writing.row(Row(CachedUrl.op, {"docid": docid, "seq": str(seq)}))
            if not page:
                yield _REST
        yield self._end(found.position, found)

    def _rows(self) -> Iterator[bytes]:
        keys = [bytes.fromhex(docid) for docid in dict.fromkeys(self._query.docids)]
        found = self._source.rows(self._selection, keys)
        yield self._begin(found.position)
        for page, owners in found.pages:
            for row in page:
                yield from self._row(row, owners)
        yield self._end(found.position, found)

    def _row(self, change: Change, owners: Owners) -> Iterator[bytes]:
        self._counts[change.op] += 1
        given = ((name, getattr(change, name)) for name in _COLUMNS[type(change)])
        values = {name: str(value) for name, value in given if value is not None}
        if change.urlkey in owners:
            values["owners"] = " ".join(owners[change.urlkey])
        if not isinstance(change, CachedUrl) or self._query.content is Wanted.NONE:
            yield writing.row(Row(change.op, values))
        elif self._query.content is Wanted.REFERENCE:
            path = str(relative_path(change.fetched_machineid, change.fetched_fileid))
            yield writing.row(Row(change.op, {**values, "path": path, "file_encoding": change.file_encoding}))
        else:
            yield from self._with_content(change, values)

    def _with_content(self, row: CachedUrl, values: dict[str, str]) -> Iterator[bytes]:
        try:
            file = self._source.open(row)
        except tuple(_MISSING) as error:
            yield writing.row(Row(row.op, values, _MISSING[type(error)]))
            return
        with file:
            yield writing.row(Row(row.op, values, Wanted.INSIDE))
            yield from _content(file, row)

    def _begin(self, position: object) -> bytes:
        return writing.begin(ResultBegins(self._source.lcc(position), str(position)))

    def _end(self, position: object, told: Told | Found | Listed) -> bytes:
        counts = self._counts
        end = ResultEnds(str(position), counts["upsert"], counts["remove"], counts["leave"])
        return b"".join(map(writing.missing, self._source.missing(told))) + writing.end(end)


_MISSING: dict[type[Exception], str] = {
    ContentGone: "gone",
    ContentElsewhere: "elsewhere",
    ContentLost: "lost",
}


def _content(file: IO[bytes], row: CachedUrl) -> Iterator[bytes]:
    """Yield the content of a row that stands open, and its end, whatever happens to the file."""
    trouble: Exception | None = None
    try:
        while block := file.read(writing.CONTENT_BLOCK):
            yield writing.content(block)
    except (OSError, LccError) as error:
        trouble = error
    yield writing.content_end()
    if trouble is not None:
        raise ContentLost(f"the content of document {row.docid} cannot be read: {trouble}") from trouble


def _in_portions(pieces: Iterator[bytes | None]) -> Iterator[bytes | None]:
    portion = io.BytesIO()
    try:
        for piece in pieces:
            if piece is not None:
                portion.write(piece)
            if portion.tell() >= PORTION or piece == _REST or (piece is None and portion.tell()):
                yield portion.getvalue()
                portion = io.BytesIO()
            if piece is None:
                yield None
    except Exception:
        if portion.tell():
            yield portion.getvalue()
        raise
    if portion.tell():
        yield portion.getvalue()


def _selection_of(query: Query) -> Selection:
    if query.what is not What.CHANGES and (query.since or query.limit or query.wait or query.anew):
        raise Refusal(805, f"what='{query.what}' goes with neither since, limit, wait nor anew")
    if query.what is What.IDS and query.content is not Wanted.NONE:
        raise Refusal(805, "what='ids' goes with no content")
    filters = (query.providers, query.mimetypes, query.subtypes, query.url_prefixes, query.anew)
    if max(map(len, filters)) > FILTERS_MAX:
        raise Refusal(805, f"more than {FILTERS_MAX} filters of one kind")
    for pattern in query.mimetypes:
        if not is_pattern(pattern):
            raise Refusal(805, f"mimetype {pattern[:100]!r}, expected for example text/html or text/*")
    return Selection(query.providers, query.mimetypes, query.subtypes, query.url_prefixes, query.since_time)


_CODES: dict[type[Exception], int] = {StartOver: 802, BadCursor: 805, TokenRefused: 801, NotAllowed: 807}


def refusal_of(error: BaseException | None, retry_after: int) -> Refusal | None:
    """Return what a content user is told of an error; None for one that is nobody's fault but ours."""
    if isinstance(error, Refusal):
        is_ours = error.code == 803 and not error.retry_after  # noqa: PLR2004 - the code of a server that cannot
        return Refusal(803, error.detail, retry_after) if is_ours else error
    if isinstance(error, StoreUnavailable):
        return Refusal(803, "", retry_after)
    if isinstance(error, ContentLost):
        return Refusal(803, "a content file cannot be read", retry_after)
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), 0)
    return Refusal(code, str(error)) if code else None


@dataclass(frozen=True, slots=True)
class Step:
    """What the next look at an answer gave: a portion, None = nothing yet; ``ended`` = there is no more."""

    portion: bytes | None = None
    ended: bool = False


class Answering:
    """An answer that is read step by step, each in any thread; ``make`` is called with the first one."""

    def __init__(self, make: Callable[[], Answer]) -> None:
        self._make = make
        self._answer: Answer | None = None
        self._portions: Iterator[bytes | None] = iter(())
        self._patient = True

    def step(self) -> Step:
        """Return the next portion; raises what keeps it from being there."""
        if self._answer is None:
            self._answer = self._make()
            self._portions = self._answer.portions()
        self._answer.patient &= self._patient
        try:
            return Step(next(self._portions))
        except StopIteration:
            return Step(ended=True)

    def wait_no_more(self) -> None:
        """Let a query that waits for a change come to its end."""
        self._patient = False

    def close(self) -> None:
        """Give files back."""
        with suppress(AttributeError):
            self._portions.close()  # type: ignore[attr-defined]
