"""``lcc user`` and ``lcc audit`` as operators run them."""

import json

import pytest
from test_cli import PID, SITE, House


@pytest.fixture
def small(tmp_path):
    made = House(tmp_path)
    made.lcc("init")
    made.add()
    return made


def users(house):
    return {one["name"]: one for one in json.loads(house.lcc("user", "list", "--json").stdout)}


def done(house, *options):
    return [one["action"] for one in json.loads(house.lcc("audit", "--json", *options).stdout)]


def test_users_are_added_changed_and_removed(small):
    small.lcc("user", "add", "anna", "--role", "operator", "--password-file", "-", stdin="a long password\n")
    small.lcc("user", "add", "otto", "--role", "provider-owner", "--provider", str(PID), "--no-password")
    assert [(one["role"], one["providers"], one["password"]) for one in users(small).values()] == [
        ("operator", [], True),
        ("provider-owner", [PID], False),
    ]
    small.lcc("user", "set", "otto", "--role", "viewer")
    small.lcc("user", "remove", "anna")
    assert {name: one["role"] for name, one in users(small).items()} == {"otto": "viewer"}
    assert done(small) == ["user remove", "user set", "user add", "user add", "provider add"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "anna", "--role", "viewer"), "give --password-file FILE (- is stdin), or --no-password"),
        (("add", "anna", "--role", "owner", "--no-password"), "'owner' is not one of"),
        (("set", "anna"), "nothing to change: name at least one option"),
        (("set", "nobody", "--role", "viewer"), "nobody"),
        (("remove", "nobody"), "nobody"),
        (("add", "otto", "--role", "provider-owner", "--no-password"), "--provider"),
        (("add", "a\nb", "--role", "viewer", "--no-password"), "name"),
    ],
)
def test_wrong_ones_are_refused_in_one_line_and_nothing_is_noted(small, words, said):
    failed = small.run("user", *words)
    assert failed.returncode != 0
    assert said in failed.stderr
    assert "Traceback" not in failed.stderr
    assert users(small) == {}
    assert done(small) == ["provider add"]


def test_the_log_says_who_did_what_to_which_provider(small):
    small.lcc("provider", "pause", str(PID))
    small.lcc("provider", "rename-root", str(PID), SITE, "http://other.example.org/")
    small.lcc("provider", "rename-root", str(PID), "http://other.example.org/", SITE, "--dry-run")
    (renamed, paused, _) = json.loads(small.lcc("audit", "--provider", str(PID), "--json").stdout)
    assert (renamed["action"], renamed["detail"]) == (
        "provider rename-root",
        f"{SITE} http://other.example.org/",
    )
    assert (paused["pid"], paused["place"], bool(paused["who"])) == (PID, "command", True)
    assert done(small, "--provider", str(PID + 1)) == []
    assert done(small, "--limit", "1") == ["provider rename-root"]
