"""Coordinators of the annotation engine that are killed.

``annotated_until`` annotates in a process that kills itself at a moment: before a statement, or before a commit.
"""

import multiprocessing
import os
import signal
from datetime import time
from pathlib import Path
from threading import Event
from zoneinfo import ZoneInfo

from sqlalchemy import event

from lcc_scrapy.annotation.alerts_part import put_alerts_by
from lcc_scrapy.annotation.engine import Effects
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.alert_limits import AlertRules
from lcc_scrapy.domain.alerts import Schedule
from tests.annotated_lcc import InsidePool, Site, engine_of

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.killed_annotation"])


def annotated_until(url, folder, moment):
    """Annotate all that waits, killed at a moment (0 = not at all); returns how many there were, None = killed."""
    mine, its = _FORKS.Pipe()
    child = _FORKS.Process(target=_annotate, args=(url, folder, moment, its))
    child.start()
    its.close()
    child.join(600)
    assert child.exitcode in {0, -signal.SIGKILL}
    with mine:
        return mine.recv() if child.exitcode == 0 else None


def _annotate(url, folder, moment, moments):
    store = SqlStore(url)
    mortal = _Mortal(store.engine, moment)
    site = Site(store, Path(folder))
    tell = put_alerts_by(Schedule(time(7), AlertRules().deadlines, ZoneInfo("UTC")))
    engine_of(site, InsidePool(site), effects=Effects(tell=tell), queue=5).run(Event(), once=True)
    moments.send(moment - mortal.left)
    store.close()


class _Mortal:
    def __init__(self, engine, moment):
        self.left = moment
        event.listen(engine, "before_cursor_execute", self.comes)
        event.listen(engine, "commit", self.comes)

    def comes(self, *_):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
