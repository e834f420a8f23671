"""The files of one source, as far as they are remembered."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lcc_scrapy.apps.sources.rules import Change, Difference, Role, Source, SourceFile
from lcc_scrapy.apps.sources.store import rows_in
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.kit.work import Work

FILEID = "sourcefile"
"""The counter of files."""

PAGE = 5000
"""Remembered URLs that are read at a time: some 10 ms."""


@dataclass(slots=True)
class Files:
    """The files of a source during a run; ``known`` by URL. ``most`` URLs of all of them are remembered."""

    store: Store
    work: Work
    source: Source
    most: int
    known: dict[str, SourceFile] = field(default_factory=dict)
    _remembered: int = 0

    def begin(self, files: list[SourceFile]) -> None:
        """Begin with what the store knows."""
        self.known = {one.url: one for one in files}
        self._remembered = self.listed

    @property
    def listed(self) -> int:
        """Return how many URLs are remembered, by the files that were read to their end."""
        return sum(one.listed for one in self.known.values())

    def below(self, parent: SourceFile) -> list[SourceFile]:
        """Return the files that an index named."""
        return [one for one in self.known.values() if one.parent == parent.fileid]

    async def named(self, url: str, parent: int, role: Role | None) -> SourceFile:
        """Return what is known of a file, which may be nothing but its number."""
        known = self.known.get(url)
        if known is None:
            known = self.known[url] = await self.work(self._numbered, url, parent, role or Role.LIST)
        return replace(known, parent=parent)

    def _numbered(self, url: str, parent: int, role: Role) -> SourceFile:
        with self.store.begin() as tx:
            number = tx.take(FILEID, 1)  # which locks: a ping and a crawl may come at the same time
            there = (one for one in rows_in(tx).source_files(self.source.sourceid) if one.url == url)
            made = next(there, None) or SourceFile(number, self.source.sourceid, url, parent, role)
            rows_in(tx).put_source_files([made])
            return made

    async def remembered(self, file: SourceFile) -> dict[bytes, int]:
        """Return the stamps of what a file listed before, by key."""
        found: dict[bytes, int] = {}
        page = await self.work(self._page, file.fileid, b"")
        while page:
            found.update(page)
            page = await self.work(self._page, file.fileid, page[-1][0]) if len(page) == PAGE else []
        return found

    async def remembered_of(self, file: SourceFile, listed: Sequence[Change]) -> dict[bytes, int]:
        """Return the stamps of those URLs that are listed now: a ping costs what it names, not all."""
        found: dict[bytes, int] = {}
        for some in steps(tuple(one.key for one in listed), PAGE):
            found |= await self.work(self._stamps, file.fileid, some)
        return found

    def _stamps(self, fileid: int, keys: Collection[bytes]) -> dict[bytes, int]:
        with self.store.read() as tx:
            return rows_in(tx).source_stamps(fileid, keys)

    def _page(self, fileid: int, after: bytes) -> list[tuple[bytes, int]]:
        with self.store.read() as tx:
            return rows_in(tx).source_urls(fileid, after, PAGE)

    def count(self, file: SourceFile, remembered: Collection[bytes]) -> None:
        """Note how many URLs of a file are remembered: a run that was killed may have left some."""
        self._remembered += len(remembered) - file.listed

    def within_bounds(self, found: Difference, remembered: Collection[bytes]) -> Difference:
        """Leave out new URLs beyond those that are remembered of a source at most."""
        changes = tuple(one for one in found.changes if one.key in remembered or self._takes_one())
        return Difference(changes, found.absent)

    def _takes_one(self) -> bool:
        has_room = self._remembered < self.most
        self._remembered += has_room
        return has_room

    async def put(self, file: SourceFile) -> None:
        """Note what is known of a file now."""
        self.known[file.url] = file
        await self.work(self._change, lambda tx: rows_in(tx).put_source_files([file]))

    async def forget(self, file: SourceFile) -> None:
        """Forget a file."""
        del self.known[file.url]
        await self.work(self._change, lambda tx: rows_in(tx).delete_source_files([file.fileid]))

    def _change(self, change: Callable[[Tx], None]) -> None:
        """Change something, unless the source was removed meanwhile."""
        with self.store.begin() as tx:
            if rows_in(tx).source(self.source.sourceid) is not None:
                change(tx)


def steps(keys: tuple[bytes, ...], size: int) -> Iterator[tuple[bytes, ...]]:
    """Cut keys into those of one transaction each."""
    return (keys[begin : begin + size] for begin in range(0, len(keys), size))
