"""``lcc`` as its users run it: real processes, real folders, SQLite and MariaDB."""

import csv
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC
from hashlib import md5, sha256
from pathlib import Path

import pytest
from click.testing import CliRunner

from lcc_scrapy.cli import initialise
from lcc_scrapy.cli.main import lcc as lcc_group
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.db import schema
from lcc_scrapy.db.records import Spidered, WorkerRow
from lcc_scrapy.db.sql import store as sql_store
from lcc_scrapy.db.sql.store import SqlStore, make_engine
from lcc_scrapy.db.tables import metadata
from lcc_scrapy.domain.cache import Answer, Body
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.entries import Operation, UrlEntry, furlkey, urlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.queue import Failed, Place, Served
from lcc_scrapy.login.passwords import verify_password
from lcc_scrapy.machine.data_directory import WorkerSlot
from lcc_scrapy.queue.leases import take_turns
from lcc_scrapy.queue.settlement import Settlement
from lcc_scrapy.queue.unit_of_work import UnitOfWork
from lcc_scrapy.queue.window_rows import Wanted, windows_of
from tests.forkserver import run
from tests.harness import BIN
from tests.made_databases import make_sqlite

ROOT = Path(__file__).parents[2]
SEED_QUERY = (
    "select furl, mimetype, fetched_machineid, fetched_fileid\n  from lccurl\n where fetched_time > 0;"
)
SITE = "http://www.example.org/"
PID = 7


class House:
    """One LCC in a folder of its own, with the command line that belongs to it."""

    def __init__(self, folder, url=""):
        self.folder = folder
        self.data = folder / "lcc-data"
        self.url = url or f"sqlite:///{self.data}/lcc.sqlite"
        self.settings = {"LCC_DATA_DIR": str(self.data), **({"LCC_DATABASE_URL": url} if url else {})}
        self.settings["LCC_MIMETYPES"] = "*/*"
        self.policy = QueuePolicy()

    @property
    def environment(self):
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("LCC_", "SCRAPY_"))
        }
        return {**clean, **self.settings, "PYTHONWARNINGS": "error"}

    def run(self, *words, stdin="", cwd=None, **environment):
        """Run a real process."""
        return run(
            [str(BIN / "lcc"), *words], env=self.environment | environment, cwd=cwd or self.folder, text=stdin
        )

    def lcc(self, *words, status=0, stdin=""):
        """Run a command in this process; returns its result, whose exit status must be ``status``."""
        kept = {name: None for name in os.environ if name.startswith(("LCC_", "SCRAPY_"))}
        if words == ("init",) and "LCC_DATABASE_URL" not in self.settings and not self.data.exists():
            make_sqlite(self.data / "lcc.sqlite")  # `lcc init` would run every migration
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            result = CliRunner().invoke(lcc_group, words, input=stdin, env={**kept, **self.settings})
        finally:
            os.chdir(before)
        assert result.exit_code == status, (words, result.output, result.exception)
        assert "Traceback" not in result.output
        return result

    def json(self, *words):
        return json.loads(self.lcc(*words, "--json").stdout)

    def add(self, pid=PID, *options):
        return self.lcc(
            "provider", "add", str(pid), "--password-file", "-", "--root", SITE, *options, stdin="secret\n"
        )

    # --- what a crawl would do -------------------------------------------------------------------

    def store(self):
        return SqlStore(self.url)

    def push(self, *names, pid=PID, operation=Operation.UPDATE, mimetype="text/html"):
        store = self.store()
        with store.begin() as tx:
            psetid = tx.take("psetid", 1)
            entries = [UrlEntry(SITE + name, mimetype, operation, SITE + name, SITE + name) for name in names]
            keys = [urlkey(pid, entry.curl, entry.mimetype) for entry in entries]
            batch = UnitOfWork(tx, [pid], keys, int(time.time()), QueuePolicy())
            for position, entry in enumerate(entries, 1):
                batch.arrive(pid, entry, Place(psetid, position))
            batch.flush()
        store.close()

    def tickets(self, tx, pid):
        granted = take_turns(tx, "1/9", time.time(), limit=9, only=pid)[0]
        wanted = Wanted(granted.lease, tuple(granted.members), 10_000, ())
        return windows_of(tx, [wanted], time.time(), zone=UTC)[0].tickets

    def settle(self, outcome_of, pid=PID):
        store, content = self.store(), ContentFiles(self.data / "content", 1)
        content.prepare()
        with store.begin() as tx:
            Settlement(
                tx, [outcome_of(ticket) for ticket in self.tickets(tx, pid)], owner="1/9", machineid=1,
                now=int(time.time()), policy=self.policy,
                keep=lambda served: content.keep([(one.fileid, one.body) for one in served]),
            ).run()  # fmt: skip
            tx.free_turns_of("1/9")
        store.close()

    def fetch(self, pid=PID, body=b"", at=None):
        def served(ticket):
            data = body or ticket.row.curl.encode()
            digests = md5(data).hexdigest(), sha256(data).hexdigest()
            at_ = at or int(time.time())
            answer = Answer(
                200,
                ticket.row.furl,
                ticket.row.mimetype,
                "utf-8",
                "",
                "",
                "[]",
                "HTTP/1.1 200 OK",
                "192.0.2.1",
                at_,
            )
            return Served(ticket, answer, Body(len(data), *digests, data=data))

        self.settle(served, pid)

    def fail(self, code, pid=PID):
        self.settle(lambda ticket: Failed(ticket, code, "", int(time.time()), final=True), pid)

    def documents(self, *names, pid=PID, **options):
        self.push(*names, pid=pid, **options)
        self.fetch(pid)

    def query(self, text):
        engine = make_engine(self.url)
        with engine.connect() as connection:
            rows = [tuple(row) for row in connection.exec_driver_sql(text)]
        engine.dispose()
        return rows


def drop_everything(url):
    store = SqlStore(url)
    with store.engine.connect() as connection, connection.begin():
        for table in metadata.tables.values():
            connection.execute(table.delete())
        connection.exec_driver_sql("ALTER TABLE machines AUTO_INCREMENT = 1")
    store.close()


@pytest.fixture(params=["sqlite", "mariadb"])
def house(request, tmp_path):
    url = ""
    if request.param == "mariadb":
        url = request.getfixturevalue("databases").url("mariadb")
        drop_everything(url)
    made = House(tmp_path, url)
    made.lcc("init")
    return made


@pytest.fixture
def small(tmp_path):
    """A house on SQLite with a provider."""
    made = House(tmp_path)
    made.lcc("init")
    made.add()
    return made


def one_error(result):
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[-1].startswith("lcc: error: ")
    assert len(lines) == 1, lines
    return lines[-1]


# --- init ----------------------------------------------------------------------------------------


def test_init_makes_a_data_folder_once(tmp_path):
    house = House(tmp_path)
    house.lcc("init")
    assert {path.name for path in house.data.iterdir()} >= {
        "lcc.json",
        "lcc.sqlite",
        "content",
        "spool",
        "workers",
    }
    assert not list(house.data.glob("*.new"))
    before = {path: path.read_bytes() for path in house.data.rglob("*") if path.is_file()}
    assert "is a data directory already" in one_error(house.lcc("init", status=1))
    assert {path: path.read_bytes() for path in house.data.rglob("*") if path.is_file()} == before


def test_the_database_knows_the_id_of_its_data_folder(house):
    facts = dict(house.query("select name, value from lccinfo"))
    assert facts["lcc"] == json.loads((house.data / "lcc.json").read_text())["lcc"]
    assert facts["generation"] == "1"
    assert house.json("status")["lcc"] == facts["lcc"]


def test_without_a_data_folder_one_line_says_what_to_do(tmp_path):
    house = House(tmp_path)
    for words in (
        ["status"],
        ["select"],
        ["verify"],
        ["provider", "list"],
        ["db", "upgrade"],
        ["path", "1", "1"],
    ):
        assert "run `lcc init` there first, or set LCC_DATA_DIR" in one_error(house.lcc(*words, status=1))
    assert not house.data.exists()


def test_outside_a_project_the_data_folder_must_be_named(tmp_path):
    house = House(tmp_path)
    del house.settings["LCC_DATA_DIR"]
    for words in (["status"], ["init", "--machine"], ["provider", "list"], ["db", "upgrade"]):
        assert "LCC_DATA_DIR" in one_error(house.lcc(*words, status=1))
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["_upgraded", "_claim", "_register", "_make"])
def test_an_interrupted_init_is_simply_done_again(tmp_path, monkeypatch, step):
    house = House(tmp_path)
    real = getattr(initialise, step)

    def killed(*args):
        real(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(initialise, step, killed)
        house.lcc("init", status=1)
    assert "run `lcc init`" in one_error(house.lcc("status", status=1))
    house.lcc("init")
    assert house.json("status")["documents"] == 0
    assert house.query("select count(*) from machines") == [(1,)]


@pytest.mark.parametrize("number", range(6))
def test_init_survives_kill_9_at_any_moment(tmp_path, number):
    house = House(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "lcc_scrapy.cli.main", "init"], env=house.environment, cwd=tmp_path
    )
    time.sleep(0.3 + number * 0.15)
    process.send_signal(signal.SIGKILL)
    process.wait()
    if not (house.data / "lcc.json").exists():
        house.lcc("init")
    assert house.json("status")["documents"] == 0


def test_a_database_of_another_lcc_is_refused(house, tmp_path):
    (tmp_path / "second").mkdir()
    second = House(tmp_path / "second", house.url)
    assert "belongs to an LCC already" in one_error(second.lcc("init", status=1))
    assert not (second.data / "lcc.json").exists()


def test_a_second_machine_joins_an_lcc(house, tmp_path):
    (tmp_path / "second").mkdir()
    second = House(tmp_path / "second", house.url)
    assert "machine 2" in second.lcc("init", "--machine").stdout
    assert second.json("status")["lcc"] == house.json("status")["lcc"]
    assert "machine 2" in second.lcc("init", "--machine").stdout


def test_a_machine_cannot_join_what_is_not_there(tmp_path):
    house = House(tmp_path)
    assert "no LCC exists yet" in one_error(house.lcc("init", "--machine", status=1))
    assert not house.data.exists()


def test_a_data_folder_with_the_database_of_another_lcc_is_refused(small, tmp_path):
    (tmp_path / "second").mkdir()
    second = House(tmp_path / "second")
    second.lcc("init")
    second.settings["LCC_DATABASE_URL"] = small.url
    assert "belong to different LCCs" in one_error(second.lcc("status", status=1))
    assert "another LCC" in one_error(second.lcc("init", "--machine", status=1))


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("mysql://root@127.0.0.1:1/lcc", "Connection refused"),
        ("mysql://root@127.0.0.1/there_is_none", "Unknown database"),
        ("mysql://nobody:s3cret@127.0.0.1/lcc", "Access denied"),
        ("sqlite:////proc/lcc.sqlite", "unable to open database file"),
        ("oracle://x/y", "not supported"),
        ("nonsense", "LCC_DATABASE_URL"),
    ],
)
def test_a_database_that_cannot_be_used_is_named(tmp_path, url, text):
    house = House(tmp_path, url)
    line = one_error(house.lcc("init", status=1))
    assert text in line
    assert "s3cret" not in line
    assert not (house.data / "lcc.json").exists()


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    house = House(tmp_path)
    house.settings["LCC_DATA_DIR"] = str(tmp_path / "file" / "data")
    assert "Not a directory" in one_error(house.lcc("init", status=1))


def test_a_database_that_is_not_writable_is_named(small, monkeypatch):
    prepare = sql_store._prepare_sqlite

    def read_only(connection, record):
        prepare(connection, record)
        connection.execute("PRAGMA query_only=1")

    monkeypatch.setattr(sql_store, "_prepare_sqlite", read_only)
    assert "readonly database" in one_error(small.lcc("provider", "pause", "7", status=1))


# --- settings, errors, exit statuses -------------------------------------------------------------


def test_settings_come_from_the_project_the_environment_and_the_command_line(tmp_path):
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = my_project_settings\n")
    (tmp_path / "my_project_settings.py").write_text("LCC_FULLSETS = 3\n")
    (tmp_path / "deeper").mkdir()
    house = House(tmp_path)
    del house.settings["LCC_DATA_DIR"]
    add = ["--password-file", "-", "--root", SITE]
    assert house.run("init", cwd=tmp_path / "deeper").returncode == 0
    house.run("provider", "add", "1", *add, stdin="x\n")
    house.run("provider", "add", "2", *add, stdin="x\n", LCC_FULLSETS="4")
    house.run("-s", "LCC_FULLSETS=5", "provider", "add", "3", *add, stdin="x\n", LCC_FULLSETS="4")
    found = json.loads(house.run("provider", "list", "--json", cwd=tmp_path / "deeper").stdout)
    assert [one["fullsetsallowed"] for one in found] == [3, 4, 5]
    assert (tmp_path / "lcc-data" / "lcc.json").exists()


def test_a_broken_project_is_one_line(tmp_path):
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = there_is_none\n")
    done = House(tmp_path).run("status")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("lcc: error: cannot read the settings of this Scrapy project")


def test_an_unknown_setting_gives_one_warning(small):
    small.settings["LCC_DATA_DRI"] = "x"
    result = small.lcc("-s", "LCC_FOO=1", "status")
    assert result.stderr == "lcc: warning: unknown setting LCC_DATA_DRI, LCC_FOO\n"


def test_a_setting_that_cannot_be_read_is_named(small):
    assert "LCC_LEASE" in one_error(small.lcc("-s", "LCC_LEASE=soon", "status", status=1))


@pytest.mark.parametrize(
    "words",
    [
        ["--frob"],
        ["frob"],
        ["status", "--frob"],
        ["-s", "nonsense", "status"],
        ["provider", "show", "x"],
        ["provider", "add", "8"],
        ["provider", "add", "0", "--root", SITE],
        ["provider", "set", "7"],
        ["provider", "set", "7", "--timezone", "Mars/Olympus"],
        ["provider", "set", "7", "--timeofday", "noon"],
        ["provider", "set", "7", "--timeofday", "0" * 168],
        ["provider", "set", "7", "--bandwidth", "fast"],
        ["provider", "set", "7", "--priority", "3"],
        ["provider", "set", "7", "--fullsets", "-1"],
        ["provider", "set", "7", "--filesmax", "-1"],
        ["provider", "set", "7", "--name", "two\nlines"],
        ["provider", "remove", "7"],
        ["provider", "want-full", "--reason", "old files"],
        ["provider", "want-full", "7", "--all", "--reason", "old files"],
        ["provider", "want-full", "7", "--reason", "x" * 33],
        ["path"],
        ["path", "1"],
        ["path", "--docid", "xyz"],
        ["select", "--mimetype", "html"],
        ["select", "--since-time", "yesterday"],
        ["select", "--since", "x", "--cursor-file", "y"],
        ["select", "--limit", "0"],
    ],
)
def test_wrong_usage_is_status_2_and_changes_nothing(small, words):
    before = small.json("provider", "show", "7")
    result = small.lcc(*words, status=2)
    assert result.stdout == ""
    assert "Error: " in result.stderr
    assert small.json("provider", "show", "7") == before


def test_help_works_without_any_lcc(tmp_path):
    for words in (["--help"], ["-h"], ["provider", "add", "--help"], ["select", "--help"]):
        assert "lcc" in House(tmp_path).lcc(*words).stdout


def test_an_older_database_asks_for_an_upgrade(small):
    with sqlite3.connect(small.data / "lcc.sqlite") as connection:
        connection.execute(f"delete from {schema.VERSION_TABLE}")
    connection.close()
    assert "lcc db upgrade" in one_error(small.lcc("status", status=1))


def test_upgrade_says_that_there_is_nothing_to_do(house):
    assert "up to date" in house.lcc("db", "upgrade").stdout
    assert "up to date" in house.lcc("db", "upgrade", "--dry-run").stdout


# --- providers -----------------------------------------------------------------------------------


def test_a_provider_is_added_with_everything_that_was_said(house):
    house.add(
        PID, "--name", "Example", "--contact", "web@example.org", "--bandwidth", "200k", "--timeofday",
        "mon-fri 20-06", "--timezone", "Europe/Amsterdam", "--priority", "1", "--filesmax", "10", "--spacemax", "2M",
        "--fullsets", "unlimited", "--allow-private", "--ignore-robots", "--strict-mtime", "--declared", "strict",
        "--revisit", "2h..18h",
        "--root", "https://docs.example.org/a/",
    )  # fmt: skip
    found = house.json("provider", "show", "7")
    assert (found["name"], found["contact"]) == ("Example", "web@example.org")
    assert (found["bandwidth"], found["filesmax"], found["spacemax"]) == (200_000, 10, 2_000_000)
    assert (found["timezone"], found["priority"], found["fullsetsallowed"]) == ("Europe/Amsterdam", 1, None)
    assert (found["allowprivate"], found["ignorerobots"], found["strictmtime"]) == (True, True, True)
    assert (found["declared"], found["state"], found["revisit"]) == ("strict", "active", "7200..21600..64800")
    assert found["roots"] == [SITE, "https://docs.example.org/a/"]
    assert "password" not in found
    text = house.lcc("provider", "show", "7").stdout
    assert "mon-fri 20-6 (Europe/Amsterdam)" in text
    assert "2h..6h..18h" in text
    assert "argon2" not in text
    assert "argon2" not in house.lcc("provider", "list", "--json").stdout
    known = house.query("select password from pidb")[0][0]
    assert verify_password(known, "secret")


def test_types_of_one_provider_are_set_shown_and_taken_back(small):
    small.lcc("provider", "set", "7", "--mimetype", "Image/*", "--mimetype", "application/postscript")
    assert small.json("provider", "show", "7")["mimetypes"] == "image/* application/postscript"
    assert "image/* application/postscript" in small.lcc("provider", "show", "7").stdout
    small.lcc("provider", "set", "7", "--mimetype", "default")
    assert "(LCC_MIMETYPES)" in small.lcc("provider", "show", "7").stdout
    assert small.lcc("provider", "set", "7", "--mimetype", "*/png", status=2)
    assert small.json("status")["refused_types"] == 0


def test_how_often_spiders_come_again_is_set_and_taken_back(small):
    small.lcc("provider", "set", "7", "--revisit", "10m..1d..30d")
    assert small.json("provider", "show", "7")["revisit"] == "600..86400..2592000"
    assert "10m..1d..30d" in small.lcc("provider", "show", "7").stdout
    small.lcc("provider", "set", "7", "--revisit", "default")
    assert "1h..1d..30d (LCC_REVISIT)" in small.lcc("provider", "show", "7").stdout
    for wrong in ("1h", "0s..1h", "2h..1h", "1h..x", "1h..30m..2h", "1..2..3..4", f"1h..{'9' * 400}d"):
        assert (
            "expected rising intervals"
            in small.lcc("provider", "set", "7", "--revisit", wrong, status=2).stderr
        )


def test_what_is_not_said_has_its_default(small):
    found = small.json("provider", "show", "7")
    assert (found["fullsetsallowed"], found["fullsetsleft"]) == (10, 10)
    assert (found["bandwidth"], found["timeofday"], found["declared"]) == (0, "", "")
    assert found["created"] > time.time() - 60


def test_passwords_come_from_a_file_the_environment_or_stdin(small, tmp_path):
    (tmp_path / "pw").write_text("from file\nsecond line\n")
    (tmp_path / "pw").chmod(0o600)
    small.settings["LCC_PWD"] = "from environment"
    assert small.lcc("provider", "add", "1", "--root", SITE).stderr == ""
    assert small.lcc("provider", "add", "2", "--root", SITE, "--password-file", "pw").stderr == ""
    small.lcc("provider", "set", "7", "--name", "x")
    known = dict(small.query("select pid, password from pidb"))
    assert verify_password(known[1], "from environment")
    assert verify_password(known[2], "from file")
    assert verify_password(known[7], "secret")
    (tmp_path / "pw").chmod(0o644)
    assert "others may read pw" in small.lcc("provider", "set", "7", "--password-file", "pw").stderr
    assert verify_password(dict(small.query("select pid, password from pidb"))[7], "from file")


@pytest.mark.parametrize("content", [b"", b"\nsecond line", b"\xff\xfe", b"a\0b", b"x" * 2000])
def test_a_password_that_cannot_be_used_is_refused(small, tmp_path, content):
    (tmp_path / "pw").write_bytes(content)
    (tmp_path / "pw").chmod(0o600)
    one_error(small.lcc("provider", "add", "8", "--root", SITE, "--password-file", "pw", status=1))
    one_error(small.lcc("provider", "add", "8", "--root", SITE, "--password-file", "missing", status=1))
    assert len(small.json("provider", "list")) == 1


def test_a_root_without_a_scheme_says_what_to_write(small):
    result = small.lcc(
        "provider", "add", "8", "--password-file", "-", "--root", "www.example.org", status=1, stdin="x"
    )
    assert (
        one_error(result) == "lcc: error: root 'www.example.org' has no scheme: write http://www.example.org"
    )


def test_a_private_root_without_permission_is_warned_of(small):
    words = ["--password-file", "-", "--root", "http://127.0.0.1:8000/"]
    assert "without --allow-private" in small.lcc("provider", "add", "8", *words, stdin="x").stderr
    assert small.lcc("provider", "add", "9", *words, "--allow-private", stdin="x").stderr == ""


def test_a_pid_is_taken_once_for_ever(small):
    assert (
        "exists already"
        in small.lcc(
            "provider", "add", "7", "--password-file", "-", "--root", SITE, status=1, stdin="x"
        ).stderr
    )
    small.lcc("provider", "remove", "7", "--yes")
    assert (
        "never used again"
        in small.lcc(
            "provider", "add", "7", "--password-file", "-", "--root", SITE, status=1, stdin="x"
        ).stderr
    )


def test_set_changes_what_is_named_and_nothing_else(house):
    house.add(PID, "--bandwidth", "5k", "--allow-private")
    before = house.json("provider", "show", "7")
    house.lcc(
        "provider",
        "set",
        "7",
        "--timeofday",
        "0-8",
        "--no-allow-private",
        "--fullsets",
        "unlimited",
        "--name",
        "N",
    )
    after = house.json("provider", "show", "7")
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"timeofday", "allowprivate", "fullsetsallowed", "fullsetsleft", "name", "revision"}
    house.lcc("provider", "set", "7", "--timeofday", "always", "--timezone", "default", "--bandwidth", "0")
    assert house.json("provider", "show", "7")["timeofday"] == ""


def test_roots_are_replaced_added_and_taken_away(small):
    def roots(*words, status=0):
        result = small.lcc("provider", "set", "7", *words, status=status)
        return small.json("provider", "show", "7")["roots"] if not status else result

    assert roots("--add-root", "http://b.org/", "--add-root", SITE) == [SITE, "http://b.org/"]
    assert roots("--remove-root", SITE) == ["http://b.org/"]
    assert "needs a root" in one_error(roots("--remove-root", "http://b.org/", status=1))
    assert "none of its roots" in one_error(roots("--remove-root", SITE, status=1))
    assert roots("--root", "http://c.org", "--root", "http://d.org/") == ["http://c.org/", "http://d.org/"]


def test_pausing_resuming_and_wanting_full_sets(small):
    small.lcc("provider", "pause", "7")
    assert small.json("status")["providers"] == {"paused": 1}
    small.lcc("provider", "resume", "7")
    assert small.json("status")["providers"] == {"active": 1}
    small.lcc("provider", "pause", "--all")
    assert small.json("status")["paused"] is True
    assert "lcc provider resume --all" in small.lcc("status").stdout
    assert small.json("status")["providers"] == {"active": 1}
    small.lcc("provider", "resume", "--all")
    assert small.json("status")["paused"] is False
    assert "give a PID, or --all" in small.lcc("provider", "pause", status=2).stderr
    small.add(8)
    said = small.lcc("provider", "want-full", "7", "--reason", "old files").stdout
    assert said == "a full set is wanted from provider 7: old files\n"
    assert small.json("provider", "show", "7")["fullsetwanted"] == "old files"
    assert "2 providers" in small.lcc("provider", "want-full", "--all", "--reason", "cache crash").stdout
    assert small.json("status")["full_sets_wanted"] == 2
    said = small.lcc("provider", "want-full", "7", "--reason", "moving").stdout
    assert said == "a full set is wanted from provider 7: cache crash\n"
    small.lcc("provider", "want-full", "7", "--reason", "")
    assert small.json("provider", "show", "7")["fullsetwanted"] == ""


@pytest.mark.parametrize(
    "words",
    [["show", "9"], ["set", "9", "--name", "x"], ["remove", "9", "--yes"], ["pause", "9"], ["resume", "9"],
     ["want-full", "9", "--reason", "old files"], ["confirm-removals", "9"]],
)  # fmt: skip
def test_an_unknown_provider_is_one_line(small, words):
    assert "there is no provider 9" in one_error(small.lcc("provider", *words, status=1))
    assert "there is no provider 9" in one_error(small.lcc("errors", "9", status=1))


def test_a_provider_joins_and_leaves_a_group(house):
    house.add(PID, "--group", "farm")
    house.push("a")
    assert house.json("provider", "show", "7")["turngroup"] == "farm"
    house.lcc("provider", "set", "7", "--group", "other")
    assert house.json("provider", "show", "7")["turngroup"] == "other"
    house.lcc("provider", "set", "7", "--group", "")
    store = house.store()
    with store.read() as tx:
        assert (tx.turn("7").waiting, tx.turn("farm"), tx.turn("other")) == (1, None, None)
    store.close()
    assert "expected a letter" in house.lcc("provider", "set", "7", "--group", "7", status=2).stderr


def test_held_removals_are_shown_and_carried_out(house):
    house.add()
    names = [str(number) for number in range(30)]
    house.documents(*names)
    house.push(*names, operation=Operation.REMOVE)
    found = house.json("status")
    assert (found["documents"], found["held_removals"], found["held_by_provider"]) == (10, 10, {"7": 10})
    assert house.lcc("status").stdout.splitlines()[-2:] == [
        "held            10 removals wait for `lcc provider confirm-removals`",
        "                provider 7: 10",
    ]
    assert "10, see `lcc provider confirm-removals 7`" in house.lcc("provider", "show", "7").stdout
    assert house.lcc("provider", "confirm-removals", "7").stdout == "10 documents removed\n"
    assert house.json("status")["documents"] == 0
    assert house.lcc("status").stdout.splitlines()[-1] == (
        "held            0 removals wait for `lcc provider confirm-removals`"
    )
    assert house.lcc("provider", "confirm-removals", "7").stdout == "0 documents removed\n"


def test_what_lies_outside_of_changed_roots_goes_or_is_held(house):
    house.add()
    house.documents(*[f"old/{number}" for number in range(25)], *[f"new/{number}" for number in range(5)])
    house.push("old/x", "old/y", "new/x")
    held = house.lcc("provider", "set", "7", "--root", f"{SITE}new/")
    assert held.stdout.splitlines() == [
        "provider 7 changed",
        (
            "25 documents outside its roots are held, they are too many for a day:"
            " `lcc provider confirm-removals 7` removes them"
        ),
        "2 waiting URLs outside its roots dropped; their provider is told (704)",
    ]
    assert "25, see `lcc provider confirm-removals 7`" in house.lcc("provider", "show", "7").stdout
    assert [error["code"] for error in house.json("errors", "7")["errors"]] == [704, 704]
    assert house.json("status")["queued"] == 1
    wider = house.lcc("provider", "set", "7", "--add-root", f"{SITE}old/")
    assert wider.stdout.splitlines() == [
        "provider 7 changed",
        "25 held documents are inside its roots again, and stay",
    ]
    few = house.lcc("provider", "set", "7", "--remove-root", f"{SITE}new/")
    assert few.stdout.splitlines() == [
        "provider 7 changed",
        "5 documents outside its roots removed",
        "1 waiting URLs outside its roots dropped; their provider is told (704)",
    ]
    assert house.lcc("provider", "set", "7", "--name", "N").stdout == "provider 7 changed\n"
    assert house.json("status")["documents"] == 25


def test_a_change_of_roots_that_was_interrupted_is_run_again(house):
    house.add()
    house.documents("old/1", "new/1")
    house.lcc("provider", "set", "7", "--add-root", f"{SITE}new/")
    store = house.store()
    with store.begin() as tx:
        tx.replace_roots(PID, [f"{SITE}new/"])
        tx.update_provider(PID, {"narrowing": True})
    store.close()
    assert "not all documents were looked at" in house.lcc("provider", "show", "7").stdout
    again = house.lcc("provider", "set", "7", "--remove-root", SITE)
    assert again.stdout.splitlines() == ["provider 7 changed", "1 documents outside its roots removed"]
    assert "not all documents were looked at" not in house.lcc("provider", "show", "7").stdout
    assert "none of its roots" in one_error(
        house.lcc("provider", "set", "7", "--remove-root", SITE, status=1)
    )


def test_documents_that_expire_are_told_of(house):
    house.add()
    house.documents("a", "b")
    assert house.json("status")["expiring"] == {}
    house.lcc("provider", "want-full", "7", "--reason", "expired files")
    assert house.json("status")["expiring"] == {"7": 2}
    assert house.lcc("status").stdout.splitlines()[-1] == (
        "expiring        provider 7: its documents expire, nobody has confirmed them; 2 remain"
    )


def test_removing_a_provider_shows_content_users_what_went(house):
    house.add()
    house.documents("a", "b")
    assert "with 2 documents" in house.lcc("provider", "remove", "7", "--yes").stdout
    rows = [json.loads(line) for line in house.lcc("select", "--format", "jsonl").stdout.splitlines()]
    assert [(row["op"], row["reason"]) for row in rows] == [("remove", "provider removed")] * 2
    assert house.json("status")["doomed_files"] == 2
    house.lcc("verify")


# --- looking -------------------------------------------------------------------------------------


def test_status_tells_what_the_lcc_is_doing(house):
    house.add()
    house.documents("a", "b")
    house.push("c")
    (house.data / "spool" / "000000000000001-7-1.set").write_bytes(b"12345")
    (house.data / "spool" / "000000000000002-7-1.part").write_bytes(b"12345")
    slot = WorkerSlot(house.data, 1)
    now = int(time.time())
    store = house.store()
    with store.begin() as tx:
        tx.put_worker(WorkerRow(slot.owner, 1, 1, os.getpid(), now, now + 60, 64, 3, 5, 1000))
        tx.put_worker(WorkerRow("2/0", 2, 2, 4711, now, now + 60, 16, 1, 2, 2000, idle="no room"))
        tx.put_worker(WorkerRow("3/0", 3, 3, 4712, now - 90, now - 30, 16))
    store.close()
    found = house.json("status")
    assert (found["queued"], found["documents"], found["seq"]) == (1, 2, 2)
    assert found["bytes"] == 2 * len(SITE + "a")
    assert found["spool"] == {"sets": 1, "bytes": 5}
    assert [(one["worker"], one["process"]) for one in found["workers"]] == [
        ("1/0", os.getpid()),
        ("2/0", 4711),
    ]
    assert [found[name] for name in ("places", "in_use", "turns", "bytes_per_second")] == [80, 4, 7, 3000]
    assert f"process {os.getpid()}" in house.lcc("status").stdout
    assert [one["idle"] for one in found["workers"]] == ["", "no room"]
    assert "worker 2/0 hands out no URL: no room" in house.lcc("status").stdout
    words = "4 URLs now, of 80 at a time; the crawls hold leases of 7 providers or groups"
    assert words in house.lcc("status").stdout
    slot.release()
    assert [one["worker"] for one in house.json("status")["workers"]] == ["2/0"]


def test_status_says_how_to_start_a_worker(house):
    assert "scrapy crawl lcc_push" in house.lcc("status").stdout


def test_errors_are_shown_newest_last_with_their_exact_number(small):
    small.settings["LCC_ERRORS_KEPT"] = "2"
    for name in "abc":
        small.push(name)
        small.fail(404)
    found = small.json("errors", "7")
    assert found["total"] == 3
    assert [error["url"] for error in found["errors"]] == [SITE + "b", SITE + "c"]
    assert found["errors"][0]["submitted"]["mimetype"] == "text/html"
    text = small.lcc("errors", "7")
    assert text.stdout.splitlines()[-1].endswith(f"404\tNot Found\t{SITE}c")
    assert "3 errors" in text.stderr


def test_explain_tells_everything_about_a_document(house):
    house.add()
    house.documents("a")
    house.push("a", "b")
    text = house.lcc("explain", SITE + "a").stdout
    key = urlkey(PID, SITE + "a", "text/html").hex()
    assert key in text
    assert "no crawl process runs" in text
    found = house.json("explain", key)[0]
    assert Path(found["cached"]["path"]).read_bytes() == (SITE + "a").encode()
    assert found["cached"]["served"]["sha256"] == sha256((SITE + "a").encode()).hexdigest()
    assert found["queued"]["before"] == 0
    assert house.json("explain", SITE + "b")[0]["queued"]["before"] == 1
    house.lcc("provider", "pause", "7")
    assert "its provider is paused" in house.lcc("explain", SITE + "b").stdout


def test_explain_tells_when_a_found_page_is_due(house):
    house.add()
    house.documents("a")
    due, lies_at = 1_900_000_000, furlkey(PID, SITE + "a")
    store = house.store()
    with store.begin() as tx:
        tx.insert_spidered([Spidered(lies_at, PID, SITE + "a", 1, None, 5, 6, 0, 6, 3600, 2, due)])
    store.close()
    assert house.json("explain", SITE + "a")[0]["visits"] == {
        "depth": 1, "visited": 6, "answered": 6, "every": 3600, "changes": 2, "due": due,
    }  # fmt: skip
    assert "next adaptive one due 2030-03-17" in house.lcc("explain", SITE + "a").stdout


def test_explain_of_an_unknown_url_is_status_1(small):
    assert "nothing is known of" in one_error(small.lcc("explain", "http://nowhere/", status=1))


def test_path_prints_where_a_document_lies(small):
    small.documents("a")
    expected = str(small.data / "content" / "1" / "000" / "000" / "1")
    assert small.lcc("path", "1", "1").stdout == expected + "\n"
    assert small.lcc("path", "--docid", urlkey(PID, SITE + "a", "text/html").hex()).stdout == expected + "\n"
    assert small.lcc("path", "2", "1234567").stdout.endswith("content/2/001/234/1234567\n")
    assert "there is no document" in one_error(small.lcc("path", "--docid", "00" * 16, status=1))


def test_verify_finds_and_repairs(house):
    house.add()
    house.documents("a", "b", "c")
    assert "all is well" in house.lcc("verify").stdout
    Path(house.lcc("path", "1", "2").stdout.strip()).unlink()
    found = json.loads(house.lcc("verify", "--json", status=1).stdout)
    assert (found["documents"], found["found"]) == (3, {"no file": 1})
    assert "no file" in house.lcc("verify", status=1).stdout
    assert "1 found, all repaired" in house.lcc("verify", "--repair").stdout
    assert house.json("status")["queued"] == 1
    assert "all is well" in house.lcc("verify", "--quick").stdout
    house.fetch()
    assert house.json("status")["documents"] == 3


def test_a_content_folder_that_is_not_mounted_is_not_taken_for_lost_content(small):
    small.documents("a")
    (small.data / "content").rename(small.data / "elsewhere")
    (small.data / "content").mkdir()
    assert "is not registered" in one_error(small.lcc("verify", "--repair", status=1))
    assert small.json("status")["documents"] == 1


# --- select --------------------------------------------------------------------------------------


def rows_of(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_the_query_of_the_seeds_runs_verbatim(house):
    house.add()
    house.documents("a", "b")
    found = house.query(SEED_QUERY)
    assert sorted(found) == [(SITE + "a", "text/html", 1, 1), (SITE + "b", "text/html", 1, 2)]


def test_select_gives_changes_since_a_cursor(house):
    house.add()
    house.documents("a", "b")
    first = house.lcc("select", "--format", "jsonl")
    assert [(row["op"], row["curl"]) for row in rows_of(first)] == [
        ("upsert", SITE + "a"),
        ("upsert", SITE + "b"),
    ]
    assert Path(rows_of(first)[0]["path"]).read_bytes() == (SITE + "a").encode()
    cursor = first.stderr.removeprefix("cursor: ").strip()
    assert house.lcc("select", "--since", cursor, "--format", "jsonl").stdout == ""
    house.push("a", operation=Operation.REMOVE)
    house.documents("c")
    again = rows_of(house.lcc("select", "--since", cursor, "--format", "jsonl"))
    assert [(row["op"], row["curl"]) for row in again] == [("remove", SITE + "a"), ("upsert", SITE + "c")]


def test_a_cursor_file_is_read_and_written(small):
    small.documents("a", "b", "c")
    words = ["select", "--format", "jsonl", "--cursor-file", "position", "--limit", "2"]
    assert len(rows_of(small.lcc(*words))) == 2
    assert len(rows_of(small.lcc(*words))) == 1
    assert rows_of(small.lcc(*words)) == []
    assert Position.parse((small.folder / "position").read_text()).seq == 3
    assert [path.name for path in small.folder.glob("position*")] == ["position"]


@pytest.mark.parametrize("text", ["", "nonsense"])
def test_a_text_that_is_no_cursor_is_status_2(small, text):
    assert "not a cursor" in one_error(small.lcc("select", "--since", text, status=2))
    (small.folder / "position").write_text(text)
    for words in (("select",), ("follow", "--exec", "true")):
        said = one_error(small.lcc(*words, "--cursor-file", "position", status=2))
        assert "cursor file position: this is not a cursor" in said
    assert (small.folder / "position").read_text() == text


@pytest.mark.parametrize("text", [str(Position("another", 1, 1)), "future", "generation"])
def test_a_cursor_that_cannot_be_followed_is_status_3(small, text):
    small.documents("a")
    head = Position.parse(small.lcc("select").stderr.removeprefix("cursor: "))
    text = {"future": str(Position(head.lcc, 1, 9)), "generation": str(Position(head.lcc, 2, 1))}.get(
        text, text
    )
    assert "start over" in one_error(small.lcc("select", "--since", text, status=3))
    (small.folder / "position").write_text(text)
    assert "start over" in one_error(small.lcc("select", "--cursor-file", "position", status=3))
    assert (small.folder / "position").read_text() == text


def test_select_filters_by_provider_mimetype_and_time(small):
    small.add(8)
    now = int(time.time())
    small.push("a")
    small.fetch(at=now - 1000)
    small.push("b", mimetype="image/png")
    small.fetch(at=now - 10)
    small.documents("c", pid=8)

    def names(*words):
        return [
            row["curl"].removeprefix(SITE)
            for row in rows_of(small.lcc("select", "--format", "jsonl", *words))
        ]

    assert names() == ["a", "b", "c"]
    assert names("--provider", "7") == ["a", "b"]
    assert names("--mimetype", "text/*") == ["a", "c"]
    assert names("--since-time", str(now - 1000)) == ["b", "c"]
    assert names("--since-time", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - 1001))) == [
        "a",
        "b",
        "c",
    ]
    assert names("--provider", "7", "--mimetype", "IMAGE/*", "--since-time", "0") == ["b"]


def test_csv_has_no_formulas_unless_it_is_to_be_raw(small):
    small.documents("a")
    with closing(sqlite3.connect(small.data / "lcc.sqlite")) as database, database:
        database.execute("update lccurl set subtype = '=1+1'")
    for words, subtype in (((), "'=1+1"), (("--raw",), "=1+1")):
        (row,) = csv.DictReader(io.StringIO(small.lcc("select", "--format", "csv", *words).stdout))
        assert row["subtype"] == subtype
    assert "--raw goes with" in small.lcc("select", "--raw", "--format", "jsonl", status=2).output


def test_every_format_says_the_same(small):
    small.documents("a<&,\"'ä", "b")
    small.push("b", operation=Operation.REMOVE)
    jsonl = rows_of(small.lcc("select", "--format", "jsonl"))
    table = list(csv.DictReader(io.StringIO(small.lcc("select", "--format", "csv").stdout)))
    assert [{name: value or "" for name, value in row.items()} for row in table] == [
        {name: str(value) if value or value == 0 else "" for name, value in row.items()} for row in jsonl
    ]
    assert small.lcc("select", "--format", "xml").stdout.count("<url ") == 2
    plain = small.lcc("select").stdout.splitlines()
    assert plain[0] == "op\twhen\tprovider\tmimetype\tbytes\turl\tfile"
    assert [line.split("\t")[0] for line in plain[1:]] == ["upsert", "remove"]


def test_a_pipe_that_closes_early_ends_quietly_and_does_not_move_the_position(small):
    small.documents(*(f"a-long-name-to-fill-the-pipe-{number}" for number in range(3000)))
    environment = {**small.environment, "PYTHONWARNINGS": "default"}
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m lcc_scrapy.cli.main select --format jsonl --cursor-file position | head -1"],
        env=environment, cwd=small.folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""
    assert Position.parse((small.folder / "position").read_text()).seq == 0


def test_a_full_disk_is_an_error_and_does_not_move_the_position(small):
    small.documents("a")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "lcc_scrapy.cli.main", "select", "--cursor-file", "position"],
            env=small.environment, cwd=small.folder, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert Position.parse((small.folder / "position").read_text()).seq == 0


def test_urls_are_written_as_utf_8_in_any_locale(small):
    small.documents("ä€")
    done = small.run("select", "--format", "jsonl", LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert json.loads(done.stdout)["curl"] == SITE + "ä€"


# --- through scrapy ------------------------------------------------------------------------------


def scrapy(house, *words, cwd=None):
    code = (
        "import sys; from scrapy import cmdline; from lcc_scrapy.cli.scrapy_command import LccCommand;"
        "cmdline._get_commands_from_entry_points = lambda *a, **k: {'lcc': LccCommand()};"
        "cmdline.execute(['scrapy', *sys.argv[1:]])"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        env={**house.environment, "PYTHONWARNINGS": "default"}, cwd=cwd or house.folder, capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("project", [False, True])
def test_scrapy_passes_everything_through(small, project):
    if project:
        (small.folder / "scrapy.cfg").write_text("[settings]\ndefault = lcc_scrapy.settings\n")
    assert json.loads(scrapy(small, "lcc", "status", "--json").stdout)["documents"] == 0
    assert "unknown setting LCC_FOO" in scrapy(small, "lcc", "-s", "LCC_FOO=1", "status").stderr
    assert "Usage: scrapy lcc provider add" in scrapy(small, "lcc", "provider", "add", "--help").stdout
    assert "Usage: scrapy lcc [OPTIONS]" in scrapy(small, "lcc", "--help").stdout
    assert "lcc" in scrapy(small).stdout


def test_scrapy_ends_with_the_status_of_lcc(small):
    assert scrapy(small, "lcc", "status").returncode == 0
    assert scrapy(small, "lcc", "explain", "http://nowhere/").returncode == 1
    assert scrapy(small, "lcc", "--frob").returncode == 2
    assert scrapy(small, "lcc", "select", "--since", str(Position("x", 1, 5))).returncode == 3


def test_redirects_to_object_storage_need_one(house):
    told = house.lcc("-s", "LCC_CONTENT_REDIRECT=1m", "web", status=2)
    assert "LCC_CONTENT_REDIRECT: contents lie in files; it needs LCC_CONTENT_URL" in told.output
