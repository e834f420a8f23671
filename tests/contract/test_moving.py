"""A provider moves from one LCC to another of the same kind; what lies beside it stays, and costs nothing."""

import io
import random
import shutil
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace

import pytest
import sqlalchemy
from little_lcc import MACHINE, PID, LittleLcc, assert_books_balance, key, removal, update, url

from lcc_scrapy.apps.mail import store as mail
from lcc_scrapy.apps.mail.rules import MailState
from lcc_scrapy.apps.sources.rules import Role, Source, SourceFile
from lcc_scrapy.apps.sources.store import rows_in
from lcc_scrapy.apps.sources.tables import SOURCEID
from lcc_scrapy.cache import misses
from lcc_scrapy.cache.file_ids import FileIds
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.db.records import DocumentLink
from lcc_scrapy.db.sql.move_verbs import KEYS
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.db.tables import metadata
from lcc_scrapy.domain.cache import Tombstone
from lcc_scrapy.domain.front import FrontError, MoveStep, SubLcc
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.versions import Keep
from lcc_scrapy.front import moved_away, moved_documents, moving
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.moved_documents import Files, NotTheSame
from lcc_scrapy.front.moved_rows import tables_of_apps
from lcc_scrapy.front.moving import Mover, give_up
from lcc_scrapy.runtime.apps import ours
from tests.made_databases import upgrade

SOURCE = Source(
    0, 0, "websub", "", 60, owner="here/1", claimed=99, hub="http://hub/", lease=999, asked="subscribe"
)
PAGES = [f"{number:02}" for number in range(12)]
STAYS = 8
LINKS = [DocumentLink(url("01"), "a"), DocumentLink("http://elsewhere.example/", "a", nofollow=True)]
SOURCES = ["http://1.example/", "http://3.example/"]
TOLD = MailState(PID, since=5, due=7, wanted="old files", off=True)
ROWS, BESIDE = 400, 600


class Killed(Exception):
    """The process dies here."""


class Mortal:
    """A store whose process dies after some transactions: before the commit of the last one, or after it."""

    def __init__(self, store):
        self._store, self.left, self.after = store, None, False

    def __getattr__(self, name):
        return getattr(self._store, name)

    @contextmanager
    def begin(self):
        with self._store.begin() as tx:
            yield tx
            self._count(dies=not self.after)
        self._count(dies=self.after, step=0)

    def _count(self, *, dies, step=1):
        if self.left is not None:
            self.left -= step
            if dies and self.left <= 0:
                raise Killed


class Contents:
    """The files of a little LCC."""

    def __init__(self, lcc):
        self._files = lcc.files

    def open(self, row):
        return io.BytesIO(self._files[row.fetched_fileid])


class Two:
    """Two LCCs with a front, the first of which has providers 7 and 8."""

    def __init__(self, folder, source, target, directory):
        self.source, self.target = LittleLcc(source), LittleLcc(target)
        self.stores = Mortal(source), Mortal(target)
        self.folder, self.directory = folder, directory
        for pid in (PID, STAYS):
            self.source.add(pid)
        for number, name in enumerate(("a", "b")):
            directory.add(SubLcc(name, f"192.0.2.{number}:9000"))
            directory.assign(PID + number, "a")
        self.said = []

    def fill(self):
        """Let the provider have of everything that sets and fetches make."""
        lcc = self.source
        lcc.policy = replace(lcc.policy, versions=Keep(3))
        lcc.store_pages(*PAGES)
        lcc.store_pages(*PAGES, pid=STAYS)
        lcc.push(*[update(name, b"other" + name.encode()) for name in PAGES[:3]])
        lcc.fetch_all(body=b"other")
        lcc.push(removal(PAGES[3]), update("waits"))
        lcc.push(removal("waits2"), update("waits2"))
        with lcc.store.begin() as tx:
            mail.rows_in(tx).put([TOLD, MailState(STAYS)])
            tx.put_links({key(name): LINKS for name in PAGES[4:]}, PID)
            tx.put_links({key(name): LINKS for name in PAGES[4:6]})
            misses.suspect(tx, [key(PAGES[5])], PID, lcc.now)
        for at, pids in ((lcc, (PID, STAYS, PID)), (self.target, (STAYS,))):
            with at.store.begin() as tx:
                for number, pid in enumerate(pids, tx.take(SOURCEID, len(pids))):
                    rows = rows_in(tx)
                    rows.put_source(
                        replace(SOURCE, sourceid=number, pid=pid, url=f"http://{number}.example/")
                    )
                    rows.put_source_files([SourceFile(number, number, "", 0, Role.LIST)])
                    rows.put_source_urls(number, {key(name): 1 for name in PAGES})

    @contextmanager
    def mover(self):
        source, target = self.stores
        files = ContentFiles(self.folder, MACHINE)
        files.prepare()
        ids = FileIds(target, MACHINE, "mover")
        yield Mover(
            self.directory, source, target, Contents(self.source), Files(files, files, ids), 60,
            tables_of_apps(ours()), list(ours().every("provider")), self.said.append, lambda: self.source.now,
        )  # fmt: skip

    def move(self):
        with self.mover() as mover:
            mover.run(self.directory.moving(PID) or mover.begin(PID, "a", "b"))

    def documents(self, lcc):
        """Return all that stays the same, by document."""
        with lcc.store.read() as tx:
            rows = tx.cached_of(PID, b"", 1000)
            kept = tx.versions([row.urlkey for row in rows])
            return {
                row.urlkey: (
                    replace(row, seq=0, seen=0, fetched_fileid=0, fetched_machineid=0, confirmed_seq=0),
                    tx.links_of(row.urlkey),
                    [one.sha256 for one in kept.get(row.urlkey, ())],
                )
                for row in rows
            }

    def facts(self, lcc):
        with lcc.store.read() as tx:
            gone = [one.curl for one in tx.changes(0, 1000, PID) if isinstance(one, Tombstone)]
            suspects = tx.suspects(PID, 0, lcc.now + 1, 100)
        return self.documents(lcc), sorted(lcc.waiting()), gone, suspects, lcc.provider().fileused


@pytest.fixture(scope="module")
def ready(databases):
    """Return what makes a database with all tables; on SQLite it is copied, which is quicker."""
    first = {}

    def make(kind):
        made = databases.empty(kind)
        if kind in first:
            shutil.copy(sqlalchemy.make_url(first[kind]).database, sqlalchemy.make_url(made).database)
            return made
        upgrade(made)
        if kind == "sqlite":
            first[kind] = databases.empty(kind)
            shutil.copy(sqlalchemy.make_url(made).database, sqlalchemy.make_url(first[kind]).database)
        return made

    return make


@pytest.fixture
def two(request, databases, ready, tmp_path):
    with ExitStack() as closed:
        urls = [ready(request.param) for _ in range(2)]
        stores = [closed.enter_context(closing(SqlStore(one))) for one in urls]
        directory = closed.enter_context(closing(Directory(databases.empty("sqlite"))))
        directory.create()
        made = Two(tmp_path, *stores, directory)
        made.fill()
        yield made


@pytest.fixture(autouse=True)
def small_portions(monkeypatch):
    for module in (moving, moved_away):
        monkeypatch.setattr(module, "PORTION", 3)
    monkeypatch.setattr(moved_documents, "DOCUMENTS", 5)
    monkeypatch.setattr(moving, "LOOK", 0)


def assert_moved(two, before):
    assert two.facts(two.target) == before
    assert (two.source.provider(), two.target.provider().state) == (None, State.ACTIVE)
    assert two.directory.moving(PID) is None
    assert two.directory.sub_of(PID).name == "b"
    with two.source.store.engine.connect() as connection:
        for name in KEYS:
            table = metadata.tables[name]
            left = sqlalchemy.select(sqlalchemy.func.count()).where(table.c.pid == PID)
            assert connection.scalar(left) == 0, name
        assert connection.scalar(sqlalchemy.text("select count(*) from links")) == 0
    with two.source.store.read() as tx:
        assert [one.pid for one in rows_in(tx).sources()] == [STAYS]
        counts = [
            (len(rows_in(tx).source_files(n)), len(rows_in(tx).source_urls(n, b"", 99))) for n in (1, 2, 3)
        ]
        assert counts == [(0, 0), (1, len(PAGES)), (0, 0)]
    with two.source.store.read() as tx:
        assert [mail.rows_in(tx).state(pid) for pid in (PID, STAYS)] == [None, MailState(STAYS)]
    with two.target.store.read() as tx:
        assert [mail.rows_in(tx).state(pid) for pid in (PID, STAYS)] == [TOLD, None]
        first, *its = rows_in(tx).sources()
        assert (first.sourceid, first.pid, first.lease, first.owner) == (1, STAYS, 999, "here/1")
        here = replace(SOURCE, pid=PID, owner="", claimed=0, lease=0, asked="")
        assert its == [
            replace(here, sourceid=one.sourceid, url=url) for one, url in zip(its, SOURCES, strict=True)
        ]
        assert its[0].sourceid > 1
        assert its[1].sourceid - its[0].sourceid == 2
    assert two.source.documents(STAYS) == PAGES
    for lcc in (two.source, two.target):
        assert_books_balance(lcc.store)


@pytest.mark.parametrize("two", ["sqlite"], indirect=True)
def test_all_of_it_is_in_the_target_and_nothing_in_the_source(two):
    before = two.facts(two.source)
    two.move()
    assert_moved(two, before)


@pytest.mark.parametrize("two", ["sqlite"], indirect=True)
def test_large_documents_go_in_batches_of_their_own(two, monkeypatch):
    monkeypatch.setattr(moved_documents, "BYTES", 12)
    monkeypatch.setattr(moved_documents, "IN_MEMORY", 5)
    before = two.facts(two.source)
    two.move()
    assert_moved(two, before)
    assert list(two.folder.rglob("move-*")) == []


@pytest.mark.parametrize(
    ("two", "after"),
    [("sqlite", False), ("sqlite", True), ("mariadb", True), ("postgresql", False)],
    indirect=["two"],
    ids=["sqlite-before the commit", "sqlite-after it", "mariadb-after it", "postgresql-before the commit"],
)
def test_it_may_be_killed_in_any_transaction(two, after):
    before, chance, kills = two.facts(two.source), random.Random(7), 0
    while True:
        for store in two.stores:
            store.left, store.after = chance.randrange(1, 16), after
        try:
            two.move()
            break
        except Killed:
            kills += 1
            assert kills < 200
    assert kills >= 5
    assert_moved(two, before)


@pytest.mark.parametrize("two", ["sqlite"], indirect=True)
class TestWithTwoCommands:
    def test_the_second_one_that_copies_says_so(self, two, monkeypatch):
        copied = Mover._copy_table

        def twice(mover, pid, progress, numbers):
            if progress.table == "qdb":
                monkeypatch.setattr(Mover, "_copy_table", copied)
                two.move()
            return copied(mover, pid, progress, numbers)

        before = two.facts(two.source)
        monkeypatch.setattr(Mover, "_copy_table", twice)
        with pytest.raises((FrontError, KeyError)):
            two.move()
        assert_moved(two, before)

    def test_one_that_was_given_up_meanwhile_leaves_the_provider_as_it_was(self, two):
        before = two.facts(two.source)
        with two.mover() as mover:
            begun = mover.begin(PID, "a", "b")
            give_up(two.directory, two.source.store, begun)
            with pytest.raises(FrontError, match="given up"):
                mover.run(begun)
        assert two.source.provider().state == State.ACTIVE
        assert two.facts(two.source) == before

    def test_nothing_is_given_up_that_is_in_transit(self, two):
        with two.mover() as mover:
            begun = mover.begin(PID, "a", "b")
            two.source.change(state=State.IN_TRANSIT)
            with pytest.raises(FrontError, match="in transit"):
                give_up(two.directory, two.source.store, begun)
            assert two.directory.moving(PID).step == MoveStep.HOLD
            mover.run(begun)
        assert two.target.provider().state == State.ACTIVE


@pytest.mark.parametrize("two", ["sqlite"], indirect=True)
def test_a_damaged_content_is_not_copied(two):
    row = two.source.cached(PAGES[7])
    two.source.files[row.fetched_fileid] = b"something else"
    with pytest.raises(NotTheSame, match=f"document {row.docid} is damaged"):
        two.move()
    two.source.files[row.fetched_fileid] = url(PAGES[7]).encode()
    before = two.facts(two.source)
    two.move()
    assert_moved(two, before)


# --- cost -------------------------------------------------------------------------------------------


@pytest.fixture
def crowded(request, ready):
    """A store with many rows in every table, most of them of another provider."""
    with closing(SqlStore(ready(request.param))) as store:
        with store.engine.begin() as connection:
            for name in KEYS:
                table = metadata.tables[name]
                whose = random.Random(name)
                connection.execute(table.insert(), [
                    _row(table, number, PID if whose.random() < ROWS / (ROWS + BESIDE) else STAYS)
                    for number in range(1, 1 + _rows_in(table, ROWS + BESIDE))
                ])  # fmt: skip
        yield store


def _rows_in(table, wanted):
    return 1 if [column.name for column in table.primary_key] == ["pid"] else wanted


def _row(table, number, pid):
    """Make a row whose keys are made of a number, and the rest of nothing much."""
    keys = {
        *KEYS[table.name],
        *(column.name for column in table.primary_key),
        "urlkey",
        "seq",
        "confirmed_seq",
    }
    found = {}
    for column in table.columns:
        kind = column.type.python_type
        value = number if column.name in keys else 1
        found[column.name] = (
            value.to_bytes(16, "big") if kind is bytes else kind(value % 2 if kind is bool else value)
        )
    return {name: value for name, value in found.items() if name != "pid"} | {"pid": pid}


@pytest.mark.parametrize("crowded", ["sqlite"], indirect=True)
def test_each_portion_is_read_along_an_index(crowded):
    asked = []
    sqlalchemy.event.listen(crowded.engine, "before_cursor_execute", lambda *a: asked.append(a[2:4]))
    tables = [name for name in KEYS if name != "tombstones"]
    for table in tables:
        with crowded.read() as tx:
            (row,) = tx.records(table, PID, None, 1)
            tx.records(table, PID, [row[name] for name in KEYS[table]], 10)
    questions = [one for one in asked if " LIMIT " in one[0]]
    assert len(questions) == 2 * len(tables)
    with crowded.engine.connect() as connection:
        for statement, values in questions:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
            slow = {row.detail for row in plan if "SCAN" in row.detail or "B-TREE" in row.detail}
            assert slow <= {"USE TEMP B-TREE FOR RIGHT PART OF ORDER BY"}, (
                statement
            )  # of one second, one login


@pytest.mark.parametrize("crowded", ["mariadb"], indirect=True)
def test_rows_of_others_are_not_read(crowded):
    for table in KEYS:
        with crowded.read() as tx:
            before = _rows_read(tx)
            place, count = None, 0
            while rows := tx.records(table, PID, place, 100):
                place, count = [rows[-1][name] for name in KEYS[table]], count + len(rows)
            read = _rows_read(tx) - before
        most = (
            2 * (ROWS + BESIDE) if table == "tombstones" else count
        )  # one pass through all, and their index
        assert read <= 1.2 * most + 200, table


def _rows_read(tx):
    found = tx._c.exec_driver_sql("SHOW SESSION STATUS LIKE 'Handler_read_%%'")
    return sum(int(value) for _, value in found)
