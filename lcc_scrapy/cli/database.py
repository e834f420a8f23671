"""``lcc db``: the database's schema, copies of it, backups."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Lcc, LccGroup, pass_lcc
from lcc_scrapy.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from sqlalchemy import URL

    from lcc_scrapy.config.config import Config
    from lcc_scrapy.db.sql.store import SqlStore
    from lcc_scrapy.uns.spool import ReadySet, SpoolFolder

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(cls=LccGroup)
def db() -> None:
    """Look after the database.

    \b
    lcc db upgrade
    lcc db backup lcc-monday.sqlite
    """  # noqa: D301


@db.command()
@click.option("--dry-run", is_flag=True, help="Only print what would be executed.")
@pass_lcc
def upgrade(lcc: Lcc, *, dry_run: bool) -> None:
    """Bring the database up to date with this version of the program.

    \b
    lcc db upgrade --dry-run
    lcc db upgrade
    """  # noqa: D301
    from lcc_scrapy.app.opening import open_store
    from lcc_scrapy.db import schema

    _ = lcc.home
    url = lcc.config.database_url
    open_store(lcc.config, check=False).close()
    if dry_run:
        click.echo(schema.upgrade_sql(url, apps=lcc.config.apps) or "-- the database is up to date", nl=True)
        return
    with printing.progress("rows changed") as progress:
        applied = schema.upgrade(url, progress, apps=lcc.config.apps)
    click.echo(f"upgraded: {', '.join(applied)}" if applied else "the database is up to date")


def _target(_ctx: click.Context, _param: click.Parameter, text: str) -> "URL":
    """Read the address of a database; that of an SQLite file is made absolute."""
    from lcc_scrapy.db.sql.urls import read_url
    from lcc_scrapy.domain.errors import ConfigurationError

    if text == "-":
        text = sys.stdin.readline().strip()
    try:
        url = read_url(text)
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from None
    if url.get_backend_name() != "sqlite":
        return url
    if url.database in {None, "", ":memory:"}:
        raise click.BadParameter("a copy in memory would be gone at once: name a file")
    return url.set(database=str(Path(str(url.database)).absolute()))


@db.command()
@click.argument("url", callback=_target)
@pass_lcc
def copy(lcc: Lcc, url: "URL") -> None:
    """Move the LCC to another, empty database.

    URL is written as in LCC_DATABASE_URL; - reads it from stdin, for the process list shows it. Crawls must
    be stopped. Cursors, queue and all numbers are kept. When it was interrupted, run it again.

    \b
    lcc db copy mysql://lcc:secret@db.example.org/lcc
    lcc db copy - < url
    """  # noqa: D301
    from lcc_scrapy.db.closed import Closed
    from lcc_scrapy.ops.copying import move

    with (
        lcc.store(tolerated={Closed.MOVED}) as source,
        _at_rest(lcc.config),
        _opened(lcc.config, url) as target,
        printing.progress("copying") as progress,
    ):
        rows = move(source, target, lcc.config.apps, progress)
    click.echo(f"copied {rows} rows; from now on set LCC_DATABASE_URL={url.render_as_string()}")


@db.command()
@click.argument("file", type=_FILE)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@pass_lcc
def backup(lcc: Lcc, file: Path, *, force: bool) -> None:
    """Write the whole database into one file. Crawls may go on.

    Content files are not in it: back them up after it (see "Moving and backing up" in the documentation).

    \b
    lcc db backup lcc-monday.sqlite
    lcc db backup --force /backup/lcc.sqlite
    """  # noqa: D301
    from lcc_scrapy.ops.backups import write_backup

    if file.exists() and not force:
        raise ConfigurationError(f"{file} exists already: give another name, or --force to replace it")
    with lcc.store() as store, printing.progress("backing up") as progress:
        write_backup(store, file, lcc.config.apps, progress)
    click.echo(f"{file} is complete: {printing.size(file.stat().st_size)}")


@db.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--yes", is_flag=True, help="Replace what the database holds, without asking.")
@pass_lcc
def restore(lcc: Lcc, file: Path, *, yes: bool) -> None:
    """Put a backup into the database. What happened since the backup is lost.

    Crawls must be stopped. Content users have to start over, and every provider is asked for a full set.
    When it was interrupted, run it again.

    \b
    lcc db restore lcc-monday.sqlite --yes
    lcc verify --repair
    """  # noqa: D301
    from lcc_scrapy.app.opening import contents_of_machine
    from lcc_scrapy.db.sql.urls import read_url
    from lcc_scrapy.ops import restoring
    from lcc_scrapy.ops.backups import opened_backup

    config, home = lcc.config, lcc.home
    with ExitStack() as open_now:
        spools = open_now.enter_context(_at_rest(config))
        with printing.progress("reading the backup"):
            source = open_now.enter_context(opened_backup(file, home.lcc_id, home.folder, config.apps))
        target = open_now.enter_context(_opened(config, read_url(config.database_url)))
        if restoring.holds_rows(target, home.lcc_id, config.apps):
            _ask(yes=yes)
        with printing.progress("restoring") as progress:
            rows = restoring.restore(
                target,
                source,
                home.folder,
                config.apps,
                fileid=contents_of_machine(config, 0).highest_id(),
                logins=_logins(waiting for spool in spools for waiting in spool.ready()),
                now=int(time.time()),
                progress=progress,
            )
    click.echo(f"restored {rows} rows; every provider will be asked for a full set")
    printing.note("now run `lcc verify --repair`, then start the crawl")


def _logins(ready: Iterable["ReadySet"]) -> dict[int, int]:
    """Return the highest login of each provider that has sets waiting."""
    found: dict[int, int] = {}
    for waiting in ready:
        found[waiting.pid] = max(waiting.seq, found.get(waiting.pid, 0))
    return found


@contextmanager
def _at_rest(config: "Config") -> Iterator["list[SpoolFolder]"]:
    """Hold the spools, so that nothing arrives; raises ``ConfigurationError`` when a crawl runs here."""
    from lcc_scrapy.machine.data_directory import running_workers
    from lcc_scrapy.uns.spool import SpoolFolder

    workers = running_workers(config.data_dir)
    if workers:
        pids = ", ".join(str(pid) if pid else "unknown" for pid in workers.values())
        raise ConfigurationError(f"crawls run on {config.data_dir} (process {pids}): stop them first")
    spools: list[SpoolFolder] = []
    try:
        for folder in config.spool_dirs:
            if folder.is_dir():
                spools.append(SpoolFolder(folder))
                spools[-1].lock()
        yield spools
    finally:
        for spool in spools:
            spool.unlock()


@contextmanager
def _opened(config: "Config", url: "URL") -> Iterator["SqlStore"]:
    """Open a database that may be empty, or not be there yet."""
    from dataclasses import replace

    from lcc_scrapy.app.opening import open_store

    text = url.render_as_string(hide_password=False)
    with closing(open_store(replace(config, database_url=text), check=False)) as store:
        yield store


def _ask(*, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("this replaces what the database holds: say --yes")
    click.confirm("Replace what the database holds?", abort=True, err=True)
