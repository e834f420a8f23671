"""The mirror tracker's verbs on every store."""

import pytest
from sqlalchemy import select

from lcc_scrapy.apps.tracker import store as tracked_rows
from lcc_scrapy.apps.tracker.rules.tracked import Host, Staged, TrackedDirectory, TrackedDomain, tag_of
from lcc_scrapy.apps.tracker.store import rows_in
from lcc_scrapy.apps.tracker.tables import tr_digests
from tests.mirrors import kept

pytestmark = pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)

NAME = bytes(range(1, 47)) + b"\xff\x80 "


def host(number, domain="de", **values):
    site = f"ftp://h{number % 3}"
    return Host(number, domain, f"{site}/{number}/", site, 5, **values)


def directory(number, *, hostid=1, name=b"a", md5=b"m" * 16, sha=b"s" * 16, first=0, dirs=0):
    return TrackedDirectory(number, hostid, 1, first, dirs, name, md5, sha, tag_of(md5) if md5 else None)


def test_domains_are_kept_by_name(store):
    with store.begin() as tx:
        for name in ("uk", "de"):
            rows_in(tx).put_tracked_domain(TrackedDomain(name, 5))
        rows_in(tx).put_tracked_domain(TrackedDomain("de", 5, "https://peer/é", generation=7))
        assert [one.domain for one in rows_in(tx).tracked_domains()] == ["de", "uk"]
        assert rows_in(tx).tracked_domain("de", lock=True) == TrackedDomain(
            "de", 5, "https://peer/é", generation=7
        )
        rows_in(tx).delete_tracked_domain("de")
        assert rows_in(tx).tracked_domain("de") is None


def test_servers_are_found_by_number_domain_and_site(store):
    with store.begin() as tx:
        for one in (host(4, due=50), host(1, due=60), host(3, "uk", due=50)):
            rows_in(tx).put_host(one)
        rows_in(tx).put_host(host(3, "uk", due=70, error="é"))
        assert [one.hostid for one in rows_in(tx).hosts()] == [1, 3, 4]
        assert rows_in(tx).hosts("uk") == [host(3, "uk", due=70, error="é")]
        assert [one.hostid for one in rows_in(tx).hosts_at("ftp://h1")] == [1, 4]
        assert rows_in(tx).hosts_by_id({1, 9}) == {1: host(1, due=60)}
        rows_in(tx).delete_host(1)
        assert rows_in(tx).host(1, lock=True) is None


def test_what_is_staged_comes_by_number_when_its_claim_has_ended(store):
    with store.begin() as tx:
        for one in (Staged(30, 5, 100), Staged(10, 20, 0), Staged(40, 1, 99)):
            rows_in(tx).put_staged(one)
        rows_in(tx).put_staged(Staged(40, 1, 50))
        assert rows_in(tx).staged_before(100, 9) == [Staged(10, 20, 0), Staged(40, 1, 50)]
        assert rows_in(tx).staged_before(101, 2) == [Staged(10, 20, 0), Staged(30, 5, 100)]
        rows_in(tx).delete_staged(10)
        assert rows_in(tx).staged(10, lock=True) is None
        assert rows_in(tx).staged(30) == Staged(30, 5, 100)


def test_directories_are_found_by_number_name_and_identity(store):
    rows = [
        directory(1, name=b""),
        directory(2, name=b"A", md5=b"\xff" * 16),
        directory(3, name=NAME, md5=None, sha=None),
        directory(4, hostid=2, sha=b"t" * 16, name=b"a", first=7, dirs=2),
    ]
    with store.begin() as tx:
        rows_in(tx).insert_directories(rows)
    with store.read() as tx:
        assert rows_in(tx).directories({1, 3, 9}) == {1: rows[0], 3: rows[2]}
        assert rows_in(tx).directory_named(1, 5, NAME) == rows[2]
        assert rows_in(tx).directory_named(1, 5, b"A") == rows[1]
        assert rows_in(tx).directory_named(1, 4, b"a") is None
        assert rows_in(tx).directory_named(3, 5, b"A") is None
        assert rows_in(tx).directories_with(b"m" * 16, b"s" * 16, 9) == [rows[0]]
        assert rows_in(tx).directories_with(b"m" * 16, b"s" * 16, 9, (2, 5)) == [rows[0]]
        assert rows_in(tx).directories_with(b"m" * 16, b"s" * 16, 9, (1, 2)) == []
        assert rows_in(tx).directories_named_by(b"\xff" * 16, 9) == [rows[1]]
        assert sorted(rows_in(tx).directories_named_by(b"m" * 16, 9)) == [rows[0], rows[3]]
        assert len(rows_in(tx).directories_named_by(b"m" * 16, 1)) == 1


def test_directories_outside_of_some_numbers_are_found_on_both_sides(store):
    with store.begin() as tx:
        rows_in(tx).insert_directories([directory(number) for number in range(1, 9)])
    with store.read() as tx:
        found = rows_in(tx).directories_with(b"m" * 16, b"s" * 16, 9, (3, 6))
        assert sorted(one.dirid for one in found) == [1, 2, 6, 7, 8]
        assert len(rows_in(tx).directories_with(b"m" * 16, b"s" * 16, 4, (3, 6))) == 4


def test_links_and_digests_belong_to_directories_and_go_with_them(store):
    with store.begin() as tx:
        rows_in(tx).insert_directories([directory(number) for number in (1, 2, 3)])
        rows_in(tx).insert_tracked_links([(2, NAME, b"../x"), (2, b"a", b"\xff"), (3, b"a", b"y")])
        rows_in(tx).insert_digests([(1, b"f", b"d" * 32), (3, NAME, b"d" * 16)])
    with store.begin() as tx:
        assert rows_in(tx).tracked_link(2, NAME) == b"../x"
        assert rows_in(tx).tracked_link(1, NAME) is None
        assert rows_in(tx).digests_of({1, 2, 3}, NAME) == {3: b"d" * 16}
        assert rows_in(tx).digests_of({1}, b"f") == {1: b"d" * 32}
        assert rows_in(tx).digests_of(set(), b"f") == {}
        found = kept(tx, 2, 4)
        assert [one.dirid for one in found[0]] == [2, 3]
        assert found[1] == [(2, NAME, b"../x"), (2, b"a", b"\xff"), (3, b"a", b"y")]
        assert found[2] == [(3, NAME, b"d" * 16)]
        rows_in(tx).delete_directories(2, 3)
        assert [one.dirid for one in rows_in(tx).behind(1, 9)] == [1, 3]
        assert rows_in(tx).tracked_link(2, b"a") is None
        assert rows_in(tx).tracked_link(3, b"a") == b"y"


def test_links_and_digests_come_in_order_whichever_are_read_together(store, monkeypatch):
    pairs = [(number, b"%d" % name, bytes(16)) for number in (1, 2, 4) for name in range(5)]
    with store.begin() as tx:
        rows_in(tx).insert_tracked_links(pairs)
        rows_in(tx).insert_digests(pairs)
    for together in (1, 3, 5, 10, 11):
        monkeypatch.setattr(tracked_rows, "PAIRS", together)
        for each in (tracked_rows.each_link, tracked_rows.each_digest):
            assert list(each(store, 1, 4)) == pairs[:10]
            assert list(each(store, 2, 3)) == pairs[5:10]
            assert list(each(store, 3, 4)) == []


@pytest.mark.parametrize(
    ("digest", "differs"),
    [(b"d" * 32, False), (b"e" * 32, True), (b"e" * 16, False)],
    ids=["same", "other", "kind"],
)
def test_digests_differ_where_both_are_known_and_of_one_kind(store, digest, differs):
    with store.begin() as tx:
        rows_in(tx).insert_digests(
            [(1, b"f", b"d" * 32), (2, b"g", b"d" * 32), (11, b"f", b"d" * 32), (12, b"g", digest)]
        )
        rows_in(tx).insert_digests([(2, b"only here", b"x" * 32), (13, b"g", b"x" * 32)])
        assert rows_in(tx).digests_differ(1, 3, 11) == differs
        assert rows_in(tx).digests_differ(11, 13, 1) == differs
        assert not rows_in(tx).digests_differ(1, 2, 11)
        assert not rows_in(tx).digests_differ(3, 9, 13)


def test_the_view_shows_directories_that_their_servers_show(store):
    with store.begin() as tx:
        rows_in(tx).put_host(host(1, first=2, dirs=2, scanned=9))
        rows_in(tx).insert_directories(
            [directory(number) for number in (1, 2, 3, 4)] + [directory(5, hostid=2)]
        )
    with store.engine.connect() as connection:
        query = select(tr_digests.c.dirid, tr_digests.c.domain, tr_digests.c.url, tr_digests.c.scanned)
        found = connection.execute(query.order_by(tr_digests.c.dirid)).all()
    assert [tuple(one) for one in found] == [(2, "de", "ftp://h1/1/", 9), (3, "de", "ftp://h1/1/", 9)]
