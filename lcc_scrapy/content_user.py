"""The content users' API (seed 003 section 9 "C-API"): what changed, and the content of it.

::

    with ContentUser() as user:
        changes = user.select(since=cursor, mimetype="text/*")
        for change in changes:
            ...
        cursor = str(changes.position)

Everything is read in short transactions and bounded memory, beside crawls that run. Use an object in one
thread at a time.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Self

from lcc_scrapy.app import opening
from lcc_scrapy.config.config import Config, config_of
from lcc_scrapy.config.project import Given
from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.cursor import BadCursor, Position, StartOver
from lcc_scrapy.domain.selection import Change, Leave, selected
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.confirmations import Confirmations
from lcc_scrapy.feed.content import (
    Content,
    ContentElsewhere,
    ContentGone,
    ContentLost,
)
from lcc_scrapy.feed.library import Library
from lcc_scrapy.feed.meta_information import MetaInfo
from lcc_scrapy.feed.reader import PAGE, Feed, Inventory, Reader
from lcc_scrapy.feed.store_feed import StoreFeed
from lcc_scrapy.feed.text import PageText, TextReader
from lcc_scrapy.machine.data_directory import DataDirectory

if TYPE_CHECKING:
    from lcc_scrapy.feed.remote_content import OtherMachines

__all__ = [
    "BadCursor", "CachedUrl", "Change", "Changes", "Content", "ContentElsewhere", "ContentGone",
    "ContentLost", "ContentUser", "Documents", "Leave", "MetaInfo", "PageText", "Position", "StartOver",
    "Tombstone", "Version",
]  # fmt: skip


class Changes:
    """Changes by rising seq, read as they are asked for; each is over when the next one is asked for.

    ``position`` is behind the last one that is over. It is there before the first one, too: keep it then,
    so that somebody who is killed in a first reading does not begin another one with what it had.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._seq = reader.position.seq
        self._changes = self._read()

    @property
    def position(self) -> Position:
        """Where to go on the next time; ``str()`` of it is a cursor."""
        return self._reader.at(self._seq)

    def __iter__(self) -> Iterator[Change]:
        return self._changes

    def _read(self) -> Iterator[Change]:
        for page in self._reader.pages():
            for change in page:
                yield change
                self._seq = change.seq
        self._seq = self._reader.position.seq


class Documents:
    """The selected documents as they are now, by rising docid.

    Changes from ``position`` on, read afterwards, complete them: see ``feed.reader.Inventory``.
    """

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self.position = inventory.position

    def __iter__(self) -> Iterator[CachedUrl]:
        for page in self._inventory.pages():
            yield from page


class ContentUser:
    """Reads one LCC. Close it, or use it as a context manager.

    ``settings`` are a ``Config``, Scrapy settings, a mapping of ``LCC_…`` names that goes before
    everything else, or None: environment and project. ``content`` opens the files of other machines, else
    they are asked for them (``LCC_FILES_TOKEN_FILE``).
    Raises ``ConfigurationError`` when there is nothing to read from.
    """

    def __init__(
        self,
        settings: Config | Given | Mapping[str, str] | None = None,
        *,
        content: Content | None = None,
    ) -> None:
        config = config_of(settings)
        self._reader: TextReader | None = None
        self._listed = 0
        """The newest change of what ``documents`` listed: what is read to go with it must not be older."""
        home = DataDirectory.find(config.data_dir)
        self._others: OtherMachines | None = None
        self._store = opening.open_reads(config, home)
        self._feed: Feed = StoreFeed(self._store, lags=bool(config.read_database_url))
        self._others = opening.other_machines(config, self._store)
        contents = opening.contents_of(config, self._store, content or self._others)
        self._library = Library(self._feed, contents)

    def select(
        self,
        *,
        since: Position | str | None = None,
        provider: int | Iterable[int] = (),
        mimetype: str | Iterable[str] = (),
        subtype: str | Iterable[str] = (),
        url_prefix: str | Iterable[str] = (),
        since_time: int | None = None,
        limit: int = 0,
    ) -> Changes:
        """Return what changed since a cursor (None = everything there is), to today's end of the feed.

        The filters are those of ``domain.selection.Selection``; give the same ones with a cursor every time.
        ``limit`` ends it earlier, 0 = does not. Raises ``StartOver``, here or while reading, and
        ``BadCursor`` for what is no cursor, or one of other filters: what the caller has stays good then.
        """
        selection = selected(provider, mimetype, subtype, url_prefix, since_time)
        position = Position.parse(since) if isinstance(since, str) else since
        return Changes(Reader(self._feed, selection, position, limit))

    def confirmations(
        self,
        *,
        since: Position | str | None = None,
        provider: int | Iterable[int] = (),
        mimetype: str | Iterable[str] = (),
        subtype: str | Iterable[str] = (),
        url_prefix: str | Iterable[str] = (),
        limit: int = 0,
    ) -> Changes:
        """Return documents that were found unchanged at their sites, by their place among confirmations.

        ``seq`` of these rows is that place. Cursors, ``limit`` and errors are as for ``select``, but a cursor
        of the one is a ``BadCursor`` of the other.
        """
        selection = selected(provider, mimetype, subtype, url_prefix, None)
        position = Position.parse(since) if isinstance(since, str) else since
        return Changes(Confirmations(self._feed, selection, position, limit))

    def documents(
        self,
        *,
        provider: int | Iterable[int] = (),
        mimetype: str | Iterable[str] = (),
        subtype: str | Iterable[str] = (),
        url_prefix: str | Iterable[str] = (),
        since_time: int | None = None,
    ) -> Documents:
        """Return the documents that are there now: what somebody reconciles with who has to start over."""
        selection = selected(provider, mimetype, subtype, url_prefix, since_time)
        inventory = Inventory(self._feed, selection)
        self._listed = max(self._listed, inventory.position.seq)
        return Documents(inventory)

    def rows(self, docids: Iterable[str]) -> Iterator[CachedUrl]:
        """Yield the newest rows of these documents, of those that are there."""
        page: list[bytes] = []
        for docid in docids:
            page.append(bytes.fromhex(docid))
            if len(page) == PAGE:
                yield from self._feed.rows(page, self._listed).values()
                page = []
        yield from self._feed.rows(page, self._listed).values()

    def find(self, url: str) -> list[CachedUrl]:
        """Return the documents with this docid, conceptual URL or fetch URL."""
        return self._feed.find(url)

    def versions(self, row: CachedUrl) -> list[Version]:
        """Return the earlier contents that are kept of a document, newest first (``LCC_KEEP_VERSIONS``)."""
        return self._feed.versions([row.urlkey]).get(row.urlkey, [])

    def meta(self, row: CachedUrl) -> MetaInfo:
        """Return what is known of a document beside its row: answer, links, earlier contents, owners."""
        answer = self._feed.answers([row]).get(row.urlkey)
        links = tuple(link.url for link in self._feed.links(row.urlkey))
        return MetaInfo(row, answer, links, tuple(self.versions(row)), tuple(self.owners(row)))

    def owners(self, row: Change) -> list[str]:
        """Return who asked for a document with a directive, or for one that leads to it."""
        return list(self._feed.owners([row]).get(row.urlkey, ()))

    def open(self, row: CachedUrl | Version) -> IO[bytes]:
        """Return the content of a document, or an earlier one, decoded, as a stream to be closed.

        Raises ``ContentGone`` (read on), ``ContentElsewhere`` or ``ContentLost``.
        """
        return self._library.open(row)

    def text(self, row: CachedUrl) -> PageText:
        """Return title and main text of a document; both are None when there is nothing to read in it.

        Raises what ``open`` does, and ``ConfigurationError`` when the extra ``[text]`` is missing.
        """
        if self._reader is None:
            self._reader = TextReader()
        with self.open(row) as content:
            return self._reader.read(row, content)

    @property
    def feed(self) -> Feed:
        """The feed itself, for those who page through it in their own way."""
        return self._feed

    def close(self) -> None:
        """Give connections back."""
        if self._reader is not None:
            self._reader.close()
        self._store.close()
        if self._others is not None:
            self._others.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
