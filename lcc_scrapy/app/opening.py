"""Opening what an LCC consists of: its database, its machine's number, its disks.

Nothing here needs Scrapy or an event loop, so that commands which only look something up begin at once.
"""

from collections.abc import Container
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from lcc_scrapy.cache.file_ids import FILEID
from lcc_scrapy.config.config import Config
from lcc_scrapy.content.files import highest_fileid
from lcc_scrapy.content.identity import machine_identity
from lcc_scrapy.content.store import ContentStore, content_store, factory_of
from lcc_scrapy.db import schema
from lcc_scrapy.db.closed import refuse_closed
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import ConfigurationError, MissingExtra, StoreUnavailable
from lcc_scrapy.domain.free_space import Reserve
from lcc_scrapy.feed.content import Content, LocalContent, StoredContent
from lcc_scrapy.feed.store_feed import LCC_ID
from lcc_scrapy.machine.ballast import Ballast
from lcc_scrapy.machine.data_directory import DataDirectory
from lcc_scrapy.machine.free_space import Disks
from lcc_scrapy.ops.machines import MachineAddresses
from lcc_scrapy.ops.status import Here
from lcc_scrapy.runtime.apps import Apps

if TYPE_CHECKING:
    from lcc_scrapy.feed.remote_content import OtherMachines


def open_store(config: Config, *, check: bool = True, tolerated: Container[str] = ()) -> SqlStore:
    """Open the database; raises ``ConfigurationError`` with what to do when it cannot be used.

    A database that is closed for one of the ``tolerated`` reasons is opened all the same.
    """
    store = unchecked_store(config)
    try:
        if check:
            check_store(store, tolerated, apps=config.apps)
    except StoreUnavailable as error:
        raise ConfigurationError(f"the database does not answer: {error}") from None
    return store


def unchecked_store(config: Config) -> SqlStore:
    """Return the store of a database that nobody has spoken to yet."""
    return _made("LCC_DATABASE_URL", config.database_url, config.turns.lease / 2)


def _made(name: str, url: str, pause: float = 0) -> SqlStore:
    """Return the store of the URL that a setting says; ``pause`` as for ``SqlStore``."""
    try:
        return SqlStore(url, pause=pause)
    except ModuleNotFoundError as error:
        if error.name == "psycopg":
            raise MissingExtra("postgresql", f"{name}: psycopg") from None
        raise ConfigurationError(f"{name}: {error.name} is missing: install it") from None
    except (ConfigurationError, ArgumentError, NoSuchModuleError, ImportError) as error:
        raise ConfigurationError(f"{name}: {error}") from None


def unchecked_reads(config: Config, store: SqlStore) -> SqlStore:
    """Return what content users read from: replicas (``LCC_READ_DATABASE_URL``), or the store given."""
    return _made("LCC_READ_DATABASE_URL", config.read_database_url) if config.read_database_url else store


def check_reads(config: Config, home: DataDirectory, reads: SqlStore) -> None:
    """Refuse replicas that are not of this LCC; ``StoreUnavailable`` when they do not answer."""
    try:
        check_store(reads, durable=False, apps=config.apps)
        check_owner(home, reads)
    except ConfigurationError as error:
        raise ConfigurationError(f"LCC_READ_DATABASE_URL: {error}") from None


def open_reads(config: Config, home: DataDirectory) -> SqlStore:
    """Open what content users read from, without the database that is written where that is another one."""
    if not config.read_database_url:
        store = open_store(config)
        check_owner(home, store)
        return store
    reads = _made("LCC_READ_DATABASE_URL", config.read_database_url)
    try:
        check_reads(config, home, reads)
    except StoreUnavailable as error:
        raise ConfigurationError(f"LCC_READ_DATABASE_URL: the database does not answer: {error}") from None
    return reads


def check_store(store: SqlStore, tolerated: Container[str] = (), *, apps: Apps, durable: bool = True) -> None:
    """Refuse a database that must not be worked with; ``StoreUnavailable`` when it does not answer.

    One that is closed for one of the ``tolerated`` reasons is let pass, and one that may lose what it
    commits if it need not be ``durable``.
    """
    if schema.is_missing_file(store.url):
        raise ConfigurationError(
            f"the database file {store.url.database} does not exist:"
            " correct LCC_DATABASE_URL, or bring the file back"
        )
    try:
        waiting = schema.pending(store.url, apps=apps)
        if waiting and schema.is_empty(store.url):
            raise ConfigurationError(
                "the database is empty: bring it back with `lcc db restore FILE`, or correct LCC_DATABASE_URL"
            )
        if waiting:
            raise ConfigurationError(f"the database needs `lcc db upgrade` (waiting: {', '.join(waiting)})")
        if durable:
            store.check()
        with store.read() as tx:
            refuse_closed(tx, tolerated)
    except DBAPIError as error:
        raise ConfigurationError(f"the database cannot be used: {error.orig}") from None


def check_owner(home: DataDirectory, store: Store) -> None:
    """Refuse a database that belongs to another LCC than the data directory."""
    with store.read() as tx:
        theirs = tx.info(LCC_ID)
    if theirs != home.lcc_id:
        raise ConfigurationError(f"the database belongs to LCC {theirs}, {home.folder} to LCC {home.lcc_id}")


def disks_of(config: Config, *folders: Path) -> Disks:
    """Return the disks of the data directory and of others."""
    reserve = Reserve(config.disk_min_free, config.ballast)
    return Disks([config.data_dir, *folders], reserve, Ballast(config.data_dir, config.ballast))


def here(config: Config) -> Here:
    """Return what of the LCC lies on this machine."""
    disks = disks_of(config, config.content_dir, config.spool_dir)
    return Here(config.data_dir, config.content_dir, config.spool_dirs, disks)


def machine_number(config: Config, store: Store) -> int:
    """Return this machine's number, which ``lcc init`` registered."""
    identity = machine_identity(config.content_dir)
    with store.read() as tx:
        number = tx.machine(identity) if identity else None
    if number is None:
        raise ConfigurationError(
            f"content folder {config.content_dir} is not registered: run `lcc init --machine`"
        )
    return number


def check_files(config: Config, store: Store) -> None:
    """Refuse a database that has lost commits: content files have numbers that it has not given yet."""
    if config.content_url:
        return  # all objects would have to be listed
    there = highest_fileid(config.content_dir)  # before the counter, which only rises
    with store.read() as tx:
        given = tx.peek(FILEID)
    if there > given:
        raise ConfigurationError(
            f"the database has lost commits: there is a content file {there}, and it has given numbers up to"
            f" {given}. An older state of it came back, or a standby that lacked some was promoted. Give it a"
            " new generation: `lcc db backup FILE`, make the database anew, `lcc db restore FILE`"
        )


def contents_of(config: Config, store: Store, others: Content | None = None) -> Content:
    """Return where content users read: content files, those of other machines from ``others``, or objects."""
    if not config.content_url:
        return LocalContent(config.content_dir, others, partial(_is_here, config, store))
    return StoredContent(contents_of_machine(config, 0))


def contents_of_machine(config: Config, number: int) -> ContentStore:
    """Return the contents of a machine; 0 = of none, to read those of all."""
    factory = factory_of(config.content_url, config.apps)
    return content_store(config.content_url, config.content_dir, number, factory)


def _is_here(config: Config, store: Store, number: int) -> bool:
    """Tell whether a machine is this one, or there is no other."""
    identity = machine_identity(config.content_dir)
    with store.read() as tx:
        return number == tx.machine(identity or "") or tx.machine_numbers() == [number]


def other_machines(config: Config, store: Store) -> "OtherMachines | None":
    """Return what gets the content files of other machines, None where the settings say nothing of them."""
    if not (config.files_machines or config.files_token_file):
        return None
    try:
        token = Path(config.files_token_file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"LCC_FILES_TOKEN_FILE: {config.files_token_file!r}: {error}") from None
    from lcc_scrapy.feed.remote_content import OtherMachines  # noqa: PLC0415 - most LCCs have one machine

    return OtherMachines(MachineAddresses(store, config.files_machines), token)
