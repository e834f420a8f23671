"""Loads and imports of the mirror tracker that are killed before a statement or a commit."""

import multiprocessing
import signal
from pathlib import Path

from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.tracker import loading
from lcc_scrapy.tracker.importing import import_domain
from lcc_scrapy.tracker.loading import Scan, load
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
    Mortal(store.engine, moment)
    if "tree" in what:
        load(store, Scan(what["hostid"], what["at"], "test"), listing(what["tree"]), lambda: what["at"])
    else:
        import_domain(store, Path(what["folder"]), what["domain"], what["peer"], lambda: what["at"])
    store.close()
