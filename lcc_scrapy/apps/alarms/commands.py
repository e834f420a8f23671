"""``lcc alarms``: somebody on call is told that something is wrong with the LCC, and that it is over."""

import platform
import signal
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from lcc_scrapy.apps.alarms.settings import AlarmRules
from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, LccGroup, never_to_be_tried_again, pass_lcc
from lcc_scrapy.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from lcc_scrapy.apps.alarms.channels import Channel
    from lcc_scrapy.apps.alarms.facts import FactsReader
    from lcc_scrapy.db.tx import Store


@click.group(cls=LccGroup)
def alarms() -> None:
    """Tell somebody on call that something is wrong, and that it is over.

    \b
    lcc alarms watch
    lcc alarms list
    lcc alarms test
    """  # noqa: D301


@alarms.command()
@pass_lcc
@never_to_be_tried_again()
def watch(lcc: Lcc) -> None:
    """Look again and again, and tell by mail, webhooks and a command what begins and what ends.

    Let a service run it beside the crawls. It may run on several machines: one of them looks, another one
    takes over from it. SIGTERM or Ctrl-C ends it.

    \b
    lcc alarms watch
    lcc -s LCC_ALARM_MAIL=oncall@example.org alarms watch
    """  # noqa: D301
    from lcc_scrapy.apps.alarms.watching import Watch
    from lcc_scrapy.db.parts import Turns, run_all
    from lcc_scrapy.machine import logs
    from lcc_scrapy.machine.watchdog import SignsOfLife

    logs.begin(lcc.settings, lcc.config.log_format)
    _channels(lcc)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with lcc.store() as store:
        part = Watch(store, _facts(lcc, store).read, lambda: (_rules(lcc), _channels(lcc)), time.time)
        turns = Turns(store, lcc.home.folder, f"{platform.node()[:64]} {lcc.home.folder}", time.time)
        SignsOfLife().begin()
        run_all(turns, [part], stop, once=False)


@alarms.command("list")
@printing.json_option
@pass_lcc
def list_(lcc: Lcc, *, as_json: bool) -> None:
    """List the rules, what they find now, and which alarms are on.

    \b
    lcc alarms list
    lcc alarms list --json
    """  # noqa: D301
    from lcc_scrapy.apps.alarms.rules import TITLES, Rule, wrong
    from lcc_scrapy.apps.alarms.store import alarm_of

    rules = _rules(lcc)
    with lcc.store() as store:
        found = wrong(_facts(lcc, store).read(rules, int(time.time())), rules)
        with store.read() as tx:
            alarms = {rule: alarm_of(tx, rule) for rule in Rule}
    if as_json:
        printing.as_json(
            [
                {"alarm": rule, "on": one.on, "at": one.at, "title": TITLES[rule], "now": found.get(rule, "")}
                for rule, one in alarms.items()
            ]
        )
        return
    rows = [
        (rule, "on" if one.on else "", printing.moment(one.at) if one.at else "", found.get(rule, ""))
        for rule, one in alarms.items()
    ]
    printing.table(("alarm", "state", "since", "found now"), rows)


@alarms.command()
@pass_lcc
def test(lcc: Lcc) -> None:
    """Tell all channels something, to see whether it arrives.

    \b
    lcc alarms test
    """  # noqa: D301
    from lcc_scrapy.apps.alarms.rules import Notice, Rule
    from lcc_scrapy.apps.alarms.webhooks import NotTold

    now, failed = int(time.time()), 0
    notice = Notice(Rule.WORKERS, on=True, at=now, text="this is only a test", name=f"test-{now}")
    channels = _channels(lcc)
    for channel in channels:
        try:
            channel.tell(notice)
            click.echo(f"{channel.name}: told")
        except NotTold as error:
            failed += 1
            click.echo(f"{channel.name}: {error}")
    if failed:
        raise Failure(f"{failed} of {len(channels)} channels were not told")


def _rules(lcc: Lcc) -> AlarmRules:
    return lcc.config.of(AlarmRules)


def _channels(lcc: Lcc) -> "list[Channel]":
    from lcc_scrapy.apps.alarms.channels import channels_of
    from lcc_scrapy.mail.sending import smtp_mailer

    config = lcc.config
    found = channels_of(_rules(lcc), smtp_mailer(config.mail), lcc.home.lcc_id, config.agent)
    if not found:
        raise ConfigurationError(
            "nobody would be told: set LCC_ALARM_MAIL, LCC_ALARM_WEBHOOKS_FILE or LCC_ALARM_COMMAND"
        )
    return found


def _facts(lcc: Lcc, store: "Store") -> "FactsReader":
    from lcc_scrapy.app.opening import disks_of
    from lcc_scrapy.apps.alarms.facts import FactsReader

    disks = disks_of(lcc.config, lcc.config.content_dir, lcc.config.spool_dir)

    def rooms() -> tuple[Mapping[str, int], str]:
        return {str(folder): free for folder, free in disks.free().items()}, disks.shortage()

    return FactsReader(store, rooms)
