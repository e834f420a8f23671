"""``lcc tracker`` as operators run it."""

import os

import pytest
from test_cli import House, one_error

from lcc_scrapy.db.sql.store import SqlStore
from tests.mirrors import NOW, Tracker, tree_of

TREE = tree_of("pub/app/own 2\npub/app/1.0/app.tgz 5\npub/app/1.0/doc/README 7\npub/own 1")
MIRROR = tree_of("mirrors/1.0/app.tgz 5\nmirrors/1.0/doc/README 7")
URL = "ftp://ftp.example.org/pub/app/1.0/doc/README"


def loaded(house, *servers):
    store = SqlStore(f"sqlite:///{house.data / 'lcc.sqlite'}")
    for url, tree, domain in servers:
        Tracker(store).load(url, tree, domain, at=NOW)
    store.close()


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    made.lcc("init")
    return made


@pytest.fixture
def mirrored(house):
    loaded(
        house,
        ("ftp://ftp.example.org/", TREE, "org"),
        ("http://m.example.de/", MIRROR, "de"),
        ("http://m.example.at/", MIRROR, "at"),
    )
    return house


def test_domains_and_servers_are_added_listed_and_removed(house):
    assert "no domains yet" in house.lcc("tracker", "domain", "list").stderr
    assert house.lcc("tracker", "domain", "add", "DE").stdout == "domain de\n"
    told = house.lcc("tracker", "domain", "add", "uk", "--peer", "https://peer.example.org").stdout
    assert told == "domain uk from https://peer.example.org/\n"
    told = house.lcc("tracker", "server", "add", "ftp://Ftp.example.de/pub", "--domain", "de").stdout
    assert told == "server 1 of domain de: ftp://ftp.example.de/pub/\n"
    assert "no domain fr" in one_error(
        house.lcc("tracker", "server", "add", "ftp://x/", "--domain", "fr", status=1)
    )
    assert "come from https://peer" in one_error(house.lcc("tracker", "server", "add", "ftp://x/", "--domain", "uk", status=1))  # fmt: skip
    (server,) = house.json("tracker", "server", "list")
    assert (server["hostid"], server["url"], server["dirs"]) == (1, "ftp://ftp.example.de/pub/", 0)
    assert "ftp://ftp.example.de/pub/\t0\t0\t0\tnever" in house.lcc("tracker", "server", "list", "de").stdout
    assert [one["servers"] for one in house.json("tracker", "domain", "list")] == [1, 0]
    assert house.lcc("tracker", "server", "remove", "1").stdout.startswith("server 1 removed")
    assert house.lcc("tracker", "domain", "remove", "uk").stdout == "domain uk removed\n"
    assert "no server 1" in one_error(house.lcc("tracker", "server", "remove", "1", status=1))
    assert [one["domain"] for one in house.json("tracker", "status")] == ["de"]


def test_replicas_are_printed_best_first(mirrored, tmp_path):
    at, de = (f"http://m.example.{tld}/mirrors/1.0/doc/README" for tld in ("at", "de"))
    assert mirrored.lcc("tracker", "lookup", URL).stdout == f"{de}\n{at}\n"
    assert mirrored.lcc("tracker", "lookup", URL, "--tld", "at").stdout == f"{at}\n"
    assert mirrored.lcc("tracker", "lookup", URL, "--limit", "1").stdout == f"{de}\n"
    assert "no replicas" in mirrored.lcc("tracker", "lookup", URL, "--tld", "uk", status=1).stderr
    assert "no server that is tracked" in mirrored.lcc("tracker", "lookup", "ftp://x/", status=1).stderr
    assert "is no ftp" in one_error(mirrored.lcc("tracker", "lookup", "file:///etc", status=1))
    found = mirrored.json("tracker", "lookup", URL)
    assert [one["replicas"] for one in found["steps"]] == [0, 0, 0, 2]
    policy = tmp_path / "policy.toml"
    policy.write_text('own = ["at"]\n')
    mirrored.settings["LCC_TRACKER_POLICY"] = str(policy)
    assert mirrored.lcc("tracker", "lookup", URL).stdout == f"{at}\n{de}\n"


def test_explain_shows_policy_and_walk(mirrored, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text('[[network]]\nfrom = ["192.0.2.0/24"]\nown = ["at"]\nforbidden = ["example.de"]\n')
    mirrored.settings["LCC_TRACKER_POLICY"] = str(policy)
    told = mirrored.lcc("tracker", "explain", URL, "--from", "192.0.2.7").stdout
    assert "network    192.0.2.0/24" in told
    assert "ftp://ftp.example.org/pub/app/  no replicas\n" in told
    assert "ftp://ftp.example.org/pub/app/1.0/  1 replicas\n" in told
    assert "http://m.example.at/mirrors/1.0/doc/README\tat" in told
    assert "example.de/mirrors" not in told
    others = mirrored.json("tracker", "explain", URL, "--from", "2001:db8::1")
    assert (others["network"], len(others["replicas"])) == ("others", 2)
    assert "no IP address" in one_error(mirrored.lcc("tracker", "explain", URL, "--from", "x", status=1))
    policy.write_text("own = 1\n")
    assert "own is a list" in one_error(mirrored.lcc("tracker", "explain", URL, "--from", "::1", status=1))


def test_sums_prints_the_identities_of_a_folder(tmp_path):
    house = House(tmp_path)
    folder = tmp_path / "tree"
    (folder / "s").mkdir(parents=True)
    (folder / "a").write_bytes(b"abc")
    (folder / "s" / "b").write_bytes(b"12345")
    (folder / "l").symlink_to("a")
    os.mkfifo(folder / "pipe")
    rows = [line.split("\t") for line in house.lcc("tracker", "sums", str(folder)).stdout.splitlines()]
    assert [(row[0], row[2]) for row in rows[1:]] == [
        ("138e6e1efafc21c4e9f6ccc651215bb8", "."),
        ("14ef8abfe3ae0194a39de558fbcfa765", "./s"),
    ]
    plain = house.json("tracker", "sums", str(folder), "--plain")
    assert [one["path"] for one in plain] == [".", "./s"]
    assert plain[0]["md5"] != rows[1][0]
    assert plain[1]["md5"] == rows[2][0]
    assert len(plain[0]["sha256"]) == 64


def test_what_one_tracker_exports_another_imports(mirrored, tmp_path):
    folder = tmp_path / "exchange"
    folder.mkdir()
    told = mirrored.lcc("tracker", "export", "de", str(folder)).stdout
    assert told.startswith("domain de: 1 servers, 4 directories; de-1.digests.gz ")
    (tmp_path / "other").mkdir()
    other = House(tmp_path / "other")
    other.lcc("init")
    arguments = ("tracker", "import", "de", str(folder), "--peer", "https://peer.example.org/")
    assert "may not speak for domain de" in one_error(other.lcc(*arguments, status=1))
    other.lcc("tracker", "domain", "add", "de", "--peer", "https://peer.example.org/")
    assert other.lcc(*arguments).stdout == "domain de: generation 1, 4 directories\n"
    assert other.lcc(*arguments).stdout == "domain de: nothing new\n"
    loaded(other, ("ftp://ftp.example.org/", TREE, "org"))
    assert other.lcc("tracker", "lookup", URL).stdout == "http://m.example.de/mirrors/1.0/doc/README\n"
    assert "no domain fr" in one_error(other.lcc("tracker", "export", "fr", str(folder), status=1))
