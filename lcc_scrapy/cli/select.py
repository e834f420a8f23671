"""``lcc select``: what changed since the last visit."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Lcc, pass_lcc
from lcc_scrapy.cli.feed_options import filters, place, places
from lcc_scrapy.cli.select_output import CHANGES, CONFIRMATIONS, WithVersions, printer
from lcc_scrapy.cli.select_reading import Told, hand_over, print_changes
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.selection import Change, Selection
from lcc_scrapy.feed import confirmations, row_formats
from lcc_scrapy.feed.reader import Feed, Inventory, Reader
from lcc_scrapy.feed.row_formats import FORMATS, Record

_IDS = ("docid", "seq")


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
@click.option(
    "--confirmed",
    is_flag=True,
    help="Print which documents were found unchanged at their sites, behind a cursor of its own.",
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
    confirmed: bool,
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
    lcc select --confirmed --cursor-file confirmations
    """  # noqa: D301
    if command is not None and (ids or form not in {None, "jsonl"}):
        raise click.UsageError("--exec goes with neither --ids nor another --format than jsonl")
    if versions and (ids or command is not None or form != "jsonl"):
        raise click.UsageError("--versions goes with --format jsonl only")
    if raw and form != "csv":
        raise click.UsageError("--raw goes with --format csv only")
    if ids and (cursor is not None or limit):
        raise click.UsageError("--ids goes with neither --since nor --limit")
    if confirmed and (ids or versions):
        raise click.UsageError("--confirmed goes with neither --ids nor --versions")
    with place(cursor, cursor_file, reads=not ids) as where, lcc.feed() as feed:
        if ids:
            position = _list(feed, selection, form or "table")
        else:
            reads = confirmations.Confirmations if confirmed else Reader
            reader = reads(feed, selection, where.since, limit or 0)
            told = _confirmations(reader) if confirmed else _changes(reader, lcc)
            if command is not None:
                position = hand_over(lcc, reader, where, told, command)
            else:
                shape = CONFIRMATIONS if confirmed else CHANGES
                output = printer(form or "table", shape, raw=raw)
                shown = WithVersions(feed, lcc.path_of()) if versions else output
                position = print_changes(reader, where, told, shown)
        where.keep(position)
    click.echo(f"cursor: {position}", err=True)


def _changes(reader: Reader, lcc: Lcc) -> Told:
    path_of = lcc.path_of()
    return lambda page: list(row_formats.records(page, path_of, reader.owners(page)))


def _confirmations(reader: Reader) -> Told:
    def told(page: Sequence[Change]) -> list[Record]:
        return list(confirmations.records(page, reader.owners(page)))

    return told


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
