"""``lcc export``: changed documents with their contents, in one file."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, pass_lcc
from lcc_scrapy.cli.export_index import tell, update
from lcc_scrapy.cli.export_output import tidy_when_told_to_stop, to_command, to_file
from lcc_scrapy.cli.feed_options import Place, filters, place, places
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.feed.exports.choosing import NAMES, choose
from lcc_scrapy.feed.exports.interface import ExportFormat
from lcc_scrapy.feed.exports.writing import Writing
from lcc_scrapy.feed.indexers.interface import IndexFormat
from lcc_scrapy.feed.reader import Reader


@click.command()
@click.option(
    "--format",
    "form",
    required=True,
    metavar="FORMAT",
    help=f"What to write: {', '.join(NAMES)}, or MODULE:NAME for a format of your own.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(allow_dash=True, path_type=Path),
    metavar="FILE",
    help="Where to write; FILE appears when it is complete and on disk. - is stdout. Or the index to update.",
)
@click.option("--exec", "command", metavar="CMD", help="Give the export to CMD on its stdin, instead of -o.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists; an index is built anew.")
@click.option("--text", is_flag=True, help="Add title and main text to rows (jsonl, parquet).")
@click.option("--no-content", is_flag=True, help="Leave the contents out of rows (jsonl, parquet).")
@places
@filters
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Stop after N changes; the cursor says where."
)
@pass_lcc
def export(
    lcc: Lcc,
    *,
    form: str,
    output: Path | None,
    command: str | None,
    force: bool,
    text: bool,
    no_content: bool,
    cursor: str | None,
    cursor_file: Path | None,
    selection: Selection,
    limit: int | None,
) -> None:
    """Write documents with their contents to a file or an index.

    A manifest in the file names the removals.

    The cursor for the next time goes to stderr; with --cursor-file it is kept when FILE is on disk, or CMD
    has ended with status 0. Indexes (fts5, htdig, tantivy) keep it themselves: the first run makes FILE,
    later ones take only what changed. Exit status 3: the cursor cannot be followed here; start over without
    one.

    \b
    lcc export --format tar.gz -o everything.tar.gz
    lcc export --format warc --cursor-file position -o monday.warc.gz
    lcc export --format jsonl --mimetype 'text/*' -o - | my-pipeline
    lcc export --format parquet --text --no-content --mimetype 'text/*' -o texts.parquet
    lcc export --format fts5 -o search.db
    lcc export --format xapian --cursor-file position --exec 'scriptindex index xapian.script'
    """  # noqa: D301
    from lcc_scrapy.content_user import ContentUser

    chosen = choose(form)
    _check(chosen, form, output, command, keeps=cursor or cursor_file)
    if text or no_content:
        chosen = _with_rows(chosen, form, content=not no_content)
    with tidy_when_told_to_stop(), place(cursor, cursor_file) as where, ContentUser(lcc.config) as user:
        if isinstance(chosen, IndexFormat):
            update(user, chosen, output or Path(), selection, limit=limit or 0, anew=force)
            return
        if output and output.exists() and not force and output != Path("-"):
            raise Failure(f"{output} exists: name another file, or give --force")
        outlet = to_file(output) if output else to_command(command or "", {**os.environ, **lcc.given})
        reader = Reader(user.feed, selection, where.since, limit or 0)
        read = user.text if text else None
        writing = partial(Writing, form=chosen, feed=user.feed, opened=user.open, read=read)
        _write(writing, reader, where, outlet)
        where.keep(reader.position)
    click.echo(f"cursor: {reader.position}", err=True)


def _with_rows(form: ExportFormat | IndexFormat, name: str, *, content: bool) -> ExportFormat:
    """Return a format that writes rows, with contents or without."""
    if isinstance(form, ExportFormat) and form.rows:
        return replace(form, make=partial(form.make, content=content))
    raise click.UsageError(f"{name} has no rows: --text and --no-content go with jsonl and parquet")


def _check(
    form: ExportFormat | IndexFormat, name: str, output: Path | None, command: str | None, *, keeps: object
) -> None:
    """Refuse what goes not together; ``keeps`` = somebody wants to go on from a cursor."""
    if isinstance(form, IndexFormat):
        if output in {None, Path("-")} or command or keeps:
            raise click.UsageError(f"{name} is an index that keeps its own cursor: name it with -o")
    elif keeps and form.rebuild:
        raise click.UsageError(f"{form.rebuild}: leave --since and --cursor-file out, and build it anew")
    if (output is None) == (command is None):
        raise click.UsageError("give either -o or --exec")


def _write(
    make: Callable[[IO[bytes]], Writing],
    reader: Reader,
    where: Place[Position],
    outlet: AbstractContextManager[IO[bytes]],
) -> None:
    start = reader.position.seq
    with outlet as out, printing.progress("exporting", reader.end.seq - start) as shown:
        where.begin(reader.position)
        writing = make(out)
        writing.run(reader, lambda seq: shown(seq - start))
    tell(writing.written)
