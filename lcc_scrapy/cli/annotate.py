"""``lcc annotate``: pages are matched with profiles as they are cached, and owners are told."""

import platform
import signal
import threading
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Lcc, LccGroup, never_to_be_tried_again, pass_lcc

if TYPE_CHECKING:
    from lcc_scrapy.annotation.engine_part import EnginePart
    from lcc_scrapy.db.parts import Part
    from lcc_scrapy.db.sql.store import SqlStore

PARTS = ("requests", "engine", "alerts")


@click.group(cls=LccGroup, invoke_without_command=True)
@click.option("--processors", type=click.IntRange(1, 256), metavar="N", help="Instead of LCC_AE_PROCESSORS.")
@click.option("--only", type=click.Choice(PARTS), multiple=True, help="Do this part only; may be repeated.")
@click.option("--once", is_flag=True, help="End when nothing waits any more.")
@click.pass_context
def annotate(ctx: click.Context, *, processors: int | None, only: tuple[str, ...], once: bool) -> None:
    """Match pages with profiles as they are cached, and tell their owners.

    It asks for the pages of profiles when they are due (requests), compares what is cached with profiles
    (engine), and tells recipients (alerts). Several may run: of each part, one works and others stand by.
    SIGTERM or Ctrl-C ends it when what is under way is done, a second one at once.

    \b
    lcc annotate
    lcc annotate --only engine --processors 4
    lcc annotate status
    """  # noqa: D301
    if ctx.invoked_subcommand is None:
        _run(ctx.obj, processors, only or PARTS, once=once)


@annotate.command()
@printing.json_option
@pass_lcc
def status(lcc: Lcc, *, as_json: bool) -> None:
    """Show what waits, what was found, and how far the engine is behind the feed.

    \b
    lcc annotate status
    lcc annotate status --json
    """  # noqa: D301
    from lcc_scrapy.annotation.status import status_of

    with lcc.store() as store, store.read() as tx:
        found = status_of(tx, int(time.time()))
    if as_json:
        printing.as_json(asdict(found))
        return
    for name, value in asdict(found).items():
        click.echo(f"{name.replace('_', ' ')}: {_shown(value)}")


def _shown(value: object) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else printing.plain(value) or "-"


@never_to_be_tried_again()
def _run(lcc: Lcc, processors: int | None, only: tuple[str, ...], *, once: bool) -> None:
    from lcc_scrapy.annotation.engine_part import summary
    from lcc_scrapy.db.parts import Turns, run_all
    from lcc_scrapy.machine import logs
    from lcc_scrapy.machine.watchdog import SignsOfLife

    logs.begin(lcc.settings, lcc.config.log_format)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _stop(stop))
    with lcc.store() as store:
        engine = _engine(lcc, store, processors) if "engine" in only else None
        owner = f"{platform.node()[:64]} {lcc.home.folder}"
        turns = Turns(store, lcc.home.folder, owner, time.time)
        SignsOfLife().begin()
        run_all(turns, _parts(lcc, store, engine, only), stop, once=once)
    if engine is not None and engine.report is not None:
        printing.note(summary(engine.report))


def _stop(stop: threading.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once
    stop.set()


def _parts(lcc: Lcc, store: "SqlStore", engine: "EnginePart | None", only: tuple[str, ...]) -> list["Part"]:
    """Return the parts in the order in which one makes work for the next."""
    from functools import partial

    from lcc_scrapy.annotation.alerts_part import AlertsPart
    from lcc_scrapy.annotation.opening import delivery_of

    found: dict[str, Part | None] = {
        "requests": _requests(lcc, store),
        "engine": engine,
        "alerts": AlertsPart(partial(delivery_of, lcc.config, store, lcc.home.lcc_id)),
    }
    return [part for name in PARTS if name in only and (part := found[name]) is not None]


def _requests(lcc: Lcc, store: "SqlStore") -> "Part":
    from lcc_scrapy.annotation.requests import RequestRounds
    from lcc_scrapy.annotation.requests_part import RequestsPart
    from lcc_scrapy.machine.wake_redis import waker

    config = lcc.config
    rounds = RequestRounds(store, config.policy, config.queue_max)
    return RequestsPart(store, rounds, config.poll, waker(lcc.home.folder, config.wake_redis))


def _engine(lcc: Lcc, store: "SqlStore", processors: int | None) -> "EnginePart":
    from lcc_scrapy.annotation.alerts_part import put_alerts_by
    from lcc_scrapy.annotation.automata import require_library
    from lcc_scrapy.annotation.engine import Effects
    from lcc_scrapy.annotation.engine_part import EnginePart
    from lcc_scrapy.annotation.irrelevant import note_unwanted_by
    from lcc_scrapy.annotation.opening import schedule_of
    from lcc_scrapy.app.opening import contents_of, other_machines
    from lcc_scrapy.feed.library import Library
    from lcc_scrapy.feed.store_feed import StoreFeed

    require_library()  # here it is one line; each processor would fail with a traceback
    config = lcc.config
    rules = config.annotation
    contents = Library(StoreFeed(store), contents_of(config, store, other_machines(config, store)))
    return EnginePart(
        store,
        contents,
        rules,
        processors=rules.processes(processors),
        effects=Effects(put_alerts_by(schedule_of(config)), note_unwanted_by(config.policy)),
        keeps=bool(config.policy.versions),
    )
