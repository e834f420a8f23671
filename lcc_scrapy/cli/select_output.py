"""What ``lcc select`` prints: a format for programs, columns, or a table for people."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lcc_scrapy.cli import printing
from lcc_scrapy.feed import confirmations
from lcc_scrapy.feed.reader import Feed
from lcc_scrapy.feed.row_formats import (
    COLUMNS,
    FORMATS,
    Format,
    JsonLines,
    PathOf,
    RawCsv,
    Record,
    version_record,
)

_PORTION = 100
"""Documents whose versions are in memory at a time."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of records for programs, and for people their heads and how to make a row of a record.

    ``short`` names the file as ``lcc path`` wants it: shorter than its path.
    """

    columns: Sequence[str]
    heads: Sequence[str]
    row: Callable[[Record, bool], list[object]]


class Printer(Protocol):
    """Prints records page by page."""

    def begin(self) -> None:
        """Print what comes first."""

    def page(self, page: Sequence[Record]) -> None:
        """Print some records."""

    def end(self) -> None:
        """Print what comes last."""


def printer(form: str, shape: Shape, *, raw: bool) -> Printer:
    """Return what prints in a format; a table goes to people only."""
    if raw:
        return _Streamed(RawCsv(shape.columns))
    if form in FORMATS:
        return _Streamed(FORMATS[form](shape.columns))
    return _Terminal(shape) if sys.stdout.isatty() else _Columns(shape)


class _Streamed:
    """Writes one of the formats for programs."""

    def __init__(self, form: Format) -> None:
        self._form = form

    def begin(self) -> None:
        printing.utf8(self._form.begin())

    def page(self, page: Sequence[Mapping[str, object]]) -> None:
        printing.utf8(self._form.records(page))

    def end(self) -> None:
        printing.utf8(self._form.end())


class WithVersions(_Streamed):
    """Writes JSON lines in which documents have their earlier contents, as they are kept now."""

    def __init__(self, feed: Feed, path_of: PathOf) -> None:
        super().__init__(JsonLines())
        self._feed = feed
        self._path_of = path_of

    def page(self, page: Sequence[Mapping[str, object]]) -> None:
        """Print some records."""
        for start in range(0, len(page), _PORTION):
            super().page(list(self._lines(page[start : start + _PORTION])))

    def _lines(self, page: Sequence[Mapping[str, object]]) -> Iterator[Mapping[str, object]]:
        keys = {str(one["docid"]): bytes.fromhex(str(one["docid"])) for one in page if one["op"] == "upsert"}
        kept = self._feed.versions(keys.values())
        for one in page:
            key = keys.get(str(one["docid"]))
            versions = [version_record(version, self._path_of) for version in kept.get(key or b"", ())]
            yield {**one, "versions": versions} if key else one


class _Columns:
    """Writes tab-separated columns below their names."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._named = False

    def begin(self) -> None:
        pass

    def page(self, page: Sequence[Record]) -> None:
        if not self._named:
            printing.utf8("\t".join(self._shape.heads) + "\n")
            self._named = True
        printing.utf8(printing.tabbed(self._shape.row(one, False) for one in page))

    def end(self) -> None:
        pass


class _Terminal(_Columns):
    """Writes a table per page, so that the first rows stand there before the last are read."""

    def page(self, page: Sequence[Record]) -> None:
        printing.table(self._shape.heads, [self._shape.row(one, True) for one in page])


def _change(one: Record, short: bool) -> list[object]:
    removed = one["removed_time"] is not None
    file = f"{one['fetched_machineid']} {one['fetched_fileid']}" if short and one["path"] else one["path"]
    return [
        one["op"],
        _moment(one["removed_time"] if removed else one["fetched_time"]),
        one["pid"],
        one["mimetype"],
        "" if removed else one["len"],
        one["curl"],
        one["reason"] if removed else file,
    ]


def _confirmation(one: Record, short: bool) -> list[object]:
    del short
    when, fetched = _moment(one["confirmed_time"]), _moment(one["fetched_time"])
    return [when, fetched, one["pid"], one["mimetype"], one["len"], one["curl"]]


def _moment(at: object) -> str:
    return printing.moment(at if isinstance(at, int) else 0)


CHANGES = Shape(COLUMNS, ("op", "when", "provider", "mimetype", "bytes", "url", "file"), _change)
CONFIRMATIONS = Shape(
    confirmations.COLUMNS, ("confirmed", "fetched", "provider", "mimetype", "bytes", "url"), _confirmation
)
