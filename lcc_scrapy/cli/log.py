"""``lcc log``: what was fetched, from the fetch log of this machine's crawls."""

import json
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, pass_lcc

if TYPE_CHECKING:
    from lcc_scrapy.fetchlog.reading import Wanted

_POLL = 0.5
"""Seconds between looks at files that are followed."""

_BEFORE = 10
"""Lines that are shown before those that are followed."""

_SHOWN = ("time", "pid", "result", "code", "bytes", "ms", "hops", "type", "url", "reason")
_WIDTHS = (24, 6, 9, 4, 9, 7, 2, 20)
_NUMBERS = frozenset({"pid", "code", "bytes", "ms", "hops"})


def _since(_context: click.Context, _parameter: click.Parameter, text: str | None) -> float:
    from lcc_scrapy.domain.notations import duration

    if text is None:
        return 0.0
    try:
        return time.time() - duration(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r}, expected for example 30m, 2d or 2026-01-31T12:00") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@click.command()
@click.option("--pid", "pids", type=click.IntRange(1), multiple=True, help="Only of this provider.")
@click.option(
    "--code", "codes", type=click.IntRange(1), multiple=True, help="Only with this code: 200, 404, 603."
)
@click.option(
    "--since", callback=_since, metavar="TIME", help="Only since TIME: 30m, 2d or ISO 8601 (UTC by default)."
)
@click.option("-n", "--last", type=click.IntRange(1), metavar="N", help="Only the last N; with --follow, 10.")
@click.option("-f", "--follow", is_flag=True, help="Go on, and show new lines as they come.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of columns.")
@pass_lcc
def log(
    lcc: Lcc,
    /,
    *,
    pids: tuple[int, ...],
    codes: tuple[int, ...],
    since: float,
    last: int | None,
    follow: bool,
    as_json: bool,
) -> None:
    """Show the fetch log of this machine's crawls, oldest first.

    --pid and --code may be repeated. Stored documents have the code 200, confirmed ones 304 (or 200).

    \b
    lcc log --since 1h --code 404 --code 603
    lcc log --pid 7 --follow
    lcc log --json | jq -r 'select(.ms > 5000) | .url'
    """  # noqa: D301
    from lcc_scrapy.fetchlog.reading import Wanted

    if lcc.config.fetch_log is None:
        raise Failure("there is no fetch log: LCC_FETCH_LOG is empty")
    wanted = Wanted(frozenset(pids), frozenset(codes), since)
    _print(_lines(lcc, wanted, last, follow=follow), as_json=as_json)


def _lines(lcc: Lcc, wanted: "Wanted", last: int | None, *, follow: bool) -> Iterator[dict[str, Any]]:
    from lcc_scrapy.fetchlog.reading import Follower, read

    path = lcc.config.fetch_log
    assert path is not None
    if not follow:
        there = read(path, wanted)
        yield from there if last is None else deque(there, last)
        return
    follower = Follower(path, wanted)
    begin = deque(read(path, wanted), last or (None if wanted.since else _BEFORE))
    yield from begin
    met_before = [line for line in begin if line["time"] >= follower.begun]
    while True:
        yield from (line for line in follower.more() if line not in met_before)
        met_before = []
        time.sleep(_POLL)


def _print(lines: Iterable[dict[str, Any]], *, as_json: bool) -> None:
    terminal = sys.stdout.isatty()
    if not as_json:
        click.echo(_aligned({name: name for name in _SHOWN}) if terminal else "\t".join(_SHOWN))
    for line in lines:
        if as_json:
            click.echo(json.dumps(line))
        else:
            click.echo(_aligned(line) if terminal else printing.tabbed([_cells(line)]), nl=terminal)


def _cells(line: dict[str, Any]) -> list[object]:
    return [line.get(name, "") for name in _SHOWN]


def _aligned(line: dict[str, Any]) -> str:
    cells = list(map(printing.plain, _cells(line)))
    widths = zip(_SHOWN, cells, _WIDTHS, strict=False)
    fixed = [cell.rjust(width) if name in _NUMBERS else cell.ljust(width) for name, cell, width in widths]
    return " ".join([*fixed, *cells[len(_WIDTHS) :]]).rstrip()
