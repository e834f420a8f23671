"""ResourceSync documents: what is in them, for whom, and that a harvester who goes by times misses nothing."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from harvested import NAMES, Harvested, w3c
from hypothesis import given
from hypothesis import strategies as st
from web_house import NOW, SITE, WebHouse

from lcc_scrapy.apps.resourcesync import parts
from lcc_scrapy.apps.resourcesync.publications import MOST, Publication, Span, noted
from lcc_scrapy.apps.resourcesync.routes import make_router
from lcc_scrapy.apps.resourcesync.store import StorePublications
from lcc_scrapy.cli.web_api import routes_of_apps
from lcc_scrapy.config.config import config_of
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.feed import reader
from tests.memory_store import MemoryStore

LISTS = ["/resourcesync/resourcelist.xml", "/resourcesync/changelist.xml"]
ALL = ["/.well-known/resourcesync", "/resourcesync/capabilitylist.xml", *LISTS]


@pytest.fixture
def house():
    made = WebHouse()
    made.app.include_router(make_router(StorePublications(MemoryStore()), "http://testserver"))
    return made


@pytest.fixture
def client(house):
    with house.client() as made:
        yield made


def harvested(client, path):
    return Harvested.of_answer(client.get(path))


@pytest.mark.parametrize(
    "path", [*ALL, "/resourcesync/resourcelist-00-0000.xml", "/resourcesync/changelist-0-0.xml"]
)
def test_without_a_token_there_is_nothing(house, path):
    with house.client(token="") as nobody:
        assert nobody.get(path).status_code == 401


def test_a_harvester_finds_the_lists_from_the_well_known_place_on(house, client):
    row = house.shelf.add("a<&>\x02 b", b"hello")
    description = harvested(client, "/.well-known/resourcesync")
    assert description.facts == {"capability": "description"}
    capabilities = Harvested.of_answer(client.get(description.locs[0]))
    assert capabilities.links == {"up": "http://testserver/.well-known/resourcesync"}
    assert [capabilities.of(number)["capability"] for number in range(len(capabilities.entries))] == [
        "resourcelist",
        "resourcedump",
        "changelist",
        "changedump",
    ]
    index = Harvested.of_answer(client.get(capabilities.locs[0]))
    assert (index.facts["capability"], index.facts["at"]) == ("resourcelist", w3c(NOW))
    listed = Harvested.of_answer(client.get(index.locs[0]))
    assert listed.links["index"] == capabilities.locs[0]
    assert listed.locs == [f"http://testserver/v1/documents/{row.docid}/content"]
    assert listed.entries[0].find("s:lastmod", NAMES).text == w3c(NOW)
    assert listed.of(0) == {
        "hash": f"md5:{row.fetched_md5} sha-256:{row.sha256}",
        "length": "5",
        "type": "text/html",
    }
    assert listed.link(0) == ("canonical", SITE + "a%3C&%3E%02%20b")


def test_changes_are_told_with_the_time_at_which_they_could_be_seen_first(house, client):
    house.shelf.add("a")
    begun = harvested(client, LISTS[1])
    assert (begun.entries, begun.facts["from"], begun.facts["until"]) == ([], w3c(NOW), w3c(NOW))
    house.now += 100
    late = house.shelf.add("b", fetched_time=NOW - 5000)  # an answer that was settled long after
    house.shelf.remove("a")
    told = harvested(client, LISTS[1])
    assert (told.facts["from"], told.facts["until"]) == (w3c(NOW), w3c(NOW + 100))
    assert told.of(0) == {
        "datetime": w3c(NOW + 100), "change": "updated", "type": "text/html", "length": "5",
        "hash": f"md5:{late.fetched_md5} sha-256:{late.sha256}",
    }  # fmt: skip
    assert told.of(1) == {"datetime": w3c(NOW + 100), "change": "deleted"}
    house.now += 50
    assert harvested(client, LISTS[1]).facts["until"] == w3c(NOW + 100)


def test_removals_that_are_forgotten_move_the_beginning_of_the_list(house, client):
    house.shelf.add("a")
    harvested(client, LISTS[1])
    house.shelf.remove("a")
    house.now += 10
    harvested(client, LISTS[1])
    house.shelf.add("b")
    house.shelf.told, house.shelf.forgot = house.shelf.told[1:], 2
    house.now += 10
    assert [harvested(client, LISTS[1]).facts[name] for name in ("from", "until")] == [
        w3c(NOW + 10),
        w3c(NOW + 20),
    ]


def test_a_restored_lcc_begins_its_list_anew(house, client):
    house.shelf.add("a")
    harvested(client, LISTS[1])
    house.shelf.add("b")
    house.shelf.generation, house.now = 2, NOW + 10
    told = harvested(client, LISTS[1])
    assert (told.entries, told.facts["from"]) == ([], w3c(NOW + 10))


def test_a_token_shows_what_it_is_for(house):
    mine = house.shelf.add("a", pid=7)
    with house.client() as everything:
        harvested(everything, LISTS[1])
    house.shelf.add("b", pid=8)
    again = house.shelf.add("c", pid=7)
    house.shelf.remove("b", pid=8)
    with house.client(house.token(providers="7")) as client:
        changed = harvested(client, LISTS[1])
        listed = harvested(client, "/resourcesync/resourcelist-00-0000.xml")
    assert {loc.split("/")[5] for loc in listed.locs} == {mine.docid, again.docid}
    assert {loc.split("/")[5] for loc in changed.locs} == {again.docid}


def test_long_lists_come_in_parts_that_hold_everything_once(house, client, monkeypatch):
    monkeypatch.setattr(parts, "PAGE", 50)
    monkeypatch.setattr(parts, "_USUAL", 25)
    monkeypatch.setattr(parts, "PART", 60)
    harvested(client, LISTS[1])
    rows = [house.shelf.add(f"d{number}") for number in range(500)]
    house.now += 10
    for path, least in zip(LISTS, (8, 9), strict=True):
        index = harvested(client, path)
        assert index.root.tag.endswith("sitemapindex")
        assert len(index.locs) >= least
        assert index.locs == sorted(index.locs)
        locs = [loc for part in index.locs for loc in Harvested.of_answer(client.get(part)).locs]
        assert len(locs) == 500
        assert {loc.split("/")[5] for loc in locs} == {row.docid for row in rows}


def test_a_part_is_read_to_its_own_end_however_little_of_it_is_selected(house, monkeypatch):
    monkeypatch.setattr(reader, "PAGE", 10)
    monkeypatch.setattr(parts, "PART", 20)
    with house.client() as everything:
        harvested(everything, LISTS[1])
        for number in range(200):
            house.shelf.add(f"d{number}", pid=8)
        index = harvested(everything, LISTS[1])
    with house.client(house.token(providers="7")) as client:
        house.shelf.pages = 0
        assert Harvested(client.get(index.locs[0]).content).locs == []
    assert house.shelf.pages == 2


@pytest.mark.parametrize(
    "name",
    [
        "resourcelist-02-0004",
        "resourcelist-13-0000",
        "resourcelist-x-1",
        "changelist-5-1",
        "changelist-0-99",
        "x",
    ],
)
def test_parts_that_are_not_there_are_not_found(client, name):
    assert client.get(f"/resourcesync/{name}.xml").status_code in {404, 422}


def test_the_url_that_clients_see_is_a_setting():
    house = WebHouse()
    house.app.include_router(make_router(StorePublications(MemoryStore()), "https://lcc.example.org/x"))
    with house.client() as client:
        assert harvested(client, ALL[0]).locs == ["https://lcc.example.org/x/resourcesync/capabilitylist.xml"]


# --- publications --------------------------------------------------------------------------------


def test_publications_are_remembered_by_the_store_and_those_of_another_life_forgotten():
    store = StorePublications(MemoryStore())
    head = Position("lcc", 1, 10**12)
    notes = [store.publish(replace(head, seq=head.seq + number), NOW + number) for number in range(200)][-1]
    assert len(notes) == MOST
    assert store.publish(replace(head, seq=5), NOW + 999) == notes
    assert (notes[0], notes[-1]) == (Publication(10**12, NOW), Publication(10**12 + 199, NOW + 199))
    assert store.publish(replace(head, generation=2), NOW + 300) == [Publication(10**12, NOW + 300)]
    assert len(store.publish(replace(head, generation=2, seq=10**12 + 1), NOW)) == 2


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-50, 100_000)), min_size=1, max_size=300))
def test_times_of_publications_rise_whatever_the_clock_does(steps):
    known, seq, now = [], 1, NOW
    for more, later in steps:
        seq, now = seq + more, now + later
        known = noted(known, seq, now)
    assert len(known) <= MOST
    assert all(one.seq < other.seq and one.at < other.at for one, other in pairwise(known))
    assert known[-1].seq == seq


@pytest.mark.parametrize("seed", range(30))
def test_harvesters_who_go_by_the_latest_time_they_saw_miss_nothing(seed):
    """Documents are settled in any order of their fetches, and harvesters ask as seldom as they like."""
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
        times = {name: span.moment(at) for name, at in feed.items() if at > span.first.seq}
        copy |= {name: feed[name] for name, at in times.items() if at >= latest}
        seen[who] = max([latest, *times.values()]), copy
        assert copy == feed


def test_all_of_it_is_described(house):
    with house.client(token="") as nobody:
        described = nobody.get("/openapi.json").json()["paths"]
    assert {path for path in described if "resourcesync" in path} >= set(ALL)


@pytest.mark.parametrize(("apps", "there"), [("", True), ("-resourcesync", False)])
def test_the_routes_are_there_while_the_app_is_at_work(tmp_path, apps, there):
    config = config_of({"LCC_DATA_DIR": str(tmp_path), "LCC_APPS": apps})
    paths = {route.path for router in routes_of_apps(config, MemoryStore()) for route in router.routes}
    assert paths.issuperset(ALL) == there
    assert bool(paths.intersection(ALL)) == there
