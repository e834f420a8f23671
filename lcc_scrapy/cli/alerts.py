"""``lcc alerts``: what was told to whom, telling it, and a stream of what was found."""

import asyncio
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, LccGroup, never_to_be_tried_again, pass_lcc
from lcc_scrapy.cli.feed_options import place, places

if TYPE_CHECKING:
    from lcc_scrapy.annotation.aci_following import Portion
    from lcc_scrapy.annotation.delivery import Delivery, Report
    from lcc_scrapy.domain.acis import Alert, Recipient
    from lcc_scrapy.feed.command import Command

_STATES = ("waiting", "sent", "given up")


@click.group(cls=LccGroup)
def alerts() -> None:
    """Tell owners what was found for them, and see what was told.

    \b
    lcc alerts status
    lcc alerts deliver
    lcc alerts follow anna --cursor-file position
    """  # noqa: D301


@alerts.command()
@printing.json_option
@pass_lcc
def status(lcc: Lcc, *, as_json: bool) -> None:
    """Show how many alerts wait, and how many kept the deadline of their service level.

    \b
    lcc alerts status
    lcc alerts status --json
    """  # noqa: D301
    from lcc_scrapy.ops.alert_metrics import read

    with lcc.store() as store:
        found = read(store, int(time.time() * 1000))
    if as_json:
        printing.as_json(found.facts())
        return
    printing.facts([("waiting", found.waiting), ("late", found.overdue), ("given up", found.given_up)])
    click.echo()
    rows = [
        (one.level, one.name, one.kept, one.late, f"{one.share:.1%}" if one.kept + one.late else "")
        for one in found.levels
    ]
    printing.table(("level", "told", "in time", "too late", "share in time"), rows)


@alerts.command("list")
@click.argument("owner", required=False)
@click.option("--state", type=click.Choice(_STATES), help="Only alerts in this state.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, metavar="N", help="So many."
)
@printing.json_option
@pass_lcc
def list_(lcc: Lcc, *, owner: str | None, state: str | None, limit: int, as_json: bool) -> None:
    """List alerts of OWNER's recipients, or of all, newest first.

    \b
    lcc alerts list anna
    lcc alerts list --state 'given up' --json
    """  # noqa: D301
    from lcc_scrapy.domain.acis import AlertState
    from lcc_scrapy.domain.alerts import NEVER

    wanted = AlertState(state) if state else None
    with lcc.store() as store, store.read() as tx:
        found = tx.alerts_told(owner, wanted, NEVER, limit)
        acis = tx.acis_of_number({alert.number for alert, _ in found})
    pages = {number: one.uri for number, one in acis.items()}
    rows = [_facts(alert, whose, pages.get(alert.number, "")) for alert, whose in found]
    if as_json:
        printing.as_json(rows)
        return
    moments = ("deadline", "sent")
    shown = [{**row, **{name: printing.moment(row[name] / 1000) for name in moments}} for row in rows]
    columns = ("aci", "recipient", "owner", "address", "state", "tries", "deadline", "sent", "uri")
    printing.table(columns, [[row[name] for name in columns] for row in shown])


def _facts(alert: "Alert", whose: "Recipient", uri: str) -> dict[str, Any]:
    return {
        "aci": alert.number, "recipient": alert.recipientid, "owner": whose.owner, "address": whose.address,
        "state": str(alert.state), "tries": alert.tries, "not_before": alert.not_before,
        "deadline": alert.deadline, "sent": alert.sent, "digest": alert.digest, "uri": uri,
    }  # fmt: skip


@alerts.command()
@click.option("--once", is_flag=True, help="Stop when nothing is due any more.")
@pass_lcc
@never_to_be_tried_again()
def deliver(lcc: Lcc, *, once: bool) -> None:
    """Tell recipients what is due, by mail and webhooks.

    `lcc annotate` does it by itself. Several processes may do it at a time. SIGTERM or Ctrl-C ends it when
    the messages under way are noted.

    \b
    lcc alerts deliver
    lcc alerts deliver --once
    """  # noqa: D301
    from lcc_scrapy.machine import logs

    logs.begin(lcc.settings, lcc.config.log_format)
    with lcc.store() as store:
        from lcc_scrapy.annotation.opening import delivery_of

        report = asyncio.run(_deliver(lambda: delivery_of(lcc.config, store, lcc.home.lcc_id), once=once))
    click.echo(f"{report.sent} sent, {report.delayed} delayed, {report.refused} refused")
    if once and report.delayed:
        raise Failure("some alerts wait; the log lines above say why")


async def _deliver(make: "Any", *, once: bool) -> "Report":
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    delivery: Delivery = make()
    try:
        return await (delivery.once(stopped) if once else delivery.run(stopped))
    finally:
        await delivery.close()


# --- the stream ----------------------------------------------------------------------------------


@alerts.command()
@click.argument("owner", required=False)
@places
@click.option("--exec", "command", metavar="CMD", help="Give the ACIs to CMD, as JSON lines on its stdin.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Stop after N ACIs.")
@click.option("--once", is_flag=True, help="Stop at the newest one.")
@pass_lcc
def follow(
    lcc: Lcc,
    *,
    owner: str | None,
    cursor: str | None,
    cursor_file: Path | None,
    command: str | None,
    limit: int | None,
    once: bool,
) -> None:
    """Pass what is found for OWNER, or for all, to a command or to stdout as it is found: ACIs as JSON lines.

    The position moves only when CMD has ended with status 0; until then it gets the same ACIs again and
    again. SIGTERM or Ctrl-C ends it when CMD has ended. Exit status 3: the cursor cannot be followed here.

    \b
    lcc alerts follow anna --cursor-file position --exec my-reader
    lcc alerts follow --once
    """  # noqa: D301
    from lcc_scrapy.annotation.aci_following import AciFollower
    from lcc_scrapy.cli.exec_command import command_of

    stopping = threading.Event()
    with place(cursor, cursor_file) as where, lcc.store() as store:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        handing = command_of(lcc, command, stopping=stopping.is_set) if command is not None else None
        follower = AciFollower(
            store,
            owner,
            where.since,
            deliver=lambda portion: _hand_over(handing, portion),
            keep=where.keep,
            pause=lambda seconds: not stopping.wait(seconds),
            poll=lcc.config.poll,
        )
        follower.run(limit=limit or 0, once=once)
    if follower.position is not None:
        click.echo(f"cursor: {follower.position}", err=True)


def _hand_over(handing: "Command | None", portion: "Portion") -> bool:
    lines = "".join(_lines(portion)).encode("utf-8", "backslashreplace")
    if handing is None:
        sys.stdout.buffer.write(lines)
        sys.stdout.flush()
        return True
    count = len(portion.acis)
    status = handing.run_between(lines, (portion.since, portion.position), count, portion.tries)
    if status:
        printing.note(f"the command ended with status {status}: trying {count} ACIs again later")
    return not status


def _lines(portion: "Portion") -> Iterator[str]:
    from lcc_scrapy.annotation.aci_formats import record_of

    for one in portion.acis:
        yield json.dumps(record_of(one), ensure_ascii=False) + "\n"
