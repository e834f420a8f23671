"""``lcc front provider-add --from``: many providers in several sub-LCCs, whatever happens meanwhile."""

import csv
import io
import json
import subprocess
import sys

import pytest
import sqlalchemy
from test_cli import one_error
from test_cli_front_providers import KILLED, Front

from lcc_scrapy.cli import provider_bulk

ADD = ("front", "provider-add", "--from", "-")


@pytest.fixture
def front(tmp_path, monkeypatch):
    monkeypatch.setattr(provider_bulk, "BATCH", 3)
    made = Front(tmp_path)
    made.sub("a", "--capacity", "100")
    made.sub("b", "--capacity", "200")
    return made


def simple(*pids):
    return "pid,root\n" + "".join(f"{pid},http://www{pid}.example.org/\n" for pid in pids)


def add(front, text, *words, status=0, to="passwords"):
    return front.lcc(*ADD, *(("--passwords-to", to) if to else ()), *words, stdin=text, status=status)


def facts(done):
    return json.loads(done.stdout)


def made_up(front, name="passwords"):
    return {int(row["pid"]): row["password"]
            for row in csv.DictReader(io.StringIO((front.folder / name).read_text()))}  # fmt: skip


def test_they_are_spread_by_load_with_the_columns_of_one_lcc(front):
    text = "pid,root,name,bandwidth\n" + "".join(
        f"{pid},http://www{pid}.example.org/ https://x{pid}.example.org/,Number {pid},{pid}k\n"
        for pid in range(1, 10)
    )
    told = facts(add(front, text, "--contact", "us", "--json"))
    assert told == {
        "added": 9, "skipped": 0, "bad": 0, "errors": [], "dry_run": False, "subs": {"a": 3, "b": 6},
    }  # fmt: skip
    placed = front.placed()
    assert (len(placed["a"]), sorted(placed["a"] + placed["b"])) == (3, [*range(1, 10)])
    assert made_up(front).keys() == set(range(1, 10))
    for name, pids in placed.items():
        shown = front.subs[name].json("provider", "show", str(pids[0]))
        assert (shown["name"], shown["contact"]) == (f"Number {pids[0]}", "us")
        assert (shown["bandwidth"], len(shown["roots"])) == (pids[0] * 1000, 2)


def test_who_has_documents_already_gets_fewer(front):
    front.subs["b"].add(100)
    front.lcc("front", "assign", "100", "--to", "b")
    front.subs["b"].push(*map(str, range(4)), pid=100)
    assert facts(add(front, simple(1, 2, 3), "--json"))["subs"] == {"a": 2, "b": 1}


def test_sub_names_one_for_all(front):
    told = add(front, simple(1, 2), "--sub", "a").stdout
    assert told == "2 providers added, 2 in sub-LCC a\n"
    assert front.placed() == {"a": [1, 2], "b": []}
    assert "no sub-LCC c" in one_error(add(front, simple(3), "--sub", "c", status=1, to="more"))


def test_a_dry_run_says_where_they_would_go_and_writes_nothing(front):
    told = add(front, simple(1, 2, 3), "--dry-run").stdout
    assert told == "3 providers would be added, 1 in sub-LCC a, 2 in sub-LCC b\n"
    assert front.placed() == {"a": [], "b": []}
    assert not (front.folder / "passwords").exists()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x,http://a.example.org/,p", "'x' is not a valid integer"),
        ("5,,p", "no root"),
        ("5,http://a.example.org/,", "no password"),
        ("9,http://a.example.org/,p", "pid 9 stands in line 2 already"),
        ("7,http://a.example.org/,p", "sub-LCC b: provider 7 exists already\n"),
        ("8,http://a.example.org/,p", "`lcc front assign 8 --to a` tells the front"),
        ("6,http://a.example.org/,p", "sub-LCC a: provider 6 was removed"),
    ],
)
def test_a_bad_line_is_named_and_nobody_is_added(front, line, reason):
    front.add(7, "--sub", "b")
    for pid in (6, 8):
        front.subs["a"].add(pid)
    front.subs["a"].lcc("provider", "remove", "6", "--yes")
    text = f"pid,root,password\n9,http://z.example.org/,p\n{line}\n"
    told = add(front, text, status=1, to="").stderr
    assert "-, line 3: " in told
    assert reason in told
    assert [one["pid"] for one in front.subs["a"].json("provider", "list")] == [8]
    assert [one["pid"] for one in front.subs["b"].json("provider", "list")] == [7]


def test_those_who_are_there_may_be_left_alone(front):
    add(front, simple(1, 2, 3))
    before = front.placed()
    told = facts(add(front, simple(1, 2, 3, 4), "--skip-existing", "--json", to="second"))
    assert (told["added"], told["skipped"]) == (1, 3)
    assert made_up(front, "second").keys() == {4}
    after = front.placed()
    assert all(set(pids) <= set(after[name]) for name, pids in before.items())


def test_where_a_sub_lcc_is_down_others_take_new_ones_and_its_own_are_not_skipped(front):
    front.lcc("front", "assign", "7", "--to", "a")
    (front.subs["a"].data / "lcc.sqlite").rename(front.folder / "away")
    told = add(front, simple(7, 8), "--skip-existing", status=1).stderr.splitlines()[-1]
    assert told.endswith("sub-LCC a: the file of its database is not there (provider 7 is assigned to it)")
    assert facts(add(front, simple(8), "--json"))["subs"] == {"b": 1}
    (front.folder / "away").rename(front.subs["a"].data / "lcc.sqlite")
    add(front, simple(7, 8), "--skip-existing", to="second")
    assert front.placed() == {"a": [7], "b": [8]}


def test_one_that_is_assigned_elsewhere_is_not_taken_from_there(front):
    front.lcc("front", "assign", "7", "--to", "a")
    assert "say --sub a" in one_error(add(front, simple(7), "--sub", "b", status=1))


@pytest.mark.parametrize(
    "words",
    [
        ["7", "--from", "-"],
        ["--from", "-", "--root", "http://a.example.org/"],
        ["--from", "-", "--password-file", "x"],
        ["7", "--root", "http://a.example.org/", "--skip-existing"],
        ["7", "--root", "http://a.example.org/", "--passwords-to", "x"],
        ["7"],
        [],
    ],
)
def test_what_does_not_go_together_is_wrong_usage(front, words):
    front.lcc("front", "provider-add", *words, status=2, stdin=simple(1))


@pytest.mark.soak_of("mariadb", "postgresql")
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "mariadb", "postgresql"])
def test_killed_before_any_commit_and_run_again_everybody_is_there_once(tmp_path, databases, kind):
    front = Front(tmp_path)
    front.sub("a")
    front.sub("b", url="" if kind == "sqlite" else databases.empty(kind))
    first, kills = 1, 0
    while True:
        pids = range(first, first + 5)
        file = front.folder / "file"
        file.write_text(simple(*pids))
        words = ("front", "provider-add", "--from", str(file), "--passwords-to", f"p{first}")
        script = f"from lcc_scrapy.cli import provider_bulk; provider_bulk.BATCH = 2\n{KILLED}"
        done = subprocess.run(
            [sys.executable, "-c", script, str(kills), *words], env=front.environment, cwd=front.folder,
            capture_output=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode in {0, -9}, done.stderr
        front.lcc(*words[:-1], f"again{first}", "--skip-existing")
        there = front.placed()
        assert sorted(there["a"] + there["b"]) == list(range(1, first + 5))
        known = made_up(front, f"again{first}")
        if (front.folder / f"p{first}").exists():
            known = made_up(front, f"p{first}") | known
        assert known.keys() == set(pids)
        if done.returncode == 0:
            break
        first, kills = first + 5, kills + 1
    assert kills >= 6


def test_it_costs_the_same_for_each_provider(front, monkeypatch):
    monkeypatch.setattr(provider_bulk, "BATCH", 100)
    asked = []
    count = lambda *_: asked.append(1)  # noqa: E731
    sqlalchemy.event.listen(sqlalchemy.engine.Engine, "before_cursor_execute", count)
    costs = []
    try:
        for number, first in ((400, 1), (1200, 1000)):
            asked.clear()
            add(front, simple(*range(first, first + number)), to=f"p{first}")
            costs.append(len(asked))
    finally:
        sqlalchemy.event.remove(sqlalchemy.engine.Engine, "before_cursor_execute", count)
    assert costs[1] <= 3.3 * costs[0]
    assert len(front.placed()["a"]) + len(front.placed()["b"]) == 1600
