"""``lcc front select``, ``follow`` and ``web``: what changed in all sub-LCCs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import CannotGoOn, Lcc, Partial, never_to_be_tried_again, pass_lcc
from lcc_scrapy.cli.exec_command import as_lines
from lcc_scrapy.cli.feed_options import filters, place, places
from lcc_scrapy.cli.following import follow_changes
from lcc_scrapy.cli.select_output import CHANGES, printer
from lcc_scrapy.cli.select_reading import hand_over, print_changes
from lcc_scrapy.cli.web import needs_web
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.front_cursor import FrontPosition
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.feed.following import Batch
from lcc_scrapy.feed.row_formats import FORMATS

if TYPE_CHECKING:
    from lcc_scrapy.front.feed import FrontFeed, FrontReader


ANEW = click.option(
    "--anew",
    metavar="NAME",
    multiple=True,
    help="Read sub-LCC NAME from its start, whatever the cursor says; may be repeated.",
)


@click.command()
@places
@filters
@ANEW
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", *FORMATS]),
    default="table",
    help="How to print; table (the default) is for people.",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Stop after N changes; the cursor says where."
)
@click.option("--exec", "command", metavar="CMD", help="Give the changes to CMD, as JSON lines on its stdin.")
@pass_lcc
def select(
    lcc: Lcc,
    *,
    cursor: str | None,
    cursor_file: Path | None,
    selection: Selection,
    anew: tuple[str, ...],
    form: str,
    limit: int | None,
    command: str | None,
) -> None:
    """Print documents and removals of all sub-LCCs, each sub-LCC's oldest change first.

    It is `lcc select` over all of them; `path` is the URL of the content. Exit status 4: some sub-LCCs did
    not answer; their changes come the next time. Exit status 3: the cursor cannot be followed, or not in
    the sub-LCCs that are named; give these with --anew.

    \b
    lcc front select --format jsonl --cursor-file position
    lcc front select --cursor-file position --anew b
    """  # noqa: D301
    from lcc_scrapy.front.content_user import FrontContentUser
    from lcc_scrapy.front.feed import FrontReader

    with place(cursor, cursor_file, parse=FrontPosition.parse) as where, FrontContentUser(lcc.config) as user:
        reader = FrontReader(user.feed, selection, where.since, limit or 0, anew=anew)
        if command is not None:
            position = hand_over(lcc, reader, where, reader.records, command)
        else:
            position = print_changes(reader, where, reader.records, printer(form, CHANGES, raw=False))
        where.keep(position)
    click.echo(f"cursor: {position}", err=True)
    end(reader)


@click.command()
@places
@filters
@ANEW
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
    anew: tuple[str, ...],
    command: str | None,
    limit: int | None,
    once: bool,
) -> None:
    """Pass changes of all sub-LCCs to a command or to stdout as they happen.

    It is `lcc follow` over all of them. It says on stderr which sub-LCCs do not answer, and goes on with the
    others; with --once exit status 4 says so. Exit status 3 is that of `lcc front select`.

    \b
    lcc front follow --cursor-file position --exec my-indexer
    """  # noqa: D301
    from lcc_scrapy.front.content_user import FrontContentUser

    with place(cursor, cursor_file, parse=FrontPosition.parse) as where, FrontContentUser(lcc.config) as user:
        source = _Source(user.feed, selection, anew)
        position = follow_changes(lcc, source, where, source.lines, command, limit=limit or 0, once=once)
    if position is not None:
        click.echo(f"cursor: {position}", err=True)
    if once and source.reader is not None:
        end(source.reader)


@click.command()
@pass_lcc
@never_to_be_tried_again()
def web(lcc: Lcc) -> None:
    """Serve changes and contents of all sub-LCCs over HTTP.

    It listens at LCC_WEB_ENDPOINT for content users, who need a token (`lcc token add --front`). It runs
    until SIGTERM or Ctrl-C; the log goes to stderr, or to LOG_FILE. docs/front.md tells what can be asked.

    \b
    lcc front web
    curl -H "Authorization: Bearer $(cat token)" http://127.0.0.1:8080/v1/changes
    """  # noqa: D301
    from lcc_scrapy.machine import logs

    config = lcc.config
    if config.web_endpoint is None:
        raise ConfigurationError("LCC_WEB_ENDPOINT is empty: say where to listen")
    logs.begin(lcc.settings, config.log_format)
    with needs_web("lcc front web"):
        from lcc_scrapy.front.web import Front, make_app
        from lcc_scrapy.web.server import Server
    from lcc_scrapy.front.content_user import FrontContentUser
    from lcc_scrapy.front.tokens import FrontTokens

    with FrontContentUser(config) as user:
        app = make_app(Front(user.feed, FrontTokens(user.feed.directory), config.web))
        Server(app, config.web_endpoint, config.http).serve_until_told()


class _Source:
    """Follows a front, and says on stderr which sub-LCCs do not answer, and when they do again."""

    def __init__(self, feed: "FrontFeed", selection: Selection, anew: tuple[str, ...]) -> None:
        self._feed = feed
        self._selection = selection
        self._anew = anew
        self._first: FrontPosition | None = None
        self._silent: set[str] = set()
        self.reader: FrontReader | None = None

    def is_at_end(self, position: FrontPosition | None) -> bool:
        """Tell what became of the last round; only the sub-LCCs know whether anything happened."""
        if self.reader is None:
            self._first = position
        else:
            _refuse(self.reader.start_over)
            self._note(self.reader.failed)
        return False

    def read(self, since: FrontPosition | None, limit: int) -> "FrontReader":
        """Begin to read; what is to be read anew is so until a new position was kept."""
        from lcc_scrapy.front.feed import FrontReader

        anew = self._anew if since == self._first else ()
        self.reader = FrontReader(self._feed, self._selection, since, limit, anew=anew)
        return self.reader

    def lines(self, batch: Batch[FrontPosition]) -> bytes:
        """Return the changes that were read last as JSON lines."""
        assert self.reader is not None
        return as_lines(self.reader.records(batch.changes))

    def _note(self, failed: Mapping[str, str]) -> None:
        for name in sorted(failed.keys() - self._silent):
            printing.note(f"{failed[name]}; its part of the cursor stays")
        for name in sorted(self._silent - failed.keys()):
            printing.note(f"sub-LCC {name} answers again")
        self._silent = set(failed)


def end(reader: "FrontReader") -> None:
    """End with the status that tells what is missing."""
    _refuse(reader.start_over)
    if reader.failed:
        raise Partial(f"{'; '.join(reader.failed.values())}; what is missing comes with the next run")


def _refuse(start_over: Mapping[str, str]) -> None:
    if start_over:
        again = " ".join(f"--anew {name}" for name in start_over)
        raise CannotGoOn(f"{'; '.join(start_over.values())} (the others go on: {again})")
