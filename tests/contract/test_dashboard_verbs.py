"""Users, sessions, the audit log and lists of providers, on every store."""

from dataclasses import replace

import pytest

from lcc_scrapy.db.auditing import Audited
from lcc_scrapy.db.records import FAILURES, Fetched, ProviderPage, ProviderSet, TurnDelta
from lcc_scrapy.domain.audit import AuditEntry
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.users import Session, User
from lcc_scrapy.providers import registration
from tests.contract.little_lcc import removal

NOW = 1_800_000_000
LAST = 2**62
ENTRY = AuditEntry(0, NOW, "otto", "dashboard", "pause", 7, "détail")


def test_a_user_goes_with_its_sessions(store):
    with store.begin() as tx:
        for name in ("otto", "anna"):
            tx.put_user(User(name, "operator", "", "hash", NOW))
            tx.insert_session(Session(name * 2, name, NOW, NOW + 10))
        tx.put_user(User("otto", "provider-owner", "7 8", "hash", NOW))
    with store.read() as tx:
        assert [(one.name, one.role, one.providers) for one in tx.users()] == [
            ("anna", "operator", ""),
            ("otto", "provider-owner", "7 8"),
        ]
        assert tx.user("Otto") is None
    with store.begin() as tx:
        tx.delete_user("otto")
    with store.read() as tx:
        assert (tx.user("otto"), tx.session("ottootto")) == (None, None)
        assert set(tx.sessions(["annaanna", "ottootto", "x"])) == {"annaanna"}
        assert tx.sessions([]) == {}
        assert tx.session("annaanna") == Session("annaanna", "anna", NOW, NOW + 10)
    with store.begin() as tx:
        tx.insert_session(Session("later", "anna", NOW + 1, NOW + 20))
        assert [one.digest for one in tx.sessions_of("anna")] == ["later", "annaanna"]
        assert tx.sessions_of("otto") == []
        tx.forget_sessions(NOW + 10)
        assert tx.session("annaanna") is not None
        tx.forget_sessions(NOW + 11)
        assert tx.session("annaanna") is None


def test_the_audit_log_tells_of_providers_and_users_newest_first(store):
    with store.begin() as tx:
        for pid, who in ((7, "otto"), (8, "otto"), (0, "anna")):
            tx.add_audit(replace(ENTRY, pid=pid, who=who, at=NOW + pid))
    with store.read() as tx:
        found = tx.audits(LAST, 10)
        assert [(one.pid, one.who, one.detail) for one in found] == [
            (0, "anna", "détail"),
            (8, "otto", "détail"),
            (7, "otto", "détail"),
        ]
        assert [one.pid for one in tx.audits(found[0].entryid, 1)] == [8]
        assert [one.pid for one in tx.audits(LAST, 10, {7, 0})] == [0, 7]
        assert [one.pid for one in tx.audits(LAST, 10, who="otto")] == [8, 7]
        assert tx.audits(LAST, 10, set()) == []
    with store.begin() as tx:
        assert tx.forget_audits(NOW + 8) == 2
        assert [one.pid for one in tx.audits(LAST, 10)] == [8]


def test_an_entry_is_written_with_its_action_or_not_at_all(store):
    with store.begin() as tx:
        tx.insert_provider(Provider(7, "x"), [])
    with pytest.raises(LccError):
        registration.change(Audited(store, replace(ENTRY, pid=8)), 8, {"state": State.PAUSED})
    audited = Audited(store, ENTRY)
    registration.change(audited, 7, {"state": State.PAUSED})
    registration.change(audited, 7, {"state": State.PAUSED})
    with store.read() as tx:
        assert [(one.pid, one.action) for one in tx.audits(LAST, 10)] == [(7, "pause")]


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
            assert [one.pid for one in tx.provider_page(asked)] == found, asked


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
            assert [one.pid for one in tx.provider_page(asked)] == found, asked


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
        assert {pid: one.psetid for pid, one in tx.last_sets([7, 8, 9]).items()} == {7: 3, 8: 2}
        assert [one.psetid for one in tx.newest_sets(7, 10)] == [3, 1]
        assert [one.psetid for one in tx.newest_sets(7, 1)] == [3]
        assert tx.count_failures([7, 8, 9], 600, {"failed", "retrying"}) == {7: 3, 8: 1}
        assert tx.count_failures([7], 1200, {"failed"}) == {7: 1}
        assert tx.turns_of(["7"]) == {}
        assert (tx.last_sets([]), tx.count_failures([], 0, {"failed"})) == ({}, {})


def test_of_the_turns_of_a_worker_those_with_most_urls_come_first(store):
    with store.begin() as tx:
        waiting = {"7": 5, "8": 9, "9": 5, "group": 1, "10": 100}
        tx.add_to_turns({turnkey: TurnDelta(waiting=count) for turnkey, count in waiting.items()})
        tx.lease_turns(["7", "8", "9", "group"], "1/0", 3)
        tx.lease_turns(["10"], "1/1", 3)
    with store.read() as tx:
        assert [one.turnkey for one in tx.busiest_turns("1/0", 3)] == ["8", "7", "9"]
        assert tx.busiest_turns("2/0", 3) == []


def test_the_newest_changes_are_looked_for_among_the_newest(lcc):
    lcc.add(8)
    lcc.store_pages("a", "b", "c")
    lcc.push(removal("a"))
    seqs = {name: lcc.cached(name).seq for name in "bc"}
    with lcc.store.read() as tx:
        newest, c, b = tx.newest_changes(10, 100)
        assert (newest.op, c.seq, b.seq) == ("remove", seqs["c"], seqs["b"])
        assert tx.newest_changes(1, 100) == [newest]
        assert tx.newest_changes(10, newest.seq - c.seq + 1) == [newest, c]
        assert tx.newest_changes(10, 100, {lcc.cached("b").pid}) == [newest, c, b]
        assert tx.newest_changes(10, 100, {8}) == tx.newest_changes(10, 100, set()) == []
