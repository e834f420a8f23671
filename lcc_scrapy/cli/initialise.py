"""``lcc init``: make a data directory, or register a further machine with an LCC that exists."""

import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lcc_scrapy.cli.context import Lcc, pass_lcc
from lcc_scrapy.domain.errors import ConfigurationError, LccError, NotDurable, StoreUnavailable

if TYPE_CHECKING:
    from lcc_scrapy.config.config import Config
    from lcc_scrapy.db.sql.store import SqlStore
    from lcc_scrapy.db.tx import Tx
    from lcc_scrapy.machine.data_directory import DataDirectory


@click.command()
@click.option("--machine", is_flag=True, help="Register this machine's content folder with an existing LCC.")
@pass_lcc
def init(lcc: Lcc, *, machine: bool) -> None:
    """Make a data directory: database, content folder, spool.

    It is the folder lcc-data of the Scrapy project around the current folder. In no project, the current
    folder becomes one: a scrapy.cfg is written there. Nothing else ever makes a data directory. When it was
    interrupted, run it again.

    \b
    lcc init
    lcc -s LCC_DATA_DIR=/srv/lcc init
    LCC_DATABASE_URL=mysql://lcc:secret@db.example.org/lcc lcc init
    lcc init --machine        # a further machine, with the same LCC_DATABASE_URL
    """  # noqa: D301
    if not machine:
        _begin_project(lcc)
    number = _join(lcc.config) if machine else found(lcc.config)
    click.echo(f"data directory {lcc.config.data_dir} is ready; this is machine {number}")


def _begin_project(lcc: Lcc) -> None:
    """Make the current folder a project where nothing else says where the data directory is."""
    from lcc_scrapy.config import config, project

    if not config.says_where(config.given_settings(lcc.given)):
        file = project.begin_project(Path.cwd())
        if file:
            click.echo(f"{file} written: run `lcc` and `scrapy` in this folder")


def found(config: "Config") -> int:
    """Begin a new LCC, and return this machine's number.

    The mark that makes it a data directory is written last.
    """
    from lcc_scrapy.machine.data_directory import DataDirectory

    home = DataDirectory.prepare(config.data_dir)
    store = _upgraded(config)
    try:
        with store.begin() as tx:
            _claim(tx, home)
        number = _register(config, store)
    finally:
        store.close()
    home.complete()
    _lay_ballast(config)
    return number


def _lay_ballast(config: "Config") -> None:
    """Make the ballast file; a crawl makes it as soon as there is room when there is none now."""
    from lcc_scrapy.machine.ballast import Ballast

    ballast = Ballast(config.data_dir, config.ballast)
    try:
        if not ballast.is_held:
            ballast.make()
    except NotDurable as error:
        click.echo(f"lcc: warning: {error}", err=True)


def _join(config: "Config") -> int:
    """Register this machine with an LCC that exists."""
    from lcc_scrapy.app.opening import open_store
    from lcc_scrapy.feed.store_feed import StoreFeed

    if _is_local(config) and not Path(config.data_dir, "lcc.json").exists():
        raise ConfigurationError(
            "no LCC exists yet: run `lcc init`, or set LCC_DATABASE_URL to that of the LCC"
        )
    store = open_store(config)
    try:
        lcc_id = StoreFeed(store).head().lcc
        home, complete = _home_of(config, lcc_id)
        number = _register(config, store)
    finally:
        store.close()
    if not complete:
        home.complete()
    _lay_ballast(config)
    return number


def _is_local(config: "Config") -> bool:
    return config.database_url == f"sqlite:///{config.data_dir / 'lcc.sqlite'}"


def _home_of(config: "Config", lcc_id: str) -> tuple["DataDirectory", bool]:
    """Return the data directory for an LCC and whether it is complete."""
    from lcc_scrapy.machine.data_directory import DataDirectory

    if not Path(config.data_dir, "lcc.json").exists():
        return DataDirectory.prepare(config.data_dir, lcc_id), False
    home = DataDirectory.find(config.data_dir)
    if home.lcc_id != lcc_id:
        raise ConfigurationError(
            f"{config.data_dir} is the data directory of another LCC than the database's"
        )
    return home, True


def _upgraded(config: "Config") -> "SqlStore":
    from lcc_scrapy.app.opening import open_store
    from lcc_scrapy.db import schema
    from lcc_scrapy.db.closed import refuse_closed

    store = open_store(config, check=False)
    try:
        schema.upgrade(config.database_url, apps=config.apps)
        store.check()
        with store.read() as tx:
            refuse_closed(tx)
    except StoreUnavailable as error:
        raise ConfigurationError(f"the database cannot be used: {error} ({_shown(store)})") from error
    return store


def _shown(store: "SqlStore") -> str:
    return store.url.render_as_string(hide_password=True)


def _claim(tx: "Tx", home: "DataDirectory") -> None:
    """Note in the database whose it is; refuse one that belongs to another LCC."""
    from lcc_scrapy.feed.store_feed import GENERATION, LCC_ID

    owner = tx.info(LCC_ID)
    if owner not in {None, home.lcc_id}:
        raise ConfigurationError(
            f"the database belongs to an LCC already ({owner}):"
            " add this machine to it with `lcc init --machine`, or set another LCC_DATABASE_URL"
        )
    if owner is None:
        tx.set_info(LCC_ID, home.lcc_id)
        tx.set_info(GENERATION, "1")


def _register(config: "Config", store: "SqlStore") -> int:
    """Make the content and spool folders and note this machine; returns its number."""
    from lcc_scrapy.content.identity import create_machine_identity

    identity = create_machine_identity(config.content_dir)
    _make(config.spool_dir)
    _make(config.data_dir / "workers")
    with store.begin() as tx:
        return _number(tx, identity)


def _number(tx: "Tx", identity: str) -> int:
    known = tx.machine(identity)
    return known or tx.insert_machine(identity, socket.gethostname()[:255], int(time.time()))


def _make(folder: Path) -> None:
    from lcc_scrapy.machine.disk import make_folders

    try:
        make_folders(folder)
    except OSError as error:
        raise LccError(f"cannot make the folder {folder}: {error.strerror}") from error
