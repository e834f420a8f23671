"""Replicas whose rows are not what their identities say, bases within bases, and how much is compared."""

from functools import partial

import pytest

from lcc_scrapy.apps.tracker import lookup as lookup_module
from lcc_scrapy.apps.tracker.comparison import Comparison
from lcc_scrapy.apps.tracker.lookup import look_up, look_up_identity
from lcc_scrapy.apps.tracker.rules.tracked import Place
from lcc_scrapy.apps.tracker.store import rows_in
from tests.mirrors import Tracker, kept

pytestmark = [
    pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True),
]

SHA = [b"%d" % number * 32 for number in range(3)]
D = {b"f": 1, b"e": {b"h": 3, b"i": {b"j": 4}}, b"k": {b"l": 5}}
BELOW = ["", "f", "e/", "e/h", "e/i/", "e/i/j", "k/l"]


@pytest.fixture
def tracker(store):
    return Tracker(store)


def urls(tracker, url, limit=10):
    return [one.url for one in look_up(tracker.store, Place.parse(url), limit=limit).replicas]


def rows_of(tracker, url):
    host = tracker.server(url)
    with tracker.store.read() as tx:
        return {one.name: one for one in rows_in(tx).behind(host.first, host.first + host.dirs)}


def put(tracker, url, name, **fields):
    """Change the row of a directory, as a hostile tracker could have it."""
    row = rows_of(tracker, url)[name]
    with tracker.store.begin() as tx:
        _, _, digests = kept(tx, row.dirid, row.dirid + 1)
        rows_in(tx).delete_directories(row.dirid, row.dirid + 1)
        rows_in(tx).insert_directories([row._replace(**fields)])
        rows_in(tx).insert_digests(digests)


def lie(tracker, tree, known=()):
    """List a server that says of its /x that it is our /d."""
    tracker.load(
        "ftp://liar.org/", {b"x": tree, b"liar": 1}, digests={(): [(b"liar", SHA[1])], **dict(known)}
    )
    ours = rows_of(tracker, "ftp://a.org/")[b"d"]
    put(tracker, "ftp://liar.org/", b"x", md5=ours.md5, sha=ours.sha, tag=ours.tag)


@pytest.fixture
def known(tracker):
    """List ours and an honest replica."""
    its = [((), b"f"), ((b"e",), b"h"), ((b"e", b"i"), b"j"), ((b"k",), b"l")]
    ours, theirs = ({(top, *path): [(name, SHA[0])] for path, name in its} for top in (b"d", b"y"))
    tracker.load("ftp://a.org/", {b"d": D, b"own": 1}, digests=ours)
    tracker.load("ftp://b.org/", {b"y": D, b"own": 2}, digests=theirs)


LIES = {
    "nothing below": {b"z": 1},
    "fewer": {b"e": {b"h": 3, b"i": {b"j": 4}}},
    "more": {**D, b"m": {}},
    "more at the end": {b"e": {b"i": {}}, b"k": {b"i": {}}},
}


@pytest.mark.parametrize("tree", LIES.values(), ids=LIES)
@pytest.mark.parametrize("followed", [False, True], ids=["last", "followed"])
def test_a_server_that_lies_of_what_it_has_does_not_disturb_others(tracker, known, tree, followed):
    lie(tracker, tree)
    if followed:  # by rows of another server
        tracker.load("ftp://c.org/", {b"e": {b"f": 9}, b"g": {b"f": 9}})
    for below in BELOW:
        honest = f"ftp://b.org/y/{below}"
        assert honest in urls(tracker, f"ftp://a.org/d/{below}")
    assert urls(tracker, "ftp://a.org/d/") == ["ftp://b.org/y/"]


@pytest.mark.parametrize("below", ["e/h", "e/i/j", "e/i/", "k/l"])
def test_a_replica_with_other_subdirectories_on_the_way_is_not_offered(tracker, known, below):
    lie(tracker, {b"e": {b"i": {b"m": {}}, b"n": {}}, b"l": {}})
    assert urls(tracker, f"ftp://a.org/d/{below}") == [f"ftp://b.org/y/{below}"]


@pytest.mark.parametrize("tree", [LIES["nothing below"], LIES["more"]], ids=["fewer", "more"])
def test_a_replica_with_other_subdirectories_is_not_offered(tracker, known, tree):
    lie(tracker, tree)
    assert urls(tracker, "ftp://a.org/d/f") == ["ftp://b.org/y/f"]


@pytest.mark.parametrize("below", ["", "e/h", "e/i/j"])
def test_rows_of_another_server_are_no_part_of_a_replica(tracker, known, below):
    lie(tracker, D)
    put(tracker, "ftp://liar.org/", b"x", first=rows_of(tracker, "ftp://b.org/")[b"e"].dirid)
    assert urls(tracker, f"ftp://a.org/d/{below}") == [f"ftp://b.org/y/{below}"]


def test_a_directory_is_no_replica_of_itself_where_bases_are_within_each_other(tracker):
    tracker.load("ftp://a.org/", {b"pub": {b"d": {b"f": 1}, b"own": 2}})
    tracker.load("ftp://a.org/pub/", {b"d": {b"f": 1}, b"own": 3})
    assert urls(tracker, "ftp://a.org/pub/d/f") == []
    tracker.load("http://a.org/", {b"d": {b"f": 1}, b"own": 4})
    assert urls(tracker, "ftp://a.org/pub/d/f") == ["http://a.org/d/f"]


def test_a_url_is_offered_once_where_bases_are_within_each_other(tracker):
    tracker.load("ftp://a.org/", {b"d": {b"f": 1}, b"own": 1})
    tracker.load("ftp://c.org/", {b"f": 1})
    tracker.load("ftp://b.org/", {b"pub": {b"d": {b"f": 1}, b"own": 2}})
    tracker.load("ftp://b.org/pub/", {b"d": {b"f": 1}, b"own": 3})
    assert urls(tracker, "ftp://a.org/d/f") == ["ftp://b.org/pub/d/f", "ftp://c.org/f"]
    assert urls(tracker, "ftp://a.org/d/f", 2) == ["ftp://b.org/pub/d/f", "ftp://c.org/f"]
    assert urls(tracker, "ftp://a.org/d/f", 1) == ["ftp://b.org/pub/d/f"]
    md5 = rows_of(tracker, "ftp://a.org/")[b"d"].md5
    named = [one.url for one in look_up_identity(tracker.store, md5, limit=3)]
    assert named == ["ftp://b.org/pub/d/", "ftp://c.org/", "ftp://a.org/d/"]


@pytest.mark.parametrize(("left", "compared"), [(3, 0), (4, 1), (7, 1), (8, 2)])
def test_a_look_up_compares_a_bounded_number_of_directories(tracker, known, monkeypatch, left, compared):
    """Our tree has four; one that was not compared whole is not offered."""
    tracker.load("ftp://c.org/", {b"y": D, b"own": 3}, digests={(b"y",): [(b"f", SHA[0])]})
    monkeypatch.setattr(lookup_module, "Comparison", partial(Comparison, left=left))
    assert urls(tracker, "ftp://a.org/d/") == ["ftp://c.org/y/", "ftp://b.org/y/"][:compared]
    assert len(urls(tracker, "ftp://a.org/d/f")) == 2
