"""``lcc db copy``, ``backup`` and ``restore`` as an operator runs them: what they say, and what they refuse."""

import json
import subprocess
import sys
import time

import pytest
from test_cli import SITE, House, house, one_error, small

from lcc_scrapy.db.closed import CLOSED, Closed
from lcc_scrapy.db.records import LastOutcome
from lcc_scrapy.db.tables import metadata
from lcc_scrapy.machine.data_directory import WorkerSlot
from lcc_scrapy.uns.spool import SpoolFolder

__all__ = ["house", "small"]


@pytest.fixture
def crawling(small):
    """The house while a crawl process has it."""
    slot = WorkerSlot(small.data, 1)
    yield small
    slot.release()


def counts(house):
    return {name: house.query(f"select count(*) from {name}")[0][0] for name in metadata.tables}


def close(house, why):
    store = house.store()
    with store.begin() as tx:
        tx.set_info(CLOSED, why)
    store.close()


# --- copy ----------------------------------------------------------------------------------------


def test_a_copy_says_what_to_set_and_the_old_database_says_so_too(house, tmp_path):
    house.add()
    house.documents("a", "b")
    before, documents = counts(house), house.query("select * from lccurl order by urlkey")
    said = house.lcc("db", "copy", f"sqlite:///{tmp_path}/new.sqlite").stdout
    assert (
        said
        == f"copied {sum(before.values())} rows; from now on set LCC_DATABASE_URL=sqlite:///{tmp_path}/new.sqlite\n"
    )
    assert "set LCC_DATABASE_URL" in one_error(house.lcc("status", status=1))
    house.url = house.settings["LCC_DATABASE_URL"] = f"sqlite:///{tmp_path}/new.sqlite"
    assert counts(house) == before
    assert house.query("select * from lccurl order by urlkey") == documents
    assert house.json("status")["documents"] == 2
    assert house.lcc("verify").exit_code == 0


def test_a_copy_can_be_read_from_stdin_and_no_password_is_printed(small, databases):
    url = databases.empty("postgresql").replace("postgres@", "postgres:s3cret@")
    result = small.lcc("db", "copy", "-", stdin=url + "\n")
    assert "s3cret" not in result.output
    assert url.replace("s3cret", "***") in result.stdout


def test_a_relative_file_is_named_as_every_folder_knows_it(small):
    said = small.lcc("db", "copy", "sqlite:///new.sqlite").stdout
    assert f"LCC_DATABASE_URL=sqlite:///{small.folder}/new.sqlite\n" in said


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "nonsense", ""])
def test_an_address_that_is_none_is_wrong_usage(small, url):
    assert "Invalid value for 'URL'" in small.lcc("db", "copy", url, status=2).stderr


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("mysql://root@127.0.0.1:1/lcc", "Connection refused"),
        ("mysql://nobody:s3cret@127.0.0.1/lcc", "Access denied"),
        ("sqlite:////proc/lcc.sqlite", "unable to open database file"),
        ("oracle://x/y", "not supported"),
    ],
)
def test_a_target_that_cannot_be_used_is_named(small, url, text):
    line = one_error(small.lcc("db", "copy", url, status=1))
    assert text in line
    assert "s3cret" not in line
    assert small.json("status")["documents"] == 0


def test_the_database_of_another_lcc_is_no_target(small, tmp_path):
    (tmp_path / "second").mkdir()
    second = House(tmp_path / "second")
    second.lcc("init")
    assert "is not empty" in one_error(small.lcc("db", "copy", second.url, status=1))
    assert second.json("status")["documents"] == 0


@pytest.mark.slow
def test_kill_9_at_any_moment_of_a_copy_costs_a_copy_and_no_more(small, databases):
    store = small.store()
    with store.begin() as tx:
        tx.put_outcomes([LastOutcome(bytes(12) + n.to_bytes(4), 7, 404, "x" * 200, n) for n in range(20_000)])
    store.close()
    before, target = counts(small), databases.empty("mariadb")
    for seconds in (0.7, 1.1, 1.5, 1.9):
        process = subprocess.Popen(
            [sys.executable, "-m", "lcc_scrapy.cli.main", "db", "copy", target],
            env=small.environment, cwd=small.folder, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        time.sleep(seconds)
        process.kill()
        if "copied" in process.communicate()[0]:
            break
        if small.run("status", LCC_DATABASE_URL=target).returncode == 0:
            break  # it was whole already; what counts is below
    else:
        small.lcc("db", "copy", target)
    small.url = small.settings["LCC_DATABASE_URL"] = target
    assert counts(small) == before
    assert small.json("provider", "list")[0]["pid"] == 7


# --- while others are at work --------------------------------------------------------------------


@pytest.mark.parametrize("words", [["copy", "sqlite:///new.sqlite"], ["restore", "backup.sqlite", "--yes"]])
def test_nothing_is_moved_or_restored_while_a_crawl_runs(crawling, words):
    crawling.lcc("db", "backup", "backup.sqlite")
    before = counts(crawling)
    assert "stop them first" in one_error(crawling.lcc("db", *words, status=1))
    assert counts(crawling) == before
    assert not (crawling.folder / "new.sqlite").exists()


@pytest.mark.parametrize("words", [["copy", "sqlite:///new.sqlite"], ["restore", "backup.sqlite", "--yes"]])
def test_nothing_is_moved_or_restored_while_a_uns_has_the_spool(small, words):
    small.lcc("db", "backup", "backup.sqlite")
    spool = SpoolFolder(small.data / "spool")
    spool.lock()
    try:
        assert "is in use by process" in one_error(small.lcc("db", *words, status=1))
    finally:
        spool.unlock()
    assert small.lcc("db", *words)


def test_a_backup_is_made_while_a_crawl_runs(crawling):
    assert "backup.sqlite is complete" in crawling.lcc("db", "backup", "backup.sqlite").stdout


@pytest.mark.parametrize(
    "words",
    [
        ["status"], ["select"], ["verify"], ["provider", "list"], ["explain", SITE], ["init", "--machine"],
        ["db", "copy", "sqlite:///new.sqlite"], ["db", "backup", "backup.sqlite"],
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize(
    ("why", "what_to_do"),
    [
        (Closed.COPYING, "run `lcc db copy` again"),
        (Closed.RESTORING, "run `lcc db restore` again"),
        (Closed.BACKUP, "put it back with `lcc db restore`"),
        (Closed.MOVED, "set LCC_DATABASE_URL"),
    ],
)
def test_nobody_works_with_a_closed_database(small, words, why, what_to_do):
    close(small, why)
    assert what_to_do in one_error(small.lcc(*words, status=1))


def test_no_lcc_begins_in_half_a_copy(tmp_path, small):
    close(small, Closed.COPYING)
    (tmp_path / "second").mkdir()
    second = House(tmp_path / "second", small.url)
    assert "half a copy" in one_error(second.lcc("init", status=1))


# --- backup and restore --------------------------------------------------------------------------


def test_a_backup_is_replaced_only_by_force(small):
    small.lcc("db", "backup", "backup.sqlite")
    before = (small.folder / "backup.sqlite").stat().st_ino
    assert "--force" in one_error(small.lcc("db", "backup", "backup.sqlite", status=1))
    assert (small.folder / "backup.sqlite").stat().st_ino == before
    small.lcc("db", "backup", "backup.sqlite", "--force")
    assert (small.folder / "backup.sqlite").stat().st_ino != before


def test_a_backup_that_cannot_be_written_is_one_line(small):
    assert "No such file or directory" in one_error(small.lcc("db", "backup", "nowhere/x.sqlite", status=1))


def test_a_restored_lcc_has_its_documents_and_wants_them_again(house):
    house.add()
    house.documents("a", "b")
    position = house.lcc("select").stderr.split("cursor: ")[1].strip()
    house.lcc("db", "backup", "backup.sqlite")
    house.lcc("provider", "remove", "7", "--yes")
    said = house.lcc("db", "restore", "backup.sqlite", "--yes")
    assert "every provider will be asked for a full set" in said.stdout
    assert "lcc verify --repair" in said.stderr
    assert house.json("status")["documents"] == 2
    assert house.json("provider", "show", "7")["fullsetwanted"] == "cache crash"
    assert "start over" in one_error(house.lcc("select", "--since", position, status=3))
    assert [path.name for path in house.data.glob("*restore*")] == []


def test_a_database_with_anything_in_it_is_replaced_only_when_told(small):
    small.lcc("db", "backup", "backup.sqlite")
    small.documents("a")
    result = small.lcc("db", "restore", "backup.sqlite", status=2)
    assert "say --yes" in result.stderr
    assert small.json("status")["documents"] == 1


def test_a_database_that_is_gone_is_restored_without_asking(small):
    small.documents("a")
    small.lcc("db", "backup", "backup.sqlite")
    (small.data / "lcc.sqlite").unlink()
    small.lcc("db", "restore", "backup.sqlite")
    assert small.json("status")["documents"] == 1


def test_a_restore_never_gives_the_number_of_a_file_that_exists(small):
    small.documents("a")
    small.lcc("db", "backup", "backup.sqlite")
    small.documents("b", "c")
    (small.data / "lcc.sqlite").unlink()
    small.lcc("db", "restore", "backup.sqlite")
    assert small.query("select value from counters where name = 'fileid'")[0][0] > 1_000_000_000
    small.documents("d")
    fileid = small.query(f"select fetched_fileid from lccurl where curl = '{SITE}d'")[0][0]
    assert fileid > 1_000_000_003
    assert small.lcc("path", "1", str(fileid)).exit_code == 0


def test_the_backup_of_another_lcc_is_refused(small, tmp_path):
    (tmp_path / "second").mkdir()
    second = House(tmp_path / "second")
    second.lcc("init")
    second.lcc("db", "backup", "backup.sqlite")
    theirs = tmp_path / "second" / "backup.sqlite"
    assert "backup of another LCC" in one_error(small.lcc("db", "restore", str(theirs), "--yes", status=1))
    assert small.json("provider", "list")[0]["pid"] == 7


def test_a_file_that_is_no_backup_is_refused(small):
    line = one_error(small.lcc("db", "restore", str(small.data / "lcc.json"), "--yes", status=1))
    assert "is damaged or no backup" in line


def test_the_wrong_database_is_not_replaced(small, tmp_path):
    small.lcc("db", "backup", "backup.sqlite")
    (tmp_path / "second").mkdir()
    second = House(tmp_path / "second")
    second.lcc("init")
    small.settings["LCC_DATABASE_URL"] = second.url
    line = one_error(small.lcc("db", "restore", "backup.sqlite", "--yes", status=1))
    assert "a database of something else" in line
    assert second.json("status")["lcc"] == json.loads((second.data / "lcc.json").read_text())["lcc"]
