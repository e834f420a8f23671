"""Scans that are killed: in a process that kills itself before the N-th statement or commit, or piece of a listing."""

import asyncio
import multiprocessing
import os
import signal
from pathlib import Path

from sqlalchemy import event

from lcc_scrapy.apps.tracker import loading
from lcc_scrapy.apps.tracker.effort import Effort
from lcc_scrapy.apps.tracker.opening import robot_of
from lcc_scrapy.config.config import load
from lcc_scrapy.config.project import PlainSettings
from lcc_scrapy.db.sql.store import SqlStore

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.killed_scans"])


def scan_killed_at(moment: int, url: str, folder: Path) -> bool:
    """Scan what is due in a process that is killed at a moment; tells whether it came to its end before."""
    child = _FORKS.Process(target=_scan, args=(moment, url, str(folder)))
    child.start()
    child.join(600)
    assert child.exitcode in {0, -signal.SIGKILL}, child.exitcode
    return child.exitcode == 0


def _scan(moment: int, url: str, folder: str) -> None:
    left = moment

    def comes(*_):
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    store = SqlStore(url)
    event.listen(store.engine, "before_cursor_execute", comes)
    event.listen(store.engine, "commit", comes)
    take = Effort.take

    async def taken(self, size):
        comes()
        await take(self, size)

    Effort.take = taken
    loading.ROWS = 10
    loading.CLEARED = 10
    config = load(PlainSettings({}, {"LCC_DATA_DIR": folder}), {})
    with robot_of(config, store, "lcc-test") as robot:
        asyncio.run(_once(robot))
    store.close()


async def _once(robot) -> None:
    outcomes = []
    robot.told = outcomes.append
    try:
        await robot.once()
    finally:
        await robot.scanner.outgoing.close()
    assert [one.error for one in outcomes] == [""]
