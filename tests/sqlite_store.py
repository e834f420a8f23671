"""Stores on SQLite for tests that make several of their own: each a copy of one empty database."""

import shutil
import tempfile
import weakref
from functools import cache
from itertools import count
from pathlib import Path

from lcc_scrapy.db import schema
from lcc_scrapy.db.sql.store import SqlStore

_numbers = count(1)


@cache
def _folder() -> tempfile.TemporaryDirectory:
    made = tempfile.TemporaryDirectory(
        prefix="lcc-stores-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    )
    schema.upgrade(f"sqlite:///{made.name}/empty.sqlite")
    return made


def sqlite_store() -> SqlStore:
    """Return an empty store of its own, which several threads may use; its file goes with it."""
    folder = Path(_folder().name)
    file = folder / f"{next(_numbers)}.sqlite"
    shutil.copyfile(folder / "empty.sqlite", file)
    store = SqlStore(f"sqlite:///{file}")
    weakref.finalize(store, file.unlink, missing_ok=True)
    return store
