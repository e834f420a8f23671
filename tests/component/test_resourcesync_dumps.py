"""ResourceSync dumps: which packages there are, what is in them, and that nobody misses anything."""

import io
import random
import tracemalloc
import zipfile
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from harvested import Harvested, w3c
from web_house import NOW, WebHouse

from lcc_scrapy.apps.resourcesync import documents, packages, parts
from lcc_scrapy.apps.resourcesync.documents import Site
from lcc_scrapy.apps.resourcesync.parts import ChangesPart
from lcc_scrapy.apps.resourcesync.publications import Publication, Span, noted
from lcc_scrapy.apps.resourcesync.routes import make_router
from lcc_scrapy.apps.resourcesync.store import StorePublications
from lcc_scrapy.domain.cache import Tombstone
from lcc_scrapy.feed.content import ContentGone, ContentLost
from tests.memory_store import MemoryStore

DUMP = "/resourcesync/changedump.xml"


@dataclass
class Package:
    """A ZIP file as a harvester reads it."""

    manifest: Harvested
    names: list
    contents: dict
    """By path, as manifests say it."""


@pytest.fixture
def house():
    made = WebHouse()
    made.app.include_router(make_router(StorePublications(MemoryStore()), "http://testserver"))
    return made


@pytest.fixture
def client(house):
    with house.client() as made:
        made.get(DUMP)
        house.now += 100
        yield made


def listed(client, path=DUMP):
    return Harvested.of_answer(client.get(path))


def opened(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        return Package(
            Harvested(archive.read("manifest.xml")), names, {f"/{name}": archive.read(name) for name in names}
        )


def taken(client, loc):
    answer = client.get(loc)
    assert answer.status_code == 200, answer.text
    return opened(answer.content)


def docids(package):
    return [loc.split("/")[5] for loc in package.manifest.locs]


def test_a_package_holds_what_changed_and_its_manifest_as_the_last_file(house, client):
    row = house.shelf.add("a", b"hello")
    house.shelf.add("b")
    house.shelf.remove("b")
    dump = listed(client)
    assert dump.facts == {"capability": "changedump", "from": w3c(NOW), "until": w3c(NOW + 100)}
    assert dump.of(0) == {"type": "application/zip", "from": w3c(NOW), "until": w3c(NOW + 100)}
    answer = client.get(dump.locs[0])
    assert answer.headers["content-type"] == "application/zip"
    assert "content-encoding" not in answer.headers
    package = opened(answer.content)
    assert package.names == [f"content/{row.docid[:2]}/{row.docid}.html", "manifest.xml"]
    manifest = package.manifest
    assert manifest.facts == dump.facts | {"capability": "changedump-manifest"}
    assert manifest.of(0) == {
        "datetime": w3c(NOW + 100), "change": "updated", "type": "text/html", "length": "5",
        "hash": f"md5:{row.fetched_md5} sha-256:{row.sha256}", "path": f"/{package.names[0]}",
    }  # fmt: skip
    assert manifest.of(1) == {"datetime": w3c(NOW + 100), "change": "deleted"}
    assert package.contents[f"/{package.names[0]}"] == b"hello"


def test_the_manifest_is_to_be_had_without_the_package(house, client):
    house.shelf.add("a")
    dump = listed(client)
    rel, href = dump.link(0)
    assert rel == "contents"
    assert client.get(href).content.decode() == taken(client, dump.locs[0]).contents["/manifest.xml"].decode()


def test_what_providers_call_their_documents_names_no_file_and_breaks_no_manifest(house, client):
    name = "../../etc/passwd\"'<&>\x00\x02]]>\r\n\ud800 é"
    row = house.shelf.add("x", mimetype="text/../../x", furl=name)
    package = taken(client, listed(client).locs[0])
    assert package.names == [f"content/{row.docid[:2]}/{row.docid}.bin", "manifest.xml"]
    assert docids(package) == [row.docid]
    rel, href = package.manifest.link(0)
    assert rel == "canonical"
    assert href.isascii()
    assert not set('"<>\r\n ') & set(href)


def test_packages_end_with_publications_so_that_nobody_takes_a_change_twice(house, client):
    for name in "abc":
        house.shelf.add(name)
        house.now += 10
        dump = listed(client)
    assert [dump.of(number)["until"] for number in range(3)] == [w3c(NOW + at) for at in (110, 120, 130)]
    assert dump.of(1)["from"] == dump.of(0)["until"]
    first = dump.locs
    house.shelf.add("d")
    house.now += 10
    assert listed(client).locs[:3] == first
    house.shelf.add("b")
    house.now += 10
    again = listed(client).locs
    assert (again[0], again[1]) == (first[0], first[2])  # of the second one nothing is told any longer
    assert docids(taken(client, first[1])) == []


@pytest.mark.parametrize(("most", "most_bytes"), [(7, 500), (1000, 50), (7, 20)])
def test_packages_are_bounded_and_hold_everything_once_in_order(house, client, monkeypatch, most, most_bytes):
    monkeypatch.setattr(packages, "PACKAGE", most)
    monkeypatch.setattr(packages, "PACKAGE_BYTES", most_bytes)
    rows = [house.shelf.add(f"d{number}", b"x" * (number % 9)) for number in range(60)]
    large = house.shelf.add("large", b"x" * 1000)
    dump = listed(client)
    assert dump.locs == sorted(dump.locs)
    found = [taken(client, loc) for loc in dump.locs]
    assert [name for one in found for name in docids(one)] == [row.docid for row in (*rows, large)]
    assert docids(found[-1]) == [large.docid]
    for package in found[:-1]:
        assert 0 < len(package.manifest.entries) <= most
        lengths = [
            int(package.manifest.of(number)["length"]) for number in range(len(package.manifest.entries))
        ]
        assert sum(lengths) <= most_bytes
    assert len(found) <= 2 * (60 // most + 240 // most_bytes) + 2


def test_a_long_dump_is_an_index_whose_parts_tell_their_times(house, client, monkeypatch):
    monkeypatch.setattr(parts, "PART", 60)
    monkeypatch.setattr("lcc_scrapy.apps.resourcesync.routes.PART", 60)
    rows = []
    for batch in range(5):
        rows += [house.shelf.add(f"d{batch}-{number}") for number in range(50)]
        house.now += 10
        index = listed(client)
    assert index.root.tag.endswith("sitemapindex")
    assert index.locs == sorted(index.locs)
    times = [index.of(number) for number in range(len(index.locs))]
    assert (times[0]["from"], times[-1]["until"]) == (index.facts["from"], index.facts["until"])
    assert all(one["until"] >= other["from"] for one, other in pairwise(times))
    dumps = [listed(client, loc) for loc in index.locs]
    assert {one.links["index"] for one in dumps} == {"http://testserver" + DUMP}
    found = [taken(client, loc) for dump in dumps for loc in dump.locs]
    assert [name for one in found for name in docids(one)] == [row.docid for row in rows]


def test_a_token_gets_packages_of_what_it_is_for(house, client):
    mine = house.shelf.add("a", pid=7)
    house.shelf.add("b", b"secret", pid=8)
    house.shelf.remove("c", pid=8)
    [loc] = listed(client).locs
    assert len(taken(client, loc).manifest.entries) == 3
    with house.client(house.token(providers="7")) as narrowed:
        package = taken(narrowed, loc)
        assert docids(package) == [mine.docid]
        assert b"secret" not in package.contents.values()
        assert docids(SimpleNamespace(manifest=listed(narrowed, listed(narrowed).link(0)[1]))) == [mine.docid]
    with house.client(house.token(providers="9")) as nobody:
        assert listed(nobody).entries == []
        assert taken(nobody, loc).names == ["manifest.xml"]
    with house.client(token="") as stranger:
        assert stranger.get(loc).status_code == 401


def test_what_is_replaced_while_a_package_is_made_is_in_a_later_one(house, client):
    house.shelf.add("a", b"old")
    kept = house.shelf.add("b")
    [loc] = listed(client).locs
    simply = house.lcc.open

    def replaced(row):
        if row.fetched_len == 3:
            house.shelf.add("a", b"newer")
            raise ContentGone("read on")
        return simply(row)

    object.__setattr__(house.lcc, "open", replaced)
    package = taken(client, loc)
    assert (docids(package), len(package.names)) == ([kept.docid], 2)
    house.now += 10
    later = listed(client)
    assert later.of(1)["from"] == w3c(NOW + 100)
    assert b"newer" in taken(client, later.locs[1]).contents.values()


def test_a_package_that_cannot_be_completed_has_no_manifest(house, client):
    def lost(_row):
        raise ContentLost("the file is damaged")

    house.shelf.add("a")
    object.__setattr__(house.lcc, "open", lost)
    assert b"manifest.xml" not in client.get(listed(client).locs[0]).content


def test_damage_does_not_pass_as_a_content(house, client):
    house.shelf.add("a", b"hello")
    object.__setattr__(house.lcc, "open", lambda _row: io.BytesIO(b"hell"))
    assert b"manifest.xml" not in client.get(listed(client).locs[0]).content


def test_a_resource_dump_holds_the_documents_as_they_are(house, client):
    row = house.shelf.add("a", b"hello")
    index = listed(client, "/resourcesync/resourcedump.xml")
    assert (index.facts, index.root.tag[-12:]) == (
        {"capability": "resourcedump", "at": w3c(NOW + 100)},
        "sitemapindex",
    )
    dump = listed(client, index.locs[0])
    assert dump.facts == index.facts
    assert dump.links["index"] == "http://testserver/resourcesync/resourcedump.xml"
    assert dump.of(0) == {"type": "application/zip"}
    package = taken(client, dump.locs[0])
    assert package.manifest.facts == dump.facts | {"capability": "resourcedump-manifest"}
    path = f"/content/{row.docid[:2]}/{row.docid}.html"
    assert package.manifest.of(0) == {
        "type": "text/html", "length": "5", "path": path,
        "hash": f"md5:{row.fetched_md5} sha-256:{row.sha256}",
    }  # fmt: skip
    assert package.contents[path] == b"hello"
    rel, href = dump.link(0)
    assert (rel, client.get(href).content) == ("contents", package.contents["/manifest.xml"])


def test_a_large_resource_dump_comes_in_packages_that_hold_everything_once(house, client, monkeypatch):
    monkeypatch.setattr(parts, "PAGE", 50)
    monkeypatch.setattr(parts, "_USUAL", 100)
    monkeypatch.setattr(packages, "PACKAGE", 30)
    monkeypatch.setattr(packages, "PACKAGE_BYTES", 500)
    rows = [house.shelf.add(f"d{number}", b"x" * (number % 50), pid=7 + number % 2) for number in range(400)]
    index = listed(client, "/resourcesync/resourcedump.xml")
    dumps = [listed(client, loc) for loc in index.locs]
    locs = [loc for dump in dumps for loc in dump.locs]
    assert len(index.locs) > 1
    assert locs == sorted(locs)
    found = [taken(client, loc) for loc in locs]
    assert sorted(row.docid for row in rows) == [name for one in found for name in docids(one)]
    for package in found:
        entries = range(len(package.manifest.entries))
        assert 0 < len(entries) <= 30
        assert sum(int(package.manifest.of(number)["length"]) for number in entries) <= 500
    with house.client(house.token(providers="7")) as narrowed:
        mine = [name for loc in locs for name in docids(taken(narrowed, loc))]
    assert mine == sorted(row.docid for row in rows if row.pid == 7)


def test_nobody_gets_a_package_of_everything_there_is(house, client, monkeypatch):
    monkeypatch.setattr(parts, "PAGE", 50)
    monkeypatch.setattr(parts, "_USUAL", 25)
    for number in range(300):
        house.shelf.add(f"d{number}")
    everything = f"{'0' * 32}-{'f' * 32}"
    for name in (f"resourcedump-{everything}.zip", f"resourcemanifest-{everything}.xml"):
        assert client.get(f"/resourcesync/{name}").status_code == 404
    half = f"{'0' * 32}-{'1' + 'f' * 31}"  # of two parts, when there are eight or sixteen
    assert client.get(f"/resourcesync/resourcedump-{half}.zip").status_code == 200


@pytest.mark.parametrize("kind", ["resourcelist", "resourcedump"])
def test_nobody_gets_everything_there_is_as_one_part(house, client, monkeypatch, kind):
    monkeypatch.setattr(parts, "PAGE", 50)
    monkeypatch.setattr(parts, "_USUAL", 25)
    for number in range(300):
        house.shelf.add(f"d{number}")
    assert client.get(f"/resourcesync/{kind}-00-0000.xml").status_code == 404
    for loc in listed(client, f"/resourcesync/{kind}.xml").locs:
        assert client.get(loc).status_code == 200


def test_more_packages_than_may_be_written_are_sent_away(house, client):
    house.shelf.add("a")
    [loc] = listed(client).locs
    house.app.state.exports = SimpleNamespace(available_tokens=0, total_tokens=4)
    answer = client.get(loc)
    assert (answer.status_code, answer.json()["error"]) == (503, "busy")


def test_an_empty_lcc_has_dumps_without_packages(client):
    assert listed(client, listed(client, "/resourcesync/resourcedump.xml").locs[0]).entries == []
    assert listed(client).entries == []


@pytest.mark.parametrize(
    "name", [f"resourcedump-{'f' * 32}-{'0' * 32}.zip", "resourcedump-0-f.zip", "resourcedump-02-0004.xml",
             f"resourcemanifest-{'F' * 32}-{'F' * 32}.xml", "changedump-5-1.zip", "changedump-0-99.zip", "changedump-0-99.xml", "changemanifest-0-99.xml",
             "changedump-0-x.zip", "changemanifest--1-0.xml", f"changedump-0-{2**64}.zip"],
)  # fmt: skip
def test_packages_that_are_not_there_are_not_found(client, name):
    assert client.get(f"/resourcesync/{name}").status_code in {404, 422}


def test_packages_of_removals_that_are_forgotten_are_not_found(house, client):
    house.shelf.add("a")
    [loc] = listed(client).locs
    house.shelf.remove("a")
    house.now += 10
    listed(client)
    house.shelf.told, house.shelf.forgot = [], 2
    assert client.get(loc).status_code == 404


def test_memory_does_not_grow_with_what_a_package_holds(house):
    """200 MB of contents in 2000 documents; a page of rows and the directory are what is held."""
    body = bytes(100_000)
    row = house.shelf.add("a", body)
    span = Span([Publication(0, NOW), Publication(2000, NOW + 1)])
    out = SimpleNamespace(size=0, flush=lambda: None)

    def count(data):
        out.size += len(data)
        return len(data)

    out.write = count
    site = Site("http://lcc.example.org")
    tracemalloc.start()
    try:
        packages.write(
            out,
            lambda pages: documents.change_dump_manifest(site, span, ChangesPart(0, 2000), pages),
            ([replace(row, urlkey=number.to_bytes(16), seq=number)] for number in range(1, 2001)),
            lambda _row: io.BytesIO(body),
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert out.size > 200_000
    assert peak < 8_000_000


@pytest.mark.parametrize("seed", range(30))
def test_harvesters_who_take_packages_younger_than_their_last_dump_miss_nothing(seed, monkeypatch):
    """They ask as seldom as they like; publications get merged, and packages are cut anywhere."""
    monkeypatch.setattr("lcc_scrapy.apps.resourcesync.publications.MOST", 10)
    monkeypatch.setattr(packages, "PACKAGE", 3)
    chance = random.Random(seed)
    known, now, feed, seq = noted([], 0, NOW), NOW, {}, 0
    seen = [(NOW, {}) for _ in range(3)]
    for _ in range(400):
        now += chance.choice([0, 0, 1, 7, 300])
        if chance.random() < 0.6:
            seq += 1
            feed[chance.randrange(20)] = seq
            continue
        who = chance.randrange(3) if chance.random() < 0.3 else 0
        known = noted(known, seq, now)
        span = Span.complete(known, 0)
        latest, copy = seen[who]
        whole = ChangesPart(span.first.seq, span.last.seq)
        told = [Tombstone(b"", 1, "", "", "", "", 0, one) for one in sorted(feed.values())]
        found = list(packages.of_changes(whole, span, [told]))
        assert all(one.upto <= other.after for one, other in pairwise(found))
        for package in found:
            if span.within(package.after, package.upto)["until"] > latest:
                copy |= {name: at for name, at in feed.items() if package.after < at <= package.upto}
        seen[who] = span.last.at, copy
        assert copy == feed
