"""Registration served by a process of its own, as an operator's settings have it; and steps that are killed.

``python -m tests.registration_process`` serves at LCC_WEB_ENDPOINT. ``killed_step`` does one step on a database
in a process that kills itself at a moment: before a statement, before a commit, after the last one.
"""

import logging
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from fastapi import FastAPI
from sqlalchemy import event

from lcc_scrapy.app.opening import open_store
from lcc_scrapy.config import config
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.registration import Kind, Wanted
from lcc_scrapy.domain.registration_limits import RegistrationRules
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.registration.service import Registrations
from lcc_scrapy.registration.serving import registration_routes
from lcc_scrapy.web import problems
from lcc_scrapy.web.guards import Guards
from lcc_scrapy.web.server import Server

TREE = Path(__file__).parents[1]


@contextmanager
def serving(environment, log):
    """Start the server; gives its port and its process, and ends it."""
    with log.open("a") as out:
        said = out.tell()
        command = [sys.executable, "-m", "tests.registration_process"]
        process = subprocess.Popen(
            command, env={**environment, "LCC_WEB_ENDPOINT": "127.0.0.1:0"}, cwd=TREE, stderr=out
        )
    try:
        yield _port(log, said, process), process
    finally:
        process.terminate()
        process.wait(300)
    assert "Traceback" not in log.read_text(), log.read_text()


def _port(log, said, process):
    end = time.monotonic() + 240
    while time.monotonic() < end and process.poll() is None:
        found = re.search(r"listening on \S+:(\d+)$", log.read_text()[said:], re.MULTILINE)
        if found:
            return int(found[1])
        time.sleep(0.05)
    raise AssertionError(log.read_text())


_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.registration_process"])


def killed_step(url, moment, what):
    """Do a step in a process that is killed at a moment; returns whether it ended, and what it acknowledged."""
    mine, its = _FORKS.Pipe()
    child = _FORKS.Process(target=_step, args=(url, moment, what, its))
    child.start()
    its.close()
    child.join(600)
    assert child.exitcode in {0, -signal.SIGKILL}
    with mine:
        told = mine.recv() if mine.poll() and child.exitcode == 0 else None
    return child.exitcode == 0, told


def _serve():
    logging.basicConfig(level=logging.INFO)
    loaded = config.load(config.given_settings({}))
    store = open_store(loaded)
    routers = registration_routes(loaded, store)
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    for router in routers:
        app.include_router(router)
    problems.install(app, routers)
    app.add_middleware(Guards, silence=60.0)
    Server(app, loaded.web_endpoint, loaded.http).serve_until_told()
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


def _step(url, moment, what, told_to):
    store = SqlStore(url)
    service = Registrations(store, RegistrationRules(mode=what.get("mode", "open")))
    mortal = _Mortal(store.engine, moment)
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


if __name__ == "__main__":
    _serve()
