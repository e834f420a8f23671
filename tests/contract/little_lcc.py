"""A whole LCC in miniature over any store: sets in, fetches out, and the books that must balance."""

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC
from hashlib import md5, sha256

from lcc_scrapy.db.records import StoredTurn, WorkerRow
from lcc_scrapy.db.tables import metadata
from lcc_scrapy.domain.cache import Answer, Body, CachedUrl
from lcc_scrapy.domain.entries import Declared, Operation, UrlEntry, urlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.queue import Cancelled, Failed, NotModified, Served
from lcc_scrapy.domain.timeslots import first_slot
from lcc_scrapy.intake.absorbing import Intake
from lcc_scrapy.queue.leases import Granted, look_around, take_turns
from lcc_scrapy.queue.settlement import Settlement
from lcc_scrapy.queue.window_rows import Wanted, windows_of
from lcc_scrapy.uns.spool_file import record_line
from tests.memory_store import MemoryStore

MACHINE = 1
START = 1_800_000_000
SITE = "http://www.example.org/"
PID = 7


def url(name):
    return SITE + name


def update(name="a", body=None, *, mimetype="text/html", **values):
    """Make an update; with ``body``, one that declares its md5 and length."""
    if body is not None:
        declared = values.pop("declared", Declared())
        values["declared"] = replace(declared, length=len(body), md5=md5(body).hexdigest())
    return UrlEntry(
        **{"curl": url(name), "mimetype": mimetype, "furl": url(name), "burl": url(name), **values}
    )


def removal(name="a", mimetype="text/html"):
    return UrlEntry(url(name), mimetype, Operation.REMOVE)


def present(name="a", mimetype="text/html"):
    return UrlEntry(url(name), mimetype, Operation.PRESENT)


def key(name="a", mimetype="text/html", pid=PID):
    return urlkey(pid, url(name), mimetype)


@dataclass
class FakeSet:
    """A set as the spool would show it; its byte offsets are tens."""

    pid: int
    connseq: int
    content: list
    full: bool = False
    charged: bool = False
    setid: str = ""
    digest: str = ""
    ifabsent: bool = False
    unreadable: int = 0

    @property
    def removals(self):
        return sum(entry.operation is Operation.REMOVE for entry in self.content)

    @property
    def urls(self):
        return len(self.content)

    def entries(self, offset):
        for number, entry in enumerate(self.content[offset // 10 :], offset // 10 + 1):
            yield entry, number * 10

    @property
    def end(self):
        return 10 * len(self.content)

    def records(self, offset, limit):
        chunk = self.content[offset // 10 :][:limit]
        return [json.loads(record_line(entry)) for entry in chunk], offset + 10 * len(chunk)

    def close(self):
        pass


class Crash(Exception):
    """The process dies here."""


def killed_before_its_commit(store, work):
    """Do something in a transaction, and die; raises ``Crash``."""
    with store.begin() as tx:
        work(tx)
        raise Crash


@dataclass
class LittleLcc:
    """One store with its providers; time stands still unless it is moved."""

    store: object
    policy: QueuePolicy = field(default_factory=QueuePolicy)
    now: int = START
    owner: str = "worker-1"
    connseq: int = 0
    runs: int = 0
    files: dict = field(default_factory=dict)
    granted: dict = field(default_factory=dict)

    # --- providers and sets ----------------------------------------------------------------------

    def add(self, pid=PID, **values):
        with self.store.begin() as tx:
            tx.insert_provider(Provider(pid, "a hash", **values), [SITE])

    def change(self, pid=PID, **values):
        with self.store.begin() as tx:
            tx.update_provider(pid, values)

    def provider(self, pid=PID):
        with self.store.read() as tx:
            return tx.provider(pid)

    def spooled(self, *content, pid=PID, **values):
        self.connseq += 1
        return FakeSet(pid, self.connseq, list(content), **values)

    def absorb(self, spooled):
        intake = Intake(self.store, spooled, self.policy)
        steps = [intake.step(self.now)]
        while not steps[-1].finished:
            steps.append(intake.step(self.now))
            assert len(steps) < 10_000
        return steps

    def push(self, *content, pid=PID, **values):
        return self.absorb(self.spooled(*content, pid=pid, **values))

    # --- fetching --------------------------------------------------------------------------------

    def grant(self, owner=None, *, limit=100, only=None):
        with self.store.begin() as tx:
            granted = take_turns(tx, owner or self.owner, self.now, limit=limit, only=only)
        if (owner or self.owner) == self.owner:
            self.granted.update({one.lease.turnkey: one for one in granted})
        return granted

    def look(
        self, owner, *, held=0, token=1, ttl=60, dead=(), limit=100, only=None, seen=0, bandwidth=0, drained=(),
        known=None, lives=None, **said,
    ):  # fmt: skip
        """Let a worker look around, which registers it."""
        me = WorkerRow(owner, token, 1, 1, self.now, self.now + ttl, **{"places": 16, "held": held, **said})
        with self.store.begin() as tx:
            return look_around(
                tx, me, self.now, dead=dead, limit=limit, only=only, seen=seen, drained=dict(drained),
                bandwidth=bandwidth, known=known, lives=lives,
            )  # fmt: skip

    def restart(self):
        """Let the worker begin anew, as after a kill."""
        self.runs += 1
        self.look(self.owner, token=self.runs, limit=0)
        self.granted.clear()
        self.grant()

    def rest(self, granted, **values):
        with self.store.begin() as tx:
            tx.rest_turns([replace(granted.lease, **values)])

    def window(self, pid=PID, *, limit=100, out=(), zone=UTC):
        turnkey = self.provider(pid).turnkey
        if turnkey not in self.granted:
            self.grant()
        held = self.granted.get(turnkey) or Granted(StoredTurn(turnkey, self.owner), ())
        with self.store.begin() as tx:
            wanted = Wanted(held.lease, tuple(held.members), limit, out)
            return windows_of(tx, [wanted], self.now, zone=zone)[0]

    def tickets(self, pid=PID, **options):
        return list(self.window(pid, **options).tickets)

    def ticket(self, name="a", pid=PID):
        return next(ticket for ticket in self.tickets(pid) if ticket.row.curl == url(name))

    def served(self, ticket, body=b"a body", **answer):
        values = {
            "status": 200,
            "final_url": ticket.row.furl,
            "served_type": ticket.row.mimetype,
            "served_charset": "utf-8",
            "etag": '"1"',
            "last_modified": "",
            "headers": "[]",
            "status_line": "HTTP/1.1 200 OK",
            "peer": "192.0.2.1",
            "answered": self.now,
        }
        digests = md5(body).hexdigest(), sha256(body).hexdigest()
        return Served(ticket, Answer(**{**values, **answer}), Body(len(body), *digests, data=body), 0)

    def failed(self, ticket, code, *, final=False, detail=""):
        return Failed(ticket, code, detail, self.now, final=final)

    def not_modified(self, ticket):
        return NotModified(ticket, self.now)

    def settle(self, *outcomes, owner=None):
        kept = {}
        with self.store.begin() as tx:
            settled = Settlement(
                tx, outcomes, owner=owner or self.owner, machineid=MACHINE, now=self.now, policy=self.policy,
                keep=lambda bodies: kept.update({one.fileid: one.body.data for one in bodies}),
            ).run()  # fmt: skip
        self.files.update(kept)
        return settled

    def fetch(self, name="a", body=b"a body", pid=PID, **answer):
        return self.settle(self.served(self.ticket(name, pid), body, **answer))[0]

    def fetch_all(self, pid=PID, body=None):
        """Fetch everything that waits, in order; returns the names."""
        names = []
        while tickets := self.tickets(pid):
            for ticket in tickets:
                names.append(ticket.row.curl.removeprefix(SITE))
                content = body or ticket.row.curl.encode()
                nothing = ticket.row.operation == "nothing"
                self.settle(Cancelled(ticket) if nothing else self.served(ticket, content))
        return names

    def store_pages(self, *names, pid=PID):
        """Push pages and fetch them: the usual beginning."""
        self.push(*[update(name) for name in names], pid=pid)
        self.fetch_all(pid)

    # --- looking ---------------------------------------------------------------------------------

    def cached(self, name="a", mimetype="text/html", pid=PID):
        with self.store.read() as tx:
            return tx.cached([key(name, mimetype, pid)]).get(key(name, mimetype, pid))

    def queued(self, name="a", mimetype="text/html", pid=PID):
        with self.store.read() as tx:
            return tx.queued([key(name, mimetype, pid)]).get(key(name, mimetype, pid))

    def documents(self, pid=PID):
        with self.store.read() as tx:
            return sorted(row.curl.removeprefix(SITE) for row in tx.cached_of(pid, b"", 100_000))

    def waiting(self, pid=PID):
        with self.store.read() as tx:
            rows = sorted(tx.queued_of(pid, 0, 100_000), key=lambda row: (row.psetid, row.position))
        return [(row.curl.removeprefix(SITE), row.operation) for row in rows]

    def held(self, pid=PID):
        with self.store.read() as tx:
            rows = tx.cached(tx.held(pid, 100_000)).values()
            assert tx.count_held(pid) == len(rows)
        return sorted(row.curl.removeprefix(SITE) for row in rows)

    def errors(self, pid=PID):
        with self.store.read() as tx:
            return tx.errors(pid, 1000)

    def feed(self, after=0, page=1000):
        """Return the whole feed as one following it page by page sees it."""
        seen = []
        while True:
            with self.store.read() as tx:
                rows = tx.changes(after, page)
            if not rows:
                return seen
            seen.extend(rows)
            after = rows[-1].seq


def dump(store):
    """Return everything a store holds; error numbers are only an order."""
    if isinstance(store, MemoryStore):
        tables = {name: getattr(store._tables, name) for name in store._tables.__slots__}
        errors = [replace(row, errorid=0) for _, row in sorted(tables["urlerrors"].items())]
        counters = {name: value for name, value in tables["counters"].items() if name != "errorid"}
        del (
            tables["tallies"],
            tables["fetchcounts"],
            tables["arrivals"],
        )  # of what happened, whatever came of it
        return {**tables, "urlerrors": errors, "counters": counters}
    found = {}
    with store.engine.connect() as connection:
        for table in metadata.tables.values():
            order = [table.c.urlkey] if table.name == "qdb" else list(table.primary_key)
            rows = connection.execute(table.select().order_by(*order))
            found[table.name] = [
                tuple(
                    0 if name in {"id", "errorid", "rootid"} else value
                    for name, value in row._mapping.items()
                )
                for row in rows
            ]
    del found["tallies"], found["fetchcounts"]
    return found


def assert_books_balance(store, files=None):
    """Compare every counter and every index of our own with the rows they stand for."""
    with store.read() as tx:
        cached, queued, parts = [], [], {}
        for provider in tx.providers():
            mine = tx.cached_of(provider.pid, b"", 1_000_000)
            waiting = tx.queued_of(provider.pid, 0, 1_000_000)
            assert provider.fileused == sum(row.files for row in mine)
            assert provider.spaceused == sum(row.fetched_len + row.head_len for row in mine)
            assert provider.nurlproc == len(waiting)
            assert provider.heldremovals == sum(row.held > 0 for row in mine) == tx.count_held(provider.pid)
            assert provider.nurlerrs >= len(tx.errors(provider.pid, 1_000_000))
            for part in tx.parts(provider.pid):
                assert part.starttimeslot == first_slot(part.timeofday)
                parts[part.psetid, part.timeofday, part.pid] = part.nurls
            cached, queued = cached + mine, queued + waiting
        turn_of = {provider.pid: provider.turnkey for provider in tx.providers()}
        turns = Counter({key: tx.turn(key).waiting for key in tx.turnkeys("", 1_000_000)})
        assert +turns == Counter(turn_of[row.pid] for row in queued)
        assert parts == Counter((row.psetid, row.timeofday, row.pid) for row in queued)
        feed = tx.changes(0, 1_000_000)
        top = tx.peek("feed")
        metas = [row.urlkey for row in cached if tx.meta(row.urlkey)]
        totals = tx.totals()
        files_to_delete = tx.files_to_delete(MACHINE, 1 << 60, 1_000_000)
        held = {key for one in tx.providers() for key, _ in tx.version_times(one.pid, b"", 1_000_000)}
        kept = tx.versions({row.urlkey for row in cached} | held)
        versions = [version for of_one in kept.values() for version in of_one]
        assert tx.version_files(MACHINE, [row.fetched_fileid for row in versions]) == {
            row.fetched_fileid for row in versions
        }
    numbers = [row.seq for row in feed]
    assert numbers == sorted(set(numbers))
    assert not numbers or 1 <= numbers[0] <= numbers[-1] <= top
    assert len({row.urlkey for row in feed}) == len(feed)
    assert {row for row in feed if isinstance(row, CachedUrl)} == set(cached)
    assert len(metas) == len(cached)
    assert totals == {
        "queued": len(queued),
        "cached": sum(row.files for row in cached),
        "versions": len(versions),
        "bytes": sum(row.fetched_len + row.head_len for row in cached),
        "doomed": len(files_to_delete),
    }
    seqs = {row.urlkey: row.seq for row in cached}
    for of_one in kept.values():
        newest_first = [seqs.get(of_one[0].urlkey, top + 1), *(version.seq for version in of_one)]
        assert newest_first == sorted(set(newest_first), reverse=True)
    live = [row.fetched_fileid for row in [*cached, *versions]]
    assert len(set(live)) == len(live)
    assert not {file.fileid for file in files_to_delete} & set(live)
    if files is not None:
        assert {file.fileid for file in files_to_delete} | set(live) == set(files)
        for row in [*cached, *versions]:
            assert sha256(files[row.fetched_fileid]).hexdigest() == row.sha256
