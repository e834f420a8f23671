"""One sub-LCC as its HTTP API (``lcc web``) shows it; every answer is bounded in bytes and time."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO
from urllib.parse import urlencode

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.cursor import BadCursor, Position, StartOver
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.front import SubLcc
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.feed.content import ContentElsewhere, ContentGone
from lcc_scrapy.feed.remote_content import SILENCE, authorized, cut_off, reason
from lcc_scrapy.front.rows import Page, document_of, end_of, listed_of, page_of
from lcc_scrapy.http.answer import HttpError
from lcc_scrapy.http.blocking import Body, Exchanges
from lcc_scrapy.http.connection import Connection
from lcc_scrapy.http.outgoing import NoConnection

ROW_MAX = 48 * 1024
"""Bytes that a row may have on average: three long URLs of characters that JSON writes in six bytes each."""

WHOLE_ROW_MAX = ROW_MAX + 256 * 1024
"""Bytes of a whole row on average: its head may have 64 KiB, which JSON writes in some more."""

_PROBLEM_MAX = 64 * 1024
_LINE_MAX = 4096
_BLOCK = 256 * 1024
_OK, _GONE, _NOT_THERE, _CHANGED = 200, 410, 404, 412
_REFUSALS = frozenset({400, 413, 414, 422, 429, 431})
"""Answers to a request that is too long, or wrong, or one too many; it says nothing about other requests."""

_UNANSWERED = (HttpError, NoConnection, TimeoutError, ValueError, OSError)


class SubFailed(LccError):
    """A sub-LCC does not give what it should; the text says why."""


class SubRefuses(SubFailed):
    """A sub-LCC answers, and refuses this one request: the fault may be its sender's."""


@dataclass(frozen=True, slots=True)
class SubHttp:
    """A sub-LCC. ``patience``: seconds that it has for one answer."""

    sub: SubLcc
    token: str
    exchanges: Exchanges
    patience: float

    def changes(
        self, since: Position | None, selection: Selection, limit: int, *, whole: bool = False
    ) -> Page:
        """Return the changes behind a cursor, of ``limit`` at most; ``whole`` rows have all columns.

        Raises ``StartOver`` where it cannot be followed, ``SubFailed`` for everything else that goes wrong.
        """
        more = "&whole=true" if whole else ""
        path = f"/v1/changes?{_query(since, selection, limit)}{more}"
        status, said = self._answer(path, limit * (WHOLE_ROW_MAX if whole else ROW_MAX) + _PROBLEM_MAX)
        if status == _OK:
            return self._checked(said, selection, limit)
        if status == _GONE:
            raise StartOver(f"sub-LCC {self.sub.name}: {_detail(said)}")
        raise self._refused(status, said)

    def lccid(self) -> str:
        """Ask for the id of the LCC; raises ``SubFailed``."""
        status, said = self._answer(f"/v1/changes?{_query(None, Selection(), 0)}", _PROBLEM_MAX)
        if status != _OK:
            raise self._refused(status, said)
        return self._page(said, 0).reached.lcc

    def document(self, docid: str) -> tuple[CachedUrl, tuple[str, ...]] | None:
        """Return the whole row of a document and its owners, None where it is not; raises ``SubFailed``."""
        status, said = self._answer(f"/v1/documents/{docid}?whole=true", _PROBLEM_MAX)
        if status == _NOT_THERE:
            return None
        if status != _OK:
            raise self._refused(status, said)
        try:
            return document_of(json.loads(said))
        except (ValueError, RecursionError) as error:
            raise self._failed(f"its answer is none: {reason(error)}") from None

    def ids(self, selection: Selection) -> Iterator[tuple[str, int]]:
        """Yield docid and seq of all that is there now, by rising docid; raises ``SubFailed``."""
        connection = self._asked(f"/v1/ids?{urlencode(_filters(selection), doseq=True)}", deadline=0.0)
        try:
            if connection.answer.status != _OK:
                raise self._failed(f"answers {connection.answer.status} for its ids")
            yield from self._listed(self._lines(connection), selection)
        except (*_UNANSWERED, RecursionError, BadCursor) as error:
            raise self._failed(reason(error)) from None
        finally:
            self.exchanges.release(connection)

    def _listed(self, lines: Iterator[bytes], selection: Selection) -> Iterator[tuple[str, int]]:
        last, count = "", 0
        for line in lines:
            said = json.loads(line)
            if end := end_of(said):
                position, documents = end
                self._check(position, selection)
                if documents != count:
                    raise ValueError(f"{count} ids of {documents}")
                return
            docid, seq = listed_of(said)
            if docid <= last:
                raise ValueError("ids that are not in order")
            last, count = docid, count + 1
            yield docid, seq
        raise ValueError("ids without an end")

    def _lines(self, connection: Connection) -> Iterator[bytes]:
        rest = b""
        while pieces := self.exchanges.more(connection):
            *whole, rest = b"".join([rest, *pieces]).split(b"\n")
            yield from whole
            if len(rest) > _LINE_MAX:
                raise ValueError(f"a line of more than {_LINE_MAX} bytes")

    def open(self, row: CachedUrl) -> IO[bytes]:
        """Return the content of a document, decoded, as a stream to be closed.

        Raises ``ContentGone`` where the row is not what is there now, ``FileNotFoundError`` where the
        document is not there at all, and ``ContentElsewhere`` where the sub-LCC does not give it.
        """
        path = f"/v1/documents/{row.docid}/content"
        try:
            connection = self._asked(path, (b"If-Match", f'"{row.sha256}"'.encode()), deadline=0.0)
        except SubFailed as error:
            raise ContentElsewhere(str(error)) from None
        status = connection.answer.status
        if status == _OK:
            body = Body(self.exchanges, connection, lambda error: cut_off(self.sub.web + path, error))
            return io.BufferedReader(body, _BLOCK)
        self.exchanges.release(connection)
        if status == _NOT_THERE:
            raise FileNotFoundError(row.docid)
        if status in {_CHANGED, _GONE}:
            raise ContentGone(f"document {row.docid} was replaced or removed meanwhile: read on")
        raise ContentElsewhere(f"sub-LCC {self.sub.name} answers {status} for document {row.docid}")

    def _asked(self, path: str, *fields: tuple[bytes, bytes], deadline: float | None = None) -> Connection:
        """Send a request; without a ``deadline`` the whole answer has to come within the patience."""
        within = self.patience if deadline is None else deadline
        patience = self.patience if deadline is None else max(self.patience, SILENCE)
        try:
            request = authorized(self.sub.web.rstrip("/") + path, self.token, *fields)
            return self.exchanges.ask(request, patience=patience, deadline=within)
        except _UNANSWERED as error:
            raise self._failed(reason(error)) from None

    def _answer(self, path: str, most: int) -> tuple[int, bytes]:
        connection = self._asked(path)
        try:
            if connection.answer.status != _OK:
                return connection.answer.status, self.exchanges.drained(connection)
            return _OK, self._read(connection, most)
        except _UNANSWERED as error:
            raise self._failed(reason(error)) from None
        finally:
            self.exchanges.release(connection)

    def _read(self, connection: Connection, most: int) -> bytes:
        said = bytearray()
        while pieces := self.exchanges.more(connection):
            for piece in pieces:
                said += piece
            if len(said) > most:
                raise ValueError(f"more than {most} bytes")
        return bytes(said)

    def _checked(self, said: bytes, selection: Selection, limit: int) -> Page:
        page = self._page(said, limit)
        self._check(page.reached, selection)
        return page

    def _check(self, reached: Position, selection: Selection) -> None:
        if reached.lcc != self.sub.lccid:
            raise self._failed(f"LCC {reached.lcc} answers there, not {self.sub.lccid}")
        if reached.selection != selection.digest:
            raise self._failed("the front's token there is restricted: give it one for everything")

    def _page(self, said: bytes, limit: int) -> Page:
        try:
            return page_of(json.loads(said), limit)
        except (ValueError, RecursionError, BadCursor) as error:
            raise self._failed(f"its answer is none: {reason(error)}") from None

    def _failed(self, why: str) -> SubFailed:
        return SubFailed(self._told(why))

    def _refused(self, status: int, said: bytes) -> SubFailed:
        kind = SubRefuses if status in _REFUSALS else SubFailed
        return kind(self._told(f"answers {status}: {_detail(said)}"))

    def _told(self, why: str) -> str:
        return f"sub-LCC {self.sub.name} ({self.sub.web}): {why}"


def _query(since: Position | None, selection: Selection, limit: int) -> str:
    given: dict[str, object] = {
        "limit": limit,
        "moves": "true",
        **({"since": str(since)} if since else {}),
        **_filters(selection),
    }
    return urlencode(given, doseq=True)


def _filters(selection: Selection) -> dict[str, object]:
    return {
        "provider": selection.providers,
        "mimetype": selection.mimetypes,
        "subtype": selection.subtypes,
        "url_prefix": selection.url_prefixes,
        **({} if selection.since is None else {"since_time": selection.since}),
    }


def _detail(said: bytes) -> str:
    try:
        facts = json.loads(said)
        return str(facts["detail"])[:500]
    except (ValueError, RecursionError, KeyError, TypeError):
        return "no reason given"
