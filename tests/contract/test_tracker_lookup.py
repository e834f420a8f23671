"""From a URL to its exact replicas, on every store."""

import random
from dataclasses import replace

import pytest

from lcc_scrapy.apps.tracker import comparison
from lcc_scrapy.apps.tracker import lookup as lookup_module
from lcc_scrapy.apps.tracker.identity import plain
from lcc_scrapy.apps.tracker.lookup import Replica, Step, look_up, look_up_identity
from lcc_scrapy.apps.tracker.rules.policy import Rules
from lcc_scrapy.apps.tracker.rules.tracked import Place, url_of
from lcc_scrapy.apps.tracker.store import rows_in
from tests.mirrors import NOW, Tracker, at, has_file, partial, paths, random_tree, tree_of

pytestmark = [
    pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True),
]

XFREE86 = """
pub/README 5
pub/XFree86/ls-lR 77
pub/XFree86/3.3.6/src.tgz 9
pub/XFree86/4.0.1/INSTALL 100
pub/XFree86/4.0.1/binaries/Linux-ix86-glibc21/Xbin.tgz 2000
pub/XFree86/4.0.1/binaries/FreeBSD-4.x/Xbin.tgz 3000
"""
GAMMA = """
.3/XFree86/4.0.1/INSTALL 100
.3/XFree86/4.0.1/binaries/Linux-ix86-glibc21/Xbin.tgz 2000
.3/XFree86/4.0.1/binaries/FreeBSD-4.x/Xbin.tgz 3000
.3/XFree86/3.3.6/src.tgz 8
"""
HERE, THERE = "ftp://ftp.xfree86.org/", "ftp://ftp.gamma.ru/"


@pytest.fixture
def tracker(store):
    return Tracker(store)


def found(tracker, url, rules=Rules(), limit=10):  # noqa: B008 - it is frozen
    return look_up(tracker.store, Place.parse(url), rules, limit)


def urls(tracker, url, rules=Rules(), limit=10):  # noqa: B008
    return [one.url for one in found(tracker, url, rules, limit).replicas]


def test_the_seeds_table_1_step_by_step(tracker):
    tracker.load(HERE, tree_of(XFREE86))
    tracker.load(THERE, tree_of(GAMMA), "ru")
    result = found(tracker, f"{HERE}pub/XFree86/4.0.1/binaries/Linux-ix86-glibc21/")
    assert result.steps == (
        Step("ftp://ftp.xfree86.org/", 0),
        Step("ftp://ftp.xfree86.org/pub/", 0),
        Step("ftp://ftp.xfree86.org/pub/XFree86/", 0),
        Step("ftp://ftp.xfree86.org/pub/XFree86/4.0.1/", 1),
    )
    there = "ftp://ftp.gamma.ru/.3/XFree86/4.0.1/binaries/Linux-ix86-glibc21/"
    assert result.replicas == (Replica(there, "ru", NOW + 1),)


def test_the_rest_of_the_path_is_appended_of_files_too(tracker):
    tracker.load(HERE, tree_of(XFREE86))
    tracker.load(THERE, tree_of(GAMMA))
    below = "4.0.1/binaries/FreeBSD-4.x/Xbin.tgz"
    assert urls(tracker, f"{HERE}pub/XFree86/{below}") == [f"{THERE}.3/XFree86/{below}"]
    assert urls(tracker, f"{HERE}pub/XFree86/4.0.1/binaries") == [f"{THERE}.3/XFree86/4.0.1/binaries"]
    assert urls(tracker, f"{HERE}pub/XFree86/3.3.6/src.tgz") == []


@pytest.mark.parametrize(
    "path", ["pub/nothing/", "pub/nothing/x", "pub/README/", "x/y/z", "pub/XFree86/4.0.1/?q"], ids=range(5)
)
def test_what_is_not_there_is_unknown(tracker, path):
    tracker.load(HERE, tree_of(XFREE86))
    assert not found(tracker, HERE + path).known
    assert not found(tracker, f"ftp://elsewhere.org/{path}").known
    assert not found(tracker, f"http://ftp.xfree86.org/{path}").known


def test_a_server_that_was_not_listed_yet_has_nothing(tracker):
    tracker.server(HERE)
    assert not found(tracker, HERE).known


def test_own_domains_come_first_then_preferred_ones_then_the_freshest(tracker):
    tree = {b"d": {b"f": 1}, b"own": 1}
    tracker.load("ftp://a.org/", tree)
    for number, (domain, seen) in enumerate([("org", 50), ("de", 10), ("at", 20), ("org", 90), ("de", 30)]):
        tracker.load(f"ftp://m{number}.org/", {b"x": {b"f": 1}}, domain, NOW + seen)
    rules = Rules(own=("de",), preferred=("at",))
    assert urls(tracker, "ftp://a.org/d/f", rules) == [
        f"ftp://m{number}.org/x/f" for number in (4, 1, 2, 3, 0)
    ]
    assert urls(tracker, "ftp://a.org/d/f") == [f"ftp://m{number}.org/x/f" for number in (3, 0, 4, 2, 1)]
    assert urls(tracker, "ftp://a.org/d/f", rules, 2) == ["ftp://m4.org/x/f", "ftp://m1.org/x/f"]
    assert urls(tracker, "ftp://a.org/d/f", rules.only(("at",))) == ["ftp://m2.org/x/f"]
    assert urls(tracker, "ftp://a.org/d/f", rules.only(("uk",))) == []
    forbidden = Rules(forbidden=("m3.org", "m4.org"))
    assert urls(tracker, "ftp://a.org/d/f", forbidden, 1) == ["ftp://m0.org/x/f"]


def test_the_walk_goes_on_where_no_replica_may_be_offered(tracker):
    tracker.load("ftp://a.org/", {b"d": {b"e": {b"f": 1}, b"g": 2}})
    tracker.load("ftp://b.org/", {b"d": {b"e": {b"f": 1}, b"g": 2}}, "at")
    tracker.load("ftp://c.org/", {b"e": {b"f": 1}}, "de")
    assert urls(tracker, "ftp://a.org/d/e/f") == ["ftp://b.org/d/e/f"]
    assert urls(tracker, "ftp://a.org/d/e/f", Rules(allowed=("de",))) == ["ftp://c.org/e/f"]


def test_the_same_server_is_no_replica_of_itself(tracker):
    tracker.load("ftp://a.org/", {b"d": {b"f": 1}, b"e": {b"f": 1}})
    tracker.load("ftp://b.org/", {b"x": {b"f": 1}})
    assert urls(tracker, "ftp://a.org/d/f") == ["ftp://b.org/x/f"]
    assert urls(tracker, "ftp://b.org/x/f") == ["ftp://a.org/d/f", "ftp://a.org/e/f"]


def test_empty_directories_have_no_replica(tracker):
    for name in "ab":
        tracker.load(f"ftp://{name}.org/", {b"incoming": {}, b"only dirs": {b"x": {}}, b"f": ord(name)})
    assert urls(tracker, "ftp://a.org/incoming/") == []
    assert urls(tracker, "ftp://a.org/only%20dirs/x/") == []


def test_the_base_of_a_server_may_be_below_its_root_and_the_nearest_one_counts(tracker):
    tracker.load("https://a.org/x/", {b"d": {b"f": 1}, b"own": 7})
    tracker.load("https://a.org/x/y/", {b"f": 5})
    tracker.load("rsync://b.org:8873/m/", {b"f": 1})
    tracker.load("ftp://c.org/", {b"f": 5})
    assert urls(tracker, "https://a.org/x/d/f") == ["rsync://b.org:8873/m/f"]
    assert urls(tracker, "https://a.org:443/x/y/f") == ["ftp://c.org/f"]
    assert not found(tracker, "https://a.org/").known
    assert urls(tracker, "rsync://b.org:8873/m/f") == ["https://a.org/x/d/f"]


def test_names_of_any_bytes_come_back_percent_encoded(tracker):
    name = bytes([1, 10, 32, 35, 37, 43, 63, 128, 255])
    tracker.load("ftp://a.org/", {b"d": {name: {b"f": 1}}, b"own": 1})
    tracker.load("ftp://b.org/", {name: {name: {b"f": 1}}})
    place = url_of("ftp://a.org", (b"d", name, b"f"), is_directory=False)
    assert urls(tracker, place) == [url_of("ftp://b.org", (name, name, b"f"), is_directory=False)]
    assert "%01%0A%20%23%25+%3F%80%FF" in place


def test_a_name_is_found_among_many(tracker, monkeypatch):
    monkeypatch.setattr(lookup_module, "NARROW", 4)
    names = [b"%03d" % number for number in range(100)]
    tracker.load("ftp://a.org/", {name: {b"f": number} for number, name in enumerate(names)} | {b"own": 1})
    tracker.load(
        "ftp://b.org/", {b"x": {name: {b"f": number} for number, name in enumerate(names)}} | {b"own": 2}
    )
    for name in names:
        assert urls(tracker, f"ftp://a.org/{name.decode()}/f") == [f"ftp://b.org/x/{name.decode()}/f"]
    assert not found(tracker, "ftp://a.org/0505/f").known


def test_links_are_followed_on_the_way(tracker):
    tree = {b"pub": {b"1.0": {b"f": 1}, b"own": 5}}
    links = {
        (b"pub",): [(b"now", b"1.0"), (b"up", b"../pub/./now"), (b"out", b"../../x"), (b"loop", b"loop")]
    }
    tracker.load("ftp://a.org/", tree, links=links)
    tracker.load("ftp://b.org/", {b"v1": {b"f": 1}})
    assert urls(tracker, "ftp://a.org/pub/now/f") == ["ftp://b.org/v1/f"]
    assert urls(tracker, "ftp://a.org/pub/up/") == ["ftp://b.org/v1/"]
    assert not found(tracker, "ftp://a.org/pub/out/f").known
    assert not found(tracker, "ftp://a.org/pub/loop/f").known


SHA = [b"%d" % number * 32 for number in range(3)]


@pytest.mark.parametrize(
    ("url", "offered"),
    [
        ("d/", False),
        ("d/f", True),
        ("d/g", False),
        ("d/e/", False),
        ("d/e/h", False),
        ("d/e/i", True),
        ("d/k/", True),
    ],
    ids=range(7),
)
def test_a_replica_whose_known_content_differs_is_never_offered(tracker, url, offered):
    tree = {b"d": {b"f": 1, b"g": 2, b"e": {b"h": 3, b"i": 4}, b"k": {b"l": 5}}}
    known = {
        (b"d",): [(b"f", SHA[0]), (b"g", SHA[1])],
        (b"d", b"e"): [(b"h", SHA[0])],
        (b"d", b"k"): [(b"l", SHA[0])],
    }
    other = {(b"x",): [(b"f", SHA[0]), (b"g", SHA[2])], (b"x", b"e"): [(b"h", SHA[2]), (b"i", SHA[2])]}
    tracker.load("ftp://a.org/", {**tree, b"own": 1}, digests=known)
    tracker.load("ftp://b.org/", {b"x": tree[b"d"]}, digests=other)
    assert bool(urls(tracker, f"ftp://a.org/{url}")) == offered
    tracker.load("ftp://c.org/", {b"y": tree[b"d"]})
    assert f"ftp://c.org/y{url[1:]}" in urls(tracker, f"ftp://a.org/{url}")


def test_a_file_comes_with_its_digest_and_a_directory_is_told_from_it(tracker):
    tree = {b"d": {b"f": 1, b"g": 2, b"e": {b"h": 3}}}
    tracker.load("ftp://a.org/", {**tree, b"own": 1}, digests={(b"d",): [(b"f", SHA[0])]})
    tracker.load("ftp://b.org/", tree)
    told = [found(tracker, f"ftp://a.org/d/{name}") for name in ("f", "g", "e", "e/", "e/h")]
    assert [one.digest for one in told] == [SHA[0].hex(), "", "", "", ""]
    assert [one.is_directory for one in told] == [False, False, True, True, False]
    assert found(tracker, "ftp://b.org/d/f").digest == ""


def test_a_replica_whose_url_is_too_long_to_be_asked_for_is_left_out(tracker):
    tree = {b"d": {b"3a": 12}}
    long = tree
    for _ in range(10):
        long = {b"n" * 250: long}
    tracker.load("ftp://a.org/", {**tree, b"own": 1})
    tracker.load("ftp://b.org/", {**long, b"x": 1})
    assert urls(tracker, "ftp://a.org/d/") == []
    result = look_up_identity(tracker.store, plain([(b"12", b"3a")]).md5)
    assert [one.url for one in result] == ["ftp://a.org/d/"]


@pytest.mark.parametrize("place", [(b"d", b"b"), (b"d", b"a", b"c"), (b"d", b"b", b"c"), (b"d", b"b", b"e")])
def test_contents_are_compared_at_all_levels_to_the_last_directory(tracker, place):
    tree = {b"f": 1, b"a": {b"f": 1, b"c": {b"f": 1}}, b"b": {b"f": 1, b"c": {b"f": 1}, b"e": {b"f": 2}}}
    tracker.load("ftp://a.org/", {b"d": tree, b"own": 0}, digests={place: [(b"f", SHA[0])]})
    for number, name in enumerate("bc"):
        known = {(b"x", b"y", *place): [(b"f", SHA[number])]}
        other = {b"d": tree, b"own": {b"f": 1 + number}}
        tracker.load(f"ftp://{name}.org/", {b"x": {b"y": other}}, digests=known)
    assert urls(tracker, "ftp://a.org/d/") == ["ftp://b.org/x/y/d/"]
    file = "/".join(name.decode() for name in (*place, b"f"))
    assert urls(tracker, f"ftp://a.org/{file}") == [f"ftp://b.org/x/y/{file}"]
    assert found(tracker, "ftp://a.org/d/").known
    assert found(tracker, "ftp://a.org/d/", Rules(allowed=("nobody",))).known


def test_replicas_whose_contents_are_not_compared_are_not_offered(tracker, monkeypatch):
    """Where many have to be compared, the best ones are; where nothing is known, nothing has to be."""
    monkeypatch.setattr(comparison, "COMPARED", 2)
    tree, known = {b"d": {b"f": 1}}, {(b"d",): [(b"f", SHA[0])]}
    tracker.load("ftp://a.org/", {**tree, b"own": 1}, digests=known)
    for number in range(6):
        other = {} if number == 5 else {"digests": {(b"d",): [(b"f", SHA[number == 3])]}}
        tracker.load(f"ftp://m{number}.org/", {**tree, b"m%d" % number: 2}, at=NOW + 10 - number, **other)
    result = found(tracker, "ftp://a.org/d/f", limit=1)
    assert [one.url for one in result.replicas] == ["ftp://m0.org/d/f"]
    assert result.steps[-1].replicas == 2 + 1
    several = [f"ftp://m{number}.org/d/f" for number in (0, 1, 5)]
    assert urls(tracker, "ftp://a.org/d/f", limit=4) == several
    assert urls(tracker, "ftp://a.org/d/f", limit=100) == several


def test_many_like_it_on_the_same_server_hide_no_replica(tracker, monkeypatch):
    monkeypatch.setattr(lookup_module, "CANDIDATES", 3)
    many = {b"%d" % number: {b"f": 1} for number in range(9)}
    tracker.load("ftp://a.org/", many)
    tracker.load("ftp://b.org/", {b"x": {b"f": 1}, b"y": 3})
    assert urls(tracker, "ftp://a.org/4/f") == ["ftp://b.org/x/f"]
    tracker.load("ftp://a.org/", many)
    assert urls(tracker, "ftp://a.org/4/f") == ["ftp://b.org/x/f"]


@pytest.mark.parametrize("number", [9, 13])
def test_rows_that_a_server_does_not_show_are_no_replicas(tracker, number):
    """They are being loaded, or on their way out: just before those that it shows, or just behind."""
    tracker.load("ftp://a.org/", {b"d": {b"f": 1}, b"own": 1})
    tracker.load("ftp://b.org/", {b"x": {b"f": 1}})
    other = tracker.server("ftp://b.org/")
    with tracker.store.begin() as tx:
        row = next(one for one in rows_in(tx).behind(other.first, other.first + 2) if one.name == b"x")
        rows_in(tx).put_host(replace(other, first=10, dirs=3))
        rows_in(tx).delete_directories(other.first, other.first + 2)
        rows_in(tx).insert_directories([row._replace(dirid=number, parent=10)])
    assert urls(tracker, "ftp://a.org/d/f") == []


@pytest.mark.parametrize("number", [11, 12])
def test_the_last_row_that_a_server_shows_is_a_replica(tracker, number):
    tracker.load("ftp://a.org/", {b"d": {b"f": 1}, b"own": 1})
    tracker.load("ftp://b.org/", {b"x": {b"f": 1}})
    other = tracker.server("ftp://b.org/")
    with tracker.store.begin() as tx:
        base, row = rows_in(tx).behind(other.first, other.first + 2)
        rows_in(tx).put_host(replace(other, first=10, dirs=3))
        rows_in(tx).delete_directories(other.first, other.first + 2)
        rows_in(tx).insert_directories(
            [base._replace(dirid=10, parent=10), row._replace(dirid=number, parent=10)]
        )
    assert urls(tracker, "ftp://a.org/d/f") == ["ftp://b.org/x/f"]


def test_an_identity_of_the_seed_names_directories(tracker):
    tracker.load("ftp://a.org/", {b"d": {b"3a": 12}})
    tracker.load("ftp://b.org/", {b"23a": 1}, "de")
    md5 = plain([(b"12", b"3a")]).md5
    result = look_up_identity(tracker.store, md5, Rules(own=("org",)))
    assert [one.url for one in result] == ["ftp://a.org/d/", "ftp://b.org/"]
    assert urls(tracker, "ftp://a.org/d/3a") == []
    assert look_up_identity(tracker.store, b"x" * 16) == ()


def expected(trees, url, path):
    """Compare all directories with one, plainly."""
    its = at(trees[url], path)
    if not has_file(its):
        return set()
    return {
        url_of(other[:-1], place, is_directory=True)
        for other, tree in trees.items()
        if other != url
        for place in paths(tree)
        if at(tree, place) == its
    }


@pytest.mark.parametrize("seed", [0, 1])
def test_replicas_are_those_of_a_brute_force_comparison(tracker, seed):
    chosen = random.Random(seed)
    whole = random_tree(chosen)
    trees = {"ftp://origin.org/": whole}
    trees |= {f"ftp://m{number}.org/": partial(chosen, whole) for number in range(10)}
    for url, tree in trees.items():
        tracker.load(url, tree)
    compared = replicated = 0
    for url, tree in trees.items():
        for path in list(paths(tree))[:60]:
            with tracker.store.read() as tx:
                rows = rows_in(tx)
                its = _directory(rows, tracker, url, path)
                pairs = (
                    lookup_module.shown(rows, rows.directories_with(its.md5, its.sha, 1000), Rules())
                    if its.md5
                    else []
                )
                where = lookup_module.paths_of(rows, pairs)
            mirrors = {
                url_of(host.site, where[one.dirid], is_directory=True)
                for one, host in pairs
                if host.url != url
            }
            assert mirrors == expected(trees, url, path)
            compared, replicated = compared + 1, replicated + bool(mirrors)
    assert compared > 100
    assert replicated > 20


def _directory(rows, tracker, url, path):
    host = next(one for one in tracker.registry.servers() if one.url == url)
    found = rows.directories([host.first])[host.first]
    for name in path:
        found = lookup_module.child(rows, found, name)
    return found


def test_the_walk_gives_what_a_brute_force_walk_gives(tracker):
    chosen = random.Random(7)
    whole = random_tree(chosen)
    trees = {"ftp://origin.org/": whole} | {
        f"ftp://m{number}.org/": partial(chosen, whole) for number in range(10)
    }
    for url, tree in trees.items():
        tracker.load(url, tree)
    for path in list(paths(whole)):
        url = url_of("ftp://origin.org", path, is_directory=True)
        levels = [expected(trees, "ftp://origin.org/", path[:depth]) for depth in range(len(path) + 1)]
        first = next((depth for depth, some in enumerate(levels) if some), None)
        rest = "".join(f"{name.decode()}/" for name in path[first:]) if first is not None else ""
        wanted = set() if first is None else {one + rest for one in levels[first]}
        assert set(urls(tracker, url, limit=1000)) == wanted
