"""Backups: one SQLite file each, whatever the database is, closed to everything but ``lcc db restore``."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import URL

from lcc_scrapy.db import schema
from lcc_scrapy.db.closed import Closed, close, refuse_closed
from lcc_scrapy.db.sql.snapshot import Snapshot, snapshot
from lcc_scrapy.db.sql.store import READING, SqlStore, plain_errors
from lcc_scrapy.db.tables import lccinfo
from lcc_scrapy.domain.errors import ConfigurationError, LccError, StoreUnavailable
from lcc_scrapy.machine.disk import sync, sync_folder
from lcc_scrapy.ops.copying import Progress, contents, fill, make_anew, refuse_absent_apps
from lcc_scrapy.runtime.apps import Apps

PAGES = 1000
"""Pages of an SQLite file that are copied between two looks at the progress."""


def write_backup(source: SqlStore, file: Path, apps: Apps, progress: Progress) -> None:
    """Back a database up, as it is now, while others work with it. ``file`` is replaced when all is on disk.

    The file holds the hashes of passwords: only its owner may read it.
    """
    if _is_the_database(source, file):
        raise ConfigurationError(f"{file} is the database itself: give the backup a name of its own")
    refuse_absent_apps(source, apps)
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        _write(source, part, apps, progress)
        _sync(part)
        part.replace(file)
        sync_folder(file.parent)
    finally:
        part.unlink(missing_ok=True)
        part.with_name(f"{part.name}-journal").unlink(missing_ok=True)


def _is_the_database(source: SqlStore, file: Path) -> bool:
    mine = source.url.database if source.engine.dialect.name == "sqlite" else None
    return bool(mine) and file.exists() and file.samefile(str(mine))


def _write(source: SqlStore, part: Path, apps: Apps, progress: Progress) -> None:
    target = _store_of(part)
    try:
        if source.engine.dialect.name == "sqlite":
            _copy_pages(source, part, progress)
        else:
            make_anew(target, Closed.COPYING, apps)
            with snapshot(source, schema.tables_of(apps)) as seen:
                fill(target, seen, progress)
        with target.begin() as tx:
            close(tx, Closed.BACKUP)
    finally:
        target.close()
    _check_whole(part)


def _copy_pages(source: SqlStore, part: Path, progress: Progress) -> None:
    """Copy an SQLite file as it stands: many times faster than its rows, for writers wait meanwhile."""
    with (
        plain_errors("the backup cannot be written"),
        source.engine.connect() as reading,
        reading.execution_options(**{READING: True}).begin(),
        closing(sqlite3.connect(part)) as out,
    ):
        Snapshot(reading, ()).count(lccinfo)  # from here on the file stays as it is
        try:
            reading.connection.driver_connection.backup(  # type: ignore[union-attr] # there is one
                out, pages=PAGES, progress=lambda _status, left, total: progress(total - left, total)
            )
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the backup cannot be written: {error}") from error


def _sync(file: Path) -> None:
    """Make it one file, without a log or journal beside it, and put it on disk."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    with file.open("rb") as opened:
        sync(opened.fileno(), file)


@contextmanager
def opened_backup(file: Path, lcc_id: str, folder: Path, apps: Apps) -> Iterator[SqlStore]:
    """Open a backup of the LCC ``lcc_id`` by way of a copy in ``folder``/restore, which nobody else may use.

    The file itself is only read; a backup of an earlier version is brought up to date. Raises ``LccError``.
    """
    place = folder / "restore"
    shutil.rmtree(place, ignore_errors=True)  # of a call that was killed
    place.mkdir()
    copy = place / "lcc.sqlite"
    store = _store_of(copy)
    try:
        shutil.copyfile(file, copy)
        _check_whole(copy, f"{file} is damaged or no backup")
        _check_owner(store, file, lcc_id, apps)
        yield store
    finally:
        store.close()
        shutil.rmtree(place)


def _check_whole(file: Path, text: str = "the backup is damaged, the database probably too") -> None:
    try:
        with closing(sqlite3.connect(file)) as connection:
            found = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        found = str(error)
    if found != "ok":
        raise LccError(f"{text}: {' '.join(found.split())}")


def _check_owner(store: SqlStore, file: Path, lcc_id: str, apps: Apps) -> None:
    theirs = contents(store, apps).lcc_id
    if not theirs:
        raise ConfigurationError(f"{file} is no backup of an LCC")
    if theirs != lcc_id:
        raise ConfigurationError(f"{file} is a backup of another LCC ({theirs}, this one is {lcc_id})")
    with store.read() as tx:
        refuse_closed(tx, {Closed.BACKUP})
    schema.upgrade(store.url, apps=apps)


def _store_of(file: Path) -> SqlStore:
    return SqlStore(URL.create("sqlite", database=str(file)))
