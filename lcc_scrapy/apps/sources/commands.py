"""``lcc source``: sitemaps, feeds and Redis keys of providers that do not push."""

import asyncio
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import FAILED, Lcc, LccGroup, pass_lcc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lcc_scrapy.apps.sources.discovery import Offer, Subject
    from lcc_scrapy.apps.sources.registry import Registry
    from lcc_scrapy.apps.sources.rules import Report, Source
    from lcc_scrapy.domain.roots import HttpUrl
    from lcc_scrapy.http.credentials import Credentials

_KINDS = {
    "sitemap": "sitemap",
    "feed": "feed",
    "resourcesync": "resourcesync",
    "websub": "websub",
    "redis_key": "redis",
}
"""Which kind of source each option adds."""

_EVERY, _EVERY_OF_REDIS = 3600, 5
_HIDDEN = frozenset({"secret", "callback", "owner", "claimed", "asked"})


@click.group(cls=LccGroup)
def source() -> None:
    """Follow sites that do not push: their sitemaps and feeds, or a Redis key.

    A crawl looks at each source when it is due. What is new, changed or gone becomes a
    set of the provider.

    \b
    lcc source discover http://www.example.org/
    lcc source add 7 --sitemap http://www.example.org/sitemap.xml --every 6h
    lcc source list
    """  # noqa: D301


def _every(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | None:
    from lcc_scrapy.domain.notations import duration

    if text is None:
        return None
    try:
        return int(duration(text))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@source.command()
@click.argument("pid", type=click.IntRange(1))
@click.option("--sitemap", metavar="URL", help="A sitemap or sitemap index.")
@click.option("--feed", metavar="URL", help="A feed: RSS, Atom or JSON Feed.")
@click.option("--resourcesync", metavar="URL", help="A description, resource list or change list.")
@click.option("--websub", metavar="URL", help="A feed that names a hub, which then tells of changes.")
@click.option(
    "--redis-key", metavar="KEY", help="A key that producers of scrapy-redis fill: list, set or sorted set."
)
@click.option(
    "--every",
    callback=_every,
    metavar="DURATION",
    help="How often to look.  [default: 1h; 5s for --redis-key]",
)
@pass_lcc
def add(lcc: Lcc, /, *, pid: int, every: int | None, **given: str | None) -> None:
    """Add a source of provider PID; a crawl looks at it at once.

    It lies on a host of the provider's roots, or is a key of the Redis of LCC_REDIS_URL.
    URLs outside the roots are refused, as from a push.

    \b
    lcc source add 7 --sitemap http://www.example.org/sitemap.xml
    lcc source add 7 --feed http://www.example.org/news.rss --every 15m
    lcc source add 7 --redis-key myspider:start_urls
    """  # noqa: D301
    from lcc_scrapy.apps.sources.rules import Kind

    named = [(Kind(_KINDS[option]), place) for option, place in given.items() if place]
    if len(named) != 1:
        options = ", ".join(f"--{option.replace('_', '-')}" for option in _KINDS)
        raise click.UsageError(f"give one of {options}")
    kind, place = named[0]
    if every is None:
        every = _EVERY_OF_REDIS if kind is Kind.REDIS else _EVERY
    with _registry(lcc) as registry:
        made = registry.add(pid, kind, place, every, int(time.time()))
    click.echo(f"source {made.sourceid} of provider {pid}: {made.kind} {made.url}")


@source.command("list")
@click.argument("pid", type=click.IntRange(1), required=False)
@printing.json_option
@pass_lcc
def list_(lcc: Lcc, *, pid: int | None, as_json: bool) -> None:
    """List the sources of provider PID, or all.

    \b
    lcc source list
    lcc source list 7 --json
    """  # noqa: D301
    with _registry(lcc) as registry:
        found = registry.all(pid)
    if as_json:
        printing.as_json([_facts(one) for one in found])
        return
    columns = ("id", "pid", "kind", "url", "every", "urls", "last", "next", "error")
    if not printing.table(columns, [_row(one) for one in found]):
        printing.note("no sources yet: `lcc source discover URL` shows what a site offers")


def _facts(one: "Source") -> dict[str, Any]:
    return {name: value for name, value in asdict(one).items() if name not in _HIDDEN}


def _row(one: "Source") -> Sequence[object]:
    last, following = printing.moment(one.at) or "never", printing.moment(one.due)
    return (
        one.sourceid,
        one.pid,
        one.kind,
        one.url,
        printing.span(one.every),
        one.listed,
        last,
        following,
        one.error,
    )


@source.command()
@click.argument("sourceid", metavar="ID", type=click.IntRange(1))
@printing.json_option
@pass_lcc
def show(lcc: Lcc, *, sourceid: int, as_json: bool) -> None:
    """Show all about source ID, and its files.

    \b
    lcc source show 3
    lcc source show 3 --json
    """  # noqa: D301
    with _registry(lcc) as registry:
        one, files = registry.get(sourceid), registry.files(sourceid)
    facts = _facts(one)
    if as_json:
        printing.as_json({**facts, "files": [asdict(file) for file in files]})
        return
    for name in ("created", "due", "at", "changed", "lease"):
        facts[name] = printing.moment(facts[name])
    printing.facts(facts.items())
    click.echo()
    rows = [(one.url, one.role, one.listed, printing.moment(one.read) or "never") for one in files]
    printing.table(("file", "role", "urls", "read"), rows)


@source.command()
@click.argument("sourceid", metavar="ID", type=click.IntRange(1))
@pass_lcc
def remove(lcc: Lcc, *, sourceid: int) -> None:
    """Remove source ID; documents that it brought stay.

    \b
    lcc source remove 3
    """  # noqa: D301
    with _registry(lcc) as registry:
        gone = registry.get(sourceid)
        leaving = registry.leave(sourceid, int(time.time()))
        if leaving is not None:
            asyncio.run(_unsubscribe(lcc, registry, leaving))
    if gone.kind == "redis":
        _tell_of_batch(lcc, registry, gone)
    until = ", when its hub has confirmed that" if leaving is not None else ""
    click.echo(f"source {sourceid} removed{until}: {gone.kind} {gone.url}")


def _tell_of_batch(lcc: Lcc, registry: "Registry", gone: "Source") -> None:
    """Say where items are that were taken from a Redis key and not queued."""
    from lcc_scrapy.apps.sources.draining import key_of
    from lcc_scrapy.apps.sources.opening import redis_of
    from lcc_scrapy.domain.errors import LccError

    try:
        key = key_of(registry.store, redis_of(lcc.config, lcc.settings), gone)
        left = key.under_way()
    except LccError as error:
        printing.note(f"a list beside the key {gone.url} may have items that were under way: {error}")
        return
    if left:
        printing.note(f"{left} items were under way: they are in the list {key.batch_key}, behind its id")


async def _unsubscribe(lcc: Lcc, registry: "Registry", leaving: "Source") -> None:
    """Ask the hub of a source; where it cannot be asked, the source goes all the same."""
    from lcc_scrapy.apps.sources.discovery import subject_of
    from lcc_scrapy.apps.sources.opening import runner_of
    from lcc_scrapy.apps.sources.websub import UNSUBSCRIBE
    from lcc_scrapy.domain.errors import LccError
    from lcc_scrapy.domain.roots import HttpUrl
    from lcc_scrapy.kit.work import at_once

    runner = runner_of(
        lcc.config, registry.store, at_once, _agent(lcc), lcc.settings, credentials=_credentials(lcc)
    )
    assert runner.subscriber is not None
    its = subject_of(registry.store, HttpUrl.parse(leaving.url)).whose
    try:
        await runner.subscriber.ask(leaving, UNSUBSCRIBE, its)
    except LccError as error:
        printing.note(f"its hub cannot be asked to end the subscription: {error}")
        registry.remove(leaving.sourceid)
    finally:
        await runner.fetcher.close()


@source.command()
@click.argument("url")
@printing.json_option
@pass_lcc
def discover(lcc: Lcc, *, url: str, as_json: bool) -> None:
    """Show which sources the site at URL offers, each with the command that adds it.

    It asks for robots.txt, the page at URL, /sitemap.xml and /.well-known/resourcesync.
    Exit status 1 when there is nothing.

    \b
    lcc source discover http://www.example.org/
    lcc source discover http://www.example.org/ --json
    """  # noqa: D301
    from lcc_scrapy.apps.sources.discovery import subject_of
    from lcc_scrapy.domain.roots import HttpUrl

    site = HttpUrl.parse(url)
    with lcc.store() as store:
        subject = subject_of(store, site)
    found = asyncio.run(_discover(lcc, site, subject))
    rows = [(one.kind, one.url, one.found, _command(subject.pid, one)) for one in found]
    columns = ("kind", "url", "found", "command")
    if as_json:
        printing.as_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        printing.table(columns, rows)
    if not rows:
        printing.note(f"{site} offers no sitemap, feed or ResourceSync description")
        sys.exit(FAILED)


async def _discover(lcc: Lcc, site: "HttpUrl", subject: "Subject") -> "list[Offer]":
    from lcc_scrapy.apps.sources.discovery import discover
    from lcc_scrapy.apps.sources.opening import fetcher_of

    fetcher = fetcher_of(lcc.config, _agent(lcc), _credentials(lcc))
    try:
        return await discover(fetcher, site, subject.whose)
    finally:
        await fetcher.close()


def _command(pid: int, one: "Offer") -> str:
    return f"lcc source add {pid or 'PID'} --{one.kind} {shlex.quote(one.url)}"


@source.command()
@click.argument("pid", type=click.IntRange(1))
@click.argument("sourceid", metavar="[ID]", type=click.IntRange(1), required=False)
@printing.json_option
@pass_lcc
def run(lcc: Lcc, *, pid: int, sourceid: int | None, as_json: bool) -> None:
    """Look at the sources of provider PID now, or at source ID only.

    It queues what changed; a crawl fetches that. Exit status 1 when a source could not be
    read.

    \b
    lcc source run 7
    lcc source run 7 3 --json
    """  # noqa: D301
    with _registry(lcc) as registry:
        chosen = _chosen(registry, pid, sourceid)
        with printing.progress("queueing URLs") as shown:
            results = asyncio.run(_run(lcc, registry, chosen, shown))
    if as_json:
        printing.as_json([_report_facts(one, report, why) for one, report, why in results])
    else:
        for one, report, why in results:
            _tell(one, report, why)
    if any(why for _, _, why in results):
        sys.exit(FAILED)


def _chosen(registry: "Registry", pid: int, sourceid: int | None) -> "list[Source]":
    its = [one for one in registry.all(pid) if sourceid in {None, one.sourceid}]
    if not its:
        which = f"no source {sourceid}" if sourceid else "no sources"
        raise click.UsageError(f"provider {pid} has {which}: see `lcc source list`")
    return its


async def _run(
    lcc: Lcc, registry: "Registry", chosen: "list[Source]", shown: printing.Progress
) -> "list[tuple[Source, Report, str]]":
    from lcc_scrapy.apps.sources.opening import runner_of
    from lcc_scrapy.apps.sources.registry import SourceRefused
    from lcc_scrapy.apps.sources.rules import Report
    from lcc_scrapy.kit.work import at_once

    runner = runner_of(
        lcc.config, registry.store, at_once, _agent(lcc), lcc.settings, credentials=_credentials(lcc)
    )
    runner.told = lambda report: shown(report.queued)
    done = []
    try:
        for one in chosen:
            try:
                claimed = registry.claim(one.sourceid, int(time.time()))
                done.append((one, *await runner.run(claimed)))
            except SourceRefused as error:
                done.append((one, Report(), str(error)))
    finally:
        await runner.fetcher.close()
    return done


def _agent(lcc: Lcc) -> str:
    """Return the User-Agent, which a project may have set."""
    its_own = lcc.settings.getpriority("USER_AGENT")
    return str(lcc.settings["USER_AGENT"]) if its_own else lcc.config.agent


def _credentials(lcc: Lcc) -> "Credentials":
    from lcc_scrapy.http.credentials import Credentials

    return Credentials(lcc.config.credentials_file)


def _report_facts(one: "Source", report: "Report", why: str) -> dict[str, Any]:
    return {"id": one.sourceid, "pid": one.pid, "url": one.url, **asdict(report), "error": why}


def _tell(one: "Source", report: "Report", why: str) -> None:
    if why:
        printing.note(f"source {one.sourceid}: {why}")
        return
    for text in report.notes:
        printing.note(f"source {one.sourceid}: {text}")
    refused = ", ".join(f"{count} with {code}" for code, count in sorted(report.refused.items()))
    done = f"{report.queued} URLs queued, {report.removed} removed, {report.held} held"
    asked = f" {report.files} files asked for, {report.unmodified} not modified;" if report.files else ""
    click.echo(
        f"source {one.sourceid}:{asked} {done}"
        f"{f'; refused: {refused}' if refused else ''}"
        f"{'; the queue is full, the rest comes later' if report.held_up else ''}"
    )


@contextmanager
def _registry(lcc: Lcc) -> "Iterator[Registry]":
    from lcc_scrapy.apps.sources.registry import Registry
    from lcc_scrapy.kit.claims import this_process

    with lcc.store() as store:
        yield Registry(store, this_process(), lcc.config.timezone, lcc.config.turns.backoff)
