"""``lcc audit``: who did what."""

from dataclasses import asdict

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Lcc, pass_lcc

_LAST = 2**62


@click.command()
@click.option(
    "--provider", "pid", type=click.IntRange(1), metavar="PID", help="Only what concerns this provider."
)
@click.option("--who", default="", metavar="NAME", help="Only what this user did.")
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=100, show_default=True, help="So many, the newest."
)
@printing.json_option
@pass_lcc
def audit(lcc: Lcc, pid: int | None, who: str, limit: int, *, as_json: bool) -> None:
    """Show who did what to which provider, newest first.

    What the dashboard and the commands that change providers, users or the queue did is noted in the
    transaction that did it.

    \b
    lcc audit
    lcc audit --provider 7 --json
    """  # noqa: D301
    with lcc.store() as store, store.read() as tx:
        found = tx.audits(_LAST, limit, None if pid is None else {pid}, who)
    if as_json:
        printing.as_json([asdict(one) for one in found])
        return
    printing.table(
        ("at", "who", "where", "what", "provider", "more"),
        [
            (printing.moment(one.at), one.who, one.place, one.action, one.pid or "", one.detail)
            for one in found
        ],
    )
