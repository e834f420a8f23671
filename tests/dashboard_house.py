"""The dashboard of an LCC on SQLite: users, providers with hostile names, and a browser for each user."""

import json
import re
import struct
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from io import BytesIO
from ipaddress import ip_network
from pathlib import Path
from zoneinfo import ZoneInfo

from lcc_scrapy.apps.dashboard.pages import Terms
from lcc_scrapy.apps.dashboard.routes import make_dashboard
from lcc_scrapy.apps.dashboard.settings import DashboardRules
from lcc_scrapy.apps.exports.indexers.fts5 import Fts5
from lcc_scrapy.apps.exports.interface import Item
from lcc_scrapy.db.records import DocumentLink, ProviderSet, UrlErrorRecord
from lcc_scrapy.domain.cache import CachedUrl, UrlMeta
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.free_space import Reserve
from lcc_scrapy.domain.login_limits import ThrottleRules
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.queue import FETCH, QueuedUrl
from lcc_scrapy.domain.users import User
from lcc_scrapy.domain.versions import version_of
from lcc_scrapy.feed.store_feed import GENERATION, LCC_ID, head_of
from lcc_scrapy.login import people
from lcc_scrapy.login.passwords import hash_password
from lcc_scrapy.machine.ballast import Ballast
from lcc_scrapy.machine.free_space import Disks
from lcc_scrapy.ops.status import Here
from lcc_scrapy.web.app import make_app
from tests.sqlite_store import sqlite_store
from tests.web_house import NOW, WebHouse

PASSWORD = "correct horse battery"
EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e'
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 3, 2) + b"\x08\x02\0\0\0"
"""The beginning of a PNG."""

NOWHERE = Path("nowhere")
HASH = cache(hash_password)


class DashboardHouse(WebHouse):
    def __init__(
        self, proxies="", header="", web_url="", login=None, folder=NOWHERE, *, index="", troubles=()
    ):
        super().__init__(sqlite_store())
        networks = tuple(map(ip_network, proxies.split()))
        self.rules = DashboardRules(header, 3600.0, str(index))
        with self.store.begin() as tx:
            tx.set_info(LCC_ID, "an-lcc")
            tx.set_info(GENERATION, "1")
        disks = Disks([folder], Reserve(0, 0), Ballast(folder, 0))
        terms = Terms(
            self.rules, login or ThrottleRules(), QueuePolicy(), 1000, ZoneInfo("UTC"), networks, web_url,
            Here(folder, folder, [folder / "spool"], disks), 0, 2, troubles,
        )  # fmt: skip
        self.dashboard = make_dashboard(self.store, terms)
        self.app = make_app(self.lcc, [self.dashboard])
        for name, role, pids in (
            ("vera", "viewer", ""),
            ("otto", "operator", ""),
            ("sven", "provider-owner", "7"),
        ):
            self.user(name, role, pids)
        for pid in (7, 8, 9):
            self.provider(pid)

    def user(self, name, role, pids="", password=PASSWORD):
        people.add(self.store, User(name, role, pids, HASH(password) if password else "", NOW))

    def provider(self, pid, name=EVIL, roots=("http://www.example.org/",), **values):
        made = Provider(
            pid, "x", name=name, contact=EVIL, created=NOW, heldremovals=1, lastconnip="192.0.2.1"
        )
        with self.store.begin() as tx:
            tx.insert_provider(replace(made, **values), [f"{root}{pid}/" for root in roots])
            tx.add_errors([UrlErrorRecord(pid, 404, EVIL, f"http://x/{EVIL}", "{}", NOW)], 100)

    def waiting(self, pid=7, name=EVIL, psetid=1, started=NOW - 7300):
        """Let a URL wait in the queue."""
        url = f"http://www.example.org/{pid}/{name}"
        key = urlkey(pid, url, "text/html")
        row = QueuedUrl(
            key, pid, url, "text/html", "", url, url, None, None, None, "", psetid, 1, FETCH, 0, 0, 0
        )
        with self.store.begin() as tx:
            tx.insert_psets([ProviderSet(psetid, pid, 1, "", "", False, 1, "absorbed", 1, started=started)])
            tx.insert_queued([row])
            tx.add_to_parts({(psetid, "", pid): 1}, {pid: 1})
        return row

    def document(self, pid=7, name=EVIL, bodies=(b"hello",), mimetype="text/html"):
        """Store a document that had these contents, the newest last; returns its row."""
        url = f"http://www.example.org/{pid}/{name}"
        key = urlkey(pid, url, mimetype)
        with self.store.begin() as tx:
            seqs = [tx.take("feed", 1) for _ in bodies]
            row = CachedUrl(
                key, pid, url, mimetype, "", None, url, None, None, None, "", NOW, 1, 0, 0, "0" * 32, "0" * 64,
                mimetype, "utf-8", "", url, "", "", NOW, "push", 0, 0, 0, 0,
            )  # fmt: skip
            rows = [
                replace(row, seq=seq, fetched_fileid=seq, fetched_len=len(body))
                for seq, body in zip(seqs, bodies, strict=True)
            ]
            headers = json.dumps([["X-Evil", EVIL], ["Set-Cookie", "a=b"]])
            tx.insert_cached(rows[-1:], {key: UrlMeta(key, "HTTP/1.1 200 OK", headers, "192.0.2.9", NOW)})
            tx.insert_versions([version_of(row, NOW) for row in rows[:-1]])
            tx.put_links(
                {key: [DocumentLink(f"http://www.example.org/{EVIL}{n}", EVIL, True) for n in range(31)]}
            )
        self.shelf.contents[key] = bodies[-1]
        self.shelf.earlier |= dict(zip(seqs, bodies, strict=True))
        return rows[-1]

    def charset(self, row, charset):
        """Let a document have another charset."""
        with self.store.begin() as tx:
            tx.update_cached([replace(row, served_charset=charset)])

    def picture(self, pid=7, name="picture", comment=b""):
        """Store a PNG of 3 by 2 pixels that says something."""
        return self.document(pid, name, [PNG + comment], "image/png")

    def head(self):
        with self.store.read() as tx:
            return head_of(tx)

    def state(self, pid):
        with self.store.read() as tx:
            return tx.provider(pid).state

    def log(self):
        with self.store.read() as tx:
            return [(one.who, one.place, one.action, one.pid) for one in tx.audits(2**62, 1000)]

    @contextmanager
    def browser(self, name="", address="127.0.0.1"):
        with self.client("", address) as client:
            if name:
                told = sign_in(client, name)
                assert told.status_code == 303, told.text
            yield client


def write_index(path, documents, head):
    """Write an index of documents with their texts, up to a change."""
    index = Fts5(path)
    for row, text in documents:
        index.document(Item(row, {}, ""), BytesIO(text))
    index.commit(str(head))
    index.close()


def sign_in(client, name, password=PASSWORD):
    form = {"name": name, "password": password}
    return client.post("/dashboard/sign-in", data=form, follow_redirects=False)


def key_of(client):
    return re.search(r'name="form" value="([0-9a-f]{64})"', client.get("/dashboard/providers/7").text)[1]


def post(client, path, key=None, **fields):
    data = {"form": key_of(client) if key is None else key, **fields}
    return client.post(f"/dashboard{path}", data=data, follow_redirects=False)
