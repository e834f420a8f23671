"""Backups of every kind of database, and the new life of an LCC that was restored from one."""

import json
import shutil
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace

import pytest
import sqlalchemy
from any_rows import ROWS, TABLES, all_rows, execute, next_number, put_rows

from lcc_scrapy.db import schema
from lcc_scrapy.db.closed import CLOSED, Closed
from lcc_scrapy.db.sql import snapshot
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.db.tables import OF_A_PROCESS, machines, metadata, urlerrors
from lcc_scrapy.domain.cursor import StartOver
from lcc_scrapy.domain.errors import ConfigurationError, LccError
from lcc_scrapy.domain.providers import Wanted
from lcc_scrapy.feed.store_feed import GENERATION, LCC_ID, head_of
from lcc_scrapy.ops import backups, restoring
from lcc_scrapy.ops.backups import opened_backup, write_backup
from lcc_scrapy.ops.restoring import LEAP
from lcc_scrapy.runtime.apps import ours
from tests.made_databases import upgrade

KINDS = ["sqlite", "mariadb", "postgresql"]
NAME = "2f1c9a2e-0000-4000-8000-0000000000aa"
NOW = 1_800_000_000


class Interrupted(Exception):
    """The process is killed here."""


class Keeper:
    """One LCC's database, with the commands that an operator has."""

    def __init__(self, url, folder):
        self.url, self.folder = url, folder
        self.file = folder / "backup.sqlite"

    def found(self):
        """Begin an LCC; every table gets rows."""
        upgrade(self.url)
        put_rows(self.url)
        self.write(lambda tx: (tx.set_info(LCC_ID, NAME), tx.set_info(GENERATION, "1")))
        return self

    def write(self, work):
        with closing(SqlStore(self.url)) as store, store.begin() as tx:
            return work(tx)

    def read(self, work):
        with closing(SqlStore(self.url)) as store, store.read() as tx:
            return work(tx)

    def backup(self, progress=lambda _done, _total: None):
        with closing(SqlStore(self.url)) as store:
            write_backup(store, self.file, ours(), progress)
        return self.file

    def restore(self, *, fileid=0, logins=(), now=NOW, progress=lambda _done, _total: None):
        with (
            opened_backup(self.file, NAME, self.folder, ours()) as backup,
            closing(SqlStore(self.url)) as target,
        ):
            rows = restoring.restore(
                target,
                backup,
                self.folder,
                ours(),
                fileid=fileid,
                logins=dict(logins),
                now=now,
                progress=progress,
            )
        assert not list(self.folder.glob("restore.*"))
        return rows

    def rows(self, table):
        with closing(SqlStore(self.url)) as store, snapshot.snapshot(store, schema.tables_of()) as seen:
            return [row for page in seen.pages(table) for row in page]

    def counters(self):
        return self.read(lambda tx: {name: tx.peek(name) for name in ("feed", "fileid", "psetid", "lease")})


@pytest.fixture(params=KINDS)
def lcc(request, databases, tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot, "PAGE", 3)
    monkeypatch.setattr(backups, "PAGES", 1)
    return Keeper(databases.empty(request.param), tmp_path).found()


@pytest.fixture
def small(databases, tmp_path):
    return Keeper(databases.empty("sqlite"), tmp_path).found()


def sqlite_url(file):
    return f"sqlite:///{file}"


# --- backup --------------------------------------------------------------------------------------


def test_a_backup_is_one_file_with_everything_in_it(lcc):
    told = []
    lcc.backup(lambda *numbers: told.append(numbers))
    assert [path.name for path in lcc.folder.iterdir()] == ["backup.sqlite"]
    assert lcc.file.stat().st_mode & 0o777 == 0o600
    rows, copy = all_rows(lcc.url), all_rows(sqlite_url(lcc.file))
    assert (CLOSED, Closed.BACKUP) in copy["lccinfo"]
    copy["lccinfo"].remove((CLOSED, Closed.BACKUP))
    assert copy == rows
    assert all(rows.values())
    assert told[-1][0] == told[-1][1] > 1


def test_a_backup_shows_one_moment_while_others_write(lcc):
    before = all_rows(lcc.url)
    writer = threading.Thread(target=execute, args=(lcc.url, sqlalchemy.delete(machines)))

    def meanwhile(_done, _total):
        if not writer.ident:
            writer.start()
            writer.join(0.2)  # on SQLite it has to wait for us

    lcc.backup(meanwhile)
    writer.join()
    assert all_rows(sqlite_url(lcc.file))["machines"] == before["machines"]
    assert all_rows(lcc.url)["machines"] == []


def test_an_interrupted_backup_leaves_the_one_before_it(lcc):
    lcc.backup()
    before = lcc.file.read_bytes()

    def killed(_done, _total):
        raise Interrupted

    with pytest.raises(Interrupted):
        lcc.backup(killed)
    assert lcc.file.read_bytes() == before
    assert [path.name for path in lcc.folder.iterdir()] == ["backup.sqlite"]


def test_a_backup_does_not_replace_the_database(small, tmp_path):
    small.file = tmp_path / "link"
    small.file.symlink_to(sqlalchemy.make_url(small.url).database)
    with pytest.raises(ConfigurationError, match="the database itself"):
        small.backup()


def test_a_database_that_is_damaged_gives_no_backup(small):
    damage(sqlalchemy.make_url(small.url).database)
    with pytest.raises(LccError, match="damaged"):
        small.backup()
    assert list(small.folder.iterdir()) == []


# --- restore -------------------------------------------------------------------------------------


def without(rows, *tables):
    return {name: found for name, found in rows.items() if name not in {table.name for table in tables}}


def test_a_restored_database_has_the_rows_of_the_backup(lcc):
    before = all_rows(lcc.url)
    lcc.backup()
    execute(lcc.url, *(table.delete() for table in TABLES if table.name != "lccinfo"))
    lcc.restore()
    after = all_rows(lcc.url)
    changed = [metadata.tables[name] for name in ("pidb", "lccinfo", "counters")]
    of_processes = {column.table for column in of_a_process()}
    assert without(after, *changed, *of_processes) == without(before, *changed, *of_processes)
    assert {row[0]: row[1] for row in after["counters"]}.items() >= dict(before["counters"]).items()


def of_a_process():
    return [column for table in TABLES for column in table.columns if column.info == OF_A_PROCESS]


def test_nobody_works_in_a_restored_database(lcc):
    lcc.backup()
    lcc.restore()
    assert of_a_process()
    for column in of_a_process():
        named = [row[column.name] for row in lcc.rows(column.table)]
        assert named == [""] * ROWS


def test_a_restore_goes_into_a_database_of_another_kind(lcc, databases):
    lcc.backup()
    rows = all_rows(lcc.url)
    lcc.url = databases.empty("sqlite")
    lcc.restore()
    assert all_rows(lcc.url)["lccurl"] == rows["lccurl"]
    assert schema.pending(lcc.url) == []


def test_a_restored_lcc_begins_a_new_life(lcc):
    old = lcc.read(head_of)
    lcc.backup()
    lcc.restore()
    new = lcc.read(head_of)
    assert (new.lcc, new.generation) == (old.lcc, NOW)
    with pytest.raises(StartOver, match="restored from a backup"):
        old.check(new)
    wanted = {provider.fullsetwanted for provider in lcc.read(lambda tx: tx.providers())}
    assert wanted == {Wanted.CACHE_CRASH}
    assert lcc.read(lambda tx: tx.info(CLOSED)) is None


def test_two_restores_are_two_lives_even_in_one_second(small):
    small.backup()
    lives = [small.restore() and small.read(head_of).generation for _ in range(3)]
    assert lives == [NOW, NOW + 1, NOW + 2]


def take(tx, **counters):
    for name, count in counters.items():
        tx.take(name, count)


def test_numbers_go_on_above_those_of_the_database_that_is_replaced(lcc):
    pid = lcc.read(lambda tx: tx.providers()[0].pid)
    lcc.write(
        lambda tx: (take(tx, feed=10, fileid=3000, psetid=4), tx.update_provider(pid, {"lastconnseq": 5}))
    )
    lcc.backup()
    lcc.write(
        lambda tx: (
            take(tx, feed=10, fileid=2000, psetid=3, lease=9),
            tx.update_provider(pid, {"lastconnseq": 12}),
        )
    )
    rows = {table: next_number(lcc.url, table) for table in (machines, urlerrors)}
    lcc.restore(fileid=1)
    assert lcc.counters() == {"feed": 20, "fileid": 5000, "psetid": 7, "lease": 9}
    assert lcc.read(lambda tx: tx.provider(pid)).lastconnseq == 12
    assert {table: next_number(lcc.url, table) for table in rows} == {
        table: number + 1 for table, number in rows.items()
    }


def test_numbers_go_on_above_what_lies_on_disk_and_in_the_spool(small):
    pid = small.read(lambda tx: tx.providers()[0].pid)
    small.write(lambda tx: (take(tx, fileid=3000), tx.update_provider(pid, {"lastconnseq": 5})))
    small.backup()
    small.restore(fileid=4711, logins={pid: 8, 99: 3})
    assert small.counters()["fileid"] == 4711
    assert small.read(lambda tx: tx.provider(pid)).lastconnseq == 8


def test_counters_leap_when_the_database_before_is_gone(small, databases):
    small.write(lambda tx: take(tx, feed=10, fileid=3000))
    small.backup()
    small.url = databases.empty("sqlite")
    small.restore(fileid=4711)
    assert small.counters() == {"feed": LEAP + 10, "fileid": LEAP + 4711, "psetid": 0, "lease": 0}


def killed_at(place, small, monkeypatch):
    def killed(*_args):
        raise Interrupted

    with monkeypatch.context() as patched:
        if place != "fill":
            patched.setattr(restoring, place, killed)
        with pytest.raises(Interrupted):
            small.restore(fileid=4711, logins={1: 2}, progress=killed if place == "fill" else lambda *_: None)


@pytest.mark.soak_of("postgresql")
@pytest.mark.parametrize("place", ["make_anew", "fill", "_begin_new_life", "reopen"])
def test_an_interrupted_restore_is_closed_and_can_be_made_again(lcc, place, monkeypatch):
    lcc.write(lambda tx: take(tx, fileid=3000))
    lcc.backup()
    lcc.write(lambda tx: take(tx, feed=7, fileid=3000))
    killed_at(place, lcc, monkeypatch)
    if place != "make_anew":
        assert lcc.read(lambda tx: tx.info(CLOSED)) == Closed.RESTORING
    lcc.restore()
    assert lcc.counters() == {"feed": 7, "fileid": 6000, "psetid": 0, "lease": 0}
    assert len(all_rows(lcc.url)["lccurl"]) == ROWS
    assert lcc.read(lambda tx: tx.info(CLOSED)) is None


def test_an_interrupted_restore_leaps_only_once(small, databases, monkeypatch):
    small.write(lambda tx: take(tx, fileid=3000))
    small.backup()
    small.url = databases.empty("sqlite")
    killed_at("fill", small, monkeypatch)
    small.restore(fileid=4711)
    assert small.counters()["fileid"] == LEAP + 4711


def test_notes_of_a_restore_that_nobody_finished_do_not_keep_counters_from_leaping(
    small, databases, monkeypatch
):
    small.write(lambda tx: take(tx, fileid=3000))
    small.backup()
    killed_at("make_anew", small, monkeypatch)
    small.write(lambda tx: take(tx, fileid=5000))
    small.url = databases.empty("sqlite")
    small.restore()
    assert small.counters()["fileid"] == LEAP + 4711


def test_what_a_killed_restore_left_in_the_folder_is_cleared_away(small):
    small.backup()
    (small.folder / "restore").mkdir()
    (small.folder / "restore" / "lcc.sqlite-journal").write_bytes(b"hot")
    assert small.restore()
    assert not (small.folder / "restore").exists()


def test_what_the_interrupted_restore_knew_is_a_file_that_people_can_read(small, monkeypatch):
    small.write(lambda tx: take(tx, fileid=3000))
    small.backup()
    killed_at("fill", small, monkeypatch)
    assert json.loads((small.folder / "restore.json").read_text())["counters"]["fileid"] == 4711


# --- files that are no backup --------------------------------------------------------------------


def damage(file):
    """Overwrite a page in the middle, as a bad disk does."""
    with open(file, "r+b") as opened:
        opened.seek(5 * 4096)
        opened.write(b"\xaa" * 4096)


def truncate(file):
    file.write_bytes(file.read_bytes()[: 9 * 4096 + 100])


def empty(file):
    file.write_bytes(b"")


def text(file):
    file.write_text("not a database\n" * 1000)


def foreign(file):
    file.unlink()
    execute(sqlite_url(file), "create table orders (number integer)")


def half_copied(file):
    execute(sqlite_url(file), f"update lccinfo set value = 'copying' where name = '{CLOSED}'")


def of_another_lcc(file):
    execute(sqlite_url(file), f"update lccinfo set value = 'another' where name = '{LCC_ID}'")


def of_a_newer_version(file):
    execute(sqlite_url(file), f"update {schema.VERSION_TABLE} set version_num = '9999'")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (damage, "is damaged or no backup"),
        (truncate, "is damaged or no backup"),
        (empty, "is no backup of an LCC"),
        (text, "is damaged or no backup"),
        (foreign, "is no backup of an LCC"),
        (half_copied, "half a copy"),
        (of_another_lcc, "backup of another LCC"),
        (of_a_newer_version, "install the newer one"),
    ],
)
def test_what_is_no_backup_is_refused_with_one_line_and_changes_nothing(small, spoil, reason):
    spoil(small.backup())
    before, files = all_rows(small.url), set(small.folder.iterdir())
    with pytest.raises(LccError, match=reason) as told:
        small.restore()
    assert "\n" not in str(told.value)
    assert (all_rows(small.url), set(small.folder.iterdir())) == (before, files)


def test_a_plain_copy_of_the_database_file_is_a_backup_too(small):
    shutil.copyfile(sqlalchemy.make_url(small.url).database, small.file)
    assert small.restore()


def test_a_backup_of_an_earlier_version_is_brought_up_to_date(small, tmp_path_factory, monkeypatch):
    small.backup()
    before = small.file.read_bytes()
    newer = tmp_path_factory.mktemp("newer") / "migrations"
    shutil.copytree(schema._MIGRATIONS, newer)
    (newer / "versions" / "9999_newest.py").write_text(
        '"""The newest schema."""\n\nfrom alembic import op\n\nrevision = "9999"\n'
        f'down_revision = "{schema.CORE.newest()}"\n\n\n'
        "def upgrade() -> None:\n    op.execute(\"UPDATE machines SET note = 'upgraded'\")\n"
    )
    monkeypatch.setattr(schema, "_MIGRATIONS", newer)
    monkeypatch.setattr(schema, "CORE", replace(schema.CORE, folder=newer / "versions"))
    small.restore()
    assert {row[2] for row in all_rows(small.url)["machines"]} == {"upgraded"}
    assert schema.pending(small.url) == []
    assert small.file.read_bytes() == before


def test_a_damaged_database_that_is_replaced_says_what_to_do(small):
    small.backup()
    file = sqlalchemy.make_url(small.url).database
    with open(file, "r+b") as opened:
        opened.write(b"no database")
    with (
        closing(SqlStore(small.url)) as store,
        pytest.raises(LccError, match=r"not a database; .* move it away or drop it"),
    ):
        restoring.holds_rows(store, NAME, ours())


@pytest.mark.parametrize("why", [Closed.MOVED, Closed.BACKUP])
def test_a_database_that_is_closed_for_good_is_not_replaced(small, why):
    small.write(lambda tx: tx.set_info(CLOSED, why))
    with closing(SqlStore(small.url)) as store, pytest.raises(ConfigurationError):
        restoring.holds_rows(store, NAME, ours())


def test_the_database_of_another_lcc_is_not_replaced(small):
    with closing(SqlStore(small.url)) as store, pytest.raises(ConfigurationError, match="something else"):
        restoring.holds_rows(store, "another", ours())


def test_tables_that_the_operator_made_beside_those_of_the_lcc_stay(small):
    small.backup()
    execute(small.url, "create table reports (number integer)", "insert into reports values (42)")
    with closing(SqlStore(small.url)) as store:
        assert restoring.holds_rows(store, NAME, ours())
    small.restore()
    with closing(sqlite3.connect(sqlalchemy.make_url(small.url).database)) as connection:
        assert connection.execute("select number from reports").fetchall() == [(42,)]


def test_an_older_database_is_upgraded_before_it_is_replaced(small):
    execute(small.url, f"delete from {schema.VERSION_TABLE}")
    with closing(SqlStore(small.url)) as store, pytest.raises(ConfigurationError, match="lcc db upgrade"):
        restoring.holds_rows(store, NAME, ours())


def test_an_empty_database_is_replaced_without_asking(small, databases):
    for url, holds in ((small.url, True), (databases.empty("sqlite"), False)):
        with closing(SqlStore(url)) as store:
            assert restoring.holds_rows(store, NAME, ours()) is holds


def test_sqlite_finds_the_page_that_the_tests_damage(small):
    file = small.backup()
    damage(file)
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok"
