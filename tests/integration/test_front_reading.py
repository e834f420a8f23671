"""Content users of a front: three sub-LCCs in processes of their own look like one."""

import json
import tarfile
import threading
from dataclasses import replace
from urllib.request import Request, urlopen

import pytest
from front_house import FrontHouse
from harness import BIN, wait_for
from test_cli import SITE, drop_everything
from warcio.archiveiterator import ArchiveIterator
from web_process import serving

from lcc_scrapy.cli.front_reading import Partial
from lcc_scrapy.db.records import FEED
from lcc_scrapy.domain.front_cursor import FrontPosition
from lcc_scrapy.domain.front_moves import Move
from lcc_scrapy.front.content_user import FrontContentUser
from lcc_scrapy.front.directory import Directory
from tests.forkserver import popen

PIDS = {"a": 1, "b": 2, "c": 3}


@pytest.fixture
def front(tmp_path, databases):
    made, shared = FrontHouse(tmp_path / "front"), databases.url("mariadb")
    drop_everything(shared)
    try:
        made.add_sub("a", 1)
        made.add_sub("b", 2, shared)
        yield made
    finally:
        made.close()


def rows_of(text):
    return [json.loads(line) for line in text.splitlines()]


def told(rows):
    return sorted((row["pid"], row["curl"].removeprefix(SITE)) for row in rows)


@pytest.mark.slow
def test_a_sub_lcc_that_is_killed_started_again_or_added_loses_and_repeats_nothing(front):
    a, b = front.subs["a"], front.subs["b"]
    a.change("x", "y")
    b.change("x")
    select = ("front", "select", "--format", "jsonl", "--cursor-file", "position")
    assert told(rows_of(front.lcc(*select).stdout)) == [(1, "x"), (1, "y"), (2, "x")]
    assert front.lcc(*select).stdout == ""

    b.kill()
    b.change("z")
    a.change("z")
    partial = front.lcc(*select, status=Partial.exit_code)
    assert told(rows_of(partial.stdout)) == [(1, "z")]
    assert "sub-LCC b" in partial.stderr
    assert "cursor: " in partial.stderr

    b.start()
    front.add_sub("c", 3).change("x")
    rows = rows_of(front.lcc(*select).stdout)
    assert told(rows) == [(2, "z"), (3, "x")]
    assert rows[-1]["path"].startswith("http://127.0.0.1:")

    front.lcc("front", "export", "--format", "tar.gz", "--exec", "cat > all.tar.gz")
    with tarfile.open(front.folder / "all.tar.gz") as archive:
        contents = [archive.extractfile(member).read() for member in archive if "manifest" not in member.name]
    assert sorted(contents) == sorted(f"{SITE}{name}".encode() for name in "xyzxzx")
    front.lcc("front", "export", "--format", "fts5", "-o", "index", status=2)

    shown = {"Authorization": f"Bearer {front.lcc('token', 'add', '--front', 'indexer').stdout.strip()}"}
    with serving(front, "front web") as (port, _):
        answer = urlopen(Request(f"http://127.0.0.1:{port}/v1/changes", headers=shown), timeout=300)
        assert len(json.loads(answer.read())["changes"]) == 6

    with FrontContentUser({**front.settings}) as user:
        everything = list(user.select())
        assert len({row.docid for row in everything}) == len(everything) == 6
        for row in everything:
            with user.open(row) as content:
                assert content.read() == row.curl.encode()


def _records(*archives):
    """Return what is in WARC files, less what belongs to a file or a record of it: dates of writing, ids."""
    found = []
    for archive in archives:
        with archive.open("rb") as stream:
            for one in ArchiveIterator(stream):
                if one.rec_type in {"response", "resource"}:
                    about = dict(one.rec_headers.headers)
                    about.pop("WARC-Record-ID")
                    http = one.http_headers and (one.http_headers.statusline, one.http_headers.headers)
                    found.append((one.rec_type, about, http, one.content_stream().read()))
    return sorted(found, key=str)


@pytest.mark.slow
def test_a_warc_of_a_front_has_the_records_of_its_sub_lccs_and_what_is_missing_comes_next(front):
    a, b = front.subs["a"], front.subs["b"]
    a.change("x", "y")
    b.change("x")
    export = ("front", "export", "--format", "warc", "--cursor-file", "position", "-o")
    b.kill()
    partial = front.lcc(*export, "first.warc.gz", status=Partial.exit_code)
    assert "sub-LCC b" in partial.stderr
    b.start()
    front.lcc(*export, "second.warc.gz")
    for sub in (a, b):
        sub.lcc("export", "--format", "warc", "-o", "own.warc.gz")
    own = _records(*(sub.folder / "own.warc.gz" for sub in (a, b)))
    assert [kind for kind, *_ in own] == ["response"] * 3
    assert _records(front.folder / "first.warc.gz", front.folder / "second.warc.gz") == own
    assert len(_records(front.folder / "second.warc.gz")) == 1


@pytest.mark.slow
def test_a_follower_is_told_everything_once_while_documents_change_and_a_sub_lcc_is_killed(front):
    front.add_sub("c", 3)
    taken, stop = [], threading.Event()

    def follow():
        position = None
        with FrontContentUser({**front.settings}) as user:
            while not stop.is_set():
                changes = user.select(since=position)
                taken.extend((row.pid, row.curl, row.seq) for row in changes)
                position = str(changes.position)
                stop.wait(0.2)

    follower = threading.Thread(target=follow)
    follower.start()
    try:
        for number in range(6):
            for sub in front.subs.values():
                sub.change(f"{number}", "again")
            if number == 2:
                front.subs["b"].kill()
            if number == 4:
                front.subs["b"].start()
        wanted = {(pid, f"{SITE}{number}") for pid in PIDS.values() for number in range(6)}
        wait_for(lambda: wanted <= {(pid, curl) for pid, curl, _ in taken}, 300)
    finally:
        stop.set()
        follower.join(300)
    assert len(taken) == len(set(taken))


@pytest.mark.slow
def test_a_follower_that_is_killed_goes_on_where_its_command_had_ended(front):
    command = [str(BIN / "lcc"), "front", "follow", "--cursor-file", "position", "--exec", "cat >> taken"]
    environment = {**front.environment, "LCC_POLL": "0.1"}
    taken = front.folder / "taken"
    taken.touch()
    for number in range(3):
        for sub in front.subs.values():
            sub.change(f"{number}")
        with (front.folder / "follow.log").open("ab") as log:
            follower = popen(command, env=environment, cwd=front.folder, log=log)
        try:
            wanted = {(pid, f"{name}") for pid in (1, 2) for name in range(number + 1)}
            wait_for(lambda wanted=wanted: wanted <= set(told(rows_of(taken.read_text()))), 300)
        finally:
            follower.kill()
            follower.wait(300)
    rows = rows_of(taken.read_text())
    assert len(rows) - len(set(told(rows))) <= 3 * 2  # what came again: of each kill, one batch of a sub-LCC
    front.lcc("front", "follow", "--cursor-file", "position", "--once")
    assert front.lcc("front", "follow", "--cursor-file", "position", "--once").stdout == ""
    front.subs["b"].kill()
    partial = front.lcc("front", "follow", "--cursor-file", "position", "--once", status=Partial.exit_code)
    assert "sub-LCC b" in partial.stderr


def _rows_and_places(sub):
    """Return all rows of a sub-LCC, and how they came there."""
    store = sub.store()
    with store.read() as tx:
        rows = tx.changes(0, 1000)
        came = tx.moved([row.seq for row in rows])
    store.close()
    return rows, came


@pytest.mark.slow
def test_rows_that_were_copied_from_one_real_sub_lcc_to_another_are_told_once(front):
    a, b = front.subs["a"], front.subs["b"]
    a.change("x", "y")
    select = ("front", "select", "--format", "jsonl", "--cursor-file", "position")
    front.lcc(*select)
    a.push("y", "z", pid=a.pid)
    a.fetch(a.pid, body=b"other")
    rows, _ = _rows_and_places(a)
    directory, store = Directory(f"sqlite:///{front.data}/front.sqlite"), b.store()
    ids = {sub.name: sub.lccid for sub in directory.subs()}
    move = Move(1, 1, ids["a"], ids["b"], rows[-1].seq)
    directory.put_move(move)
    with store.begin() as tx:
        first = tx.take(FEED, len(rows))
        copies = [replace(row, seq=seq) for seq, row in enumerate(rows, first)]
        tx.insert_cached(copies)
        tx.put_moved({copy.seq: [(1, row.seq)] for copy, row in zip(copies, rows, strict=True)})
    store.close()
    assert told(rows_of(front.lcc(*select).stdout)) == [(1, "y"), (1, "z")]
    store = a.store()
    with store.begin() as tx:
        tx.delete_cached([row.urlkey for row in rows])
    store.close()
    directory.put_move(replace(move, target_seq=copies[-1].seq))
    directory.close()
    assert front.lcc(*select).stdout == ""
    assert FrontPosition.parse((front.folder / "position").read_text()).notes == ()
    assert told(rows_of(front.lcc("front", "select", "--format", "jsonl").stdout)) == [
        (1, "x"),
        (1, "y"),
        (1, "z"),
    ]


@pytest.mark.slow
def test_the_id_of_a_sub_lcc_is_asked_for_over_http_and_its_token_file_is_found_from_everywhere(front):
    a = front.subs["a"]
    front.lcc("front", "withdraw", "1")
    front.lcc("front", "remove", "a")
    (front.folder / "token").write_text(a.token.read_text())
    where = ("--uns", "127.0.0.1:9", "--web", f"http://127.0.0.1:{a.port}", "--token-file", "token")
    front.lcc("front", "add", "a", *where)
    facts = {one["name"]: one for one in json.loads(front.lcc("front", "list", "--json").stdout)}
    assert facts["a"]["lccid"] == json.loads((a.data / "lcc.json").read_text())["lcc"]
    assert facts["a"]["token_file"] == str(front.folder / "token")
