"""The query socket of a front: queries over all its sub-LCCs (seed 003 section 12, "FEC-API")."""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import IO, Any

from scrapy.settings import BaseSettings

from lcc_scrapy.apps.query.process import QueryServer
from lcc_scrapy.apps.query.sources import ROWS, Found, Listed, Told
from lcc_scrapy.apps.query.wire.messages import Missing
from lcc_scrapy.config.config import Config
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.directives import Owners
from lcc_scrapy.domain.errors import ConfigurationError, Refusal
from lcc_scrapy.domain.front import SubLcc
from lcc_scrapy.domain.front_cursor import FrontPosition
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.domain.tokens import Tokens
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.feed import FrontFeed, FrontReader
from lcc_scrapy.front.silent import Silent
from lcc_scrapy.front.sub_http import SubFailed
from lcc_scrapy.front.tokens import FrontTokens

DOCIDS = 50
"""Documents that each sub-LCC is asked for at a time."""

DOCIDS_MAX = 200
"""Documents of one query: each is a request to each sub-LCC, which answers so many in a second by default."""


class FrontSource:
    """The ``sources.Source`` that a front is. ``silent`` logs which sub-LCCs do not answer."""

    has_files = False

    def __init__(self, feed: FrontFeed, silent: Silent) -> None:
        self._feed = feed
        self._silent = silent

    def lcc(self, position: object) -> str:
        """Return nothing: a position is in several LCCs."""
        del position
        return ""

    def changes(self, selection: Selection, since: str, limit: int, anew: Sequence[str]) -> FrontReader:
        """Begin to read on."""
        return self._reader(selection, FrontPosition.parse(since) if since else None, limit, anew)

    def later(self, told: Told, selection: Selection, limit: int) -> FrontReader:
        """Begin to read on: only the sub-LCCs know whether anything has changed."""
        assert isinstance(told.position, FrontPosition)
        return self._reader(selection, told.position, limit, ())

    def missing(self, told: Told | Found | Listed) -> Sequence[Missing]:
        """Return the sub-LCCs that failed, or cannot go on."""
        if isinstance(told, Listed):
            return ()
        failed = told.failed if isinstance(told, Found | FrontReader) else {}
        over = told.start_over if isinstance(told, FrontReader) else {}
        self._silent.note(failed)
        return [*map(Missing, sorted(failed)), *(Missing(name, start_over=True) for name in sorted(over))]

    def inventory(self, selection: Selection) -> Listed:
        """Begin to list what is there now in all sub-LCCs: who has not all of it would throw things away."""
        before = self._insist_on_rest()
        reader = self._reader(selection, None, 0, ())
        if reader.failed:
            self._silent.note(reader.failed)
            raise _incomplete(sorted(reader.failed))
        return Listed(_head(reader.position), self._listed(selection, before))

    def rows(self, selection: Selection, keys: Sequence[bytes]) -> Found:
        """Find rows: every sub-LCC is asked, as nobody knows whose a docid is.

        Raises ``Refusal`` for too many: they would use up what sub-LCCs answer to all readers of the front.
        """
        if len(keys) > DOCIDS_MAX:
            raise Refusal(805, f"{len(keys)} documents: a front finds {DOCIDS_MAX} at a time at most")
        reader = self._reader(selection, None, 0, ())
        failed = dict(reader.failed)
        docids = [key.hex() for key in keys]
        return Found(_head(reader.position), self._found(selection, docids, failed), failed)

    def open(self, row: CachedUrl) -> IO[bytes]:
        """Open a content, where the provider is now."""
        return self._feed.open(row)

    def _reader(
        self, selection: Selection, since: FrontPosition | None, limit: int, anew: Sequence[str]
    ) -> FrontReader:
        try:
            return FrontReader(self._feed, selection, since, limit, anew=anew, whole=True)
        except ConfigurationError as error:
            raise Refusal(805 if anew else 803, str(error)) from None

    # --- ids ---------------------------------------------------------------------------------------

    def _insist_on_rest(self) -> int:
        """Return the newest move; raises ``Refusal`` while one goes on: its documents are in two places."""
        directory = self._feed.directory
        newest = directory.newest_move()
        if directory.oldest_open_move():
            raise Refusal(803, "a provider moves to another sub-LCC: what is there can be listed behind that")
        return newest

    def _listed(self, selection: Selection, before: int) -> Iterator[Sequence[tuple[str, int]]]:
        merged = heapq.merge(*(self._ids(sub, selection) for sub in self._feed.subs()))
        while page := list(islice(merged, ROWS)):
            yield page
        if self._insist_on_rest() != before:
            raise Refusal(803, "a provider has moved to another sub-LCC meanwhile: ask again")

    def _ids(self, sub: SubLcc, selection: Selection) -> Iterator[tuple[str, int]]:
        try:
            yield from self._feed.ids(sub, selection)
        except SubFailed as error:
            self._silent.note({sub.name: str(error)})
            raise _incomplete([sub.name]) from None

    # --- rows --------------------------------------------------------------------------------------

    def _found(
        self, selection: Selection, docids: Sequence[str], failed: dict[str, str]
    ) -> Iterator[tuple[Sequence[CachedUrl], Owners]]:
        for start in range(0, len(docids), DOCIDS):
            some = docids[start : start + DOCIDS]
            there = [sub for sub in self._feed.subs() if sub.name not in failed]
            asked = {sub.name: self._feed.find(sub, some) for sub in there}
            found: list[tuple[CachedUrl, tuple[str, ...]]] = []
            for name, future in asked.items():
                try:
                    found += [one for one in future.result() if self._is_of(one[0].pid, name)]
                except SubFailed as error:
                    failed[name] = str(error)
            rows = [row for row, _ in found if selection.admits(row)]
            yield rows, {row.urlkey: names for row, names in found if names}

    def _is_of(self, pid: int, name: str) -> bool:
        """Tell whether a sub-LCC has a provider; while one moves, its documents may be in two."""
        sub = self._feed.directory.sub_of(pid)
        return sub is None or sub.name == name


class FrontQueryProcess(QueryServer):
    """The query socket of a front: queries get 803 until the front's database answers."""

    def __init__(self, config: Config, reactor: Any, settings: BaseSettings) -> None:
        super().__init__(config, None, reactor, settings)
        self._directory = Directory(config.front_database_url)
        self._feed = FrontFeed(self._directory, config.front_patience)
        self._tokens = FrontTokens(self._directory)
        self._front = FrontSource(self._feed, Silent())

    def _check(self) -> None:
        self._directory.check()

    def _source(self) -> FrontSource:
        return self._front

    def _known_tokens(self) -> Tokens:
        return self._tokens

    def _close(self) -> None:
        self._feed.close()
        self._directory.close()
        self._close_stores()


def _head(position: FrontPosition) -> FrontPosition:
    """Return the ends of the feeds, of a position that begins at their starts."""
    for part in position.parts:
        if part.since:
            position = position.at(replace(part.position, seq=part.position.began))
    return position


def _incomplete(names: Sequence[str]) -> Refusal:
    return Refusal(803, f"what is there cannot be listed without sub-LCC {', '.join(names)}")
