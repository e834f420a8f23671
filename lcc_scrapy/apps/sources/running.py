"""Runs one source: asks for its files, compares them with what they listed before, submits the differences.

A run reads a file to its end before anything of it is submitted. What is remembered of a file says at each
moment no more than what was submitted, and that it was read is noted last: a kill repeats some of a run.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from lcc_scrapy.apps.sources.files import Files, steps
from lcc_scrapy.apps.sources.grammar import HUBS
from lcc_scrapy.apps.sources.links import link_headers
from lcc_scrapy.apps.sources.reading import Unreadable, read
from lcc_scrapy.apps.sources.rules import (
    ETAG_MAX,
    MODIFIED_MAX,
    MOST_FILES,
    Change,
    Difference,
    Further,
    Kind,
    Listing,
    Report,
    Role,
    Source,
    SourceFile,
    compare,
    in_order,
)
from lcc_scrapy.apps.sources.store import rows_in
from lcc_scrapy.apps.sources.submitting import STEP, OwnSet, Rules, checked, note_former_name
from lcc_scrapy.apps.sources.topics import read_topic
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.providers import Provider, State, Wanted
from lcc_scrapy.domain.references import http_url, resolve
from lcc_scrapy.domain.roots import Root, hosts
from lcc_scrapy.kit.fetching import CannotFetch, Fetched, Fetcher, Whose
from lcc_scrapy.kit.work import T, Work

LEVELS = 1
"""Indexes of sitemaps inside of each other; ResourceSync has more kinds of lists, by its standard."""

LEVELS_OF_RESOURCESYNC = 3
DAY = 86_400

_Noting = Callable[[SourceFile, Sequence[Change], Tx], None]


class Stopped(Exception):
    """The run is to end: its process stops, or another one runs the source."""


@dataclass(slots=True)
class Run:
    """One run of one source. ``told`` hears after each step what was done.

    ``lost``: another process runs the source, so that this run ends with ``Stopped``.
    """

    store: Store
    work: Work
    fetcher: Fetcher
    source: Source
    rules: Rules
    told: Callable[[Report], object] = lambda _: None
    now: Callable[[], float] = time.time
    report: Report = field(default_factory=Report)
    hubs: tuple[str, ...] = ()
    topic: str = ""
    base: str = ""
    lost: bool = False
    _roots: tuple[Root, ...] = ()
    whose: Whose = field(default_factory=lambda: Whose(()))
    files: Files = field(init=False)
    _absent: list[tuple[SourceFile, tuple[bytes, ...], bool]] = field(default_factory=list)
    _indexes: list[SourceFile] = field(default_factory=list)
    _done: set[int] = field(default_factory=set)
    _doubts: bool = False
    _own: OwnSet = field(init=False)

    def __post_init__(self) -> None:
        """Begin the set; it has no rows before there are URLs for it."""
        self.files = Files(self.store, self.work, self.source, self.rules.most)
        self._own = OwnSet(self.store, self.source, self.rules, self.report)

    async def run(self) -> Report:
        """Look at everything; raises ``CannotFetch`` and ``Unreadable`` for the file it begins with."""
        await self._prepare()
        first = await self.files.named(self.source.url, 0, None)
        await self._look_at(first, 0)
        await self._finish()
        return self.report

    async def take(self, body: Fetched) -> Report:
        """Take in the content that a hub sent; what it does not name stays as it is."""
        await self._prepare()
        listing = self._as_its_kind(await self._read(body))
        file = await self.files.named(self.source.url, 0, None)
        listed = await self._checked(listing, file.url)
        remembered = await self.files.remembered_of(file, listed)
        found = await _beside(compare, remembered, listed)
        await self._submit(file, self._within_bounds(found, remembered), _note_more_urls)
        return self.report

    async def _finish(self) -> None:
        if self.report.held_up:
            return
        await self._leave_out()
        self._own.end()
        for index in reversed(self._indexes):
            await self._done_with(index)
        await self.work(confirm, self.store, self.source.pid, int(self.now()))

    @property
    def listed(self) -> int:
        """Return how many URLs are remembered of the source."""
        return self.files.listed

    # --- what it begins with ---------------------------------------------------------------------

    async def _prepare(self) -> None:
        provider, roots, files = await self.work(self._known)
        self._roots = tuple(map(Root.parse, roots))
        self.whose = whose_is(provider, self._roots)
        self.files.begin(files)

    def _known(self) -> tuple[Provider, list[str], list[SourceFile]]:
        with self.store.read() as tx:
            provider = active_provider(tx, self.source.pid)
            return provider, tx.roots(self.source.pid), rows_in(tx).source_files(self.source.sourceid)

    # --- one file --------------------------------------------------------------------------------

    async def _look_at(self, file: SourceFile, told: int, level: int = 0) -> None:
        """Ask for a file, and take in what it says."""
        self._done.add(file.fileid)
        self.report.files += 1
        etag, modified = (file.etag, file.modified) if file.read else ("", "")
        with await self.fetcher.get(file.url, self.whose, etag, modified) as fetched:
            self.report.bytes += fetched.transferred
            if fetched.status == 304:  # noqa: PLR2004
                await self._unmodified(file, told, level)
                return
            listing = self._as_its_kind(await self._read(fetched))
            moved = str(fetched.url) != file.url  # its validators are of another URL
            file = replace(
                file,
                role=listing.role,
                etag="" if moved else _short(fetched.header(b"etag"), ETAG_MAX),
                modified="" if moved else _short(fetched.header(b"last-modified"), MODIFIED_MAX),
                told=told,
            )
            if level == 0:
                self._note_hubs(listing, fetched)
            await self._take(file, listing, str(fetched.url), level)

    async def _read(self, fetched: Fetched) -> Listing:
        reading = read_topic if self.source.kind == Kind.WEBSUB else read
        return await _beside(reading, fetched.pieces())

    async def _checked(self, listing: Listing, base: str) -> list[Change]:
        return await _beside(checked, self.source.pid, listing.entries, base, self._roots, self.report)

    def _as_its_kind(self, listing: Listing) -> Listing:
        """Return what a file says, as its source is meant; a feed does not name all that there is."""
        if self.source.kind not in {Kind.FEED, Kind.WEBSUB}:
            return listing
        if listing.role is Role.INDEX:
            raise Unreadable("an index, where a feed is expected")
        return replace(listing, role=Role.NEWS)

    def _note_hubs(self, listing: Listing, fetched: Fetched) -> None:
        said = link_headers(fetched.links)
        hubs = [url for url, relation in said if relation == "hub"]
        topics = [url for url, relation in said if relation == "self"]
        self.base = str(fetched.url)
        self.hubs = (tuple(hubs) or listing.hubs)[:HUBS]
        self.topic = (topics or [listing.topic])[0]

    async def _unmodified(self, file: SourceFile, told: int, level: int) -> None:
        self.report.unmodified += 1
        if file.role == Role.INDEX:
            for one in in_order(self.files.below(file)):
                await self._follow(one, Further(one.url, one.told), level)
        elif told != file.told:
            await self.files.put(replace(file, told=told))

    async def _take(self, file: SourceFile, listing: Listing, base: str, level: int = 0) -> None:
        with suppress(UrlRefused):
            base = resolve(listing.base, base)
        if listing.role is Role.INDEX:
            await self._take_index(file, listing, base, level)
        else:
            await self._take_entries(file, listing, base)

    # --- an index --------------------------------------------------------------------------------

    async def _take_index(self, file: SourceFile, listing: Listing, base: str, level: int) -> None:
        levels = LEVELS_OF_RESOURCESYNC if self.source.kind == Kind.RESOURCESYNC else LEVELS
        if level >= levels:
            raise Unreadable(f"{file.url}: an index inside of an index, which is not followed")
        named: dict[int, tuple[SourceFile, Further]] = {}
        for one, url in zip(listing.files, await _beside(self._lie_at, listing, base), strict=True):
            if url in self.files.known or (url and len(self.files.known) < MOST_FILES):
                known = await self.files.named(url, file.fileid, one.role)
                named[known.fileid] = (known, one)
        if listing.cut or len(named) < len(listing.files):
            self.report.note(
                f"{file.url}: only {len(named)} of its files are read, see the bounds of sources"
            )
        for known in in_order([known for known, _ in named.values()]):
            await self._follow(known, named[known.fileid][1], level)
        for other in self.files.below(file) if named and not self._is_partial(listing) else ():
            if other.fileid not in named:
                self._absent.append((other, tuple(await self.files.remembered(other)), True))
        self._indexes.append(file)

    def _lie_at(self, listing: Listing, base: str) -> list[str]:
        return [self._lies_at(one.url, base) for one in listing.files]

    def _lies_at(self, written: str, base: str) -> str:
        """Return where a file lies; "" where it may not be asked for."""
        try:
            url = http_url(written, base)
        except UrlRefused:
            return ""
        if self.whose.permits(url):
            return str(url)
        note_former_name(url, self._roots, self.report)
        return ""

    async def _follow(self, file: SourceFile, said: Further, level: int) -> None:
        """Look at a file that an index names, unless the index says that it is as it was."""
        if file.fileid in self._done or self.report.held_up:
            return
        if file.read and file.role != Role.INDEX and said.told and said.told == file.told:
            self._done.add(file.fileid)
            return
        try:
            await self._look_at(file, said.told, level + 1)
        except (CannotFetch, Unreadable) as error:
            self.report.note(f"{file.url}: {error}" if file.url not in str(error) else str(error))
            await self.files.put(replace(file, told=0))  # so that it is not taken for what was read

    def _is_partial(self, listing: Listing) -> bool:
        """Tell whether there is more than could be looked at, so that nothing counts as gone."""
        return listing.cut or self.report.former_names

    # --- a list ----------------------------------------------------------------------------------

    async def _take_entries(self, file: SourceFile, listing: Listing, base: str) -> None:
        listed = await self._checked(listing, base)
        remembered = await self.files.remembered(file)
        self.files.count(file, remembered)
        found = self._within_bounds(await _beside(compare, remembered, listed), remembered)
        if listing.cut:
            self.report.note(f"{file.url} names more than is read: nothing of it counts as gone")
        if file.role == Role.LIST and not listed:
            self.report.note(f"{file.url} names no URL that may be fetched")
        changed = set(await self._submit(file, found, _note_urls))
        if self.report.held_up:
            return
        absent = () if self._is_partial(listing) else found.absent
        kept = len(remembered) + len(changed - remembered.keys()) - len(absent)
        file = replace(file, listed=kept)
        if absent:
            doubtful = file.role == Role.LIST and not listed
            self._absent.append((file, absent, False))
            self._doubts = self._doubts or doubtful
        else:
            await self._done_with(file)

    def _within_bounds(self, found: Difference, remembered: Collection[bytes]) -> Difference:
        bounded = self.files.within_bounds(found, remembered)
        if len(bounded.changes) < len(found.changes):
            self.report.note(f"more than {self.rules.most} URLs: see LCC_SOURCE_URLS")
        return bounded

    async def _submit(self, file: SourceFile, found: Difference, noting: _Noting) -> list[bytes]:
        """Submit what is new or changed, in steps; what finds no room in the queue comes with a later run."""
        done: list[bytes] = []
        for begin in range(0, len(found.changes), STEP):
            some = found.changes[begin : begin + STEP]
            note = partial(noting, file, some)
            if not await self.work(self._own.submit, some, int(self.now()), note):
                break
            done += [one.key for one in some]
            self._tell()
        return done

    # --- what is gone ----------------------------------------------------------------------------

    async def _leave_out(self) -> None:
        """Remove what no list names any more, when all were read; the guard judges all of it together."""
        removing = 0
        for file, keys, _ in self._absent:
            for some in steps(keys, STEP) if _removes(file) else ():
                removing += await self.work(self._own.removable, file.fileid, list(some))
        hold = self._doubts or await self.work(self._own.is_too_much, removing, int(self.now()))
        for file, keys, whole in self._absent:
            for some in steps(keys, STEP):
                await self.work(self._leave_some, file, some, hold)
                self._tell()
            await (self.files.forget(file) if whole else self._done_with(file))

    def _leave_some(self, file: SourceFile, keys: tuple[bytes, ...], hold: bool) -> None:
        self._own.leave_out(file.fileid, keys, int(self.now()), removes=_removes(file), hold=hold)

    async def _done_with(self, file: SourceFile) -> None:
        await self.files.put(replace(file, read=int(self.now())))
        self._tell()

    def _tell(self) -> None:
        if self.lost:
            raise Stopped
        self.told(self.report)


async def _beside(job: Callable[..., T], /, *args: Any) -> T:
    """Do what may take seconds beside the event loop: a file has megabytes."""
    return await asyncio.get_running_loop().run_in_executor(None, job, *args)


def active_provider(tx: Tx, pid: int) -> Provider:
    """Return a provider of whom something may be fetched now; raises ``CannotFetch``."""
    provider = tx.provider(pid)
    if provider is None or provider.state != State.ACTIVE:
        raise CannotFetch(f"nothing may be fetched from provider {pid} now")
    return provider


def confirm(store: Store, pid: int, now: int) -> None:
    """Note that a source was heard, as a login of a provider that pushes confirms its documents."""
    with store.begin() as tx:
        provider = tx.lock_providers([pid]).get(pid)
        if provider and provider.fullsetwanted == Wanted.NO and now - provider.confirmed > DAY:
            tx.update_provider(pid, {"confirmed": now})


def _note_urls(file: SourceFile, changes: Sequence[Change], tx: Tx) -> None:
    rows_in(tx).put_source_urls(file.fileid, {one.key: one.stamp for one in changes})


def _note_more_urls(file: SourceFile, changes: Sequence[Change], tx: Tx) -> None:
    """Note URLs beside those that are remembered, and how many that makes."""
    more = len(changes) - len(rows_in(tx).source_stamps(file.fileid, [one.key for one in changes]))
    _note_urls(file, changes, tx)
    its = (one for one in rows_in(tx).source_files(file.sourceid) if one.fileid == file.fileid)
    rows_in(tx).put_source_files([replace(one, listed=one.listed + more) for one in its])


def whose_is(provider: Provider, roots: tuple[Root, ...]) -> Whose:
    """Return for whom files are fetched."""
    obeys = not provider.ignorerobots
    return Whose(hosts(roots), provider.allowprivate, obeys, provider.bandwidth, pid=provider.pid)


def _removes(file: SourceFile) -> bool:
    return file.role == Role.LIST


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else ""
