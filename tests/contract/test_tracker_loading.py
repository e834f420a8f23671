"""A new generation replaces the old one whole; files of other trackers are taken in whole or not at all."""

import gzip
import json
from dataclasses import replace
from hashlib import sha256

import pytest

from lcc_scrapy.apps.tracker import exchange, importing, loading
from lcc_scrapy.apps.tracker import registry as registry_of_servers
from lcc_scrapy.apps.tracker.entries import Unlisted
from lcc_scrapy.apps.tracker.exchange import BadExchange, export
from lcc_scrapy.apps.tracker.importing import import_domain
from lcc_scrapy.apps.tracker.loading import CLAIM, Scan, clear, clearing, counted, hide, load, show, stage
from lcc_scrapy.apps.tracker.lookup import look_up
from lcc_scrapy.apps.tracker.registry import NotTracked, Registry, ServerRefused
from lcc_scrapy.apps.tracker.rules.tracked import BadDomain, Place, Staged, TrackedDomain
from lcc_scrapy.apps.tracker.store import TrackerRows, rows_in
from lcc_scrapy.apps.tracker.summing import summed
from lcc_scrapy.domain.errors import UrlRefused
from tests.exchanges import OTHER, TREE, A, B, exported
from tests.mirrors import NOW, Tracker, kept, listing, tree_of

pytestmark = [
    pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True),
]

C = "ftp://c.org/"
PEER = "https://peer.example.org/"


@pytest.fixture
def tracker(store, monkeypatch):
    monkeypatch.setattr(loading, "ROWS", 2)
    monkeypatch.setattr(loading, "CLEARED", 2)
    monkeypatch.setattr(exchange, "PAGE", 2)
    return Tracker(store)


def urls(store, url):
    return [one.url for one in look_up(store, Place.parse(url)).replicas]


def directories(store):
    """Return all rows, shown or not."""
    with store.read() as tx:
        return kept(tx, 0, 1 << 60)


def staged(store):
    with store.read() as tx:
        return rows_in(tx).staged_before(1 << 60, 100)


def test_a_new_generation_replaces_the_old_one_and_nothing_else_is_left(tracker):
    store = tracker.store
    tracker.load(B, OTHER)
    loaded = tracker.load(A, TREE, links={(b"a",): [(b"l", b"b")]}, digests={(): [(b"j", b"d" * 32)]})
    assert (loaded.dirs, loaded.files, loaded.links, loaded.digests, loaded.unsound) == (4, 5, 1, 1, 0)
    assert urls(store, f"{A}a/") == [f"{B}x/a/"]
    tracker.load(A, tree_of("a/f 1\nj 5"))
    assert urls(store, f"{A}a/") == []
    rows, links, digests = directories(store)
    assert (len(rows), links, digests, staged(store)) == (5 + 2, [], [], [])
    host = tracker.server(A)
    assert (host.dirs, host.files, host.links, host.digests, host.scanned) == (2, 2, 0, 0, NOW + 2)
    assert (host.adapter, host.first) == ("test", 5 + 4 + 1)


def test_each_load_raises_the_generation_of_its_domain(tracker):
    for generation in (1, 2):
        tracker.load(A, TREE)
        assert [one.generation for one in tracker.registry.domains()] == [generation]


def broken(tree):
    for number, one in enumerate(listing(tree)):
        if number == 2:
            raise Unlisted("the connection was lost")
        yield one


def test_a_listing_that_breaks_off_changes_nothing(tracker):
    tracker.load(A, TREE)
    before = (directories(tracker.store), tracker.registry.servers())
    with pytest.raises(Unlisted, match="lost"):
        load(tracker.store, Scan(1, NOW, "test"), broken(TREE), lambda: NOW)
    assert (directories(tracker.store), tracker.registry.servers()) == before


def test_what_a_load_left_that_went_silent_is_removed_and_that_load_gives_up(tracker):
    store = tracker.store
    tracker.load(A, TREE)
    before = directories(store)
    summary = summed(listing(OTHER))

    def slow():
        for number, row in enumerate(summary.rows()):
            if number == 3:
                assert len(directories(store)[0]) == 4 + 2
                assert clear(store, NOW) == 0
                assert clear(store, NOW + 1) == 5
            yield row

    with pytest.raises(Unlisted, match="too slowly"):
        stage(store, 1, slow(), counted(summary), lambda: NOW)
    assert (directories(store), staged(store)) == (before, [])


def test_a_load_claims_its_rows_at_each_step_and_lets_go_of_the_old_ones(tracker, monkeypatch):
    tracker.load(A, TREE)
    put, noted = TrackerRows.put_staged, []
    monkeypatch.setattr(TrackerRows, "put_staged", lambda its, one: (noted.append(one), put(its, one))[1])
    old = tracker.server(A)
    tracker.load(A, OTHER)
    new, cleared = tracker.server(A), Staged(old.first, 4, 0)
    assert noted == [Staged(new.first, 5, NOW + CLAIM)] * 4 + [cleared, cleared]
    noted.clear()
    tracker.load(B, tree_of("a 1"))
    assert noted == [Staged(tracker.server(B).first, 1, NOW + CLAIM)] * 2  # it showed nothing before


def test_a_load_that_was_given_up_is_not_shown(tracker):
    tracker.load(A, TREE)
    before, summary = (directories(tracker.store), tracker.server(A)), summed(listing(OTHER))
    loaded = stage(tracker.store, 1, summary.rows(), counted(summary), lambda: NOW)
    steps = clearing(tracker.store, NOW + 1)
    next(steps)
    assert staged(tracker.store) == [Staged(loaded.first, 5, 0)]
    with pytest.raises(Unlisted, match="too slowly"), tracker.store.begin() as tx:
        show(tx, Scan(1, NOW, "test"), loaded)
    assert sum(steps) == 5
    assert (directories(tracker.store), tracker.server(A)) == before


def test_the_generation_of_a_peers_domain_is_the_peers(tracker):
    tracker.load(A, TREE)
    with tracker.store.begin() as tx:
        rows_in(tx).put_tracked_domain(TrackedDomain("org", NOW, PEER, generation=7))
    tracker.load(A, OTHER)
    assert [one.generation for one in tracker.registry.domains()] == [7]
    with tracker.store.begin() as tx:
        rows_in(tx).delete_tracked_domain("org")
        host = rows_in(tx).host(1)
    loaded = load(tracker.store, Scan(1, NOW, "test"), listing(TREE), lambda: NOW)
    assert (tracker.registry.domains(), loaded.dirs) == ([], 4)
    assert tracker.registry.servers()[0].first > host.first


def test_what_is_still_loaded_is_not_removed(tracker):
    with tracker.store.begin() as tx:
        rows_in(tx).put_staged(Staged(5, 3, NOW))
    assert clear(tracker.store, NOW) == 0
    assert clear(tracker.store, NOW + 1) == 3


def test_what_goes_on_being_loaded_at_the_last_moment_is_not_removed(tracker, monkeypatch):
    """Between the look at what has ended and its lock, a load may go on."""
    store, looks = tracker.store, iter([[Staged(5, 3, NOW - 1)], []])
    with store.begin() as tx:
        rows_in(tx).put_staged(Staged(5, 3, NOW + 100))
        monkeypatch.setattr(TrackerRows, "staged_before", lambda *_: next(looks))
    assert clear(store, NOW) == 0
    with store.read() as tx:
        assert rows_in(tx).staged(5) == Staged(5, 3, NOW + 100)


def test_what_ends_at_this_very_second_is_still_loaded(tracker, monkeypatch):
    store, looks = tracker.store, iter([[Staged(5, 3, NOW)], []])
    with store.begin() as tx:
        rows_in(tx).put_staged(Staged(5, 3, NOW))
        monkeypatch.setattr(TrackerRows, "staged_before", lambda *_: next(looks))
    assert clear(store, NOW) == 0


def test_rows_are_removed_in_short_transactions_and_counted(tracker):
    tracker.load(A, TREE)
    with tracker.store.begin() as tx:
        hide(tx, tracker.server(A))
    assert list(clearing(tracker.store, NOW)) == [0, 2, 2, 0, 0]
    assert (directories(tracker.store), staged(tracker.store)) == (([], [], []), [])


def test_a_server_that_is_removed_while_it_is_listed_is_refused(tracker):
    tracker.load(A, TREE)

    def removed():
        yield from listing(TREE)
        tracker.registry.remove_server(1)

    with pytest.raises(Unlisted, match="was removed"):
        load(tracker.store, Scan(1, NOW, "test"), removed(), lambda: NOW)
    clear(tracker.store, NOW + CLAIM + 1)
    assert directories(tracker.store) == ([], [], [])


def test_a_site_has_no_more_servers_than_a_look_up_may_read(tracker, monkeypatch):
    monkeypatch.setattr(registry_of_servers, "MOST_OF_SITE", 2)
    tracker.registry.add_domain("de", NOW)
    for name in ("a", "b"):
        tracker.registry.add_server(f"{A}{name}/", "de", NOW)
    with pytest.raises(ServerRefused, match=r"a\.org has 2 servers already"):
        tracker.registry.add_server(f"{A}c/", "de", NOW)
    assert tracker.registry.add_server(B, "de", NOW).hostid == 3


def test_servers_and_domains_are_refused_with_reasons(tracker):
    registry = tracker.registry
    registry.add_domain("DE", NOW)
    made = registry.add_server("ftp://Ftp.Example.DE./pub", "de", NOW)
    assert (made.url, made.site, made.due) == ("ftp://ftp.example.de/pub/", "ftp://ftp.example.de", NOW)
    registry.add_domain("uk", NOW, PEER)
    refusals = [
        (lambda: registry.add_domain("de", NOW), ServerRefused, "is there already"),
        (lambda: registry.add_domain("d/e", NOW), BadDomain, "is no domain"),
        (lambda: registry.add_domain("fr", NOW, "nonsense"), UrlRefused, "no ftp, http"),
        (lambda: registry.add_server("ftp://ftp.example.de/pub/", "de", NOW), ServerRefused, "is server 1"),
        (lambda: registry.add_server("ftp://x/", "fr", NOW), NotTracked, "no domain fr"),
        (lambda: registry.add_server("ftp://x/", "uk", NOW), ServerRefused, "come from https://peer"),
        (lambda: registry.add_server("gopher://x/", "de", NOW), UrlRefused, "no ftp, http"),
        (lambda: registry.add_server("ftp://me:pw@x/", "de", NOW), UrlRefused, "without a user"),
        (lambda: registry.add_server("ftp://x/../", "de", NOW), UrlRefused, "dot segments"),
        (lambda: registry.add_server("ftp://x/%2fa", "de", NOW), UrlRefused, "encoded slashes"),
        (lambda: registry.add_server("ftp://x:99999/", "de", NOW), UrlRefused, "Port"),
        (lambda: registry.add_server("http://x/?a/", "de", NOW), ServerRefused, "no query"),
        (lambda: registry.remove_server(9), NotTracked, "no server 9"),
        (lambda: registry.remove_domain("fr"), NotTracked, "no domain fr"),
    ]
    for act, error, text in refusals:
        with pytest.raises(error, match=text):
            act()
    assert [one.hostid for one in registry.servers()] == [1]


def test_a_domain_goes_with_its_servers(tracker):
    tracker.load(A, TREE)
    tracker.load(B, OTHER, "de")
    tracker.registry.remove_domain("de")
    clear(tracker.store, NOW)
    assert [one.url for one in tracker.registry.servers()] == [A]
    assert len(directories(tracker.store)[0]) == 4


# --- exchange ------------------------------------------------------------------------------------


@pytest.fixture
def ours(tracker):
    tracker.registry.add_domain("de", NOW, PEER)
    tracker.load(C, {b"z": tree_of("f 1\nb/g 2\nb/h 3")}, "org")
    return tracker


@pytest.fixture
def theirs(tmp_path):
    """Another tracker with a domain of two servers, exported into a folder."""
    return exported(tmp_path)


def take_in(ours, theirs, domain="de", peer=PEER):
    return import_domain(ours.store, theirs.folder, domain, peer, lambda: NOW + 10)


def relative(store, url):
    """Return what is known of a server, with numbers counted from its first directory."""
    host = next(one for one in Registry(store).servers() if one.url == url)
    with store.read() as tx:
        rows, links, digests = kept(tx, host.first, host.first + host.dirs)
    first = host.first
    rows = [
        one._replace(dirid=one.dirid - first, parent=one.parent - first, first=one.first - first, hostid=0)
        for one in rows
    ]
    pairs = [[(number - first, *rest) for number, *rest in some] for some in (links, digests)]
    return rows, pairs, replace(host, hostid=0, first=0, due=0, created=0)


def test_what_is_exported_is_what_another_tracker_then_has(ours, theirs):
    manifest = take_in(ours, theirs)
    assert (manifest.servers, manifest.directories, manifest.generation) == (2, 9, 2)
    for url in (A, B):
        assert relative(ours.store, url) == relative(theirs.store, url)
    assert urls(ours.store, f"{C}z/f") == [f"{B}x/a/f", f"{A}a/f"]
    assert urls(ours.store, f"{A}a/l%FF/x") == []
    assert [one.generation for one in ours.registry.domains() if one.domain == "de"] == [2]
    assert take_in(ours, theirs) is None


def test_servers_that_are_not_exported_any_more_go(ours, theirs):
    take_in(ours, theirs)
    theirs.registry.remove_server(1)
    theirs.load(B, {b"n": 1}, "de")
    export(theirs.store, "de", theirs.folder, NOW)
    take_in(ours, theirs)
    assert sorted(one.url for one in ours.registry.servers()) == [B, C]
    assert len(directories(ours.store)[0]) == 3 + 1
    assert staged(ours.store) == []


def lines_of(folder, kind):
    (path,) = folder.glob(f"*.{kind}.gz")
    return path, gzip.decompress(path.read_bytes()).split(b"\n")[:-1]


def forge(folder, kind, change, *, pack=gzip.compress, manifest=lambda said: said):
    """Change the lines of a file, with a manifest that fits."""
    path, lines = lines_of(folder, kind)
    path.write_bytes(pack(b"".join(line + b"\n" for line in change(lines))))
    place = folder / "de.json"
    said = json.loads(place.read_text())
    for one in said["files"]:
        content = (folder / one["name"]).read_bytes()
        one |= {"sha256": sha256(content).hexdigest(), "bytes": len(content)}
    place.write_text(json.dumps(manifest(said)))


def at(number, line):
    return lambda lines: [*lines[:number], *([line] if line is not None else []), *lines[number + 1 :]]


HEAD = b"S\tftp://a.org/\t5\tx\t%d\t1\t1\t0"
ROW = b"0\t%b\t" + b"0" * 32 + b"\t" + b"0" * 32
FORGED = {
    "a missing line": ("digests", at(2, None)),
    "names in another order": ("digests", lambda lines: [lines[0], lines[1], lines[3], lines[2], *lines[4:]]),
    "a name with a slash": ("digests", at(3, ROW % b"c%2Fd")),
    "two dots": ("digests", at(3, ROW % b"..")),
    "an empty name": ("digests", at(3, ROW % b"")),
    "a digest that is none": ("digests", at(3, b"0\tc\tx\ty")),
    "another number of columns": ("digests", at(3, b"0\tc")),
    "more subdirectories than rows": ("digests", at(1, b"9\t\t-\t-")),
    "fewer subdirectories than rows": ("digests", at(1, b"0\t\t-\t-")),
    "one subdirectory more than rows": (
        "digests",
        lambda lines: [*lines[:4], b"1" + lines[4][1:], *lines[5:]],
    ),
    "a count of directories": ("digests", at(0, HEAD % 10**9)),
    "a negative count": ("digests", at(0, HEAD % -1)),
    "no base": ("digests", at(0, HEAD % 0)),
    "a URL with a user": ("digests", at(0, (HEAD % 4).replace(b"a.org", b"u@a.org"))),
    "a URL that is none": ("digests", at(0, (HEAD % 4).replace(b"ftp:", b"file:"))),
    "a URL that is not plain": ("digests", at(0, (HEAD % 4).replace(b"a.org", b"A.org"))),
    "columns that are none": ("digests", at(0, b"S\tx")),
    "no server": ("digests", at(0, b"x")),
    "a server twice": ("digests", lambda lines: [*lines, *lines]),
    "links of another server": ("links", at(0, b"S\tftp://z.org/")),
    "links of no server": ("links", lambda lines: lines[1:]),
    "a link of a directory that is not there": ("links", at(1, b"99\tx\ty")),
    "a link without a target": ("links", at(1, b"1\tx\t")),
    "a link with two dots as its name": ("links", at(1, b"1\t..\tx")),
    "links out of order": ("links", lambda lines: [lines[0], b"1\tb\tx", b"1\ta\tx", *lines[1:]]),
    "contents that are none": ("contents", at(1, b"2\ti\tzz")),
    "contents of an unknown kind": ("contents", at(1, b"2\ti\t00")),
    "further servers": ("links", lambda lines: [*lines, b"S\tftp://z.org/"]),
    "a line without end": ("digests", lambda lines: [*lines, b"x" * 30_000]),
}


@pytest.fixture
def scanned_at(ours, theirs):
    """Return a function that takes in a server which its tracker listed then, and tells when it was here."""

    def made(when):
        forge(theirs.folder, "digests", lambda lines: [lines[0].replace(b"%d" % NOW, when, 1), *lines[1:]])
        take_in(ours, theirs)
        return next(one.scanned for one in ours.registry.servers() if one.url == A)

    return made


@pytest.mark.parametrize(
    ("said", "kept"),
    [(NOW + 9, NOW + 9), (NOW + 11, NOW + 10), (1 << 60, NOW + 10), (10**30, NOW + 10)],
    ids=range(4),
)
def test_no_server_was_listed_later_than_now(scanned_at, said, kept):
    assert scanned_at(b"%d" % said) == kept


@pytest.mark.parametrize("less", [{"directories": 8}, {"directories": 4}, {"servers": 1}], ids=str)
def test_nothing_more_is_written_than_the_manifest_says(ours, theirs, less, monkeypatch):
    forge(theirs.folder, "digests", lambda lines: lines, manifest=lambda said: said | less)
    most = len(directories(ours.store)[0]) + less.get("directories", 4)
    seen, wrote = [], loading._write

    def writing(tx, hostid, first, rows):
        wrote(tx, hostid, first, rows)
        seen.append(len(rows_in(tx).behind(0, 1 << 60)))

    monkeypatch.setattr(loading, "_write", writing)
    with pytest.raises(BadExchange, match="more servers or directories"):
        take_in(ours, theirs)
    assert max(seen) <= most


def test_fewer_servers_or_directories_than_the_manifest_says_are_refused(ours, theirs):
    before = shown(ours.store)
    for more in ({"directories": 10}, {"servers": 3}):
        forge(theirs.folder, "digests", lambda lines: lines, manifest=lambda said, more=more: said | more)
        with pytest.raises(BadExchange, match="fewer servers or directories"):
            take_in(ours, theirs)
        export(theirs.store, "de", theirs.folder, NOW)
    assert shown(ours.store) == before


def test_a_file_is_unpacked_as_far_as_its_manifest_allows(ours, theirs, monkeypatch):
    _, lines = lines_of(theirs.folder, "digests")
    monkeypatch.setattr(importing, "DIRECTORY_MAX", 1)
    monkeypatch.setattr(importing, "LINE_MAX", max(map(len, lines)))
    with pytest.raises(BadExchange, match="a file or line that is too long"):
        take_in(ours, theirs)


MORE = {
    "links": ("links", lambda lines: [lines[0], b"0\tl\tx", *lines[1:]]),
    "contents": (
        "contents",
        lambda lines: [lines[0], *(b"0\t%d\t" % n + b"0" * 64 for n in range(5)), *lines[1:]],
    ),
}


@pytest.mark.parametrize(("kind", "change"), MORE.values(), ids=MORE)
def test_a_server_has_no_more_links_and_digests_than_links_and_files(ours, theirs, kind, change):
    forge(theirs.folder, kind, change)
    with pytest.raises(BadExchange, match="more links or digests than the server has"):
        take_in(ours, theirs)


def test_a_domain_that_is_added_again_has_a_higher_generation_than_before(tracker):
    registry = tracker.registry
    registry.add_domain("org", NOW)
    tracker.load(A, TREE)
    tracker.load(A, OTHER)
    before = registry.remove_domain("org")
    assert before.generation == NOW + 2
    registry.add_domain("org", NOW + 60)
    assert registry.domains()[0].generation == 0, "there is nothing to exchange yet"
    tracker.load(A, TREE)
    assert registry.domains()[0].generation == NOW + 61


def everything(store):
    with store.read() as tx:
        return kept(tx, 0, 1 << 60), rows_in(tx).hosts(), rows_in(tx).tracked_domains()


def shown(store):
    """Return what look-ups may see; what a refused import staged is no part of it."""
    rows, hosts, domains = everything(store)
    ranges = [range(one.first, one.first + one.dirs) for one in hosts]
    return [[one for one in some if any(one[0] in its for its in ranges)] for some in rows], hosts, domains


@pytest.mark.parametrize(("kind", "change"), FORGED.values(), ids=FORGED)
def test_forged_files_are_refused_whole(ours, theirs, kind, change):
    before = shown(ours.store)
    forge(theirs.folder, kind, change)
    with pytest.raises((BadExchange, ServerRefused, UrlRefused)):
        take_in(ours, theirs)
    assert shown(ours.store) == before


def test_files_that_are_not_what_the_manifest_says_are_refused(ours, theirs):
    before = shown(ours.store)
    path, _ = lines_of(theirs.folder, "links")
    content = path.read_bytes()
    for changed in (content + b"\0", content[:-1], b"x" + content[1:]):
        path.write_bytes(changed)
        with pytest.raises(BadExchange, match="not what the manifest says"):
            take_in(ours, theirs)
    assert shown(ours.store) == before


@pytest.mark.parametrize("pack", [bytes, lambda text: gzip.compress(text)[:-9], lambda _: b"\x1f\x8b\x08xxxxxxxxxx"], ids=range(3))  # fmt: skip
def test_what_is_no_gzip_is_refused(ours, theirs, pack):
    forge(theirs.folder, "digests", lambda lines: lines, pack=pack)
    with pytest.raises(BadExchange, match="unpacked"):
        take_in(ours, theirs)


MANIFESTS = {
    "no JSON": b"{",
    "a list": b"[]",
    "deep": b"[" * 50_000,
    "of another domain": lambda said: said | {"domain": "uk"},
    "another format": lambda said: said | {"format": "lcc-tracker 2"},
    "a path": lambda said: (
        said | {"files": [said["files"][0] | {"name": "../x.digests.gz"}, *said["files"][1:]]}
    ),
    "fewer files": lambda said: said | {"files": said["files"][:2]},
    "a huge number": lambda said: said | {"generation": 10**30},
    "more directories than a domain has": lambda said: said | {"directories": 50_000_001},
    "more servers than a domain has": lambda said: said | {"servers": 100_001},
    "a negative number": lambda said: said | {"generation": -1},
    "a huge file": lambda said: said | {"files": [one | {"bytes": 10**12} for one in said["files"]]},
}


@pytest.mark.parametrize("manifest", MANIFESTS.values(), ids=MANIFESTS)
def test_manifests_that_no_tracker_writes_are_refused(ours, theirs, manifest):
    before = everything(ours.store)
    place = theirs.folder / "de.json"
    place.write_bytes(manifest if isinstance(manifest, bytes) else json.dumps(manifest(json.loads(place.read_text()))).encode())  # fmt: skip
    with pytest.raises(BadExchange):
        take_in(ours, theirs)
    assert everything(ours.store) == before


def test_a_peer_speaks_for_its_own_domains_only(ours, theirs):
    with pytest.raises(BadExchange, match="may not speak for domain de"):
        take_in(ours, theirs, peer="https://other.example.org/")
    manifest = (theirs.folder / "de.json").read_text()
    for other in ("org", "fr"):
        forged = manifest.replace('"de"', f'"{other}"').replace("de-2.", f"{other}-2.")
        (theirs.folder / f"{other}.json").write_text(forged)
    with pytest.raises(BadExchange, match="may not speak for domain org"):
        take_in(ours, theirs, domain="org")
    with pytest.raises(BadExchange, match="may not speak for domain fr"):
        take_in(ours, theirs, domain="fr")


def test_a_peer_cannot_name_servers_of_other_domains(ours, theirs):
    theirs.load(f"{C}z/", OTHER, "de")
    export(theirs.store, "de", theirs.folder, NOW)
    before = shown(ours.store)
    with pytest.raises(BadExchange, match=r"ftp://c\.org is of another domain"):
        take_in(ours, theirs)
    assert shown(ours.store) == before


def test_an_older_generation_is_refused(ours, theirs):
    take_in(ours, theirs)
    place = theirs.folder / "de.json"
    older = place.read_text().replace('"generation": 2', '"generation": 1').replace("de-2.", "de-1.")
    place.write_text(older)
    with pytest.raises(BadExchange, match="older than 2"):
        take_in(ours, theirs)
