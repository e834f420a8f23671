"""An HTTP API over an LCC in memory, for tests; its feed can be made to grow, fail and forget."""

import io
from contextlib import contextmanager
from dataclasses import replace
from hashlib import md5, sha256

from starlette.testclient import TestClient

from lcc_scrapy.apps.exports.routes import ROUTES as EXPORTS
from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.http_serving import Bounds
from lcc_scrapy.domain.tokens import READ, Token, digest_of, new_secret
from lcc_scrapy.feed.content import ContentGone
from lcc_scrapy.feed.named_cursors import StoreCursors
from lcc_scrapy.feed.reader import Look
from lcc_scrapy.feed.tokens import StoreTokens
from lcc_scrapy.web.app import make_app
from lcc_scrapy.web.ports import Lcc
from tests.memory_store import MemoryStore

NOW = 1_800_000_000
SITE = "http://www.example.org/"


class Shelf:
    """A feed, and the contents of its documents."""

    lags = False

    def __init__(self):
        self.lcc = "an-lcc"
        self.generation = 1
        self.told = []
        self.contents = {}
        self.earlier = {}
        self.came = {}
        self.forgot = 0
        self.heads = {}
        self.trouble = None
        self.pages = 0

    def add(self, name="a", body=b"hello", pid=7, mimetype="text/html", **values):
        seq = self.seq + 1
        key = urlkey(pid, SITE + name, mimetype)
        row = CachedUrl(
            key, pid, SITE + name, mimetype, values.pop("subtype", ""), None, SITE + name, None, None, None, "",
            NOW, 1, seq, len(body), md5(body).hexdigest(), sha256(body).hexdigest(),
            values.pop("served_type", mimetype), "utf-8", "", SITE + name, "", "", NOW, "push", seq, 0, 0, 0,
        )  # fmt: skip
        self._forget(key)
        self.told.append(replace(row, **values))
        self.contents[key] = body
        return self.told[-1]

    def remove(self, name="a", pid=7, mimetype="text/html"):
        key = urlkey(pid, SITE + name, mimetype)
        seq = self.seq + 1
        self._forget(key)
        self.told.append(Tombstone(key, pid, SITE + name, mimetype, SITE + name, "removed", NOW, seq))

    def _forget(self, key):
        self.top = self.seq
        self.told = [row for row in self.told if row.urlkey != key]

    @property
    def seq(self):
        return max([getattr(self, "top", 0), *(row.seq for row in self.told)])

    def head(self):
        self._fail()
        return Position(self.lcc, self.generation, self.seq)

    def forgotten(self):
        return self.forgot

    def look(self, after, limit):
        self._fail()
        self.pages += 1
        rows = [row for row in self.told if row.seq > after][:limit]
        return Look(rows, self.head(), self.forgotten())

    def documents(self, after, limit, seen=0):
        rows = sorted((row for row in self.told if isinstance(row, CachedUrl)), key=lambda row: row.urlkey)
        return [row for row in rows if row.urlkey > after][:limit]

    def rows(self, keys, seen=0):
        self._fail()
        return {row.urlkey: row for row in self.told if row.urlkey in keys and isinstance(row, CachedUrl)}

    def answers(self, rows):
        return {row.urlkey: self.heads[row.urlkey] for row in rows if row.urlkey in self.heads}

    def moved(self, seqs):
        return {seq: came for seq, came in self.came.items() if seq in seqs}

    def owners(self, rows, seen=0):
        return {}

    def open(self, row):
        if row.urlkey not in self.contents:
            raise ContentGone("read on")
        return io.BytesIO(self.earlier.get(row.seq, self.contents[row.urlkey]))

    def _fail(self):
        if self.trouble:
            raise self.trouble


class WebHouse:
    """An application, its shelf, and tokens for it."""

    def __init__(self, store=None, **bounds):
        self.shelf = Shelf()
        self.store = store = store or MemoryStore()
        self.tokens, self.cursors = StoreTokens(store), StoreCursors(store)
        self.now = NOW
        self.measures = []
        self.lcc = Lcc(
            self.shelf, self.shelf.open, self.tokens, self.cursors, lambda: self.measures,
            Bounds(**{"poll": 0.02, "refusal_delay": 0.0, **bounds}), lambda: self.now,
        )  # fmt: skip
        self.app = make_app(self.lcc, EXPORTS(None, store))

    def token(self, label="indexer", scopes=READ, providers="", mimetypes="", expires=0):
        secret = new_secret()
        self.tokens.add(Token(digest_of(secret), label, scopes, providers, mimetypes, NOW, expires))
        return secret

    @contextmanager
    def client(self, token=None, address="testclient"):
        """Open a client that shows a token, a new one for reading unless told otherwise."""
        shown = self.token() if token is None else token
        headers = {"Authorization": f"Bearer {shown}"} if shown else {}
        with TestClient(self.app, headers=headers, client=(address, 50_000)) as client:
            yield client
