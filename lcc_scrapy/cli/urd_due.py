"""``lcc urd due``: asks for the pages of URDs that are due, once."""

import time
from collections.abc import Iterable
from dataclasses import asdict

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Lcc, pass_lcc

_MS = 1000


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be asked for; ask for nothing.")
@printing.json_option
@pass_lcc
def due(lcc: Lcc, *, dry_run: bool, as_json: bool) -> None:
    """Ask for the pages of URDs that are due, most urgent first.

    `lcc annotate` does so all the time. Each page is fetched once, for all of its URDs; one that is cached is
    asked for conditionally. Pages outside all roots are never fetched: `lcc urd list` shows them.

    \b
    lcc urd due --dry-run
    lcc urd due
    """  # noqa: D301
    from lcc_scrapy.annotation.requests import RequestRounds

    now = int(time.time() * _MS)
    with lcc.store() as store:
        rounds = RequestRounds(store, lcc.config.policy, lcc.config.queue_max)
        if dry_run:
            _show(
                (
                    (one.uri, one.urgency, len(one.urds), len({urd.owner for urd in one.urds}), why)
                    for one, why in rounds.preview(now)
                ),
                as_json=as_json,
            )
            return
        looked = rounds.look(now)
    if as_json:
        printing.as_json(asdict(looked))
        return
    click.echo(
        f"{looked.asked} pages asked for, {looked.queued} to be fetched, {looked.refused} URDs refused"
    )


def _show(rows: Iterable[tuple[str, int, int, int, str]], *, as_json: bool) -> None:
    names = ("uri", "urgency", "urds", "owners", "refused")
    if as_json:
        printing.json_list(dict(zip(names, row, strict=True)) for row in rows)
    elif not printing.table(names, rows):
        printing.note("no URD is due")
