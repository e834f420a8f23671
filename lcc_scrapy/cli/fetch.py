"""``lcc fetch``: the robot run by hand (seed 003 section 8), for one URL."""

import json
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import FAILED, Failure, Lcc
from lcc_scrapy.content.stored import open_body
from lcc_scrapy.domain import timeslots
from lcc_scrapy.domain.printable import without_passwords
from lcc_scrapy.domain.roots import HttpUrl

if TYPE_CHECKING:
    from scrapy.settings import Settings

    from lcc_scrapy.db.sql.store import SqlStore
    from lcc_scrapy.ops.trial import Subject, Verdict
    from lcc_scrapy.spiders.trial import Hop

_MARGIN = 60
"""Seconds that a trial may take beside its fetch."""

_PREFIX = "trial-"


@click.command()
@click.argument("url")
@click.option(
    "--provider", "pid", type=click.IntRange(1), required=True, metavar="PID", help="For this provider."
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Write the body there, decoded; - is stdout, and the report then goes to stderr.",
)
@click.option("--anyway", is_flag=True, help="Fetch outside its hours, and while a crawl fetches from it.")
@printing.json_option
@click.pass_context
def fetch(ctx: click.Context, url: str, pid: int, output: str | None, *, anyway: bool, as_json: bool) -> None:
    """Fetch a URL as a crawl would, and store nothing.

    It tells what happened. Exit status 0: a crawl would store the document; 1: it would not.

    \b
    lcc fetch http://www.example.org/news.html --provider 7
    lcc fetch http://www.example.org/news.html --provider 7 -o news.html --json
    """  # noqa: D301
    from lcc_scrapy.ops import trial

    lcc = ctx.find_object(Lcc)
    assert lcc is not None
    furl = str(HttpUrl.parse(url))
    with lcc.store() as store:
        tried = trial.subject(store, pid, furl)
        with _permission(lcc, store, tried, anyway=anyway), _trial(lcc, tried) as (hops, verdict):
            with redirect_stdout(sys.stderr) if output == "-" else nullcontext():
                _report(tried, hops, verdict, as_json=as_json)
            if output is not None:
                _write(hops, output)
    ctx.exit(0 if verdict.stored else FAILED)


@contextmanager
def _permission(lcc: Lcc, store: "SqlStore", tried: "Subject", *, anyway: bool) -> Iterator[None]:
    """Hold the provider's turn as a worker of this data directory, within the provider's hours."""
    from lcc_scrapy.app.opening import machine_number
    from lcc_scrapy.machine.data_directory import WorkerSlot
    from lcc_scrapy.ops.trial import turn_of

    if anyway:
        yield
        return
    _check_hours(lcc, tried)
    slot = WorkerSlot(lcc.config.data_dir, machine_number(lcc.config, store))
    try:
        with turn_of(store, tried.provider, slot, int(time.time()), _longest(lcc)):
            yield
    finally:
        slot.release()


def _check_hours(lcc: Lcc, tried: "Subject") -> None:
    provider = tried.provider
    zone = ZoneInfo(provider.timezone) if provider.timezone else lcc.config.timezone
    if not timeslots.permits(provider.timeofday, time.time(), zone):
        raise Failure(
            f"provider {provider.pid} permits fetches at {printing.hours(provider.timeofday)} ({zone}) only:"
            " wait, or say --anyway"
        )


def _longest(lcc: Lcc) -> int:
    """Return the seconds that no trial outlasts."""
    return int(lcc.config.fetch_deadline) + _MARGIN


# --- the trial -----------------------------------------------------------------------------------


@contextmanager
def _trial(lcc: Lcc, tried: "Subject") -> Iterator[tuple[list["Hop"], "Verdict"]]:
    """Fetch a URL in an LCC that lies inside the data directory for as long as this takes."""
    from lcc_scrapy.app.opening import open_store
    from lcc_scrapy.cli.initialise import found
    from lcc_scrapy.config import config
    from lcc_scrapy.ops import trial
    from lcc_scrapy.spiders import trial as crawl

    _clear_away(lcc)
    with TemporaryDirectory(prefix=_PREFIX, dir=lcc.config.data_dir) as folder:
        settings = _settings(lcc, folder)
        its_config = config.load(settings)
        found(its_config)
        store = open_store(its_config)
        try:
            trial.furnish(store, tried)
            hops = crawl.run(settings)
            verdict = trial.verdict(store, tried, lcc.config.policy.retry_delays)
        finally:
            store.close()
        if verdict is None:
            raise Failure("the fetch did not come to its end")
        yield hops, verdict


def _clear_away(lcc: Lcc) -> None:
    """Remove the folders of trials that were killed."""
    for folder in lcc.config.data_dir.glob(f"{_PREFIX}*"):
        if folder.stat().st_mtime < time.time() - _longest(lcc):
            shutil.rmtree(folder, ignore_errors=True)


def _settings(lcc: Lcc, folder: str) -> "Settings":
    """Return the settings of a crawl, but for where it keeps things, how patient it is and what it logs."""
    from scrapy.settings import SETTINGS_PRIORITIES

    settings = lcc.settings.copy()
    own = {
        "LCC_DATA_DIR": folder,
        "LCC_DATABASE_URL": "",
        "LCC_DATABASE_URL_FILE": "",
        "LCC_READ_DATABASE_URL": "",
        "LCC_READ_DATABASE_URL_FILE": "",
        "LCC_CONTENT_DIR": "",
        "LCC_SPOOL_DIR": "",
        "LCC_FETCH_LOG": "",
        "LCC_RETRY_DELAYS": "",
        "LCC_HOST_PATIENCE": "0",
        "LCC_BALLAST": "0",
        "LCC_DISK_MIN_FREE": "0",
        "LCC_POLL": "0.1",
        "LCC_STOP_TIMEOUT": "0",
        "LCC_SETTLING_PROCESS": "no",
        "CLOSESPIDER_TIMEOUT": lcc.config.fetch_deadline,
        "LOG_FILE": None,
    }
    settings.setdict(own, priority="cmdline")
    if (settings.getpriority("LOG_LEVEL") or 0) < SETTINGS_PRIORITIES["cmdline"]:
        settings.set("LOG_LEVEL", "ERROR", priority="cmdline")
    return settings


# --- what happened -------------------------------------------------------------------------------


def _report(tried: "Subject", hops: list["Hop"], verdict: "Verdict", *, as_json: bool) -> None:
    facts = _facts(tried, hops, verdict)
    if as_json:
        printing.as_json(facts)
    else:
        printing.facts(_lines(facts, hops, verdict))


def _facts(tried: "Subject", hops: list["Hop"], verdict: "Verdict") -> dict[str, Any]:
    last = _last(hops)
    answer, body = (last.answer, last.body) if last else (None, None)
    return {
        "url": tried.row.furl,
        "provider": tried.provider.pid,
        "hops": [_hop(hop) for hop in hops],
        "headers": json.loads(without_passwords(answer.headers)) if answer else [],
        "mimetype": answer.served_type if answer else "",
        "charset": answer.served_charset if answer else "",
        "length": body.length if body else None,
        "md5": body.md5 if body else None,
        "sha256": body.sha256 if body else None,
        "stored": verdict.stored,
        "unchanged": verdict.same,
        "code": verdict.code,
        "text": verdict.text,
        "tried_again": verdict.again,
        "removes_copy": verdict.removes,
    }


def _last(hops: list["Hop"]) -> "Hop | None":
    return next((hop for hop in reversed(hops) if hop.document), None)


def _hop(hop: "Hop") -> dict[str, Any]:
    return {
        "url": hop.url,
        "for": "document" if hop.document else "robots.txt",
        "status": hop.answer.status if hop.answer else None,
        "peer": hop.answer.peer if hop.answer else "",
        "seconds": round(hop.seconds, 3),
        "error": hop.error,
    }


def _lines(facts: dict[str, Any], hops: list["Hop"], verdict: "Verdict") -> Iterator[tuple[str, object]]:
    for hop in hops:
        said = f"{hop.answer.status} from {hop.answer.peer or 'its proxy'}" if hop.answer else hop.error
        yield "request" if hop.document else "robots.txt", f"{hop.url}: {said}, {hop.seconds:.3f} s"
    yield from (("header", f"{name}: {value}") for name, value in facts["headers"])
    if facts["length"] is not None:
        yield "mimetype", facts["mimetype"] or "not said"
        yield "charset", facts["charset"] or "not said"
        yield from ((name, facts[name]) for name in ("length", "md5", "sha256"))
    yield "verdict", _words(verdict)


def _words(verdict: "Verdict") -> str:
    told = f"{verdict.code} {verdict.text}"
    again = "; but it would be tried again first" if verdict.again else ""
    if verdict.stored:
        done = "would be confirmed: the cache holds the same content" if verdict.same else "would be stored"
        return f"{done}; the provider would be told {told}{again}" if verdict.code else done
    removed = "; the copy in the cache would go" if verdict.removes else ""
    return f"would not be stored: {told}{removed}{again}"


def _write(hops: list["Hop"], output: str) -> None:
    last = _last(hops)
    if last is None or last.body is None:
        printing.note("there is no body to write")
        return
    with open_body(last.body) as body, click.open_file(output, "wb") as file:
        shutil.copyfileobj(body, file)
