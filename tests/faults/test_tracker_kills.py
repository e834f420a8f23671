"""A load or an import of the mirror tracker that is killed anywhere leaves the old generation or the new one.

``LCC_TRACKER_KILLS=all`` kills at each moment; otherwise it is some moments, spread over the whole.
"""

import os

import pytest

from lcc_scrapy.apps.tracker.exchange import export
from lcc_scrapy.apps.tracker.importing import CLAIM
from lcc_scrapy.apps.tracker.loading import clear
from lcc_scrapy.apps.tracker.store import rows_in
from lcc_scrapy.db.sql.store import SqlStore
from tests.killed_tracker import empty, killed, rows, shown
from tests.mirrors import NOW, Tracker, tree_of
from tests.sqlite_store import sqlite_store

KINDS = ("sqlite", "mariadb", "postgresql")
OLD, NEW = tree_of("a/f 1\na/b/g 2\nc/i 4\nj 5"), tree_of("a/f 2\na/b/g 3\na/b/h/i 3\nk/l/m 9")
PEER = "https://peer.example.org/"
MOMENTS = 150
"""More than any of them has."""

STEP = 1 if os.environ.get("LCC_TRACKER_KILLS") == "all" else 6
"""Every how manieth moment is one to be killed at."""

pytestmark = pytest.mark.slow


@pytest.fixture(params=KINDS)
def database(request, databases):
    url = databases.url(request.param)
    store = SqlStore(url)
    empty(store)
    yield url, store
    empty(store)
    store.close()


def kill_at_moments(url, store, states, what):
    """Kill something at a later moment each time; returns at how many places it was killed."""
    changes = 0
    for places, moment in enumerate(range(1, MOMENTS, STEP)):
        before, ended = shown(store), killed(url, moment, what(places))
        changes += shown(store) != before and not ended
        assert shown(store) in states, f"half a generation at moment {moment}"
        clear(store, NOW + 10 * CLAIM)
        assert rows(store) == len(shown(store)), "nothing else is left"
        if ended:
            print(f"killed at {places} places; {changes} times what is shown changed")
            return places
    raise AssertionError("it never ends")


@pytest.mark.soak_of("mariadb", "postgresql")
def test_a_killed_load_leaves_the_old_generation_or_the_new_one(database):
    url, store = database
    tracker = Tracker(store)
    states = []
    for tree in (NEW, OLD):
        tracker.load("ftp://a.org/", tree)
        states.append(shown(store))
    what = {"hostid": 1, "at": NOW}
    places = kill_at_moments(url, store, states, lambda n: what | {"tree": (OLD, NEW)[n % 2]})
    assert places > 20 // STEP


@pytest.mark.soak_of("sqlite", "postgresql")
def test_a_killed_import_leaves_the_old_generation_or_the_new_one(database, tmp_path):
    url, store = database
    theirs, states = Tracker(sqlite_store()), [[]]
    what = {"folder": str(tmp_path), "domain": "de", "peer": PEER, "at": NOW}
    Tracker(store).registry.add_domain("de", NOW, PEER)
    for number, (one, other) in enumerate([(OLD, NEW), (NEW, OLD)]):
        theirs.load("ftp://a.org/", one, "de")
        theirs.load(f"ftp://b{number}.org/", other, "de")
        export(theirs.store, "de", tmp_path, NOW)
        states.append(_as_shown(theirs, number))
        places = kill_at_moments(url, store, states, lambda _: what)
        assert shown(store) == states[-1]
        assert places > 25 // STEP
        theirs.registry.remove_server(theirs.server(f"ftp://b{number}.org/").hostid)


def _as_shown(theirs, number):
    found = []
    for host in theirs.registry.servers():
        with theirs.store.read() as tx:
            found += [
                (host.url, one.name, one.sha)
                for one in rows_in(tx).behind(host.first, host.first + host.dirs)
            ]
    return sorted(found)
