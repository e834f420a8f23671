"""What the dashboard reads of providers, sets, turns, changes and links, in every database."""

from dataclasses import replace

import pytest
from little_lcc import PID, key, removal, url

from lcc_scrapy.apps.dashboard.store import FAILURES, ProviderPage, rows_in
from lcc_scrapy.db.records import FEED, DocumentLink, Fetched, LongFetch, ProviderSet, TurnDelta
from lcc_scrapy.domain.providers import Provider, State

pytestmark = pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)


def test_lists_of_providers_are_found_sorted_and_cut(store):
    rows = [
        (Provider(1, "x", name="Anna", nurlproc=5), ["http://a.example/"]),
        (Provider(2, "x", name="50%", nurlproc=5, state=State.PAUSED), ["http://b.example/"]),
        (Provider(3, "x", name="anna b", contact="c@d.example", nurlproc=9), ["http://c.example/"]),
    ]
    with store.begin() as tx:
        tx.insert_providers(rows)
    page = ProviderPage("nurlproc", 10)
    wanted = {
        page: [1, 2, 3],
        replace(page, falling=True): [3, 1, 2],
        replace(page, falling=True, limit=2): [3, 1],
        replace(page, falling=True, after=(5, 1)): [2],
        replace(page, after=(5, 1)): [2, 3],
        replace(page, search="ANNA"): [1, 3],
        replace(page, search="%"): [2],
        replace(page, search="b.example"): [2],
        replace(page, search="D.EXAMPLE"): [3],
        replace(page, search="2"): [2],
        replace(page, state=State.PAUSED): [2],
        replace(page, pids=frozenset({1, 3}), search="example"): [1, 3],
        replace(page, pids=frozenset()): [],
    }
    with store.read() as tx:
        for asked, found in wanted.items():
            assert [one.pid for one in rows_in(tx).provider_page(asked)] == found, asked


def test_providers_are_listed_by_their_failed_fetches_and_others_left_out(store):
    with store.begin() as tx:
        tx.insert_providers([(Provider(pid, "x"), [f"http://p{pid}.example/"]) for pid in range(1, 6)])
        for pid, counts in {
            1: {"stored": 9},
            2: {"failed": 2},
            3: {"failed": 1, "retrying": 4},
            4: {"failed": 2},
        }.items():
            tx.count_fetches({Fetched(pid, result, 503): count for result, count in counts.items()}, 1200)
        tx.count_fetches({Fetched(5, "failed", 503): 99}, 600)
    page = ProviderPage(FAILURES, 10, falling=True, since=1200, failing=frozenset({"failed", "retrying"}))
    wanted = {
        page: [3, 2, 4],
        replace(page, falling=False): [2, 4, 3],
        replace(page, limit=1): [3],
        replace(page, after=(5, 3)): [2, 4],
        replace(page, after=(2, 2)): [4],
        replace(page, since=600): [5, 3, 2, 4],
        replace(page, pids=frozenset({4, 5})): [4],
        replace(page, search="p2.example"): [2],
    }
    with store.read() as tx:
        for asked, found in wanted.items():
            assert [one.pid for one in rows_in(tx).provider_page(asked)] == found, asked


def test_newest_sets_turns_and_failures_are_told_by_provider(store):
    def pset(psetid, pid):
        return ProviderSet(psetid, pid, psetid, "", "", full=False, received=0, phase="absorbed", progress=0)

    with store.begin() as tx:
        tx.insert_psets([pset(1, 7), pset(2, 8), pset(3, 7)])
        tx.count_fetches(
            {Fetched(7, "failed", 404): 2, Fetched(7, "stored", 0): 5, Fetched(8, "retrying", 503): 1}, 600
        )
        tx.count_fetches({Fetched(7, "failed", 410): 1}, 1200)
    with store.read() as tx:
        assert {pid: one.psetid for pid, one in rows_in(tx).last_sets([7, 8, 9]).items()} == {7: 3, 8: 2}
        assert [one.psetid for one in rows_in(tx).newest_sets(7, 10)] == [3, 1]
        assert [one.psetid for one in rows_in(tx).newest_sets(7, 1)] == [3]
        assert rows_in(tx).count_failures([7, 8, 9], 600, {"failed", "retrying"}) == {7: 3, 8: 1}
        assert rows_in(tx).count_failures([7], 1200, {"failed"}) == {7: 1}
        assert rows_in(tx).turns_of(["7"]) == {}
        assert (rows_in(tx).last_sets([]), rows_in(tx).count_failures([], 0, {"failed"})) == ({}, {})


def test_of_the_turns_of_a_worker_those_with_most_urls_come_first(store):
    with store.begin() as tx:
        waiting = {"7": 5, "8": 9, "9": 5, "group": 1, "10": 100}
        tx.add_to_turns({turnkey: TurnDelta(waiting=count) for turnkey, count in waiting.items()})
        tx.lease_turns(["7", "8", "9", "group"], "1/0", 3)
        tx.lease_turns(["10"], "1/1", 3)
    with store.read() as tx:
        assert [one.turnkey for one in rows_in(tx).busiest_turns("1/0", 3)] == ["8", "7", "9"]
        assert rows_in(tx).busiest_turns("2/0", 3) == []


def test_long_fetches_are_told_of_by_turn(store):
    one = LongFetch("7", "1/0", 3, b"k" * 16, 5, 0, 10, 0)
    other = replace(one, turnkey="9", owner="1/1")
    with store.begin() as tx:
        tx.put_fetches([one, other])
        assert rows_in(tx).long_fetches(["7", "8", "9"]) == {"7": one, "9": other}


def test_the_newest_changes_are_looked_for_among_the_newest(lcc):
    lcc.add(8)
    lcc.store_pages("a", "b", "c")
    lcc.push(removal("a"))
    seqs = {name: lcc.cached(name).seq for name in "bc"}
    with lcc.store.read() as tx:
        head = tx.peek(FEED)
        newest, c, b = rows_in(tx).newest_changes(head, 10, 100)
        assert (newest.op, c.seq, b.seq) == ("remove", seqs["c"], seqs["b"])
        assert rows_in(tx).newest_changes(head, 1, 100) == [newest]
        assert rows_in(tx).newest_changes(head, 10, newest.seq - c.seq + 1) == [newest, c]
        assert rows_in(tx).newest_changes(head, 10, 100, {lcc.cached("b").pid}) == [newest, c, b]
        assert (
            rows_in(tx).newest_changes(head, 10, 100, {8})
            == rows_in(tx).newest_changes(head, 10, 100, set())
            == []
        )


def test_pages_that_link_to_a_url_are_found_a_part_at_a_time(lcc):
    lcc.store_pages(*"abcde")
    to = DocumentLink(url('x"é'), "a")
    near = [DocumentLink(url('x"é') + "1", "a"), DocumentLink("http://else.org/" + url('x"é'), "a")]
    with lcc.store.begin() as tx:
        tx.put_links({key("a"): [*near, to], key("b"): near, key("c"): [to, *near]}, PID)
        tx.put_links({key("d"): [to]})
    wanted, of_e = sorted(map(key, "acd")), sorted(map(key, "abcde"))
    with lcc.store.read() as tx:
        found = [
            rows_in(tx).linking_pages({to.url, "http://never.org/"}, pid, b"", 9, 10**6)
            for pid in (PID, None)
        ]
        assert [(one.keys, one.reached, one.read) for one in found] == [(wanted, None, 4)] * 2
        assert rows_in(tx).linking_pages({to.url}, PID + 1, b"", 9, 10**6).keys == []
        assert rows_in(tx).linking_pages({"a", "http://never.org/"}, PID, b"", 9, 10**6).keys == []
        parts = [rows_in(tx).linking_pages({to.url}, PID, b"", 2, 10**6)]
        while parts[-1].reached is not None:
            parts.append(rows_in(tx).linking_pages({to.url}, PID, parts[-1].reached, 2, 10**6))
        assert [one.reached for one in parts] == [of_e[1], of_e[3], None]
        assert [one for part in parts for one in part.keys] == wanted
        first = rows_in(tx).linking_pages({to.url}, None, b"", 9, 1)
        assert (first.read, first.reached) == (1, min(map(key, "abcd")))
        assert rows_in(tx).linking_pages({to.url}, None, max(of_e), 9, 1).reached is None
