"""``lcc front`` as operators run it."""

import json

import pytest
from test_cli import House, one_error


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    made.lcc("init")
    made.lcc("front", "init")
    return made


def database_of(house):
    return f"sqlite:///{house.data}/lcc.sqlite"


def test_a_sub_lcc_whose_database_does_not_answer_gets_no_new_provider(house, tmp_path):
    gone = tmp_path / "gone.sqlite"
    gone.write_bytes((house.data / "lcc.sqlite").read_bytes())
    house.lcc("front", "add", "a", "--uns", "h:1", "--database", f"sqlite:///{gone}")
    house.lcc("front", "add", "b", "--uns", "h:2", "--database", database_of(house))
    house.lcc("front", "assign", "1", "--to", "b")
    assert house.lcc("front", "assign", "2").stdout == "a\n"
    gone.unlink()
    assigned = house.lcc("front", "assign", "3")
    assert assigned.stdout == "b\n"
    assert "sub-LCC a: the file of its database is not there" in assigned.stderr
    assert not gone.exists()


def test_a_sub_lcc_without_a_database_may_get_one(house):
    house.lcc("front", "add", "a", "--uns", "h:1")
    assert house.lcc("front", "assign", "7").stdout == "a\n"
    assert house.lcc("front", "show", "7").stdout == "a\n"


def test_the_id_of_a_sub_lcc_is_read_in_its_database(house):
    house.lcc("front", "add", "a", "--uns", "[::1]:9000", "--database", database_of(house))
    (listed,) = json.loads(house.lcc("front", "list", "--json").stdout)
    assert listed["lccid"] == json.loads(house.lcc("status", "--json").stdout)["lcc"]
    assert (listed["providers"], listed["urls"], listed["state"]) == (0, 0, "active")


@pytest.mark.parametrize(
    "words",
    [("a",), ("a", "--uns", "h"), ("a", "--uns", "h:x"), ("a", "--uns", ":1"), ("a", "--uns", "h:70000")],
)
def test_a_sub_lcc_needs_an_address(house, words):
    house.lcc("front", "add", *words, status=2)
    assert json.loads(house.lcc("front", "list", "--json").stdout) == []


def test_a_full_one_gets_nobody(house):
    house.lcc("front", "add", "a", "--uns", "h:1")
    house.lcc("front", "set", "a", "--state", "full")
    assert "no active sub-LCC has room" in one_error(house.lcc("front", "assign", "7", status=1))


def test_before_its_database_is_made_it_says_what_to_do(tmp_path):
    other = House(tmp_path)
    assert "run `lcc front init`" in one_error(other.lcc("front", "list", status=1))


@pytest.mark.parametrize(
    "database", ["nonsense", "mysql+nope://h/x", "mysql://root@127.0.0.1:1/x", "{folder}/text"]
)
def test_a_database_that_cannot_be_used_is_one_line(house, tmp_path, database):
    (tmp_path / "text").write_text("this is no database, " * 100)
    database = database.replace("{folder}", f"sqlite:///{tmp_path}")
    one_error(house.lcc("front", "add", "a", "--uns", "h:1", "--database", database, status=1))
    one_error(house.lcc("-s", f"LCC_FRONT_DATABASE_URL={database}", "front", "list", status=1))
    assert json.loads(house.lcc("front", "list", "--json").stdout) == []


MOVE = ("front", "move", "7", "--to", "b")


@pytest.fixture
def two(house, tmp_path):
    """Two sub-LCCs of which ``house`` is the second; provider 7 is in the first."""
    (tmp_path / "first").mkdir()
    first = House(tmp_path / "first")
    first.lcc("init")
    first.add(7)
    for name, one in (("a", first), ("b", house)):
        house.lcc("front", "add", name, "--uns", "h:1", "--database", database_of(one))
    house.lcc("front", "assign", "7", "--to", "a")
    return first


def content_of(house):
    return ("--content", str(house.data / "content"))


def test_a_provider_without_documents_moves_and_again_is_no_error(house, two):
    assert house.lcc(*MOVE, *content_of(two)).stdout == "provider 7 is in sub-LCC b now\n"
    assert house.lcc(*MOVE, *content_of(two)).stdout == "provider 7 is in sub-LCC b already\n"
    assert json.loads(two.lcc("provider", "list", "--json").stdout) == []
    (moved,) = json.loads(house.lcc("provider", "list", "--json").stdout)
    assert (moved["pid"], moved["state"]) == (7, "active")
    (source,) = (one for one in json.loads(house.lcc("front", "list", "--json").stdout) if one["name"] == "a")
    assert source["providers"] == 0


def test_what_cannot_be_moved_is_one_line_and_stays(house, two):
    assert "say how its files are reached" in house.lcc(*MOVE, status=2).stderr
    front = ("-s", f"LCC_FRONT_DATABASE_URL=sqlite:///{house.data}/front.sqlite")
    assert "run it there" in one_error(two.lcc(*front, *MOVE, *content_of(two), status=1))
    assert "not assigned" in one_error(house.lcc("front", "move", "8", "--to", "b", status=1))
    assert "no sub-LCC c" in one_error(house.lcc("front", "move", "7", "--to", "c", status=1))
    assert "does not move" in one_error(house.lcc(*MOVE, "--give-up", status=1))
    two.lcc("provider", "set", "7", "--group", "g")
    assert "shares a turn" in one_error(house.lcc(*MOVE, *content_of(two), status=1))
    two.lcc("provider", "set", "7", "--group", "")
    house.add(7)
    assert "has a provider 7 of its own" in one_error(house.lcc(*MOVE, *content_of(two), status=1))
    house.lcc("provider", "remove", "7", "--yes")
    house.lcc("front", "set", "a", "--database", "")
    assert "set its database" in one_error(house.lcc(*MOVE, *content_of(two), status=1))
    assert house.lcc("front", "show", "7").stdout == "a\n"


def test_a_split_moves_providers_until_both_have_as_much(house, two):
    for pid, names in ((1, "abcdef"), (2, "abcd"), (3, "ab")):
        two.add(pid)
        two.push(*names, pid=pid)
        two.fetch(pid)
        house.lcc("front", "assign", str(pid), "--to", "a")
    split = ("front", "split", "a", "--to", "b", *content_of(two))
    would = house.lcc(*split, "--dry-run")
    assert would.stdout == "provider 1 would move to sub-LCC b\n"
    assert [house.lcc("front", "show", str(pid)).stdout for pid in (1, 2, 3)] == ["a\n"] * 3
    done = house.lcc(*split)
    assert done.stdout == "provider 1 moves to sub-LCC b\n"
    assert "sub-LCC a keeps 6 URLs, b has 6" in done.stderr
    assert house.lcc("front", "show", "1").stdout == "b\n"
    assert house.lcc(*split).stdout == ""
    assert len(house.lcc("select", "--format", "jsonl").stdout.splitlines()) == 6
