"""Identities of directories: the seed's, and ours beside it."""

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.apps.tracker import entries as bounds
from lcc_scrapy.apps.tracker import summing
from lcc_scrapy.apps.tracker.entries import (
    MOST_DEPTH,
    Directory,
    Entry,
    Kind,
    Unlisted,
    by_directory,
    empty,
    of_entries,
)
from lcc_scrapy.apps.tracker.identity import Fields, Identity, plain, tree
from lcc_scrapy.apps.tracker.summing import summed

SEED = [
    (b"62163", b"compress"),
    (b"168240", b"date"),
    (b"106752", b"gzip"),
    (b"186848", b"ls"),
    (b"270232", b"tar"),
]


def directory(*path, files=(), dirs=(), **more):
    return empty(path)._replace(files=list(files), dirs=list(dirs), **more)


def rows_of(*directories):
    return list(summed(directories).rows())


def test_the_digest_of_the_seeds_listing():
    assert plain(SEED).md5.hex() == "39c2b52d53d4288a08a52f7232d3dbbc"
    assert plain(SEED[::-1]) == plain(SEED)


def test_the_digest_of_a_tree_has_names_and_digests_of_its_subdirectories():
    inner = plain([(b"5", b"b")])
    whole = tree(Fields.of([(b"3", b"a")]), [(b"s", inner)])
    assert inner.md5.hex() == "14ef8abfe3ae0194a39de558fbcfa765"
    assert whole.md5.hex() == "138e6e1efafc21c4e9f6ccc651215bb8"
    assert whole.md5 == hashlib.md5(b"3as" + inner.md5.hex().encode(), usedforsecurity=False).digest()


def test_subdirectories_stand_among_the_files_by_name():
    one = plain([])
    whole = tree(Fields.of([(b"1", b"a"), (b"2", b"c")]), [(b"d", one), (b"b", one)])
    text = b"1a" + b"b" + one.md5.hex().encode() + b"2c" + b"d" + one.md5.hex().encode()
    assert whole.md5 == hashlib.md5(text, usedforsecurity=False).digest()


def test_the_second_identity_tells_what_the_seeds_does_not():
    one, other = plain([(b"1", b"23a")]), plain([(b"12", b"3a")])
    assert one.md5 == other.md5
    assert one.sha != other.sha
    of_tree = tree(Fields.of([]), [(b"a", one)])
    looks_alike = plain([(b"", b"a" + one.md5.hex().encode())])
    assert of_tree.md5 == looks_alike.md5
    assert of_tree.sha != looks_alike.sha


def test_the_second_identity_is_sha_256_over_fields_behind_their_lengths():
    fields = [b"a\0b", b"1 22"]
    joined = b"".join(len(one).to_bytes(8, "big") + one for one in fields)
    assert plain([(b"22", b"b"), (b"1", b"a")]).sha == hashlib.sha256(joined).digest()
    inner = plain([(b"5", b"c")])
    more = b"".join(len(one).to_bytes(8, "big") + one for one in [b"s", inner.sha])
    found = tree(Fields(b"a\0b", b"1 22"), [(b"s", inner)])
    assert found.sha == hashlib.sha256(joined + more).digest()


def test_names_are_sorted_by_their_bytes():
    files = [(b"1", name) for name in (b"B", b"a", b"\xc3\xa9", b"a.", b"a-")]
    text = b"1B1a1a-1a.1\xc3\xa9"
    assert plain(files).md5 == hashlib.md5(text, usedforsecurity=False).digest()


@given(
    st.dictionaries(
        st.binary(min_size=1, max_size=3).filter(lambda name: 0 not in name), st.integers(0, 2**64)
    )
)
def test_the_order_of_a_listing_does_not_matter(sizes):
    files = [(b"%d" % size, name) for name, size in sizes.items()]
    shuffled = random.sample(files, len(files))
    assert plain(shuffled) == plain(files)


def test_both_forms_are_one_without_subdirectories():
    files = [(b"3", b"a")]
    assert tree(Fields.of(files), []) == plain(files)


def test_a_tree_is_summed_in_any_order_of_its_directories():
    parts = [
        directory(files=[(b"1", b"x")], dirs=[b"b", b"a"]),
        directory(b"a", dirs=[b"c"]),
        directory(b"b", files=[(b"2", b"y")]),
        directory(b"a", b"c", files=[(b"3", b"z")]),
    ]
    orders = [parts, [parts[0], parts[2], parts[1], parts[3]], [parts[0], parts[1], parts[3], parts[2]]]
    found = [rows_of(*[one._replace(files=list(one.files)) for one in order]) for order in orders]
    assert found[0] == found[1] == found[2]
    c = plain([(b"3", b"z")])
    a = tree(Fields.of([]), [(b"c", c)])
    whole = tree(Fields.of([(b"1", b"x")]), [(b"a", a), (b"b", plain([(b"2", b"y")]))])
    assert [row[5] for row in found[0]] == [whole, a, plain([(b"2", b"y")]), c]


def test_directories_are_numbered_level_by_level_and_by_name():
    rows = rows_of(
        directory(files=[(b"1", b"x")], dirs=[b"b", b"a"]),
        directory(b"b", dirs=[b"e"]),
        directory(b"a", dirs=[b"d", b"c"]),
    )
    assert [row[:5] for row in rows] == [
        (0, 0, 1, 2, b""),
        (1, 0, 3, 2, b"a"),
        (2, 0, 5, 1, b"b"),
        (3, 1, 6, 0, b"c"),
        (4, 1, 6, 0, b"d"),
        (5, 2, 6, 0, b"e"),
    ]


def test_a_directory_that_was_named_and_never_listed_costs_those_above_their_identity():
    rows = rows_of(directory(dirs=[b"a", b"b"]), directory(b"b", files=[(b"1", b"x")]))
    assert [row[5] is None for row in rows] == [True, True, False]


def test_a_tree_without_files_has_no_identity_that_is_offered():
    summary = summed([directory(dirs=[b"a"]), directory(b"a")])
    assert [row[5] for row in summary.rows()] == [None, None]
    assert all(identity is not None for _, identity in summary.identities())


def test_a_directory_that_is_listed_twice_counts_once():
    summary = summed([directory(files=[(b"1", b"x")]), directory(files=[(b"2", b"y")])])
    assert summary.root.identity == plain([(b"1", b"x")])
    assert summary.totals.strays == 1


def test_a_loop_ends_at_the_deepest_directory_that_is_looked_at():
    loop = (directory(*[b"d"] * depth, files=[(b"1", b"x")], dirs=[b"d"]) for depth in range(500))
    summary = summed(loop)
    assert summary.find((b"d",) * MOST_DEPTH).identity is None
    assert summary.find((b"d",) * (MOST_DEPTH + 1)) is None
    assert summary.totals.strays == 500 - MOST_DEPTH - 1


@pytest.mark.parametrize("name", ["MOST_DIRECTORIES", "MOST_ENTRIES"])
def test_a_server_beyond_the_bounds_is_refused(monkeypatch, name):
    monkeypatch.setattr(summing, name, 10)
    listing = (directory(*[b"d"] * depth, files=[(b"1", b"x")], dirs=[b"d"]) for depth in range(50))
    with pytest.raises(Unlisted, match="more than"):
        summed(listing)


def test_the_plain_form_has_the_files_of_each_directory_only():
    parts = [directory(files=[(b"3", b"a")], dirs=[b"s", b"t"]), directory(b"s", files=[(b"5", b"b")])]
    found = dict(summed(parts, plain=True).identities())
    assert found == {(): plain([(b"3", b"a")]), (b"s",): plain([(b"5", b"b")]), (b"t",): None}


def entries(*paths):
    return [
        Entry(tuple(path.encode().split(b"/")), Kind.DIR if path.endswith("D") else Kind.FILE, 1)
        for path in paths
    ]


def test_entries_that_come_depth_first_are_gathered_by_directory():
    found = {
        one.path: one
        for one in by_directory(
            [Entry((), Kind.DIR), *entries("a", "bD", "bD/c", "bD/dD", "bD/e", "f", "gD")]
        )
    }
    assert {path: ([name for _, name in one.files], one.dirs) for path, one in found.items()} == {
        (): ([b"a", b"f"], [b"bD", b"gD"]),
        (b"bD",): ([b"c", b"e"], [b"dD"]),
        (b"bD", b"dD"): ([], []),
        (b"gD",): ([], []),
    }


def test_entries_in_another_order_are_refused():
    with pytest.raises(Unlisted, match="before its directory"):
        list(by_directory(entries("aD", "b", "aD/c")))


@pytest.mark.parametrize(
    "entry",
    [
        Entry((b"..",), Kind.DIR),
        Entry((b"",), Kind.FILE),
        Entry((b"a/b",), Kind.FILE),
        Entry((b"a\0",), Kind.FILE),
        Entry((b"a" * 256,), Kind.FILE),
        Entry((b"a",), Kind.FILE, 2**64),
        Entry((b"a",), Kind.FILE, -1),
        Entry((b"a",), Kind.LINK, target=b"x" * 5000),
    ],
    ids=range(8),
)
def test_an_entry_that_cannot_be_used_makes_its_directory_unsound(entry):
    found = of_entries((), [entry, Entry((b"ok",), Kind.FILE, 5)])
    assert found == Directory((), [(b"5", b"ok")], [], [], [], sound=False)
    assert summed([found]).root.identity is None


def test_digests_and_links_come_with_their_directory():
    found = of_entries(
        (), [Entry((b"f",), Kind.FILE, 1, 5, b"d" * 32), Entry((b"l",), Kind.LINK, target=b"f")]
    )
    (row,) = summed([found]).rows()
    assert row[5:] == (plain([(b"1", b"f")]), ((b"l", b"f"),), ((b"f", b"d" * 32),))
    assert isinstance(row[5], Identity)


@pytest.mark.parametrize("kept", ["links", "digests"])
def test_links_and_digests_of_a_whole_listing_have_a_bound_of_memory(kept, monkeypatch):
    monkeypatch.setattr(bounds, "HELD_MAX", 10_000)
    root = Directory((), [], [b"a", b"b"], [], [])
    pairs = [(b"%d" % number, b"x") for number in range(30)]
    some = [Directory((name,), [], [], [], [])._replace(**{kept: pairs}) for name in (b"a", b"b")]
    assert summed([root, some[0]])
    with pytest.raises(Unlisted, match="more than 10000 bytes of memory"):
        summed([root, *some])


def test_files_of_directories_that_wait_for_subdirectories_have_a_bound_of_memory(monkeypatch):
    monkeypatch.setattr(bounds, "HELD_MAX", 10_000)
    names = [b"%d" % number for number in range(30)]
    files = [(b"1", b"%0200d" % number) for number in range(10)]
    above = [Directory((name,), list(files), [b"s"], [], []) for name in names]
    below = [Directory((name, b"s"), [], [], [], []) for name in names]
    root = Directory((), [], names, [], [])
    with pytest.raises(Unlisted, match="more than 10000 bytes of memory"):
        summed([root, *above, *below])
    one_by_one = [one for pair in zip(above, below, strict=True) for one in pair]
    assert summed([root, *one_by_one]).root.identity is not None
