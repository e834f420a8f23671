"""``lcc urd due`` and what ``lcc urd list`` says of pages that are never fetched."""

import json

import pytest
from test_cli import SITE, House

ELSEWHERE = "http://elsewhere.example/"


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    made.lcc("init")
    made.add()
    for owner, uri, *more in (
        ("anna", SITE + "a", "--timing", "10m", "--urgency", "2"),
        ("bert", SITE + "a", "--timing", "1h", "--depth", "1"),
        ("carl", ELSEWHERE, "--timing", "1d"),
    ):
        made.lcc("urd", "add", owner, uri, "--keyword", "ibm", *more)
    return made


def test_a_dry_run_shows_requests_and_asks_for_nothing(house):
    told = house.json("urd", "due", "--dry-run")
    assert [(one["uri"], one["urgency"], one["urds"], one["owners"]) for one in told] == [
        (SITE + "a", 2, 2, 2),
        (ELSEWHERE, 1, 1, 1),
    ]
    assert [one["refused"] for one in told] == ["", "lies inside the roots of no provider"]
    assert house.lcc("urd", "due", "--dry-run").stdout.splitlines()[1].startswith(f"{SITE}a\t2\t2\t2")
    assert house.query("select count(*) from qdb") == [(0,)]


def test_equal_pages_are_asked_for_once_and_those_outside_all_roots_never(house):
    told = house.lcc("urd", "due").stdout
    assert told == "1 pages asked for, 1 to be fetched, 1 URDs refused\n"
    assert house.query("select furl, origin from qdb") == [(SITE + "a", "directive")]
    assert house.query("select owner, reach from owners order by owner") == [("anna", 0), ("bert", 1)]
    again = json.loads(house.lcc("urd", "due", "--json").stdout)
    assert (again["asked"], again["refused"]) == (0, 0)
    assert [one.get("refused", "") for one in house.json("urd", "list")] == [
        "",
        "",
        "lies inside the roots of no provider",
    ]
    assert "no provider" in house.lcc("urd", "list").stdout.splitlines()[3]
    assert "no URD is due" in house.lcc("urd", "due", "--dry-run").stderr


def test_a_urd_that_is_removed_takes_its_reach_along(house):
    house.lcc("urd", "due")
    house.lcc("urd", "remove", "1")
    assert house.query("select owner from withdrawals") == [("anna",)]
    house.lcc("urd", "set", "2", "--depth", "0")
    house.lcc("urd", "due")
    assert house.query("select owner, reach from owners") == [("bert", 0)]
    assert house.query("select owner from withdrawals") == []
