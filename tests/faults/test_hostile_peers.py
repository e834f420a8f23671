"""Trackers that mean harm, or break down: each is refused in one line, and nothing has changed."""

import gzip
import json
import re
from dataclasses import replace
from hashlib import sha256
from io import BytesIO

import pytest

from lcc_scrapy.apps.tracker import entries, importing, loading
from lcc_scrapy.apps.tracker.entries import MOST_DEPTH
from lcc_scrapy.apps.tracker.exchange import KINDS, BadExchange, Manifest, export
from lcc_scrapy.apps.tracker.importing import Arrived, take_in
from lcc_scrapy.apps.tracker.store import TrackerRows, rows_in
from lcc_scrapy.apps.tracker.tasks import ERROR_MAX
from tests.exchanges import QUICK, fetch
from tests.faults.canary import Canary
from tests.integration.site import Answer, Endless, Site, page, raw
from tests.mirrors import NOW, Tracker, kept, tree_of
from tests.sqlite_store import sqlite_store

A = "ftp://ftp.example.de/"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class Scene:
    """A peer that serves an export, and a tracker that has what it served before."""

    def __init__(self, site, folder):
        self.site, self.folder, self.port = site, folder / "theirs", site.listen()
        self.folder.mkdir()
        self.data = folder / "data"
        self.data.mkdir()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.theirs, self.ours = Tracker(sqlite_store()), Tracker(sqlite_store())
        self.ours.registry.add_domain("de", NOW, self.url)
        self.ours.load("ftp://own.example.org/", tree_of("x/f 1"))
        self.offer(tree_of("a/f 1\nb/g 2"))
        assert self.fetch() == [("de", 1, "")]
        self.offer(tree_of("a/f 2\nb/g 2"))
        self.before = self.known()

    def offer(self, tree):
        self.theirs.load(A, tree, "de")
        self.manifest = json.loads(export(self.theirs.store, "de", self.folder, NOW).text())
        for path in self.folder.iterdir():
            self.put(path.name, page(path.read_bytes()))

    def put(self, name, *answers):
        self.site.put(f"/exchange/{name}", *answers)

    def say(self, **values):
        self.put("de.json", page(json.dumps(self.manifest | values)))

    def bring(self, kind, body):
        """Serve another file, and a manifest that says so."""
        number = ["digests", "links", "contents"].index(kind)
        said = self.manifest["files"][number]
        said |= {"sha256": sha256(body).hexdigest(), "bytes": len(body)}
        self.put(said["name"], page(body))
        self.say()

    def fetch(self, after=7200, **given):
        return fetch(self.ours.store, self.data, NOW + after, **given)

    def known(self):
        store = self.ours.store
        with store.read() as tx:
            domains = [
                replace(one, checked=0, claimed=0, error="", owner="")
                for one in rows_in(tx).tracked_domains()
            ]
            return (
                domains,
                rows_in(tx).hosts(),
                kept(tx, 0, 1000),
                rows_in(tx).staged_before(1 << 62, 100),
            )

    def refused(self, after=1_000_000, **given):
        """Fetch once more; returns the one line that the operator is told."""
        ((domain, generation, error),) = self.fetch(after, **given)
        assert (domain, generation) == ("de", None)
        assert error
        assert "\n" not in error
        assert self.known() == self.before
        with self.ours.store.read() as tx:
            one = rows_in(tx).tracked_domain("de")
        assert (one.error, one.owner) == (error[:ERROR_MAX], "")
        assert list(self.data.iterdir()) == []
        return error.replace(self.url, "")


@pytest.fixture
def scene(tmp_path):
    with Site() as site:
        yield Scene(site, tmp_path)


def test_the_peer_itself_is_good(scene):
    assert scene.fetch(1_000_000) == [("de", 2, "")]
    assert list(scene.data.iterdir()) == []
    assert scene.known() != scene.before


DIGESTS = "de-2.digests.gz"
CUT = raw(HEAD + b"Content-Length: 100\r\n\r\nxx")
ENDLESS = Answer(Endless(HEAD + b"\r\n", b"x" * 20_000))
ANSWERS = {
    "cut": (CUT, "the connection was closed before the end of the answer"),
    "without end": (ENDLESS, "more than NUMBER bytes"),
    "not there": (page("no", "404 Not Found"), "answers 404"),
    "elsewhere": (page("", "302 Found", location="http://192.0.2.1/"), "answers 302"),
    "a part": (page("x", "206 Partial Content"), "answers 206"),
    "no HTTP": (raw(b"220 hello\r\n"), "no beginning of an answer"),
}


@pytest.mark.parametrize("name", ["de.json", DIGESTS])
@pytest.mark.parametrize("kind", sorted(ANSWERS))
def test_an_answer_that_is_none_is_refused(kind, name, scene):
    answer, why = ANSWERS[kind]
    scene.put(name, answer)
    error = scene.refused()
    assert error.startswith(f"exchange/{name}")
    assert why in re.sub(r"than \d+ bytes", "than NUMBER bytes", error)


def test_not_modified_is_no_answer_where_nobody_asked_whether_it_is(scene):
    scene.put(DIGESTS, page("", "304 Not Modified", content_length="", content_type=""))
    assert "answers 304" in scene.refused()
    scene.put("de.json", page("", "304 Not Modified", content_length="", content_type=""))
    assert "de.json answers 304" in scene.refused(2_000_000), "there was no ETag"


@pytest.mark.parametrize("name", ["de.json", DIGESTS, "de-2.contents.gz"])
@pytest.mark.parametrize(
    "begun", [b"", HEAD, HEAD + b"Content-Length: 10\r\n\r\n"], ids=["no answer", "head", "body"]
)
def test_a_peer_that_hangs_is_given_up(begun, name, scene):
    scene.put(name, Answer([begun, b"x"], gap=3600.0) if begun else Answer([b"x"], wait=3600.0))
    limits = replace(QUICK, patience=0.2)
    assert "exchange/" in scene.refused(limits=limits)


def test_a_peer_that_sends_byte_by_byte_is_given_up(scene):
    scene.put(DIGESTS, Answer(Endless(HEAD + b"\r\n", b"x"), gap=0.05))
    why = scene.refused(limits=replace(QUICK, deadline=0.5))
    assert "LCC_TRACKER_DEADLINE" in why or "too long" in why


def test_a_peer_is_asked_again_later_each_time_and_when_it_says(scene):
    no = page("", "500 no")
    scene.put("de.json", no, no, no, page("", "503 Busy", retry_after="5000"), no)
    at = []
    for _ in range(5):
        scene.refused(after=sum(at) + 1_000_000)
        with scene.ours.store.read() as tx:
            one = rows_in(tx).tracked_domain("de")
        at.append(one.claimed - one.checked)
        assert scene.fetch(sum(at) + 1_000_000 - 1) == [], "it is not due before"
    assert at == [60, 120, 240, 5000, 3600]


MANIFESTS = {
    "no JSON": ("x", "the manifest cannot be read"),
    "a list": ("[]", "the manifest cannot be read"),
    "an endless number": ('{"files": [], "generation": 1e999}', "the manifest cannot be read"),
    "deep": ("[" * 60_000, "the manifest cannot be read"),
}


@pytest.mark.parametrize("kind", sorted(MANIFESTS))
def test_a_manifest_that_is_none_is_refused(kind, scene):
    text, why = MANIFESTS[kind]
    scene.put("de.json", page(text))
    assert why in scene.refused()


def test_a_manifest_of_another_domain_or_older_than_what_is_here_is_refused(scene):
    files = [one | {"name": one["name"].replace("de", "fr")} for one in scene.manifest["files"]]
    scene.say(domain="fr", files=files)
    assert "the manifest is of domain fr, not de" in scene.refused()
    files = [one | {"name": one["name"].replace("-2", "-0")} for one in scene.manifest["files"]]
    scene.say(generation=0, files=files)
    assert "generation 0 is older than 1" in scene.refused(2_000_000)


@pytest.mark.parametrize(
    "name", ["../../secret.gz", "fr-2.digests.gz", "http://192.0.2.1/de-2.digests.gz", "de-2.digests.gz?x"]
)
def test_a_manifest_can_name_no_files_but_those_of_its_generation(name, scene):
    first, *others = scene.manifest["files"]
    scene.say(files=[first | {"name": name}, *others])
    asked = len(scene.site.visits)
    assert "the manifest names other files" in scene.refused()
    assert [one.path for one in scene.site.visits[asked:]] == ["/exchange/de.json"]


def test_a_file_that_is_changed_or_larger_than_said_is_refused(scene):
    body = (scene.folder / DIGESTS).read_bytes()
    scene.put(DIGESTS, page(body[:-1] + b"x"))
    assert "is not what the manifest says" in scene.refused()
    scene.put(DIGESTS, page(body[:-1]))
    assert "is not what the manifest says" in scene.refused(2_000_000)
    scene.put(DIGESTS, page(body + b"x"))
    assert f"more than {len(body)} bytes" in scene.refused(3_000_000)
    total = sum(one["bytes"] for one in scene.manifest["files"])
    asked = len(scene.site.visits)
    limits = replace(QUICK, most_bytes=total - 1)
    assert "LCC_TRACKER_BYTES" in scene.refused(4_000_000, limits=limits)
    assert len(scene.site.visits) == asked + 1


def test_packed_bombs_are_refused_while_they_are_unpacked(scene, monkeypatch):
    scene.bring("digests", gzip.compress(bytes(50_000_000)))
    assert "a file or line that is too long" in scene.refused()
    monkeypatch.setattr(entries, "HELD_MAX", 100_000)
    links = b"S\t" + A.encode() + b"\n" + b"".join(b"0\tl%06d\tx\n" % number for number in range(1000))
    scene.offer(tree_of("a/f 2"))
    scene.before = scene.known()
    scene.bring("links", gzip.compress(links))
    assert "more links or digests than the server has" in scene.refused(2_000_000)
    digests = gzip.decompress((scene.folder / "de-3.digests.gz").read_bytes())
    scene.bring("digests", gzip.compress(digests.replace(b"\t1\t0\t0\n", b"\t1\t1000\t0\n", 1)))
    assert "links or digests: entries that take more than 100000 bytes" in scene.refused(3_000_000)


def test_a_peer_cannot_say_anything_of_another_domain(scene):
    text = gzip.decompress((scene.folder / DIGESTS).read_bytes()).replace(
        A.encode(), b"ftp://own.example.org/"
    )
    scene.bring("digests", gzip.compress(text))
    for kind in ("links", "contents"):
        scene.bring(kind, gzip.compress(b"S\tftp://own.example.org/\n"))
    assert "ftp://own.example.org is of another domain than de" in scene.refused()


def test_a_count_that_is_not_true_is_refused(scene):
    scene.say(servers=2)
    assert "fewer servers or directories than the manifest says" in scene.refused()


def test_a_private_address_gets_no_connection_unless_it_may_have_one(scene):
    with Canary() as canary:
        scene.ours.registry.add_domain("uk", NOW, f"http://127.0.0.1:{canary.port}/")
        told = scene.fetch(1_000_000, private=False)
        assert [error.rpartition(": ")[2] for _, _, error in told] == [
            "its address is private (LCC_TRACKER_PEERS_PRIVATE)"
        ] * 2
        assert canary.visitors == []


def test_a_server_that_is_there_twice_is_refused(scene):
    text = {kind: gzip.decompress((scene.folder / f"de-2.{kind}.gz").read_bytes()) for kind in KINDS}
    said = scene.manifest
    scene.manifest = said | {"servers": 2, "directories": 2 * said["directories"]}
    for kind, body in text.items():
        scene.bring(kind, gzip.compress(body * 2))
    assert f"server {A} is there twice" in scene.refused()


def refused_at_once(heads: list[str], rows: bytes, each: int) -> str:
    """Take in servers that have the same directories, ``each`` so many; returns why that is refused."""
    begun = [f"S\t{url}\t1\tlist\t{each}\t0\t0\t0\n".encode() + rows for url in heads]
    names = [f"S\t{url}\n".encode() for url in heads]
    files = [BytesIO(gzip.compress(b"".join(lines))) for lines in (begun, names, names)]
    manifest = Manifest("de", 1, NOW, len(heads), len(heads) * each, ())
    ours = Tracker(sqlite_store())
    ours.registry.add_domain("de", NOW, "http://peer.example/")
    try:
        take_in(ours.store, Arrived(manifest, "http://peer.example/", files), lambda: NOW)
    except BadExchange as error:
        assert ours.registry.servers() == []
        return str(error)
    assert len(ours.registry.servers()) == len(heads)
    return ""


def test_a_site_has_no_more_servers_than_a_look_up_may_read(monkeypatch):
    monkeypatch.setattr(importing, "MOST_OF_SITE", 10)
    servers = [f"{A}{number}/" for number in range(11)]
    assert refused_at_once(servers[:10], b"0\t\t-\t-\n", 1) == ""
    why = "ftp://ftp.example.de has more than 10 servers"
    assert refused_at_once(servers, b"0\t\t-\t-\n", 1) == why
    assert refused_at_once([*servers[:10], "ftp://ftp.example.org/"], b"0\t\t-\t-\n", 1) == ""


def test_servers_of_one_site_are_looked_for_once(monkeypatch):
    """For each of them, all others of its site were read."""
    asked = []
    real = TrackerRows.hosts_at
    monkeypatch.setattr(TrackerRows, "hosts_at", lambda tx, site: asked.append(site) or real(tx, site))
    assert refused_at_once([f"{A}{number}/" for number in range(50)], b"0\t\t-\t-\n", 1) == ""
    assert asked == [A.removesuffix("/")]


def test_directories_deeper_than_a_scan_lists_are_refused():
    """Each look-up of one would walk all the way up."""
    for depth, why in ((MOST_DEPTH, ""), (MOST_DEPTH + 1, f"directories more than {MOST_DEPTH} deep")):
        rows = [b"1\t%b\t-\t-\n" % (b"d" if number else b"") for number in range(depth)]
        assert refused_at_once([A], b"".join([*rows, b"0\td\t-\t-\n"]), depth + 1) == why


def test_no_transaction_writes_the_links_of_many_large_directories(monkeypatch):
    monkeypatch.setattr(loading, "PAIRS", 10)
    rows = [(number, 0, 1, 0, b"", None, ((b"a", b"b"),) * 4, ()) for number in range(7)]
    waiting = iter(rows)
    assert [len(loading._next(waiting)) for _ in range(4)] == [3, 3, 1, 0]
