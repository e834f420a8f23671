"""The content users' API over several sub-LCCs (seed 003 sections 9 and 12, "FEC-API"): one view of all.

::

    with FrontContentUser() as user:
        changes = user.select(since=cursor, mimetype="text/*")
        for change in changes:
            ...
        cursor = str(changes.position)
        changes.failed  # sub-LCCs that did not answer: what they have comes the next time
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import IO, Self

from lcc_scrapy.config.config import Config, config_of
from lcc_scrapy.config.project import Given
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.front_cursor import FrontPosition
from lcc_scrapy.domain.selection import Change, selected
from lcc_scrapy.feed.text import PageText, TextReader
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.feed import FrontFeed, FrontReader


class FrontChanges:
    """Changes of all sub-LCCs, read as they are asked for; each is over when the next one is asked for.

    ``seq`` rises within a sub-LCC. ``position`` is behind the last one that is over.
    ``failed`` and ``start_over`` are those of ``front.feed.FrontReader``, complete when the changes end.
    """

    def __init__(self, reader: FrontReader) -> None:
        self._reader = reader
        self._changes = self._read()
        self._over: Change | None = None
        self.failed: Mapping[str, str] = reader.failed
        self.start_over: Mapping[str, str] = reader.start_over

    @property
    def position(self) -> FrontPosition:
        """Where to go on the next time; ``str()`` of it is a cursor."""
        return self._reader.position if self._over is None else self._reader.behind(self._over)

    def __iter__(self) -> Iterator[Change]:
        return self._changes

    def _read(self) -> Iterator[Change]:
        for page in self._reader.pages():
            for change in page:
                yield change
                self._over = change
            self._over = None  # the reader's own position is behind the page now


class FrontContentUser:
    """Reads all sub-LCCs of a front. Close it, or use it as a context manager, in one thread at a time.

    ``settings`` are as for ``content_user.ContentUser``; ``LCC_FRONT_DATABASE_URL`` names the front.
    Raises ``ConfigurationError`` when there is none.
    """

    def __init__(self, settings: Config | Given | Mapping[str, str] | None = None) -> None:
        config = config_of(settings)
        self._reader: TextReader | None = None
        self._directory = Directory(config.front_database_url)
        try:
            self._directory.check()
        except BaseException:
            self._directory.close()
            raise
        self._feed = FrontFeed(self._directory, config.front_patience)

    def select(
        self,
        *,
        since: FrontPosition | str | None = None,
        provider: int | Iterable[int] = (),
        mimetype: str | Iterable[str] = (),
        subtype: str | Iterable[str] = (),
        url_prefix: str | Iterable[str] = (),
        since_time: int | None = None,
        limit: int = 0,
        anew: Collection[str] = (),
    ) -> FrontChanges:
        """Return what changed in all sub-LCCs since a cursor (None = everything there is).

        Arguments are those of ``ContentUser.select``; ``anew`` names sub-LCCs to be read from their starts,
        as ``start_over`` of the answer before wants it. Raises ``StartOver`` for a cursor of another front,
        ``BadCursor`` for what is no cursor, or one of other filters.
        """
        selection = selected(provider, mimetype, subtype, url_prefix, since_time)
        position = FrontPosition.parse(since) if isinstance(since, str) else since
        return FrontChanges(FrontReader(self._feed, selection, position, limit, anew=anew))

    def open(self, row: CachedUrl) -> IO[bytes]:
        """Return the content of a document, decoded, as a stream to be closed.

        Raises ``ContentGone`` (read on) or ``ContentElsewhere`` (its sub-LCC does not answer now).
        """
        return self._feed.open(row)

    def text(self, row: CachedUrl) -> PageText:
        """Return title and main text of a document, as ``ContentUser.text`` does."""
        if self._reader is None:
            self._reader = TextReader()
        with self.open(row) as content:
            return self._reader.read(row, content)

    @property
    def feed(self) -> FrontFeed:
        """The feed itself, for those who page through it in their own way."""
        return self._feed

    def close(self) -> None:
        """Give connections back."""
        if self._reader is not None:
            self._reader.close()
        self._feed.close()
        self._directory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
