"""``lcc export``: changed documents with their contents, in one file."""

from functools import partial
from pathlib import Path

import click

from lcc_scrapy.apps.exports.indexers.interface import IndexFormat
from lcc_scrapy.apps.exports.indexing import update
from lcc_scrapy.apps.exports.output import check, chosen_format, outlet_of, outputs, write
from lcc_scrapy.apps.exports.writing import Writing
from lcc_scrapy.cli.context import Lcc, pass_lcc
from lcc_scrapy.cli.feed_options import filters, place, places
from lcc_scrapy.cli.output_file import tidy_when_told_to_stop
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.feed.reader import Reader


@click.command()
@outputs
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

    chosen = chosen_format(form, text=text, no_content=no_content)
    check(chosen, form, output, command, keeps=cursor or cursor_file)
    with tidy_when_told_to_stop(), place(cursor, cursor_file) as where, ContentUser(lcc.config) as user:
        if isinstance(chosen, IndexFormat):
            update(user, chosen, output or Path(), selection, limit=limit or 0, anew=force)
            return
        reader = Reader(user.feed, selection, where.since, limit or 0)
        outlet = outlet_of(lcc, output, command, force=force)
        writing = partial(
            Writing, form=chosen, feed=user.feed, opened=user.open, read=user.text if text else None
        )
        start = reader.position.seq
        write(writing, reader, where, outlet, start=start, total=reader.end.seq - start)
        where.keep(reader.position)
    click.echo(f"cursor: {reader.position}", err=True)
