"""An IndexNow receiver over a store, for tests: as an application in memory, or as a real ``lcc web``."""

import json
from contextlib import contextmanager

from fastapi import FastAPI
from starlette.testclient import TestClient

from lcc_scrapy.apps.indexnow.checking import Verdict
from lcc_scrapy.apps.indexnow.keys import Keys
from lcc_scrapy.apps.indexnow.queueing import Queueing
from lcc_scrapy.apps.indexnow.routes import make_router
from lcc_scrapy.apps.indexnow.service import IndexNow
from lcc_scrapy.apps.indexnow.settings import IndexNowRules
from lcc_scrapy.apps.indexnow.store import rows_in
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.providers.registration import add
from tests.push_process import PushServer
from tests.sqlite_store import sqlite_store

NOW = 1_800_000_000
KEY = "0123456789abcdef"
SITE = "www.example.org"
PID = 7


def made(pid, root):
    return Provider(pid, "nobody's", name=root)


class IndexNowHouse:
    """A receiver whose checks say what a test tells them to, and whose clock stands still."""

    def __init__(self, store=None, check=None, queue_max=0, **rules):
        self.store = store or sqlite_store()
        self.verdict = Verdict("good")
        self.checks = []
        self.now = NOW
        # "wait": whoever expects 200 or 403 must not get 202 because the machine is busy for a second
        self.rules = IndexNowRules(**{"mode": "known", "poll": 0.02, "wait": 60.0, **rules})
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
            (found,) = rows_in(tx).site_keys_of(site)
        return found

    def held(self):
        """Return how many URLs wait before the queue."""
        with self.store.read() as tx:
            return sum(
                rows_in(tx).urls_waiting(site) for site in {row.site for row in rows_in(tx).site_keys()}
            )


def url(name="a", site=SITE):
    return f"https://{site}/{name}"


def post(client, *urls, key=KEY, host=SITE, path="/indexnow", **more):
    body = {"host": host, "key": key, "urlList": list(urls) or [url()], **more}
    return client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})


def get(client, wanted=None, key=KEY, **more):
    return client.get("/indexnow", params={"url": wanted or url(), "key": key, **more})


class Receiver:
    """A real ``lcc web`` that takes submissions, beside an LCC with one provider whose site is here."""

    def __init__(self, lcc, root, mode="known", **settings):
        self.store = SqlStore(lcc.shared_url)
        add(self.store, Provider(PID, "", allowprivate=True), [root])
        self._lcc = lcc
        self._settings = {"LCC_INDEXNOW": mode, **settings}
        self._server = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._server.stop()
        self.store.close()
        assert "Traceback" not in self._server.log.read_text(), self._server.log.read_text()

    def start(self):
        """Start it, also once more."""
        if self._server is None:
            self._server = PushServer(self._lcc, **self._settings)
        else:
            self._server.start()
        self.url = f"http://127.0.0.1:{self._server.port}"

    def kill(self):
        self._server.kill()

    def queued(self):
        with self.store.read() as tx:
            return {row.furl for row in tx.queued_of(PID, 0, 1_000_000)}
