"""``lcc explain``: everything about a URL."""

import time
from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, pass_lcc

if TYPE_CHECKING:
    from lcc_scrapy.queue.explanation import Surroundings


@click.command()
@click.argument("url")
@click.option("--provider", "pid", type=click.IntRange(1), metavar="PID", help="Only this provider's URL.")
@printing.json_option
@pass_lcc
def explain(lcc: Lcc, url: str, pid: int | None, *, as_json: bool) -> None:
    """Tell whether a URL is cached or waits, and why.

    URL is a conceptual URL, a fetch URL or a docid. Exit status 1: the LCC does not know the URL.

    \b
    lcc explain http://www.example.org/news.html
    lcc explain 0123456789abcdef0123456789abcdef --json
    """  # noqa: D301
    from lcc_scrapy.queue import explanation
    from lcc_scrapy.queue.explained import as_dict, lines

    with lcc.store() as store:
        known = explanation.explain(store, url, _surroundings(lcc), None if pid is None else {pid})
        where = "" if known else _where(explanation.in_roots_of(store, url))
    if not known:
        raise Failure(f"nothing is known of {printing.plain(url)}: it was not submitted, or long ago{where}")
    now = int(time.time())
    shown = [as_dict(one, lcc.path_of(), now) for one in known]
    if as_json:
        printing.as_json(shown)
        return
    for number, one in enumerate(shown):
        if number:
            click.echo()
        printing.facts(lines(one))


def _surroundings(lcc: Lcc) -> "Surroundings":
    from lcc_scrapy.machine.data_directory import running_workers
    from lcc_scrapy.queue.explanation import Surroundings

    running = bool(running_workers(lcc.config.data_dir))
    return Surroundings(time.time(), lcc.config.timezone, running, paced=lcc.config.turns.paced)


def _where(pids: list[int]) -> str:
    """Tell in whose roots a URL lies of which nothing is known."""
    if not pids:
        return "; it lies outside the roots of all providers"
    return f"; it lies in the roots of provider {', '.join(map(str, pids))}"
