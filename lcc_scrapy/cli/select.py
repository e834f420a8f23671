"""``lcc select``: what changed since the last visit."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, pass_lcc
from lcc_scrapy.cli.exec_command import command_of, json_lines
from lcc_scrapy.cli.feed_options import Place, filters, place, places
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.selection import Change, Selection
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.following import Batch
from lcc_scrapy.feed.reader import Feed, Inventory, Reader
from lcc_scrapy.feed.row_formats import (
    COLUMNS,
    FORMATS,
    Format,
    JsonLines,
    RawCsv,
    Record,
    record,
    version_record,
)

_COLUMNS = ("op", "when", "provider", "mimetype", "bytes", "url", "file")
_IDS = ("docid", "seq")
_PORTION = 100
"""Documents whose versions are in memory at a time."""


@click.command()
@places
@filters
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", *FORMATS]),
    help="How to print; table (the default) is for people.",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Stop after N changes; the cursor says where."
)
@click.option("--exec", "command", metavar="CMD", help="Give the changes to CMD, as JSON lines on its stdin.")
@click.option(
    "--versions",
    is_flag=True,
    help="Give every document its `versions`: earlier contents that are kept, newest first (jsonl only).",
)
@click.option(
    "--raw",
    is_flag=True,
    help="With --format csv: leave texts as they are that a spreadsheet would run (`=`, `+`, `-`, `@`, …).",
)
@click.option("--ids", is_flag=True, help="Print docid and seq of all cached documents, to compare.")
@pass_lcc
def select(
    lcc: Lcc,
    *,
    cursor: str | None,
    cursor_file: Path | None,
    selection: Selection,
    form: str | None,
    limit: int | None,
    command: str | None,
    ids: bool,
    versions: bool,
    raw: bool,
) -> None:
    """Print documents and removals, oldest change first.

    Each document appears once, with its newest state.

    The cursor for the next run goes to stderr. Exit status 3: the cursor cannot be followed here; start
    over without one.

    \b
    lcc select --format jsonl --cursor-file position
    lcc select --since-time 2026-01-31 --mimetype 'text/*'
    lcc select --cursor-file position --exec my-indexer
    """  # noqa: D301
    if command is not None and (ids or form not in {None, "jsonl"}):
        raise click.UsageError("--exec goes with neither --ids nor another --format than jsonl")
    if versions and (ids or command is not None or form != "jsonl"):
        raise click.UsageError("--versions goes with --format jsonl only")
    if raw and form != "csv":
        raise click.UsageError("--raw goes with --format csv only")
    if ids and (cursor is not None or limit):
        raise click.UsageError("--ids goes with neither --since nor --limit")
    with place(cursor, cursor_file, reads=not ids) as where, lcc.store() as store:
        from lcc_scrapy.feed.store_feed import StoreFeed

        feed = StoreFeed(store)
        if ids:
            position = _list(feed, selection, form or "table")
        elif command is not None:
            position = _hand_over(lcc, Reader(feed, selection, where.since, limit or 0), where, command)
        else:
            path_of = lcc.path_of()
            printer = (
                _WithVersions(feed, path_of) if versions else _printer(form or "table", path_of, raw=raw)
            )
            position = _print(Reader(feed, selection, where.since, limit or 0), where, printer)
        where.keep(position)
    click.echo(f"cursor: {position}", err=True)


def _print(reader: Reader, where: Place, printer: "_Printer") -> Position:
    """Print what is selected; returns the position reached when all of it was taken by stdout."""
    where.begin(reader.position)
    printer.begin()
    for page in reader.pages():
        printer.page(page)
    printer.end()
    sys.stdout.flush()
    return reader.position


def _hand_over(lcc: Lcc, reader: Reader, where: Place, command: str) -> Position:
    """Give what is selected to a command; what it took is kept, whatever becomes of the rest."""
    where.begin(reader.position)
    handing = command_of(lcc, command)
    for page in reader.pages():
        batch = Batch(page, reader.position, reader.reached, 0)
        status = handing.run(json_lines(page, lcc.path_of()), batch)
        if status:
            raise Failure(f"the command ended with status {status}: {len(page)} changes come again")
        where.keep(reader.reached)
    return reader.position


def _list(feed: Feed, selection: Selection, form: str) -> Position:
    """Print docids and seqs; returns the position from which on they are to be completed."""
    inventory = Inventory(feed, selection)
    shown = FORMATS[form](_IDS) if form in FORMATS else None
    printing.utf8(shown.begin() if shown else "\t".join(_IDS) + "\n")
    for page in inventory.pages():
        ids: Iterator[Record] = ({"docid": row.docid, "seq": row.seq} for row in page)
        printing.utf8(shown.records(ids) if shown else printing.tabbed(tuple(one.values()) for one in ids))
    printing.utf8(shown.end() if shown else "")
    sys.stdout.flush()
    return inventory.position


class _Printer(Protocol):
    def begin(self) -> None: ...

    def page(self, page: list[Change]) -> None: ...

    def end(self) -> None: ...


def _printer(form: str, path_of: Callable[[int, int], str], *, raw: bool) -> _Printer:
    if raw:
        return _Streamed(RawCsv(COLUMNS), path_of)
    if form in FORMATS:
        return _Streamed(FORMATS[form](COLUMNS), path_of)
    return _Terminal(path_of) if sys.stdout.isatty() else _Columns(path_of)


class _Streamed:
    """Writes one of the formats for programs."""

    def __init__(self, form: Format, path_of: Callable[[int, int], str]) -> None:
        self._form = form
        self._path_of = path_of

    def begin(self) -> None:
        printing.utf8(self._form.begin())

    def page(self, page: list[Change]) -> None:
        printing.utf8(self._form.records([record(row, self._path_of) for row in page]))

    def end(self) -> None:
        printing.utf8(self._form.end())


class _WithVersions(_Streamed):
    """Writes JSON lines in which documents have their earlier contents, as they are kept now."""

    def __init__(self, feed: Feed, path_of: Callable[[int, int], str]) -> None:
        super().__init__(JsonLines(), path_of)
        self._feed = feed

    def page(self, page: list[Change]) -> None:
        for start in range(0, len(page), _PORTION):
            part = page[start : start + _PORTION]
            kept = self._feed.versions([row.urlkey for row in part if isinstance(row, CachedUrl)])
            printing.utf8(self._form.records([self._line(row, kept.get(row.urlkey, [])) for row in part]))

    def _line(self, row: Change, kept: list[Version]) -> dict[str, object]:
        told = record(row, self._path_of)
        if not isinstance(row, CachedUrl):
            return {**told}
        return {**told, "versions": [version_record(one, self._path_of) for one in kept]}


class _Columns:
    """Writes tab-separated columns below their names."""

    def __init__(self, path_of: Callable[[int, int], str]) -> None:
        self._path_of = path_of
        self._named = False

    def begin(self) -> None:
        pass

    def page(self, page: list[Change]) -> None:
        if not self._named:
            printing.utf8("\t".join(_COLUMNS) + "\n")
            self._named = True
        printing.utf8(printing.tabbed(_row(record(row, self._path_of)) for row in page))

    def end(self) -> None:
        pass


class _Terminal(_Columns):
    """Writes a table per page, so that the first rows stand there before the last are read."""

    def page(self, page: list[Change]) -> None:
        printing.table(_COLUMNS, [_row(record(row, _arguments)) for row in page])


def _arguments(machineid: int, fileid: int) -> str:
    """Name a file as ``lcc path`` wants it: shorter than its path."""
    return f"{machineid} {fileid}"


def _row(one: Record) -> list[object]:
    when = one["fetched_time"] if one["removed_time"] is None else one["removed_time"]
    removed = one["removed_time"] is not None
    return [
        one["op"],
        printing.moment(int(when or 0)),
        one["pid"],
        one["mimetype"],
        "" if removed else one["len"],
        one["curl"],
        one["reason"] if removed else one["path"],
    ]
