"""``lcc select``: what changed since the last visit."""

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Lcc, pass_lcc
from lcc_scrapy.users.cursor import Position
from lcc_scrapy.users.formats import FORMATS, Format, Record, record
from lcc_scrapy.users.selection import Selection, is_pattern

if TYPE_CHECKING:
    from lcc_scrapy.users.feed import Change

_COLUMNS = ("op", "when", "provider", "mimetype", "bytes", "url", "file")


def _moment(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        if text.strip().isdecimal():
            return int(text)
        at = datetime.fromisoformat(text.strip())
        return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{text!r}, expected epoch seconds or ISO 8601") from None


def _pattern(_ctx: click.Context, _param: click.Parameter, text: str) -> str:
    pattern = text.strip().lower()
    if not is_pattern(pattern):
        raise click.BadParameter(f"{text!r}, expected for example text/html or 'text/*'")
    return pattern


@click.command()
@click.option("--since", "cursor", metavar="CURSOR", help="Only what changed after this cursor.")
@click.option(
    "--cursor-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Read the cursor from this file, if it exists, and write the new one when all was printed.",
)
@click.option(
    "--since-time",
    callback=_moment,
    metavar="TIME",
    help="Only what was fetched or removed after TIME (epoch seconds or ISO 8601, UTC unless it says so).",
)
@click.option(
    "--provider", "pid", type=click.IntRange(1), metavar="PID", help="Only this provider's documents."
)
@click.option(
    "--mimetype",
    callback=_pattern,
    default="*/*",
    metavar="PATTERN",
    help="Only these, for example 'text/*'.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", *FORMATS]),
    default="table",
    show_default=True,
    help="How to print; table is for people.",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Stop after N changes; the cursor says where."
)
@pass_lcc
def select(
    lcc: Lcc,
    *,
    cursor: str | None,
    cursor_file: Path | None,
    since_time: int | None,
    pid: int | None,
    mimetype: str,
    form: str,
    limit: int | None,
) -> None:
    """Print documents and removals, oldest change first, each document once with its newest state.

    The cursor for the next time goes to stderr. Exit status 3: the cursor cannot be followed here; start
    over without one.

    \b
    lcc select --format jsonl --cursor-file position
    lcc select --since-time 2026-01-31 --mimetype 'text/*'
    """  # noqa: D301
    if cursor is not None and (cursor_file is not None or since_time is not None):
        raise click.UsageError("--since goes with neither --cursor-file nor --since-time")
    position = _print(
        lcc, _start(cursor, cursor_file), Selection(pid, mimetype, since_time), form, limit or 0
    )
    if cursor_file is not None:
        _keep(cursor_file, position)
    click.echo(f"cursor: {position}", err=True)


def _start(cursor: str | None, file: Path | None) -> Position | None:
    if cursor is not None:
        return Position.parse(cursor)
    if file is None or not file.exists():
        return None
    return Position.parse(file.read_text(encoding="utf-8", errors="replace"))


def _keep(file: Path, position: Position) -> None:
    """Replace the cursor file at once, so that it never holds half a cursor."""
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="ascii") as out:
            out.write(f"{position}\n")
            out.flush()
            os.fsync(out.fileno())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _print(lcc: Lcc, since: Position | None, selection: Selection, form: str, limit: int) -> Position:
    """Print what is selected; returns the position reached when all of it was taken by stdout."""
    from lcc_scrapy.storage.feed import StoreFeed
    from lcc_scrapy.users.feed import Reader

    with lcc.store() as store:
        reader = Reader(StoreFeed(store), selection, since, limit)
        printer = _printer(form, lcc.path_of())
        printer.begin()
        for page in reader.pages():
            printer.page(page)
        printer.end()
    sys.stdout.flush()
    return reader.position


class _Printer(Protocol):
    def begin(self) -> None: ...

    def page(self, page: "list[Change]") -> None: ...

    def end(self) -> None: ...


def _printer(form: str, path_of: Callable[[int, int], str]) -> _Printer:
    if form in FORMATS:
        return _Streamed(FORMATS[form], path_of)
    return _Terminal(path_of) if sys.stdout.isatty() else _Columns(path_of)


class _Streamed:
    """Writes one of the formats for programs."""

    def __init__(self, form: Format, path_of: Callable[[int, int], str]) -> None:
        self._form = form
        self._path_of = path_of

    def begin(self) -> None:
        _write(self._form.begin())

    def page(self, page: "list[Change]") -> None:
        _write(self._form.records([record(row, self._path_of) for row in page]))

    def end(self) -> None:
        _write(self._form.end())


class _Columns:
    """Writes tab-separated columns below their names."""

    def __init__(self, path_of: Callable[[int, int], str]) -> None:
        self._path_of = path_of
        self._named = False

    def begin(self) -> None:
        pass

    def page(self, page: "list[Change]") -> None:
        if not self._named:
            _write("\t".join(_COLUMNS) + "\n")
            self._named = True
        _write(printing.tabbed(_row(record(row, self._path_of)) for row in page))

    def end(self) -> None:
        pass


class _Terminal(_Columns):
    """Writes a table per page, so that the first rows stand there before the last are read."""

    def page(self, page: "list[Change]") -> None:
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


def _write(text: str) -> None:
    """Write all of it as UTF-8, whatever the locale: URLs hold any character.

    An unbuffered stdout (``python -u``) may take a part only.
    """
    view = memoryview(text.encode("utf-8", "backslashreplace"))
    while view:
        view = view[sys.stdout.buffer.write(view) :]
