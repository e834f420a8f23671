"""``lcc urd`` as operators run it."""

import json
import time

import pytest
from test_cli import House, one_error

SITE = "http://www.example.org/"
TABLE_4 = """
<urd>
  <uri timing="600000" lastcheck="97876750000" port="80">http://www.cs.ucy.ac.cy/default.html</uri>
  <type protocol="http" method="pull" processtype="filter"/>
  <keywords>
    <keyword key="ibm" weight="1"/>
    <keyword key="research" weight="3"/>
    <keyword key="java" weight="4"/>
    <keyword key="xmpl4j" weight="5"/>
  </keywords>
  <depth level="4"/>
  <urgency urgent="1"/>
</urd>
"""


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    made.lcc("init")
    return made


@pytest.fixture
def full(house):
    house.lcc("urd", "add", "anna", SITE, "--keyword", "ibm", "--keyword", "java virtual machine=4")
    house.lcc(
        "urd", "add", "bert", "*", "--rule", 'all(ibm, near/5(java, "virtual machine"))', "--urgency", "2"
    )
    house.lcc(
        "urd", "add", "größe", SITE + "preise?ü", "--process", "change", "--timing", "10m", "--depth", "3"
    )
    return house


def test_urds_are_added_and_listed(full):
    first, second, third = full.json("urd", "list")
    assert (first["id"], first["owner"], first["uri"], first["processtype"]) == (1, "anna", SITE, "filter")
    assert first["keywords"] == [
        {"key": "ibm", "weight": 1},
        {"key": "java virtual machine", "weight": 4},
    ]
    assert (second["uri"], second["processtype"], second["urgency"]) == ("*", "rule", 2)
    assert (third["uri"], third["timing"], third["depth"]) == (SITE + "preise?%C3%BC", 600_000, 3)
    assert [one["id"] for one in full.json("urd", "list", "--owner", "bert")] == [2]
    lines = full.lcc("urd", "list").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["id", "1", "2", "3"]
    assert lines[1].endswith("filter\tibm, java virtual machine=4\t")
    assert "no URDs yet" in full.lcc("urd", "list", "--owner", "nobody").stderr
    assert full.json("urd", "list", "--owner", "nobody") == []


def test_a_urd_is_changed_by_what_is_given_only(full):
    before = full.json("urd", "list")[0]
    del before["refused"]
    assert "changed" in full.lcc("urd", "set", "1", "--threshold", "7").stdout
    after = full.json("urd", "list")[0]
    assert after == {**before, "threshold": 7, "revision": 4, "refused": ""}
    assert "unchanged" in full.lcc("urd", "set", "1", "--threshold", "7").stdout
    changed = full.json("urd", "set", "1", "--keyword", "x=2", "--urgency", "0", "--uri", SITE + "b")
    assert (changed["keywords"], changed["urgency"], changed["uri"]) == (
        [{"key": "x", "weight": 2}],
        0,
        SITE + "b",
    )
    assert full.json("urd", "set", "1", "--process", "change", "--no-keywords")["keywords"] == []
    filtered = full.json("urd", "set", "2", "--process", "filter", "--keyword", "ibm")
    assert (filtered["rule"], filtered["processtype"]) == ("", "filter")


def test_why_a_page_cannot_be_asked_for_is_listed(full):
    store = full.store()
    with store.begin() as tx:
        tx.defer_urds([3], 2**60, "lies inside the roots of no provider")
    store.close()
    assert [one["refused"] for one in full.json("urd", "list")] == [
        "",
        "",
        "lies inside the roots of no provider",
    ]
    assert full.lcc("urd", "list").stdout.count("no provider") == 1


def test_a_urd_expires_after_some_time(house):
    begun = time.time()
    one = house.json("urd", "add", "anna", "*", "--keyword", "a", "--expires", "2d")
    assert 0 <= one["expires"] / 1000 - begun - 2 * 86400 < 600
    assert house.json("urd", "set", "1", "--expires", "0")["expires"] is None


def test_urds_are_removed_all_or_none(full):
    assert "no URD 9" in one_error(full.lcc("urd", "remove", "1", "9", status=1))
    assert len(full.json("urd", "list")) == 3
    assert full.lcc("urd", "remove", "3", "1").stdout.count("removed") == 2
    assert [one["id"] for one in full.json("urd", "list")] == [2]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("add", "a b", SITE, "--keyword", "x"), "owner 'a b'"),
        (("add", "anna", "ftp://x/", "--keyword", "x"), "scheme 'ftp'"),
        (("add", "anna", SITE), "no keyword"),
        (("add", "anna", SITE, "--keyword", "x=0"), "weight of 'x'"),
        (("add", "anna", SITE, "--keyword", "?"), "0 words"),
        (("add", "anna", SITE, "--keyword", "x", "--timing", "10ms"), "10ms"),
        (("add", "anna", SITE, "--keyword", "x", "--timing", "0.5"), "timing 500, expected"),
        (("add", "anna", SITE, "--rule", "any(x"), "rule, character"),
        (("add", "anna", "*", "--keyword", "x", "--depth", "1"), "names no page"),
        (("add", "anna", SITE, "--keyword", "x", "--urgency", "3"), "--urgency"),
        (("add", "anna", SITE, "--keyword", "x", "--expires", "9" * 30 + "d"), "--expires"),
        (("set", "1"), "say what is to change"),
        (("set", "9", "--threshold", "1"), "no URD 9"),
        (("set", "1", "--rule", "ibm", "--process", "filter"), "a rule goes with"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_what_is_no_urd_is_refused_in_one_line(house, words, why):
    before = house.json("urd", "add", "anna", SITE, "--keyword", "ibm")
    done = house.lcc(
        "urd", *words, status=2 if "--" in why or why in {"10ms", "say what is to change"} else 1
    )
    assert why in done.stderr
    assert house.json("urd", "list") == [{**before, "refused": ""}]


# --- files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["jsonl", "xml"])
def test_an_export_is_imported_into_another_lcc_and_is_the_same_there(full, tmp_path, form):
    whole = full.lcc("urd", "export", "--format", form).stdout
    other = House(tmp_path / "other")
    other.folder.mkdir()
    other.lcc("init")
    assert other.lcc("urd", "import", "-", stdin=whole).stdout == "3 added, 0 changed, 0 unchanged\n"
    assert other.lcc("urd", "export", "--format", form).stdout == whole
    assert "3 unchanged" in other.lcc("urd", "import", "-", "--format", form, stdin=whole).stdout
    other.lcc("urd", "add", "anna", "*", "--keyword", "x")
    assert other.json("urd", "list")[-1]["id"] == 4


def test_a_real_pipe_takes_an_export_to_another_lcc(full, tmp_path):
    whole = full.run("urd", "export", "--format", "xml")
    assert whole.returncode == 0
    other = House(tmp_path / "other")
    other.folder.mkdir()
    other.lcc("init")
    done = other.run("urd", "import", "-", "--json", stdin=whole.stdout)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"added": 3, "changed": 0, "unchanged": 0})
    assert other.run("urd", "export", "--format", "xml").stdout == whole.stdout


def test_table_4_is_imported_for_an_owner(house):
    (house.folder / "profiles.xml").write_text(TABLE_4)
    assert "owner ''" in one_error(house.lcc("urd", "import", "profiles.xml", status=1))
    house.lcc("urd", "import", "profiles.xml", "--owner", "csyiazt1")
    (one,) = house.json("urd", "list")
    assert (one["owner"], one["timing"], one["lastcheck"], one["depth"]) == (
        "csyiazt1",
        600_000,
        97_876_750_000,
        4,
    )
    assert [word["weight"] for word in one["keywords"]] == [1, 3, 4, 5]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (['{"uri": "ftp://x/", "owner": "a", "keywords": [{"key": "a"}]}'], "line 2: uri 'ftp://x/'"),
        (["{"], "line 2: this is not JSON"),
        (
            ["", '{"uri": "*", "owner": "a", "keywords": [], "protocol": "gopher"}'],
            "line 3: protocol 'gopher'",
        ),
        (
            ['{"id": 1, "uri": "*", "owner": "bert", "keywords": [{"key": "a"}]}'],
            "id 1 is that of a URD of anna",
        ),
        (['{"id": 5, "uri": "*", "owner": "a", "keywords": [{"key": "a"}]}'] * 2, "id 5 stands there twice"),
    ],
    ids=["scheme", "json", "protocol", "owner", "twice"],
)
def test_a_file_with_one_wrong_line_is_not_imported(house, lines, why):
    before = house.json("urd", "add", "anna", SITE, "--keyword", "ibm")
    good = json.dumps({"uri": "*", "owner": "anna", "keywords": [{"key": "good"}]})
    done = house.lcc("urd", "import", "-", stdin="\n".join([good, *lines, good]), status=1)
    assert why in one_error(done)
    assert house.json("urd", "list") == [{**before, "refused": ""}]


def test_a_dry_run_checks_only(house):
    (house.folder / "profiles.xml").write_text(TABLE_4)
    assert house.lcc("urd", "import", "profiles.xml", "--owner", "a", "--dry-run").stdout == "1 checked\n"
    assert house.json("urd", "list") == []


def test_an_export_of_an_owner_goes_to_a_file_and_as_queries(full):
    full.lcc("urd", "export", "--owner", "bert", "-o", "bert.jsonl")
    (one,) = [json.loads(line) for line in (full.folder / "bert.jsonl").read_text().splitlines()]
    assert (one["id"], one["owner"]) == (2, "bert")
    lines = [
        json.loads(line) for line in full.lcc("urd", "export", "--format", "opensearch").stdout.splitlines()
    ]
    assert [line["index"]["_id"] for line in lines[::2]] == ["1", "2", "3"]
    assert all("query" in line for line in lines[1::2])
    assert "no folder" in one_error(full.lcc("urd", "export", "-o", "nowhere/x", status=1))


def test_a_token_for_an_owner_has_a_label_that_names_one(house):
    house.lcc("token", "add", "search engine", "--scope", "annotate", status=2)
    house.lcc("token", "add", "anna", "--scope", "annotate", "--scope", "read")
    (listed,) = house.json("token", "list")
    assert listed["scopes"] == ["annotate", "read"]
