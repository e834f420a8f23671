"""``lcc tracker scan`` and ``lcc tracker server set``: the robot of the mirror tracker, and its rules."""

import asyncio
import signal
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.apps.tracker.concurrency import together
from lcc_scrapy.apps.tracker.exchange_commands import exported_line, imported_line
from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import FAILED, Lcc, pass_lcc

if TYPE_CHECKING:
    from collections.abc import Callable

    from lcc_scrapy.apps.tracker.exchange import Manifest
    from lcc_scrapy.apps.tracker.exporting import Exporter
    from lcc_scrapy.apps.tracker.peering import Imported, Peering
    from lcc_scrapy.apps.tracker.robot import Outcome, Robot


@click.command()
@click.option(
    "--server",
    "servers",
    metavar="ID",
    type=click.IntRange(1),
    multiple=True,
    help="Scan this server now, whether it is due or not, and end; may be repeated.",
)
@click.option("--once", is_flag=True, help="Scan what is due, and end.")
@printing.json_option
@pass_lcc
def scan(lcc: Lcc, *, servers: tuple[int, ...], once: bool, as_json: bool) -> None:
    """Scan the registered servers when they are due, until the process is ended.

    Domains of other trackers are fetched when they are due. Own domains that have changed are exported
    into LCC_TRACKER_EXPORTS. Several processes may run. Exit status 1 when something failed with --once
    or --server.

    \b
    lcc tracker scan
    lcc tracker scan --once
    lcc tracker scan --server 3 --json
    """  # noqa: D301
    from lcc_scrapy.apps.tracker.opening import exporter_of, peering_of, robot_of

    config, telling = lcc.config, _Telling(as_json)
    with (
        lcc.store() as store,
        robot_of(config, store, config.agent) as robot,
        peering_of(config, store, config.agent) as peering,
        exporter_of(config, store) as exporter,
    ):
        robot.told, peering.told = telling.scanned, telling.imported
        if exporter is not None:
            exporter.told = telling.exported
        asyncio.run(_run(_Jobs(robot, peering, exporter), servers, once=once))
    if telling.failed and (once or servers):
        sys.exit(FAILED)


@dataclass
class _Telling:
    """Prints how each job ended; tells whether one ``failed``."""

    as_json: bool
    failed: bool = False

    def scanned(self, outcome: "Outcome") -> None:
        what = f"server {outcome.host.hostid}"
        line = "" if outcome.error else f"{what}: {_line(outcome)}"
        self._tell(_facts(outcome), f"{what}: {outcome.error}" if outcome.error else "", line)

    def imported(self, one: "Imported") -> None:
        failure = f"domain {one.domain}: {one.error}" if one.error else ""
        facts = {"domain": one.domain, **_counts(one.manifest), "error": one.error}
        self._tell({"imported": facts}, failure, imported_line(one))

    def exported(self, made: "Manifest") -> None:
        facts = {"domain": made.domain, **_counts(made), "error": ""}
        self._tell({"exported": facts}, "", exported_line(made))

    def _tell(self, facts: dict[str, Any], failure: str, line: str) -> None:
        self.failed = self.failed or bool(failure)
        if self.as_json:
            printing.as_json(facts)
        elif failure:
            printing.note(failure)
        else:
            click.echo(line)


@dataclass(frozen=True)
class _Jobs:
    """What a process of ``lcc tracker scan`` does."""

    robot: "Robot"
    peering: "Peering"
    exporter: "Exporter | None"

    async def once(self) -> None:
        """Scan and fetch what is due, then export what has changed."""
        await together([self.robot.once(), self.peering.once()])
        if self.exporter is not None:
            await self.exporter.once()

    async def forever(self) -> None:
        """Do so until cancelled."""
        jobs = [self.robot.forever(), self.peering.forever()]
        await together([*jobs, *([self.exporter.forever()] if self.exporter else [])])

    async def close(self) -> None:
        """Close all connections."""
        await self.robot.scanner.outgoing.close()
        await self.peering.outgoing.close()


async def _run(jobs: _Jobs, servers: tuple[int, ...], *, once: bool) -> None:
    """Work until all is done, or a signal ends it; what is under way is then left to others."""
    task = asyncio.current_task()
    assert task is not None
    stop: Callable[[], object] = task.cancel
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    try:
        with suppress(asyncio.CancelledError):
            await (jobs.robot.these(servers) if servers else jobs.once() if once else jobs.forever())
    finally:
        await jobs.close()


def _counts(made: "Manifest | None") -> dict[str, Any]:
    return {} if made is None else {"generation": made.generation, "directories": made.directories}


def _line(outcome: "Outcome") -> str:
    if outcome.loaded is None:
        return f"not changed ({outcome.adapter})"
    loaded = outcome.loaded
    return (
        f"{loaded.dirs} directories, {loaded.files} files, {loaded.links} links by {outcome.adapter};"
        f" {outcome.requests} questions, {outcome.transferred} bytes"
        f"{f'; {loaded.unsound} directories have no identity' if loaded.unsound else ''}"
    )


def _facts(outcome: "Outcome") -> dict[str, Any]:
    counts = {} if outcome.loaded is None else asdict(outcome.loaded)
    counts.pop("first", None)
    kept = ("adapter", "transferred", "requests", "unchanged", "error")
    said = {name: getattr(outcome, name) for name in kept}
    return {"server": outcome.host.hostid, "url": outcome.host.url, **said, **counts}


def _hours(_ctx: click.Context, _param: click.Parameter, text: str | None) -> str | None:
    from lcc_scrapy.domain.errors import UrlRefused
    from lcc_scrapy.domain.timeslots import parse_mask

    try:
        return None if text is None else parse_mask(text)
    except UrlRefused as error:
        raise click.BadParameter(str(error)) from None


def _read(name: str) -> "Callable[[click.Context, click.Parameter, str | None], int | None]":
    def read(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | None:
        from lcc_scrapy.domain import notations

        try:
            return None if text is None else int(getattr(notations, name)(text))
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return read


def _zone(_ctx: click.Context, _param: click.Parameter, text: str | None) -> str | None:
    from zoneinfo import ZoneInfo

    try:
        return text and str(ZoneInfo(text))
    except (ValueError, OSError, KeyError) as error:
        raise click.BadParameter(f"{text!r} is no time zone, such as Europe/Moscow") from error


@click.command("set")
@click.argument("hostid", metavar="ID", type=click.IntRange(1))
@click.option(
    "--every", callback=_read("whole_seconds"), metavar="DURATION", help="How often; 0 = LCC_TRACKER_EVERY."
)
@click.option(
    "--hours", "timeofday", callback=_hours, metavar="MASK", help="Hours in which scans begin: '20-06'."
)
@click.option("--timezone", callback=_zone, metavar="ZONE", help="Time zone of the hours; '' = LCC_TIMEZONE.")
@click.option("--bandwidth", callback=_read("size"), metavar="SIZE", help="Bytes per second; 0 = no limit.")
@click.option(
    "--allow-private/--no-allow-private",
    "private",
    default=None,
    help="Whether its addresses may be private.",
)
@printing.json_option
@pass_lcc
def set_(lcc: Lcc, /, *, hostid: int, as_json: bool, **given: Any) -> None:
    """Set how server ID may be scanned, and show that.

    \b
    lcc tracker server set 3 --hours 'sat, mon-fri 20-06' --timezone Europe/Berlin
    lcc tracker server set 3 --bandwidth 1M --every 6h
    lcc tracker server set 3 --json
    """  # noqa: D301
    from lcc_scrapy.apps.tracker.opening import tasks_of

    wanted = {name: value for name, value in given.items() if value is not None}
    with lcc.store() as store:
        tasks = tasks_of(lcc.config, store)
        rules = tasks.rules(hostid)
        if wanted:
            rules = replace(rules, **wanted)
            tasks.put_rules(rules)
    facts = {"server" if name == "hostid" else name: value for name, value in asdict(rules).items()}
    if as_json:
        printing.as_json(facts)
    else:
        printing.facts(facts.items())
