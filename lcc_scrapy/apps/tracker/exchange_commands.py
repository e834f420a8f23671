"""``lcc tracker export`` and ``lcc tracker import``: domains, from one mirror tracker to others."""

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import FAILED, Lcc, pass_lcc
from lcc_scrapy.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from lcc_scrapy.apps.tracker.exchange import Manifest
    from lcc_scrapy.apps.tracker.peering import Imported, Peering

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.argument("name", metavar="[DOMAIN]", required=False)
@click.argument("folder", metavar="[FOLDER]", required=False, type=_FOLDER)
@pass_lcc
def export(lcc: Lcc, *, name: str | None, folder: Path | None) -> None:
    """Write what the servers of DOMAIN have into FOLDER, for other trackers.

    Without them, all own domains that have changed go into LCC_TRACKER_EXPORTS, which `lcc tracker scan`
    does by itself and `lcc tracker serve` serves.

    \b
    lcc tracker export
    lcc tracker export de /srv/www/exchange
    """  # noqa: D301
    from lcc_scrapy.apps.tracker.exchange import export as export_
    from lcc_scrapy.apps.tracker.opening import exports_of

    if (name is None) != (folder is None):
        raise click.UsageError("DOMAIN and FOLDER, or neither of them")
    with lcc.store() as store:
        if name is not None and folder is not None:
            _tell_exported(export_(store, name, folder, int(time.time())))
            return
        exports = exports_of(lcc.config, store)
        if exports is None:
            raise ConfigurationError("LCC_TRACKER_EXPORTS is empty: say where to write")
        for made in exports.bring_up_to_date(int(time.time())):
            _tell_exported(made)


def _tell_exported(made: "Manifest") -> None:
    click.echo(exported_line(made))


def exported_line(made: "Manifest") -> str:
    """Return what was written, in one line."""
    sizes = ", ".join(f"{one.name} {printing.size(one.bytes)}" for one in made.files)
    return f"domain {made.domain}: {made.servers} servers, {made.directories} directories; {sizes}"


@click.command("import")
@click.argument("name", metavar="DOMAIN")
@click.argument("source", metavar="[URL|FOLDER]", default="")
@click.option("--peer", default="", metavar="URL", help="The tracker that the files of FOLDER are of.")
@pass_lcc
def import_(lcc: Lcc, *, name: str, source: str, peer: str) -> None:
    """Take in what another tracker exported of DOMAIN: whole, or not at all.

    It is fetched from the tracker that the domain was added with, now; `lcc tracker scan` does so every
    LCC_TRACKER_PEERS_EVERY. Or it lies in FOLDER.

    \b
    lcc tracker import uk
    lcc tracker import uk https://tracker.example.org/
    lcc tracker import uk /srv/incoming --peer https://tracker.example.org/
    """  # noqa: D301
    if not source or "://" in source:
        if peer:
            raise click.UsageError("--peer is for files in a folder")
        _fetch(lcc, name, source)
    elif not peer:
        raise click.UsageError("--peer is missing: which tracker are the files of?")
    else:
        _take_in(lcc, name, Path(source), peer)


def _take_in(lcc: Lcc, name: str, folder: Path, peer: str) -> None:
    from lcc_scrapy.apps.tracker.importing import import_domain

    with lcc.store() as store:
        click.echo(_line(name, import_domain(store, folder, name, peer, time.time)))


def _fetch(lcc: Lcc, name: str, peer: str) -> None:
    from lcc_scrapy.apps.tracker.opening import peering_of

    outcomes: list[Imported] = []
    with lcc.store() as store, peering_of(lcc.config, store, lcc.config.agent) as peering:
        peering.told = outcomes.append
        asyncio.run(_run(peering, name, peer))
    for one in outcomes:
        if one.error:
            printing.note(f"error: domain {one.domain}: {one.error}")
            sys.exit(FAILED)
        click.echo(imported_line(one))


async def _run(peering: "Peering", name: str, peer: str) -> None:
    try:
        await peering.this(name, peer)
    finally:
        await peering.outgoing.close()


def imported_line(one: "Imported") -> str:
    """Return what was taken in, in one line."""
    return _line(one.domain, one.manifest)


def _line(name: str, made: "Manifest | None") -> str:
    if made is None:
        return f"domain {name}: nothing new"
    return f"domain {name}: generation {made.generation}, {made.directories} directories"
