"""Content users: ``lcc select``, ``lcc follow`` and ``lcc export`` as they are run, and the Python API."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from test_cli import SITE, House, one_error, rows_of

from lcc_scrapy.cache.tombstones import forget_tombstones
from lcc_scrapy.content_user import ContentGone, ContentLost, ContentUser, PageText, Position, StartOver
from lcc_scrapy.domain.entries import Operation
from lcc_scrapy.domain.named_cursors import NamedCursor
from lcc_scrapy.feed.named_cursors import StoreCursors

FOREIGN = str(Position("another LCC", 1, 5))
PROGRAM = [sys.executable, "-m", "lcc_scrapy.cli.main"]
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def small(tmp_path):
    """A house on SQLite with a provider."""
    made = House(tmp_path)
    made.lcc("init")
    made.add()
    made.settings["LCC_POLL"] = "0.1"
    return made


def forget_all(house):
    store = house.store()
    sum(forget_tombstones(store, int(time.time()) + 10))
    store.close()


def wait_for(condition):
    end = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def cursor_of(house, name="position"):
    return Position.parse((house.folder / name).read_text())


# --- select --------------------------------------------------------------------------------------


def test_select_by_subtype_tells_of_leaves_and_by_prefix_of_none(small):
    small.push("docs/a", "docs/b", "blog/c")
    small.fetch()
    words = [
        "select",
        "--format",
        "jsonl",
        "--cursor-file",
        "position",
        "--subtype",
        "",
        "--url-prefix",
        SITE + "docs/",
    ]
    assert [row["curl"] for row in rows_of(small.lcc(*words))] == [SITE + "docs/a", SITE + "docs/b"]
    store = small.store()
    with store.engine.begin() as connection:
        for name, seq in (("docs/a", 4), ("blog/c", 5)):
            connection.exec_driver_sql(
                f"update lccurl set subtype = 'lang: nl', seq = {seq}, subtype_seq = {seq} where curl = '{SITE}{name}'"
            )
        connection.exec_driver_sql("update counters set value = 5 where name = 'feed'")
    store.close()
    assert [(row["op"], row["curl"], row["reason"]) for row in rows_of(small.lcc(*words))] == [
        ("leave", SITE + "docs/a", "no longer selected")
    ]
    assert rows_of(small.lcc(*words)) == []


def test_a_cursor_is_refused_with_another_selection(small):
    small.documents("a")
    small.lcc("select", "--cursor-file", "position", "--provider", "7", "--provider", "8")
    small.lcc("select", "--cursor-file", "position", "--provider", "8", "--provider", "7")
    assert "selection" in one_error(small.lcc("select", "--cursor-file", "position", status=2))


def test_a_cursor_that_is_too_old_is_status_3_and_the_ids_help(small):
    small.documents("a", "b", "c")
    small.lcc("select", "--cursor-file", "position", "--limit", "1")
    small.push("b", operation=Operation.REMOVE)
    small.lcc("select", "--cursor-file", "fresh")
    forget_all(small)
    small.documents("d")
    assert [
        row["curl"] for row in rows_of(small.lcc("select", "--cursor-file", "fresh", "--format", "jsonl"))
    ] == [SITE + "d"]
    assert "LCC_TOMBSTONES_KEEP" in one_error(small.lcc("select", "--cursor-file", "position", status=3))
    listed = small.lcc("select", "--ids", "--cursor-file", "position").stdout.splitlines()
    docids = [row["docid"] for row in rows_of(small.lcc("select", "--format", "jsonl"))]
    assert listed[0] == "docid\tseq"
    assert [line.split("\t")[0] for line in listed[1:]] == sorted(docids)
    assert len(docids) == 3
    small.documents("e")
    assert len(rows_of(small.lcc("select", "--cursor-file", "position", "--format", "jsonl"))) == 1


def test_select_gives_changes_to_a_command_and_keeps_what_it_took(small):
    small.documents("a", "b")
    words = ["select", "--cursor-file", "position", "--exec"]
    failed = small.run(*words, "cat > /dev/null; exit 5")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "status 5" in failed.stderr
    assert cursor_of(small).seq == 0
    done = small.run(*words, "cat; printenv FEED_CHANGES FEED_CURSOR")
    assert done.returncode == 0, done.stderr
    *lines, changes, cursor = done.stdout.splitlines()
    assert [json.loads(line)["curl"] for line in lines] == [SITE + "a", SITE + "b"]
    assert (changes, cursor) == ("2", str(cursor_of(small)))
    assert small.run(*words, "cat; echo called").stdout == ""


# --- follow --------------------------------------------------------------------------------------


def start(house, *words, command="follow"):
    return subprocess.Popen(
        [*PROGRAM, command, *words], env=house.environment, cwd=house.folder, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_follow_hands_over_what_another_process_brings_and_ends_in_peace(small):
    small.documents("a")
    out = small.folder / "out"
    follower = start(small, "--cursor-file", "position", "--exec", f"cat >> {out}")
    try:
        wait_for(out.exists)
        assert "another process" in small.run("select", "--cursor-file", "position").stderr
        small.documents("b")
        small.push("a", operation=Operation.REMOVE)
        wait_for(lambda: out.read_text().count("\n") == 3)
        wait_for(lambda: cursor_of(small).seq == 3)
    finally:
        follower.send_signal(signal.SIGTERM)
    stdout, stderr = follower.communicate(timeout=300)
    assert (follower.returncode, stdout) == (0, "")
    assert stderr == f"cursor: {cursor_of(small)}\n"
    assert [json.loads(line)["op"] for line in out.read_text().splitlines()] == ["upsert", "upsert", "remove"]
    assert not list(small.folder.glob("*.lock"))


def test_follow_tries_again_until_the_command_succeeds(small):
    small.documents("a")
    code = 'cat; echo " $FEED_TRY"; test "$FEED_TRY" -gt 1'
    done = small.run("follow", "--once", "--cursor-file", "position", "--exec", code)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^ (\d+)$", done.stdout, re.MULTILINE) == ["1", "2"]
    assert done.stdout.count('"upsert"') == 2
    assert "status 1" in done.stderr
    assert cursor_of(small).seq == 1


def test_a_command_in_flight_may_end_when_follow_is_told_to_stop(small):
    small.documents("a")
    follower = start(small, "--cursor-file", "position", "--exec", "touch begun; sleep 1; touch ended")
    wait_for((small.folder / "begun").exists)
    follower.send_signal(signal.SIGTERM)
    assert follower.wait(300) == 0
    follower.communicate()
    assert (small.folder / "ended").exists()
    assert cursor_of(small).seq == 1


def test_follow_writes_json_lines_without_a_command(small):
    small.documents("a", "b", "c")
    done = small.run("follow", "--limit", "2", "--cursor-file", "position")
    assert [json.loads(line)["curl"] for line in done.stdout.splitlines()] == [SITE + "a", SITE + "b"]
    assert cursor_of(small).seq == 2
    assert small.run("follow", "--once", "--since", str(cursor_of(small))).stdout.count("\n") == 1
    (small.folder / "position").write_text("nonsense")
    assert small.run("follow", "--cursor-file", "position").returncode == 2


# --- export --------------------------------------------------------------------------------------


def test_export_writes_a_file_at_once_and_goes_on_from_there(small):
    small.documents("a", "b")
    words = ["export", "--format", "tar.gz", "--cursor-file", "position", "-o"]
    assert small.lcc(*words, "one.tar.gz").stdout == ""
    with tarfile.open(small.folder / "one.tar.gz") as tar:
        contents = {tar.extractfile(member).read() for member in tar if member.name != "manifest.jsonl"}
    assert contents == {(SITE + "a").encode(), (SITE + "b").encode()}
    assert "exists" in one_error(small.lcc(*words, "one.tar.gz", status=1))
    small.push("a", operation=Operation.REMOVE)
    small.lcc(*words, "one.tar.gz", "--force")
    with tarfile.open(small.folder / "one.tar.gz") as tar:
        assert tar.getnames() == ["manifest.jsonl"]
        manifest = [json.loads(line) for line in tar.extractfile("manifest.jsonl")]
    assert [one["op"] for one in manifest] == ["remove", "end"]
    assert manifest[-1]["cursor"] == str(cursor_of(small))
    assert {path.name for path in small.folder.iterdir()} == {"lcc-data", "one.tar.gz", "position"}


def test_rows_are_exported_with_their_texts_instead_of_contents(small):
    small.documents("a", mimetype="text/plain")
    words = ["export", "--text", "--no-content", "-o", "-", "--format"]
    one, end = [json.loads(line) for line in small.lcc(*words, "jsonl").stdout.splitlines()]
    assert (one["curl"], one["text"], "content" in one) == (SITE + "a", SITE + "a", False)
    assert end["op"] == "end"
    assert "--text and --no-content go with" in small.lcc(*words, "zip", status=2).stderr


@pytest.mark.parametrize("form", ["zip", "tar.gz", "parquet"])
def test_export_streams_to_stdout(small, form):
    small.documents("a")
    done = subprocess.run(
        [*PROGRAM, "export", "--format", form, "-o", "-"], env=small.environment, cwd=small.folder,
        capture_output=True, timeout=300, check=True,
    )  # fmt: skip
    assert done.stdout.startswith({"zip": b"PK", "tar.gz": b"\x1f\x8b", "parquet": b"PAR1"}[form])
    assert done.stderr.startswith(b"lcc: 1 documents")


def test_an_export_that_fails_leaves_no_file_and_the_position(small):
    small.documents("a", "b")
    next((small.data / "content" / "1" / "000" / "000").glob("2")).write_bytes(b"damaged")
    words = ["export", "--format", "zip", "--cursor-file", "position", "-o", "x.zip"]
    assert "lcc verify --repair" in one_error(small.lcc(*words, status=1))
    assert {path.name for path in small.folder.iterdir()} == {"lcc-data", "position"}
    assert cursor_of(small).seq == 0


@pytest.mark.parametrize("form", ["zip", "fts5"])
def test_an_export_that_is_told_to_stop_leaves_nothing_half(small, form):
    small.documents("a")
    (content,) = (path for path in (small.data / "content" / "1").rglob("*") if path.is_file())
    content.unlink()
    os.mkfifo(content)  # opening it waits for the other side
    export = start(small, "--format", form, "-o", "x", "--force", command="export")
    writer = os.open(content, os.O_WRONLY)
    assert list(small.folder.glob(".x.*.part"))
    export.send_signal(signal.SIGTERM)
    os.close(writer)
    assert export.wait(300) == 128 + signal.SIGTERM
    export.communicate()
    assert {path.name for path in small.folder.iterdir()} == {"lcc-data"}


def test_a_folder_that_is_not_there_is_said_by_its_name(small):
    for words in (["-o", "none/x.zip"], ["-o", "x.zip", "--cursor-file", "none/position"]):
        said = one_error(small.lcc("export", "--format", "zip", *words, status=1))
        assert said.endswith("there is no folder none")


def test_status_tells_which_named_cursor_is_farthest_behind(small):
    small.documents("a", "b")
    assert small.json("status")["cursors"] == []
    assert "farthest" not in small.lcc("status").stdout
    store = small.store()
    for name, seq in (("main", 0), ("other", 2)):
        StoreCursors(store).keep(NamedCursor("engine", name, "cursor", seq, 5))
    store.close()
    first, second = small.json("status")["cursors"]
    assert first == {"owner": "engine", "name": "main", "behind": 2, "moved": 5}
    assert second["behind"] == 0
    assert "2 named; main of engine is 2 changes behind, the most of all" in small.lcc("status").stdout


# --- the Python API ------------------------------------------------------------------------------


@pytest.fixture
def user(small):
    with ContentUser(small.settings) as made:
        yield made


def test_the_api_gives_typed_changes_contents_and_a_position(small, user):
    small.documents("a", "b")
    changes = user.select(provider=7, mimetype=["text/*"])
    assert changes.position.seq == 0
    rows = list(changes)
    assert [(row.op, row.curl, row.pid) for row in rows] == [
        ("upsert", SITE + "a", 7),
        ("upsert", SITE + "b", 7),
    ]
    with user.open(rows[0]) as stream:
        assert stream.read() == (SITE + "a").encode()
    small.push("a", operation=Operation.REMOVE)
    (gone,) = user.select(since=str(changes.position), provider=7, mimetype="text/*")
    assert (gone.op, gone.docid, gone.reason) == ("remove", rows[0].docid, "removed by its provider")


def test_the_api_reads_texts(small, user):
    small.documents("a", mimetype="text/plain")
    (row,) = user.select()
    assert user.text(row) == PageText(None, SITE + "a")


def test_a_change_is_over_when_the_next_one_is_asked_for(small, user):
    small.documents("a", "b", "c")
    changes = user.select()
    for change in changes:
        if change.curl.endswith("c"):
            break
    assert changes.position.seq == 2
    assert [row.curl for row in user.select(since=changes.position)] == [SITE + "c"]


def test_content_that_was_replaced_says_read_on_and_lost_content_says_so(small, user):
    small.documents("a", "b")
    first, second = user.select()
    for path in (small.data / "content" / "1").rglob("[12]"):
        path.unlink() if path.is_file() else None
    with pytest.raises(ContentLost, match="verify"):
        user.open(first)
    small.push("a", operation=Operation.REMOVE)
    with pytest.raises(ContentGone, match="read on"):
        user.open(first)
    assert second.seq == 2


def test_whoever_starts_over_reconciles(small, user):
    small.documents("a", "b", "c")
    mine = {row.docid: row.seq for row in user.select()}
    cursor = user.select(limit=1)
    next(iter(cursor))
    small.push("b", operation=Operation.REMOVE)
    small.documents("d")
    forget_all(small)
    with pytest.raises(StartOver):
        user.select(since=cursor.position)
    here = user.documents()
    listed = {row.docid: row.seq for row in here}
    assert list(listed) == sorted(listed)
    new = [docid for docid, seq in listed.items() if mine.get(docid) != seq]
    assert [row.curl for row in user.rows(new)] == [SITE + "d"]
    assert mine.keys() - listed.keys()
    small.documents("e")
    assert [row.curl for row in user.select(since=here.position)] == [SITE + "e"]


def test_the_examples_in_the_docs_run(small, monkeypatch, capsys):
    text = (DOCS / "content-users.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(examples) >= 3
    small.documents("a", "b")
    for name, value in small.settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(small.folder)
    names = {"index": lambda *_: None, "forget": lambda *_: None, "known": {}, "last_cursor": FOREIGN}
    for example in examples:
        exec(compile(example, "content-users.md", "exec"), dict(names))
    assert (small.folder / "cursor").exists()
    assert io.StringIO(capsys.readouterr().out).readline()
    assert os.environ["LCC_DATA_DIR"]
