"""``lcc follow``: changes as they happen."""

from pathlib import Path

import click

from lcc_scrapy.cli.context import Lcc, pass_lcc
from lcc_scrapy.cli.exec_command import json_lines
from lcc_scrapy.cli.feed_options import filters, place, places
from lcc_scrapy.cli.following import follow_changes
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.feed.following import FeedSource


@click.command()
@places
@filters
@click.option("--exec", "command", metavar="CMD", help="Give the changes to CMD, as JSON lines on its stdin.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Stop after N changes.")
@click.option("--once", is_flag=True, help="Stop at the newest change.")
@pass_lcc
def follow(
    lcc: Lcc,
    *,
    cursor: str | None,
    cursor_file: Path | None,
    selection: Selection,
    command: str | None,
    limit: int | None,
    once: bool,
) -> None:
    """Pass changes to a command or to stdout as they happen.

    The position moves only when CMD has ended with status 0; until then it gets the same changes, in their
    newest state, again and again. SIGTERM or Ctrl-C ends it when CMD has ended. Exit status 3: the cursor
    cannot be followed here.

    \b
    lcc follow --cursor-file position --exec my-indexer
    lcc follow --mimetype 'text/*' | my-pipeline
    """  # noqa: D301
    path_of = lcc.path_of()
    with place(cursor, cursor_file) as where, lcc.feed() as feed:
        position = follow_changes(
            lcc,
            FeedSource(feed, selection),
            where,
            lambda batch: json_lines(batch.changes, path_of, feed.owners(batch.changes, batch.position.seq)),
            command,
            limit=limit or 0,
            once=once,
        )
    if position is not None:
        click.echo(f"cursor: {position}", err=True)
