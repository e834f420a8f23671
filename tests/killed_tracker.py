"""Loads, imports and fetches of the mirror tracker that are killed before a statement, a commit, or a piece of an answer."""

import multiprocessing
import signal
from pathlib import Path

from sqlalchemy import select

from lcc_scrapy.apps.tracker import loading
from lcc_scrapy.apps.tracker.importing import import_domain
from lcc_scrapy.apps.tracker.loading import Scan, load
from lcc_scrapy.apps.tracker.tables import tr_digests
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.http.connection import Connection
from lcc_scrapy.kit.claims import this_process
from tests.exchanges import fetch
from tests.killed_steps import Mortal
from tests.mirrors import listing

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.killed_tracker"])


def killed(url: str, moment: int, what: dict) -> bool:
    """Do something in a process that kills itself at a moment; returns whether it came to its end."""
    child = _FORKS.Process(target=_do, args=(url, moment, what))
    child.start()
    child.join(600)
    assert child.exitcode in {0, -signal.SIGKILL}
    return child.exitcode == 0


def _do(url: str, moment: int, what: dict) -> None:
    loading.ROWS = loading.CLEARED = 2
    store = SqlStore(url)
    mortal = Mortal(moment, store.engine)
    if "fetches" in what:
        _fetch(store, mortal, what)
    elif "tree" in what:
        load(store, Scan(what["hostid"], what["at"], "test"), listing(what["tree"]), lambda: what["at"])
    else:
        import_domain(store, Path(what["folder"]), what["domain"], what["peer"], lambda: what["at"])
    store.close()


def _fetch(store: SqlStore, mortal: Mortal, what: dict) -> None:
    more = Connection.more

    async def counted(connection: Connection) -> list[bytes]:
        mortal.comes()
        return await more(connection)

    Connection.more = counted
    ((_, _, error),) = fetch(store, Path(what["fetches"]), what["at"], owner=this_process())
    assert not error, error


def empty(store: SqlStore) -> None:
    """Remove all that the tracker knows."""
    with store.engine.begin() as connection:
        for table in ("tr_dir", "tr_link", "tr_hash", "tr_load", "tr_host", "tr_domain", "counters"):
            connection.exec_driver_sql(f"DELETE FROM {table}")


def shown(store: SqlStore) -> list[tuple[str, bytes, bytes | None]]:
    """Return all that look-ups may see, by server and name."""
    with store.engine.connect() as connection:
        query = select(tr_digests.c.url, tr_digests.c.name, tr_digests.c.sha)
        return sorted((url, bytes(name), sha and bytes(sha)) for url, name, sha in connection.execute(query))


def rows(store: SqlStore) -> int:
    """Return how many directories there are, shown or not."""
    with store.engine.connect() as connection:
        return connection.exec_driver_sql("SELECT COUNT(*) FROM tr_dir").scalar_one()
