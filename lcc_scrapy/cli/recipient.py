"""``lcc recipient``: how owners are told of what was found for them."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, LccGroup, pass_lcc

if TYPE_CHECKING:
    from lcc_scrapy.annotation.recipients import Recipients
    from lcc_scrapy.domain.acis import Recipient

_FORMATS = ("html", "text", "xml", "json")
_ID = click.argument("recipientid", metavar="ID", type=click.IntRange(1))
_PAGE = 1000


@click.group(cls=LccGroup)
def recipient() -> None:
    """Say how owners of profiles are told: by mail, or by calls of a webhook.

    \b
    lcc recipient add anna --mail anna@example.org
    lcc recipient add anna --webhook https://hooks.example.org/lcc
    lcc recipient list
    """  # noqa: D301


@recipient.command()
@click.argument("owner")
@click.option("--mail", metavar="ADDRESS", help="Tell by mail to this address.")
@click.option("--webhook", metavar="URL", help="Tell by calls of this URL, which are signed.")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="How an alert is written; mail is html and calls are json unless told otherwise.",
)
@click.option("--digest", is_flag=True, help="All in one message a day, whatever the urgency.")
@pass_lcc
def add(
    lcc: Lcc, *, owner: str, mail: str | None, webhook: str | None, form: str | None, digest: bool
) -> None:
    """Add a recipient of OWNER, and print the secret that signs the calls of a webhook.

    The secret is printed only once.

    \b
    lcc recipient add anna --mail anna@example.org --digest
    (umask 077; lcc recipient add anna --webhook https://hooks.example.org/lcc > secret)
    """  # noqa: D301
    from lcc_scrapy.annotation.recipients import Wanted
    from lcc_scrapy.domain.acis import Channel

    if (mail is None) == (webhook is None):
        raise click.UsageError("give either --mail or --webhook")
    channel = Channel.WEBHOOK if mail is None else Channel.MAIL
    wanted = Wanted(webhook if mail is None else mail, form, digest)
    with _recipients(lcc) as recipients:
        made = recipients.add(owner, channel, wanted, int(time.time()))
    printing.note(f"recipient {made.recipientid} of {owner}: {made.channel} to {made.address}, {made.format}")
    if channel == Channel.MAIL and not lcc.config.mail.sender:
        printing.note("mail is off: set LCC_MAIL_FROM; until then its alerts wait")
    if made.secret:
        click.echo(made.secret)


@recipient.command("list")
@click.argument("owner", required=False)
@printing.json_option
@pass_lcc
def list_(lcc: Lcc, *, owner: str | None, as_json: bool) -> None:
    """List the recipients of OWNER, or all.

    \b
    lcc recipient list
    lcc recipient list anna --json
    """  # noqa: D301
    from lcc_scrapy.annotation.recipients import as_told

    with _recipients(lcc) as recipients:
        found = list(_all(recipients, owner))
    if as_json:
        printing.as_json([as_told(one) for one in found])
        return
    columns = ("id", "owner", "channel", "address", "format", "digest", "state")
    if not printing.table(columns, [_row(one) for one in found]):
        printing.note("no recipients yet: `lcc recipient add` makes one")


def _all(recipients: "Recipients", owner: str | None) -> "Iterator[Recipient]":
    after = 0
    while found := recipients.of(owner, after, _PAGE):
        yield from found
        after = found[-1].recipientid


def _row(one: "Recipient") -> tuple[object, ...]:
    state = "off" if one.off else f"refused: {one.refused}" if one.refused else "on"
    digest = "yes" if one.digest else "no"
    return one.recipientid, one.owner, str(one.channel), one.address, one.format, digest, state


@recipient.command("set")
@_ID
@click.option("--address", metavar="ADDRESS", help="Another mail address, or another URL.")
@click.option("--format", "form", type=click.Choice(_FORMATS), help="How an alert is written.")
@click.option("--digest/--no-digest", default=None, help="All in one message a day, or not.")
@click.option("--on/--off", "on", default=None, help="Tell it again, or tell it nothing.")
@click.option("--new-secret", is_flag=True, help="Make another secret for a webhook, and print it.")
@pass_lcc
def set_(lcc: Lcc, /, *, recipientid: int, form: str | None, on: bool | None, **given: Any) -> None:
    """Change recipient ID.

    An address that was refused is tried again after --on or --address.

    \b
    lcc recipient set 3 --off
    lcc recipient set 3 --address anna@example.com --digest
    """  # noqa: D301
    from lcc_scrapy.annotation.recipients import Wanted

    wanted = Wanted(format=form, off=None if on is None else not on, **given)
    if wanted == Wanted():
        raise click.UsageError("say what is to change, for example --digest")
    with _recipients(lcc) as recipients:
        changed = recipients.change(recipientid, wanted)
    printing.note(f"recipient {recipientid} of {changed.owner} changed")
    if given["new_secret"]:
        click.echo(changed.secret)


@recipient.command()
@_ID
@pass_lcc
def remove(lcc: Lcc, *, recipientid: int) -> None:
    """Remove recipient ID, and what it was to be told.

    \b
    lcc recipient remove 3
    """  # noqa: D301
    with _recipients(lcc) as recipients:
        gone = recipients.remove(recipientid)
    click.echo(f"recipient {recipientid} of {gone.owner} removed: {gone.address}")


@recipient.command()
@_ID
@pass_lcc
def test(lcc: Lcc, *, recipientid: int) -> None:
    """Send a test message to recipient ID.

    \b
    lcc recipient test 3
    """  # noqa: D301
    from lcc_scrapy.annotation.couriers import TellLater, TellNever

    with _recipients(lcc) as recipients:
        found = recipients.get(recipientid)
    try:
        asyncio.run(_test(lcc, found))
    except (TellLater, TellNever) as error:
        raise Failure(f"recipient {recipientid} ({found.address}): {error}") from None
    printing.note(f"recipient {recipientid} took the message: {found.address}")


async def _test(lcc: Lcc, found: "Recipient") -> None:
    from lcc_scrapy.annotation.opening import couriers_of
    from lcc_scrapy.annotation.trying import send_test
    from lcc_scrapy.domain.acis import Channel

    couriers = couriers_of(lcc.config)
    try:
        courier = couriers.get(Channel(found.channel))
        if courier is None:
            raise Failure("mail is off: set LCC_MAIL_FROM")
        await send_test(courier, found, lcc.home.lcc_id, int(time.time()))
    finally:
        for one in couriers.values():
            await one.close()


@contextmanager
def _recipients(lcc: Lcc) -> "Iterator[Recipients]":
    from lcc_scrapy.annotation.recipients import Recipients

    with lcc.store() as store:
        yield Recipients(store, lcc.config.alerts.recipients, lcc.config.alerts.private)
