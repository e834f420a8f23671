"""``lcc retry`` and ``lcc refetch``: what an operator wants fetched again."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli import feed_options, printing
from lcc_scrapy.cli.context import FAILED, Lcc, pass_lcc

if TYPE_CHECKING:
    from lcc_scrapy.db.tx import Store
    from lcc_scrapy.domain.selection import Selection
    from lcc_scrapy.ops.fetch_again import Again

_PERIOD = re.compile(r"(\d{1,9})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_WORDS = {
    "waiting": "wait already",
    "done_since": "were stored or given up since",
    "held": "are held: see `lcc provider confirm-removals`",
    "outside_roots": "lie outside the roots",
    "refused": "were refused at push: only the provider can send them again",
    "withdrawn": "were removed by their providers since",
    "unknown": "failed under an earlier version, which did not keep what it takes",
    "no_room": "find no room in the queue: try again later",
}


def moment_or_period(
    context: click.Context | None, param: click.Parameter | None, text: str | None
) -> int | None:
    """Read a time, or a period until now."""
    period = _PERIOD.fullmatch(text.strip()) if text else None
    if period is None:
        return feed_options.moment(context, param, text)
    return int(time.time()) - int(period[1]) * _SECONDS[period[2]]


_dry_run = click.option("--dry-run", is_flag=True, help="Count, and change nothing.")
_all = click.option("--all", "everything", is_flag=True, help="Take all, without any other option.")


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option(
    "--provider",
    "pids",
    type=click.IntRange(1),
    multiple=True,
    metavar="PID",
    help="Only this provider's; may be repeated.",
)
@click.option(
    "--code",
    "codes",
    type=click.IntRange(300, 799),
    multiple=True,
    metavar="CODE",
    help="Only URLs whose last failure has this code; may be repeated.",
)
@click.option(
    "--failed-since",
    "since",
    callback=moment_or_period,
    metavar="TIME",
    help="Only URLs that failed last since TIME: epoch seconds, ISO 8601 (UTC by default) or a period: 2h.",
)
@_all
@_dry_run
@printing.json_option
@pass_lcc
def retry(
    lcc: Lcc,
    urls: Sequence[str],
    pids: Sequence[int],
    codes: Sequence[int],
    since: int | None,
    *,
    everything: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Fetch failed URLs again, without waiting.

    Name the URLs, or select them with options.

    They queue with all they were submitted with. Exit status 1 when a URL named is not
    among what failed, or the queue has no room.

    \b
    lcc retry http://www.example.org/news.html
    lcc retry --provider 7 --code 503 --failed-since 2h --dry-run
    """  # noqa: D301
    if urls and (codes or since is not None or everything):
        raise click.UsageError("URL goes with --provider only")
    if not (urls or pids or codes or since is not None or everything):
        raise click.UsageError("say what: URL, --provider, --code, --failed-since, or --all")
    with lcc.audited("retry", pids[0] if len(pids) == 1 else 0, " ".join(urls)) as store:
        again, open_ones = _again(lcc, store, pids, dry_run=dry_run)
        if urls:
            pages: Iterable[Counter[str]] = _each(urls, lambda url: again.retry_url(url, open_ones))
        else:
            pages = (page for pid in open_ones for page in again.retry(pid, codes, since or 0))
        _tell(pages, dry_run=dry_run, as_json=as_json, named=len(urls))


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL]...")
@feed_options.filters
@_all
@_dry_run
@printing.json_option
@pass_lcc
def refetch(
    lcc: Lcc, urls: Sequence[str], selection: "Selection", *, everything: bool, dry_run: bool, as_json: bool
) -> None:
    """Fetch cached documents again.

    Name their URLs, or select them with options.

    Sites may answer that nothing changed. What providers declared stays, and they are told
    of no errors. Exit status 1 when there is no document of a URL named, or the queue has
    no room.

    \b
    lcc refetch http://www.example.org/news.html
    lcc refetch --provider 7 --mimetype 'text/*' --dry-run
    """  # noqa: D301
    if not (urls or selection.digest or everything):
        raise click.UsageError("say what: URL, a filter, or --all")
    pids = selection.providers
    with lcc.audited("refetch", pids[0] if len(pids) == 1 else 0, " ".join(urls)) as store:
        again, open_ones = _again(lcc, store, pids, dry_run=dry_run)
        if urls:
            pages: Iterable[Counter[str]] = _each(
                urls, lambda url: again.refetch_url(url, open_ones, selection)
            )
        else:
            pages = (page for pid in open_ones for page in again.refetch(pid, selection))
        _tell(pages, dry_run=dry_run, as_json=as_json, named=len(urls))


def _again(lcc: Lcc, store: "Store", pids: Sequence[int], *, dry_run: bool) -> "tuple[Again, list[int]]":
    from lcc_scrapy.ops.fetch_again import Again, Terms, open_pids

    config = lcc.config
    terms = Terms(config.policy, config.queue_max, int(time.time()), dry_run)
    return Again(store, terms), open_pids(store, pids)


def _each(urls: Sequence[str], ask: "Callable[[str], Counter[str]]") -> Iterator[Counter[str]]:
    for url in urls:
        done = ask(url)
        if not done:
            printing.note(f"nothing of that kind is known of {url}: `lcc explain` tells what is")
        yield done or Counter(missing=1)


def _tell(pages: Iterable[Counter[str]], *, dry_run: bool, as_json: bool, named: int) -> None:
    from lcc_scrapy.ops.fetch_again import VERDICTS

    done: Counter[str] = Counter()
    with printing.progress("queueing") as shown:
        for page in pages:
            done += page
            shown(done.total(), 0)
    if as_json:
        printing.as_json({**{name: done[name] for name in VERDICTS}, "dry_run": dry_run})
    else:
        _print(done, dry_run=dry_run)
    left_out = named and done.total() - done["queued"] - done["sooner"] - done["waiting"]
    if left_out or done["no_room"]:
        click.get_current_context().exit(FAILED)


def _print(done: Counter[str], *, dry_run: bool) -> None:
    would = "would be" if dry_run else "are"
    click.echo(f"{done['queued']} URLs {would} queued, {done['sooner']} {would} tried sooner")
    for name, words in _WORDS.items():
        if done[name]:
            printing.note(f"{done[name]} {words}")
