"""Steps of registrations that are killed.

``killed_step`` does one step on a database in a process that kills itself at a moment: before a statement, before
a commit, after the last one.
"""

import multiprocessing
import os
import signal

from sqlalchemy import event

from lcc_scrapy.apps.registration.front import FrontRegistrations
from lcc_scrapy.apps.registration.rules import Kind, Wanted
from lcc_scrapy.apps.registration.service import Registrations
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.open_subs import OpenSubs

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.killed_steps"])


def killed_step(url, moment, what):
    """Do a step in a process that is killed at a moment; returns whether it ended, and what it acknowledged.

    With the step ``front``, the URL is that of a front's database.
    """
    mine, its = _FORKS.Pipe()
    step = _step_at_front if what["step"] == "front" else _step
    child = _FORKS.Process(target=step, args=(url, moment, what, its))
    child.start()
    its.close()
    child.join(600)
    assert child.exitcode in {0, -signal.SIGKILL}
    with mine:
        told = mine.recv() if mine.poll() and child.exitcode == 0 else None
    return child.exitcode == 0, told


class Mortal:
    """Kills this process before the n-th statement or commit."""

    def __init__(self, moment, *engines):
        self.left = moment
        for engine in engines:
            event.listen(engine, "before_cursor_execute", self.comes)
            event.listen(engine, "commit", self.comes)

    def comes(self, *_):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)


def _step(url, moment, what, told_to):
    store = SqlStore(url)
    service = Registrations(store, RegistrationRules(mode=what.get("mode", "open")))
    mortal = Mortal(moment, store.engine)
    if what["step"] == "begin":
        given = service.begin(Wanted(HttpUrl.parse(what["site"])), "192.0.2.1")
        told = {"pid": given.registration.pid, "password": given.password}
    elif what["step"] == "approve":
        told = {"pid": service.approve(what["pid"])[0].pid}
    else:
        found = service.find(what["pid"], what["password"], Kind(what["kind"]))
        told = {"pid": service.complete(found, [what["site"]]).pid}
    mortal.comes()  # after the last commit, and before anybody is told
    told_to.send(told)
    store.close()


def _step_at_front(url, moment, what, told_to):
    directory = Directory(url)
    subs = OpenSubs(directory, silence=60)
    subs.look()
    service = FrontRegistrations(directory, subs, RegistrationRules(mode="open", **what["rules"]))
    mortal = Mortal(moment, directory._engine, *(store.engine for store in subs.stores().values()))
    given = service.begin(Wanted(HttpUrl.parse(what["site"])), "192.0.2.1")
    mortal.comes()
    told_to.send({"pid": given.registration.pid})
    subs.close()
    directory.close()
