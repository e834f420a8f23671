"""A fetch from another tracker that is killed anywhere leaves the old generation or the new one, and no file."""

import os

import pytest

from lcc_scrapy.apps.tracker.exchange import export
from lcc_scrapy.apps.tracker.importing import CLAIM
from lcc_scrapy.apps.tracker.loading import clear
from lcc_scrapy.db.sql.store import SqlStore
from tests.exchanges import fetch
from tests.integration.site import Site, page
from tests.killed_tracker import empty, killed, rows, shown
from tests.mirrors import NOW, Tracker, tree_of
from tests.sqlite_store import sqlite_store

OLD, NEW = tree_of("a/f 1\na/b/g 2\nc/i 4\nj 5"), tree_of("a/f 2\na/b/g 3\na/b/h/i 3\nk/l/m 9")
MOMENTS = 150
"""More than there are."""

STEP = 1 if os.environ.get("LCC_TRACKER_KILLS") == "all" else 5
"""Every how manieth moment is one to be killed at."""

pytestmark = pytest.mark.slow


def offer(site, theirs, folder, tree):
    theirs.load("ftp://a.org/", tree, "de")
    export(theirs.store, "de", folder, NOW)
    for path in folder.iterdir():
        site.put(f"/exchange/{path.name}", page(path.read_bytes()))


def test_a_killed_fetch_leaves_the_old_generation_or_the_new_one_and_no_file(databases, tmp_path):
    url = databases.url("sqlite")
    store, theirs = SqlStore(url), Tracker(sqlite_store())
    empty(store)
    data, folder = tmp_path / "data", tmp_path / "theirs"
    data.mkdir()
    folder.mkdir()
    with Site() as site:
        Tracker(store).registry.add_domain("de", NOW, f"http://127.0.0.1:{site.listen()}/")
        offer(site, theirs, folder, OLD)
        assert fetch(store, data, NOW) == [("de", 1, "")]
        old = shown(store)
        offer(site, theirs, folder, NEW)
        seen, ended, moment = [], False, 1 - STEP
        while not ended:
            moment += STEP
            assert moment < MOMENTS, "it never ends"
            ended = killed(url, moment, {"fetches": str(data), "at": NOW + 7200})
            seen.append(shown(store))
            assert list(data.iterdir()) == []
            clear(store, NOW + 10 * CLAIM)
            assert rows(store) == len(shown(store)), "nothing else is left"
        new = shown(store)
    print(f"killed at {len(seen) - 1} moments of {moment - 1}")
    assert moment > 40
    assert seen.count(old) + seen.count(new) == len(seen)
    assert old != new
    assert {tuple(one) for one in seen} == {tuple(old), tuple(new)}
    empty(store)
    store.close()
