"""A content user that keeps a copy of what it selects, and writers that give it something to do."""

import random
from dataclasses import dataclass, field

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.cursor import Position, StartOver
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.feed import reader as users_feed
from lcc_scrapy.feed.reader import Inventory, Reader
from lcc_scrapy.feed.store_feed import GENERATION, LCC_ID, StoreFeed
from lcc_scrapy.queue.unit_of_work import UnitOfWork

PIDS = (1, 2, 3, 4)
NAMES = "abcdefghijklmnop"
SUBTYPES = ("", "lang: en", "lang: nl", "lang: nl-be")
MIMETYPES = ("text/html", "image/png")
SELECTIONS = (
    Selection(),
    Selection(subtypes=("lang: nl*",)),
    Selection(providers=(1, 2), mimetypes=("text/*",), subtypes=("", "lang: en")),
    Selection(url_prefixes=("http://www.example.org/c",), subtypes=("lang: en",)),
)


def prepare(store):
    with store.begin() as tx:
        tx.set_info(LCC_ID, "an-lcc")
        tx.set_info(GENERATION, "1")
        for pid in PIDS:
            tx.insert_provider(Provider(pid, "a hash"), ["http://www.example.org/"])


def change(store, chance, pid, names, now):
    """Let each of these documents of a provider go, come, or become another one, in one transaction."""
    documents = [(f"http://www.example.org/{name}", MIMETYPES[ord(name) % 2]) for name in names]
    with store.begin() as tx:
        keys = [urlkey(pid, *document) for document in documents]
        batch = UnitOfWork(tx, [pid], keys, now, QueuePolicy())
        for key, (curl, mimetype) in zip(keys, documents, strict=True):
            if chance.random() < 0.4:
                batch.drop_cached(key, "gone")
                continue
            before = batch.cached.get(key)
            keeps = before is not None and chance.random() < 0.4
            subtype = before.subtype if keeps else chance.choice(SUBTYPES)
            row = CachedUrl(
                key, pid, curl, mimetype, subtype, None, curl, None, None, None, "", now, 1,
                tx.take("fileid", 1), 10, "", "", "", "", "", curl, "", "", now,
                subtype_seq=before.subtype_seq if before else 0,
            )  # fmt: skip
            batch.put_cached(row, tell=True)
        batch.flush()


@dataclass
class Mirror:
    """Follows the feed page by page; when it is told to start over it reconciles, or begins from nothing.

    ``feed`` is where it reads, None = the store. What a replica refuses is asked again.
    """

    store: object
    selection: Selection
    chance: random.Random = field(default_factory=random.Random)
    copy: dict = field(default_factory=dict)
    cursor: str = ""
    started_over: int = 0
    told: dict = field(default_factory=lambda: {"upsert": 0, "remove": 0, "leave": 0})
    work: object = None
    feed: object = None
    reconciles: bool = False
    """Whether it also begins by reconciling."""

    def __post_init__(self):
        self.feed = self.feed or StoreFeed(self.store)
        self.work = self.reconcile() if self.reconciles else None

    def step(self):
        """Do something: at most one look into the feed. Returns False when it has seen everything."""
        if self.work is None:
            self.work = self.follow()
        try:
            next(self.work)
        except StopIteration:
            self.work = None
            return False
        except StoreUnavailable:
            self.work = None
        except StartOver:
            self.started_over += 1
            self.work = self.reconcile() if self.chance.random() < 0.7 else self.begin_anew()
        return True

    def crash(self):
        self.work = None

    def follow(self):
        since = Position.parse(self.cursor) if self.cursor else None
        reader = Reader(self.feed, self.selection, since, self.chance.choice((0, 0, 1, 3)))
        self.cursor = str(reader.position)  # kept before anything is taken: when it began
        yield
        for page in reader.pages():
            for row in page:
                self.told[row.op] += 1
                if row.op == "upsert":
                    self.copy[row.urlkey] = row.seq
                else:
                    self.copy.pop(row.urlkey, None)
            yield
            self.cursor = str(reader.position)
        self.cursor = str(reader.position)

    def begin_anew(self):
        self.copy, self.cursor = {}, ""
        yield

    def reconcile(self):
        inventory = Inventory(self.feed, self.selection)
        listed = {}
        for page in inventory.pages():
            listed.update({row.urlkey: row.seq for row in page})
            yield
        self.copy = {key: seq for key, seq in self.copy.items() if key in listed}
        other = [key for key, seq in listed.items() if self.copy.get(key) != seq]
        for start in range(0, len(other), users_feed.PAGE):
            keys = other[start : start + users_feed.PAGE]
            found = self.feed.rows(keys, inventory.position.seq)
            for key in keys:
                self.copy.pop(key, None)
                if key in found and self.selection.admits(found[key]):
                    self.copy[key] = found[key].seq
            yield
        self.cursor = str(inventory.position)

    def catch_up(self):
        """Read on until nothing is left to be told, while nobody writes."""
        while self.step() or self.cursor_seq() < self.head():
            pass

    def cursor_seq(self):
        return Position.parse(self.cursor).seq if self.cursor else -1

    def head(self):
        return StoreFeed(self.store).head().seq

    def should_have(self):
        with self.store.read() as tx:
            rows = tx.documents(b"", 1_000_000)
        return {row.urlkey: row.seq for row in rows if self.selection.admits(row)}
