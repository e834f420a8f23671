"""``lcc export``: changed documents with their contents, in one file."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, pass_lcc
from lcc_scrapy.cli.selecting import Place, filters, place, places
from lcc_scrapy.users.exports.formats import FORMATS
from lcc_scrapy.users.exports.writing import Writing
from lcc_scrapy.users.feed import Reader
from lcc_scrapy.users.selection import Selection

if TYPE_CHECKING:
    from lcc_scrapy.content_user import ContentUser


@click.command()
@click.option("--format", "form", type=click.Choice(list(FORMATS)), required=True, help="What to write.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    required=True,
    metavar="FILE",
    help="Where to write; FILE appears when it is complete and on disk. - is stdout.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
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
    output: Path,
    force: bool,
    cursor: str | None,
    cursor_file: Path | None,
    selection: Selection,
    limit: int | None,
) -> None:
    """Write documents with their contents into one file, and a manifest with the removals.

    The cursor for the next time goes to stderr. Exit status 3: the cursor cannot be followed here; start
    over without one.

    \b
    lcc export --format tar.gz -o everything.tar.gz
    lcc export --format warc --cursor-file position -o monday.warc.gz
    lcc export --format jsonl --mimetype 'text/*' -o - | my-pipeline
    """  # noqa: D301
    from lcc_scrapy.content_user import ContentUser

    if output.exists() and not force and output != Path("-"):
        raise Failure(f"{output} exists: name another file, or give --force")
    with place(cursor, cursor_file) as where, ContentUser(lcc.config) as user:
        reader = Reader(user.feed, selection, where.since, limit or 0)
        _write(user, reader, where, form, output)
        where.keep(reader.position)
    click.echo(f"cursor: {reader.position}", err=True)


def _write(user: "ContentUser", reader: Reader, where: Place, form: str, output: Path) -> None:
    start = reader.position.seq
    with _opened(output) as out, printing.progress("exporting", reader.end.seq - start) as shown:
        where.begin(reader.position)
        writing = Writing(out, FORMATS[form], user.feed, user.open)
        writing.run(reader, lambda seq: shown(seq - start))
    done = writing.written
    printing.note(
        f"{done.documents} documents ({printing.size(done.size)}), {done.removals} removals"
        + (f"; {done.changed} changed meanwhile and come the next time" if done.changed else "")
    )


@contextmanager
def _opened(output: Path) -> Iterator[IO[bytes]]:
    """Open what is written to; a file gets its name when all of it is on disk."""
    if output == Path("-"):
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    part = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        part.replace(output)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    folder = os.open(output.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
