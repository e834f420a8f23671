"""An IndexNow receiver over a store, for tests: as an application in memory, or as a process of its own."""

import json
import sys
from contextlib import contextmanager

from fastapi import FastAPI
from starlette.testclient import TestClient

from lcc_scrapy.domain.indexnow_limits import IndexNowRules
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.indexnow.checking import Verdict
from lcc_scrapy.indexnow.keys import Keys
from lcc_scrapy.indexnow.queueing import Queueing
from lcc_scrapy.indexnow.routes import make_router
from lcc_scrapy.indexnow.service import IndexNow
from lcc_scrapy.providers.registration import add
from tests.memory_store import MemoryStore

NOW = 1_800_000_000
KEY = "0123456789abcdef"
SITE = "www.example.org"
PID = 7


def made(pid, root):
    return Provider(pid, "nobody's", name=root)


class IndexNowHouse:
    """A receiver whose checks say what a test tells them to, and whose clock stands still."""

    def __init__(self, store=None, check=None, queue_max=0, **rules):
        self.store = store or MemoryStore()
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
    """Serve over a real database until told to stop; keys are checked over the network, private hosts too."""
    from lcc_scrapy.db.sql.store import SqlStore
    from lcc_scrapy.domain.http_endpoint import Endpoint
    from lcc_scrapy.domain.http_limits import Service
    from lcc_scrapy.web.server import Server

    house = IndexNowHouse(SqlStore(database), check=_anywhere(), mode=mode)
    house.service._now = __import__("time").time
    import logging

    logging.basicConfig(level=logging.INFO)
    Server(house.app, Endpoint.parse(endpoint), Service()).serve_until_told()


def _anywhere():
    from lcc_scrapy.indexnow.checking import Checker

    checkers = []

    async def check(location, key, _private):
        if not checkers:
            checkers.append(Checker())
        return await checkers[0].check(location, key, True)

    return check


if __name__ == "__main__":
    serve(*sys.argv[1:])
