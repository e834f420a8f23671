"""``lcc mail``: mail to providers, tried and sent by hand; what ``lcc provider`` says of it."""

import os
import platform
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, LccGroup, pass_lcc
from lcc_scrapy.cli.provider_options import ProviderOptions
from lcc_scrapy.domain.mail_addresses import address, is_address

if TYPE_CHECKING:
    from lcc_scrapy.apps.mail.rules import MailState
    from lcc_scrapy.config.config import Config
    from lcc_scrapy.db.tx import Tx
    from lcc_scrapy.domain.providers import Provider

_OFF = "mail is off: set LCC_MAIL_FROM"


@click.group(cls=LccGroup)
def mail() -> None:
    """Send mail to providers now, or try the mail server.

    A crawl sends it by itself. Mail is off until LCC_MAIL_FROM is set.

    \b
    lcc mail test you@example.org
    lcc mail send --dry-run
    """  # noqa: D301


@mail.command()
@click.option("--dry-run", is_flag=True, help="Print what would be sent; send and change nothing.")
@click.option("--provider", "pid", type=click.IntRange(1), metavar="PID", help="Only to this provider.")
@pass_lcc
def send(lcc: Lcc, *, dry_run: bool, pid: int | None) -> None:
    """Send what providers have to be told, with their digests, whatever the hour.

    \b
    lcc mail send --dry-run --provider 7
    lcc mail send
    """  # noqa: D301
    from lcc_scrapy.apps.mail.worker import post_of
    from lcc_scrapy.providers.registration import find

    owner = f"{platform.node()[:32]} {os.getpid()}"
    with lcc.store() as store:
        if pid is not None:
            with store.read() as tx:
                find(tx, pid)
        post = post_of(lcc.config, store, lcc.home.lcc_id, owner, urgent=True)
        if post is None:
            raise Failure(_OFF)
        if dry_run:
            for provider, letter in post.preview(pid):
                if letter.written is not None:
                    click.echo(f"To: {provider.contact}\nSubject: {letter.written.subject}\n")
                    click.echo(letter.written.text)
            return
        report = post.run(pid)
    click.echo(f"{report.sent} sent, {report.delayed} delayed, {report.refused} refused")
    if report.busy:
        raise Failure("another process sends mail now: try again in some minutes")
    if report.delayed:
        raise Failure("some mail waits; the log lines above say why")


@mail.command()
@click.argument("to", metavar="ADDRESS")
@pass_lcc
def test(lcc: Lcc, *, to: str) -> None:
    """Send a test mail to ADDRESS.

    \b
    lcc mail test you@example.org
    """  # noqa: D301
    from lcc_scrapy.mail.sending import smtp_mailer

    try:
        recipient = address(to)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="ADDRESS") from None
    mailer = smtp_mailer(lcc.config.mail)
    if mailer is None:
        raise Failure(_OFF)
    mailer.send(recipient, "Test mail of a Local Content Cache", "The mail settings work.\n")
    printing.note(f"the mail server took the mail to {recipient} over")


class _Options:
    options = (
        click.Option(
            ["--mail"], type=click.Choice(["on", "off"]), help="Whether its contact address gets mail."
        ),
    )

    def change(self, tx: "Tx", pid: int, given: Mapping[str, Any]) -> None:
        from lcc_scrapy.apps.mail.store import rows_in

        rows_in(tx).want(pid, wanted=given["mail"] == "on")

    def shown(self, config: "Config", tx: "Tx", provider: "Provider") -> dict[str, str]:
        from lcc_scrapy.apps.mail.store import rows_in

        return {"mail": _shown(config, provider, rows_in(tx).state(provider.pid))}


OPTIONS: ProviderOptions = _Options()


def _shown(config: "Config", one: "Provider", state: "MailState | None") -> str:
    """Say whether a provider gets mail: on, off or why not."""
    if not config.mail.sender:
        return "off (LCC_MAIL_FROM)"
    if not is_address(one.contact):
        return "off: the contact is no address"
    if state is None or not (state.off or state.refused == one.contact):
        return "on"
    return "off" if state.off else "off: the mail server refused the address"
