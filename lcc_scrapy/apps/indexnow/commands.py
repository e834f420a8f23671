"""``lcc indexnow``: sites that submit by IndexNow."""

import click

from lcc_scrapy.apps.indexnow.rules import SiteKey
from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc, LccGroup, pass_lcc

_SHOWN = 12


@click.group(cls=LccGroup)
def indexnow() -> None:
    """List and forget the keys of sites that submit by IndexNow.

    docs/indexnow.md tells how their submissions are taken.

    \b
    lcc indexnow list
    lcc indexnow forget www.example.org
    """  # noqa: D301


@indexnow.command("list")
@printing.json_option
@pass_lcc
def list_(lcc: Lcc, *, as_json: bool) -> None:
    """List the keys that are remembered, by host.

    Keys are shown by the beginning of their digest.

    \b
    lcc indexnow list
    lcc indexnow list --json
    """  # noqa: D301
    from lcc_scrapy.apps.indexnow.keys import all_keys

    with lcc.store() as store:
        found = all_keys(store)
    if as_json:
        printing.as_json([_facts(row, waiting) for row, waiting in found])
        return
    columns = (
        "host",
        "key",
        "state",
        "last seen",
        "checked",
        "accepted",
        "refused",
        "waiting",
        "key file",
        "why",
    )
    if not printing.table(columns, [_row(row, waiting) for row, waiting in found]):
        printing.note("no keys yet: docs/indexnow.md tells how sites submit")


def _facts(row: SiteKey, waiting: int) -> dict[str, object]:
    return {
        "host": row.site,
        "key": row.digest,
        "location": row.location.replace(row.keytext, "…"),
        "state": row.state,
        "seen": row.seen,
        "checked": row.checked,
        "tries": row.tries,
        "reason": row.reason,
        "accepted": row.accepted,
        "refused": row.refused,
        "waiting": waiting,
    }


def _row(row: SiteKey, waiting: int) -> list[object]:
    return [
        row.site,
        row.digest[:_SHOWN],
        row.state,
        printing.moment(row.seen),
        printing.moment(row.checked) or "never",
        row.accepted,
        row.refused,
        waiting,
        row.location.replace(row.keytext, "…"),
        row.reason,
    ]


@indexnow.command()
@click.argument("host")
@pass_lcc
def forget(lcc: Lcc, host: str) -> None:
    """Forget the keys of HOST, and the URLs that wait for them.

    Its next submission is checked anew. Its provider and documents stay: `lcc provider remove` is for those.

    \b
    lcc indexnow forget www.example.org
    """  # noqa: D301
    from lcc_scrapy.apps.indexnow.keys import forget_site

    with lcc.store() as store:
        gone = forget_site(store, host)
    if not gone:
        raise Failure(f"no key of {host}: `lcc indexnow list` shows all")
    click.echo(f"{gone} keys of {host} forgotten")
