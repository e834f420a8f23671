"""An IndexNow receiver over a store, for tests: as an application in memory, or as a process of its own."""

import json
import logging
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.testclient import TestClient

from lcc_scrapy.app.indexnow_service import make_indexnow
from lcc_scrapy.config.config import SETTINGS, Config
from lcc_scrapy.db import schema
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.http_endpoint import Endpoint
from lcc_scrapy.domain.http_limits import Service
from lcc_scrapy.domain.indexnow_limits import IndexNowRules
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.settings import make
from lcc_scrapy.indexnow.checking import Verdict
from lcc_scrapy.indexnow.keys import Keys
from lcc_scrapy.indexnow.queueing import Queueing
from lcc_scrapy.indexnow.routes import make_router
from lcc_scrapy.indexnow.service import IndexNow
from lcc_scrapy.providers.registration import add
from lcc_scrapy.web.server import Server
from tests.harness import wait_for
from tests.memory_store import MemoryStore

NOW = 1_800_000_000
KEY = "0123456789abcdef"
SITE = "www.example.org"
PID = 7


def made(pid, root):
    return Provider(pid, "nobody's", name=root)


class SharedStore(MemoryStore):
    """A store in memory for several threads: one transaction at a time, as SQLite has it."""

    def __init__(self):
        super().__init__()
        self._alone = threading.RLock()

    @contextmanager
    def begin(self):
        with self._alone, super().begin() as tx:
            yield tx


class IndexNowHouse:
    """A receiver whose checks say what a test tells them to, and whose clock stands still."""

    def __init__(self, store=None, check=None, queue_max=0, **rules):
        self.store = store or SharedStore()
        self.verdict = Verdict("good")
        self.checks = []
        self.now = NOW
        self.rules = IndexNowRules(**{"mode": "known", "poll": 0.02, **rules})
        self.keys = Keys(self.store, self.rules, made)
        self.queueing = Queueing(self.store, QueuePolicy(), queue_max)
        self.service = IndexNow(self.keys, self.queueing, self.rules, check or self._check, lambda: self.now)
        self.app = FastAPI()
        self.app.include_router(make_router(self.service))

    async def _check(self, location, key, private):
        self.checks.append((location, key, private))
        verdict = self.verdict
        return await verdict() if callable(verdict) else verdict

    def provider(self, pid=PID, *roots, **values):
        add(
            self.store, Provider(pid, "", **{"state": State.ACTIVE, **values}), roots or (f"https://{SITE}/",)
        )

    @contextmanager
    def client(self, address="127.0.0.1"):
        with TestClient(self.app, client=(address, 50_000)) as client:
            yield client

    def waiting(self):
        """Return what waits in the queue, as (pid, fetch URL, type, origin), sorted."""
        with self.store.read() as tx:
            pids = [one.pid for one in tx.providers()]
            rows = [row for pid in pids for row in tx.queued_of(pid, 0, 100_000)]
        return sorted((row.pid, row.furl, row.mimetype, str(row.origin)) for row in rows)

    def queued(self):
        return [furl for _, furl, _, _ in self.waiting()]

    def key(self, site=SITE):
        with self.store.read() as tx:
            (found,) = tx.site_keys_of(site)
        return found

    def held(self):
        """Return how many URLs wait before the queue."""
        with self.store.read() as tx:
            return sum(tx.urls_waiting(site) for site in {row.site for row in tx.site_keys()})


def url(name="a", site=SITE):
    return f"https://{site}/{name}"


def post(client, *urls, key=KEY, host=SITE, path="/indexnow", **more):
    body = {"host": host, "key": key, "urlList": list(urls) or [url()], **more}
    return client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})


def get(client, wanted=None, key=KEY, **more):
    return client.get("/indexnow", params={"url": wanted or url(), "key": key, **more})


def serve(database, endpoint, mode):
    """Serve over a real database, with real checks of keys, until told to stop."""
    logging.basicConfig(level=logging.INFO)
    store = SqlStore(database)
    service = make_indexnow(make(Config, DEFAULTS | {"LCC_INDEXNOW": mode, "LCC_POLL": 0.1}), store)
    app = FastAPI()
    app.include_router(make_router(service))
    Server(app, Endpoint.parse(endpoint), Service()).serve_until_told()


DEFAULTS = {one.name: one.read(one.default) for one in SETTINGS}


class Receiver:
    """The same as a process of its own, over an SQLite database with one provider whose site is here."""

    def __init__(self, folder, root, mode="known", database=""):
        self.database = database or f"sqlite:///{folder / 'lcc.sqlite'}"
        self.mode = mode
        self.log = folder / "receiver.log"
        schema.upgrade(self.database)
        self.store = SqlStore(self.database)
        add(self.store, Provider(PID, "", allowprivate=True), [root])
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.store.close()

    def start(self):
        command = [sys.executable, "-m", "tests.indexnow_house", self.database, "127.0.0.1:0", self.mode]
        self.log.unlink(missing_ok=True)
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stderr=log, cwd=Path(__file__).parents[1])
        wait_for(self._port)
        self.url = f"http://127.0.0.1:{self._port()}"

    def _port(self):
        found = re.search(r"listening on \S+:(\d+)$", self.log.read_text(), re.MULTILINE)
        assert self.process.poll() is None, self.log.read_text()
        return int(found[1]) if found else 0

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait(300)
            self.process = None

    def queued(self):
        with self.store.read() as tx:
            return {row.furl for row in tx.queued_of(PID, 0, 1_000_000)}


if __name__ == "__main__":
    serve(*sys.argv[1:])
