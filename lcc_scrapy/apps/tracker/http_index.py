"""Lists a web server: its own ls-lR.gz where that is fresh, else index page by index page.

Apache and lighttpd round sizes, which identities need exactly: each such file costs a HEAD request.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import IO
from urllib.parse import quote

from lcc_scrapy.apps.tracker import index_pages
from lcc_scrapy.apps.tracker.effort import CannotScan, Effort
from lcc_scrapy.apps.tracker.entries import Entry, Kind, Path, is_name, of_entries
from lcc_scrapy.apps.tracker.index_pages import Indexed, NoIndex
from lcc_scrapy.apps.tracker.listed import Known, Listed, Unchanged
from lcc_scrapy.apps.tracker.rules.tracked import VALIDATOR_MAX, Place
from lcc_scrapy.apps.tracker.spool import Spool, Text
from lcc_scrapy.apps.tracker.waiting import Step, Waiting
from lcc_scrapy.domain.content_types import content_type
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.http_dates import epoch_of_date, retry_after_seconds
from lcc_scrapy.domain.http_status import MOVED
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.http.answer import HttpError
from lcc_scrapy.http.connection import Connection
from lcc_scrapy.http.cookies import Cookies
from lcc_scrapy.http.outgoing import NoConnection
from lcc_scrapy.http.request import Origin, Request
from lcc_scrapy.kit.fetching import REDIRECTS, CannotFetch, Fetched, Fetcher, Whose, joined

PAGE_BYTES = 20_000_000
"""Bytes of one index page, as transferred and decoded."""

READY_MADE = b"ls-lR.gz"
_GZIP = b"\x1f\x8b"
_OK, _TOO_MANY, _FAILING = 200, 429, 500


@dataclass(slots=True)
class HttpListing:
    """One scan. ``base`` is the URL where it begins; ``new_file`` makes files without a name."""

    fetcher: Fetcher
    base: HttpUrl
    whose: Whose
    effort: Effort
    known: Known
    now: float
    new_file: Callable[[], IO[bytes]]
    spool: Spool = field(init=False)
    _waiting: Waiting = field(default_factory=Waiting)

    def __post_init__(self) -> None:
        self.spool = Spool(self.new_file())

    async def run(self) -> Listed | Unchanged:
        """List the server; raises ``CannotScan``."""
        ready = await self._ready_made()
        if ready is not None:
            return ready
        step: Step | None = Step(())
        while step is not None:
            await self._look_at(step)
            step = self._waiting.next()
        return Listed("index", (self.spool,))

    def url(self, path: Path, *, is_dir: bool) -> HttpUrl:
        """Return the URL of what lies below the base; raises ``UrlRefused`` for one that cannot be one."""
        names = "".join("/" + quote(name, safe="") for name in path)
        text = str(self.base).rstrip("/") + names + ("/" if is_dir else "")
        return HttpUrl.parse(text)

    async def read(self, path: Path, file: IO[bytes]) -> None:
        """Pour a file into one here; nothing where the server refuses it."""
        with await self._answer(self.url(path, is_dir=False), self.effort.limits.most_bytes) as answer:
            if answer.status == _OK:
                await asyncio.to_thread(_copy, answer, file)

    # --- a listing that the server made --------------------------------------------------------------

    async def _ready_made(self) -> Listed | Unchanged | None:
        url = self.url((READY_MADE,), is_dir=False)
        status, size, modified = await self._head(url)
        if status != _OK or size <= 0 or not self._is_fresh(modified):
            return None
        validator = f"{modified} {size}"
        validator = validator if len(validator) <= VALIDATOR_MAX and validator.isascii() else ""
        if self.known == Known(READY_MADE.decode(), validator):
            return Unchanged(self.known.adapter, validator)
        with await self._answer(url, self.effort.limits.most_bytes) as answer:
            if answer.status != _OK:
                return None
            file = self.new_file()
            await asyncio.to_thread(_copy, answer, file)
        file.seek(0)
        packed = file.read(2) == _GZIP  # a Content-Encoding was taken off already
        return Listed(READY_MADE.decode(), (Text(file, packed, self.effort.limits.most_bytes),), validator)

    def _is_fresh(self, modified: str) -> bool:
        made = epoch_of_date(modified)
        return made is not None and abs(self.now - made) <= self.effort.limits.fresh

    # --- page by page --------------------------------------------------------------------------------

    async def _look_at(self, step: Step) -> None:
        """Read one page; a directory without one stays unknown, a loop becomes the link that it is."""
        self.effort.enter(0, len(step.path))
        page = await self._page(step.path)
        if page is None:
            return
        mark = await asyncio.to_thread(_mark, page)
        if mark and mark in step.above:
            ups = len(step.above) - 1 - step.above.index(mark)
            self.spool.loops[step.path] = b"/".join([b".."] * ups) or b"."
            return
        self.effort.enter(len(page), len(step.path))
        unsized = await asyncio.to_thread(_unsized, page)
        sizes = {name: await self._size((*step.path, name)) for name in unsized}
        await asyncio.to_thread(self._take, Step(step.path, (*step.above, mark)), page, sizes)

    def _take(self, step: Step, page: list[Indexed], sizes: dict[bytes, int]) -> None:
        """Keep what a page lists, which may be much: in a thread."""
        directory = of_entries(step.path, _entries(step.path, page, sizes))
        self.spool.write(directory)
        self._waiting.add(step, ((name, None) for name in directory.dirs))

    async def _page(self, path: Path) -> list[Indexed] | None:
        """Return what the page of a directory lists; None = it has none. The base must have one."""
        try:
            url = self.url(path, is_dir=True)
        except UrlRefused:
            return None
        with await self._answer(url, PAGE_BYTES) as answer:
            body = b"".join(answer.pieces()) if answer.status == _OK else b""
            why = f"answers {answer.status}" if answer.status != _OK else "is no index page"
            mimetype = content_type(", ".join(answer.headers.get(b"content-type", ()))).mimetype
        try:
            return await asyncio.to_thread(index_pages.read, body, mimetype)
        except NoIndex as error:
            if path:
                return None
            raise CannotScan(f"{url} {str(error) or why}") from None

    async def _size(self, path: Path) -> int:
        """Return the size of a file, -1 = the server does not tell it."""
        try:
            url = self.url(path, is_dir=False)
        except UrlRefused:
            return -1
        status, size, _ = await self._head(url)
        if status == _OK and size < 0:
            return 0 if await self._is_empty(url) else -1
        return size if status == _OK else -1

    async def _is_empty(self, url: HttpUrl) -> bool:
        """Ask for a file whose length is not said: Apache leaves out that of an empty one."""
        self.effort.ask()
        try:
            with await self.fetcher.ask(url, self.whose, [], most=1) as answer:
                return answer.status == _OK and not any(answer.pieces())
        except CannotFetch:
            return False

    # --- requests ------------------------------------------------------------------------------------

    async def _answer(self, url: HttpUrl, most: int) -> Fetched:
        """Ask for something, through redirects on this host; raises ``CannotScan`` where the server fails."""
        target, cookies = url, Cookies()
        for _ in range(REDIRECTS + 1):
            await self._permitted(target)
            self.effort.ask()
            try:
                answer = await self.fetcher.ask(target, self.whose, [], most=most, cookies=cookies)
            except CannotFetch as error:
                raise CannotScan(str(error), error.retry_after) from None
            try:
                await self.effort.take(answer.transferred)
                _check(url, answer.status, answer.header(b"retry-after"), answer.header(b"date"))
            except BaseException:
                answer.body.close()
                raise
            if answer.status not in MOVED:
                return answer
            answer.body.close()
            target = self._moved(target, answer.header(b"location"))
        raise CannotScan(f"{url}: more than {REDIRECTS} redirects")

    def _moved(self, url: HttpUrl, location: str) -> HttpUrl:
        try:
            target = joined(url, location)
        except CannotFetch as error:
            raise CannotScan(str(error)) from None
        if not self.whose.permits(target):
            raise CannotScan(f"{url} leads to another host: {target}")
        return target

    async def _permitted(self, url: HttpUrl) -> None:
        try:
            rules = await self.fetcher.robots(url, self.whose)
        except CannotFetch as error:
            raise CannotScan(str(error), error.retry_after) from None
        if not rules.allowed(url.path):
            raise CannotScan(f"robots.txt forbids {url}")

    async def _head(self, url: HttpUrl) -> tuple[int, int, str]:
        """Return status, size (-1 = not said) and Last-Modified of a file."""
        await self._permitted(url)
        self.effort.ask()
        fields = [(b"User-Agent", self.fetcher.agent.encode()), (b"Accept-Encoding", b"identity")]
        request = Request(Origin(url.host, url.port, url.scheme == "https"), url.path, fields, "HEAD")
        pool = self.fetcher.outgoing.pool(private=self.whose.private)
        patience = self.effort.limits.patience
        try:
            status, fields = await pool.exchange(request, _head, patience=patience, deadline=patience)
        except (HttpError, NoConnection, TimeoutError, OSError, ValueError) as error:
            raise CannotScan(f"{url}: {error or type(error).__name__}") from None
        said = {name.lower(): value.decode("latin-1") for name, value in fields}
        await self.effort.take(sum(len(name) + len(value) for name, value in fields))
        _check(url, status, said.get(b"retry-after", ""), said.get(b"date", ""))
        length = said.get(b"content-length", "")
        coded = said.get(b"content-encoding", "identity") != "identity" and not url.path.endswith(".gz")
        size = int(length) if length.isascii() and length.isdigit() and not coded else -1
        return status, size, said.get(b"last-modified", "")


def _copy(answer: Fetched, file: IO[bytes]) -> None:
    """Write a body, which may be as long as a scan permits, into a file: in a thread."""
    for piece in answer.pieces():
        file.write(piece)


def _unsized(page: list[Indexed]) -> list[bytes]:
    """Return the names of files whose sizes the page does not say, or not exactly."""
    files = [one.name for one in page if not one.is_dir and one.size < 0]
    return [name for name in files if is_name(name) and not name.startswith(b".")]


def _entries(path: Path, page: list[Indexed], sizes: dict[bytes, int]) -> Iterator[Entry]:
    for one in page:
        if not one.name.startswith(b"."):
            size = 0 if one.is_dir else sizes.get(one.name, one.size)
            yield Entry((*path, one.name), Kind.DIR if one.is_dir else Kind.FILE, size)


async def _head(connection: Connection) -> tuple[int, list[tuple[bytes, bytes]]]:
    return connection.answer.status, connection.answer.headers


def http_url(place: Place) -> HttpUrl:
    """Return the URL of a directory of a web server, ending with "/"."""
    path = "".join(f"/{quote(name, safe='')}" for name in place.path)
    return HttpUrl(place.scheme, place.host, place.port, f"{path}/", "")


def _check(url: HttpUrl, status: int, retry_after: str, date: str) -> None:
    """Raise ``CannotScan`` where an answer speaks of the server, not of the file."""
    if status >= _FAILING or status == _TOO_MANY:
        wait = retry_after_seconds(retry_after, date, time.time()) if retry_after else 0.0
        raise CannotScan(f"{url} answers {status}", wait)


def _mark(page: list[Indexed]) -> bytes:
    """Return what a page looks like; empty = too little to tell it from others.

    A directory that is reached through a link to one above it looks like that, times included.
    """
    if len(page) < 2:  # noqa: PLR2004
        return b""
    parts = sorted(
        b"%b\0%d\0%b" % (one.name, one.is_dir, one.said.encode("utf-8", "replace")) for one in page
    )
    return sha256(b"\0\0".join(parts)).digest()
