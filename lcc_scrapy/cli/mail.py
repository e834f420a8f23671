"""``lcc mail``: mail to providers, tried and sent by hand."""

import os
import platform

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, LccGroup, pass_lcc
from lcc_scrapy.domain.mail_addresses import address

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
    from lcc_scrapy.ops.mailing import post_of
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
