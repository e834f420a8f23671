"""``lcc follow``: changes as they happen."""

import signal
import sys
import threading
from pathlib import Path

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Lcc, pass_lcc
from lcc_scrapy.cli.exec_command import command_of, json_lines
from lcc_scrapy.cli.feed_options import filters, place, places
from lcc_scrapy.domain.directives import Owners
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.feed.command import Command
from lcc_scrapy.feed.following import Batch, Follower


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
    stopping = threading.Event()
    with place(cursor, cursor_file) as where, lcc.store() as store:
        from lcc_scrapy.feed.store_feed import StoreFeed

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        handing = command_of(lcc, command, stopping=stopping.is_set) if command is not None else None
        feed = StoreFeed(store)
        follower = Follower(
            feed,
            selection,
            where.since,
            deliver=lambda batch: _deliver(lcc, handing, batch, feed.owners(batch.changes)),
            keep=where.keep,
            pause=lambda seconds: not stopping.wait(seconds),
            poll=lcc.config.poll,
        )
        follower.run(limit=limit or 0, once=once)
    if follower.position is not None:
        click.echo(f"cursor: {follower.position}", err=True)


def _deliver(lcc: Lcc, handing: Command | None, batch: Batch, owners: Owners) -> bool:
    lines = json_lines(batch.changes, lcc.path_of(), owners)
    if handing is None:
        sys.stdout.buffer.write(lines)
        sys.stdout.flush()
        return True
    status = handing.run(lines, batch)
    if status:
        count = len(batch.changes)
        printing.note(f"the command ended with status {status}: trying {count} changes again later")
    return not status
