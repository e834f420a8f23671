"""``lcc provider add --from`` as operators run it."""

import csv
import io
import json
from pathlib import Path

import pytest
from test_cli import House, one_error

from lcc_scrapy.cli import provider_bulk
from lcc_scrapy.login import passwords

SEVERAL = """\
pid,root,password,name,bandwidth,priority,allow-private,timeofday,fullsets
1,http://a.example.org/ https://b.example.org/x/,a secret,"One, the first",200k,2,yes,always,unlimited

2,http://c.example.org/,,,,,,,
"""


@pytest.fixture
def house(tmp_path, monkeypatch):
    monkeypatch.setattr(provider_bulk, "BATCH", 3)
    made = House(tmp_path)
    made.lcc("init")
    return made


def add(house, text, *words, status=0):
    return house.lcc("provider", "add", "--from", "-", *words, status=status, stdin=text)


def pids(house):
    return [one["pid"] for one in house.json("provider", "list")]


def simple(*numbers):
    return "pid,root\n" + "".join(f"{number},http://www{number}.example.org/\n" for number in numbers)


def made_up(house, name="passwords"):
    rows = list(csv.DictReader(io.StringIO((house.folder / name).read_text())))
    return {int(row["pid"]): row["password"] for row in rows}


def hashes(house):
    return dict(house.query("select pid, password from pidb"))


def test_columns_are_those_of_the_options_and_options_stand_for_missing_ones(house):
    add(house, SEVERAL, "--passwords-to", "passwords", "--bandwidth", "1k", "--contact", "us")
    first, second = house.json("provider", "list")
    assert (first["name"], first["bandwidth"], first["priority"], first["allowprivate"]) == (
        "One, the first", 200_000, 2, True,
    )  # fmt: skip
    assert first["roots"] == ["http://a.example.org/", "https://b.example.org/x/"]
    assert (first["fullsetsallowed"], second["fullsetsallowed"]) == (None, 10)
    assert (second["bandwidth"], second["contact"], second["allowprivate"]) == (1000, "us", False)


def test_json_lines_say_the_same(house):
    lines = [
        {"pid": 1, "root": ["http://a.example.org/"], "password": "a secret", "allow_private": True},
        {"pid": "2", "root": "http://b.example.org/", "password": "b secret", "filesmax": 5, "name": None},
    ]
    add(house, "\n".join(map(json.dumps, lines)) + "\n\n")
    first, second = house.json("provider", "list")
    assert (first["allowprivate"], second["filesmax"], second["name"]) == (True, 5, "")


def test_passwords_that_are_made_up_are_written_for_nobody_else_and_are_right(house):
    add(house, SEVERAL, "--passwords-to", "passwords")
    assert (house.folder / "passwords").stat().st_mode & 0o777 == 0o600
    (secret,) = made_up(house).values()
    assert list(made_up(house)) == [2]
    known = hashes(house)
    assert known[1].startswith("$argon2id$")
    assert passwords.verify_password(known[1], "a secret")
    assert passwords.verify_password(known[2], secret)
    assert not passwords.verify_password(known[2], secret + "x")
    assert secret not in known[2]


def test_many_are_added_in_batches_and_each_has_its_own_password(house):
    add(house, simple(*range(1, 11)), "--passwords-to", "passwords")
    assert pids(house) == [*range(1, 11)]
    assert len(set(made_up(house).values())) == 10
    known = hashes(house)
    assert all(passwords.verify_password(known[pid], secret) for pid, secret in made_up(house).items())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x,http://a.example.org/,p,", "'x' is not a valid integer"),
        ("0,http://a.example.org/,p,", "not in the range"),
        (",http://a.example.org/,p,", "not a valid integer"),
        ("5,,p,", "no root"),
        ("5,ftp://a.example.org/,p,", "ftp"),
        ("5,http://a.example.org/,,", "no password"),
        ("5,http://a.example.org/,p,fast", "bandwidth: 'fast'"),
        ("5,http://a.example.org/,p\x01,", "control characters"),
        ("5,http://a.example.org/", "2 columns, and 4 in the first line"),
        ("9,http://a.example.org/,p,", "pid 9 stands in line 2 already"),
        ("7,http://a.example.org/,p,", "provider 7 exists already"),
        ("8,http://a.example.org/,p,", "provider 8 was removed"),
    ],
)
def test_a_bad_line_is_named_and_nobody_is_added(house, line, reason):
    house.add(7)
    house.add(8)
    house.lcc("provider", "remove", "8", "--yes")
    text = f"pid,root,password,bandwidth\n9,http://z.example.org/,p,\n{line}\n"
    told = add(house, text, status=1).stderr
    assert "-, line 3: " in told
    assert reason in told
    assert pids(house) == [7]


def test_a_column_that_nobody_knows_is_refused(house):
    told = add(house, "pid,root,password,banwidth\n9,http://z.example.org/,p,5\n", status=1).stderr
    assert "line 2: banwidth: there is no such column" in told


def test_all_bad_lines_are_counted_and_the_first_twenty_told(house):
    told = add(house, "pid,root,password\n" + "x,y,z\n" * 30, status=1)
    assert told.stderr.count("line ") == 20
    assert "and 10 more bad lines" in told.stderr
    assert "30 bad lines in -: no provider was added" in told.stderr
    facts = json.loads(add(house, "pid,root,password\n" + "x,y,z\n" * 30, "--json", status=1).stdout)
    assert (facts["bad"], len(facts["errors"]), facts["errors"][0]["line"]) == (30, 20, 2)


def test_those_who_are_there_may_be_left_alone(house):
    add(house, simple(1, 2), "--passwords-to", "first")
    before = hashes(house)
    told = json.loads(
        add(house, simple(1, 2, 3), "--skip-existing", "--passwords-to", "second", "--json").stdout
    )
    assert (told["added"], told["skipped"]) == (1, 2)
    assert {pid: known for pid, known in hashes(house).items() if pid < 3} == before
    assert list(made_up(house, "second")) == [3]


def test_a_dry_run_writes_nothing(house):
    told = add(house, simple(1, 2), "--dry-run", "--passwords-to", "passwords").stdout
    assert told == "2 providers would be added\n"
    assert pids(house) == []
    assert not (house.folder / "passwords").exists()


def test_a_file_of_passwords_is_never_replaced(house):
    (house.folder / "passwords").write_text("of others")
    assert "must not be there" in one_error(add(house, simple(1), "--passwords-to", "passwords", status=1))
    assert (house.folder / "passwords").read_text() == "of others"
    assert pids(house) == []


@pytest.mark.parametrize("content", [b"", b"\n\n", b"pid,root,password\n", b"\xff\xfe"])
def test_a_file_that_names_nobody_is_refused(house, content):
    Path(house.folder / "file").write_bytes(content)
    one_error(house.lcc("provider", "add", "--from", "file", status=1))


@pytest.mark.parametrize(
    "words",
    [
        ["7", "--from", "-"],
        ["--from", "-", "--root", "http://a.example.org/"],
        ["--from", "-", "--password-file", "x"],
        ["7", "--root", "http://a.example.org/", "--dry-run"],
        ["7", "--root", "http://a.example.org/", "--json"],
        [],
    ],
)
def test_what_does_not_go_together_is_wrong_usage(house, words):
    house.lcc("provider", "add", *words, status=2, stdin=simple(1))


def test_a_wrong_password_takes_a_slow_check_whatever_the_hash(monkeypatch):
    slow = []
    monkeypatch.setattr(passwords, "_verify_slowly", lambda known, _: slow.append(known))
    secret = passwords.made_up()
    known = passwords.hash_made_up(secret)
    assert passwords.verify_password(known, secret) is True
    assert slow == []
    assert not passwords.verify_password(known, "wrong")
    assert slow == [passwords.DUMMY]
    assert len(secret) * 4 == 160
