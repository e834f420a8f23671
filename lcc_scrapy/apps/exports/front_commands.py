"""``lcc front export``: changed documents of all sub-LCCs with their contents, in one file."""

from functools import partial
from pathlib import Path

import click

from lcc_scrapy.apps.exports.indexers.interface import IndexFormat
from lcc_scrapy.apps.exports.output import check, chosen_format, outlet_of, outputs, write
from lcc_scrapy.apps.exports.writing import Writing
from lcc_scrapy.cli.context import Lcc, pass_lcc
from lcc_scrapy.cli.feed_options import filters, place, places
from lcc_scrapy.cli.front_reading import ANEW, end
from lcc_scrapy.cli.output_file import tidy_when_told_to_stop
from lcc_scrapy.domain.front_cursor import FrontPosition
from lcc_scrapy.domain.selection import Selection


@click.command("export")
@outputs
@places
@filters
@ANEW
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Stop after N changes; the cursor says where."
)
@pass_lcc
def front_export(
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
    anew: tuple[str, ...],
    limit: int | None,
) -> None:
    """Write documents of all sub-LCCs with their contents to a file.

    It is `lcc export` over all of them, without indexes. Exit statuses are those of `lcc front
    select`.

    \b
    lcc front export --format tar.gz -o everything.tar.gz
    lcc front export --format warc --cursor-file position -o monday.warc.gz
    lcc front export --format jsonl --cursor-file position -o - | my-pipeline
    """  # noqa: D301
    from lcc_scrapy.front.content_user import FrontContentUser
    from lcc_scrapy.front.feed import FrontReader

    chosen = chosen_format(form, text=text, no_content=no_content)
    if isinstance(chosen, IndexFormat):
        raise click.UsageError(f"a front has no {form}: only a sub-LCC itself exports it")
    check(chosen, form, output, command, keeps=cursor or cursor_file)
    with (
        tidy_when_told_to_stop(),
        place(cursor, cursor_file, parse=FrontPosition.parse) as where,
        FrontContentUser(lcc.config) as user,
    ):
        reader = FrontReader(user.feed, selection, where.since, limit or 0, anew=anew, whole=chosen.answers)
        outlet = outlet_of(lcc, output, command, force=force)
        read = user.text if text else None
        write(partial(Writing, form=chosen, feed=reader, opened=user.open, read=read), reader, where, outlet)
        where.keep(reader.position)
    click.echo(f"cursor: {reader.position}", err=True)
    end(reader)
