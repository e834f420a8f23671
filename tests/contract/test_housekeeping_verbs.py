"""The verbs by which housekeeping finds who has something to do, and forgets in portions."""

from dataclasses import replace

from lcc_scrapy.db.records import ABSORBED, LastOutcome, ProviderSet, Suspect, WorkerRow
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.ops.housekeeping import CLAIM, Sweeps
from lcc_scrapy.providers.registration import tell
from lcc_scrapy.queue import leases
from tests.contract.little_lcc import LittleLcc

DAY = 86_400
NOW = 1_800_000_000


def version(seq: int, key: bytes, pid: int, replaced: int) -> Version:
    return Version(seq, key, pid, replaced, 0, 1, seq, 0, "", "", "", "", "", "", "", "")


def test_providers_with_something_to_do_are_found_page_by_page(store, registered):
    for pid in range(1, 6):
        registered(pid, narrowing=pid != 2, fileused=pid % 2, confirmed=10 * pid, fallback=pid / 10 - 0.1)
    with store.begin() as tx:
        for pid in (2, 3, 5):
            tx.add_missed(pid, 1, {"sampled": int(pid != 3)})
        tx.put_suspects([Suspect(bytes([pid]) * 16, pid, 100 * pid) for pid in (1, 2, 4)])
        tx.put_suspects([Suspect(b"x" * 16, 1, 100)])
    with store.read() as tx:
        assert (tx.narrowing_pids(-1, 2), tx.narrowing_pids(3, 2)) == ([1, 3], [4, 5])
        assert [one.pid for one in tx.unconfirmed(30, -1, 10)] == [1, 3]
        assert [one.pid for one in tx.unconfirmed(30, 1, 10)] == [3]
        assert [one.pid for one in tx.unconfirmed(50, -1, 2)] == [1, 3]
        assert (tx.falling_pids(-1, 10), tx.falling_pids(2, 10), tx.falling_pids(-1, 1)) == ([2, 5], [5], [2])
        assert (tx.suspected_pids(200, -1, 10), tx.suspected_pids(400, 1, 1)) == ([1, 2], [2])


def test_versions_are_read_by_key_of_one_provider_after_the_other(store):
    a, b = b"a" * 16, b"b" * 16
    with store.begin() as tx:
        rows = [version(1, a, 3, 10), version(2, a, 3, 20), version(3, b, 3, 5), version(4, b"c" * 16, 9, 5)]
        tx.insert_versions(rows)
    with store.read() as tx:
        assert [tx.next_versioned(after) for after in (0, 3, 9)] == [3, 9, None]
        assert tx.version_times(3, b"", 2) == [(a, 10), (a, 20)]
        assert tx.version_times(3, a, 9) == [(b, 5)]


def test_the_books_are_forgotten_in_portions(store, registered):
    registered(1)
    with store.begin() as tx:
        tx.put_outcomes([LastOutcome(bytes([n]) * 16, 1, 404, "", n) for n in range(1, 6)])
        for number in range(1, 6):
            held = int(number == 2)
            named = "a" * (number == 3)
            pset = ProviderSet(number, 1, number, named, "", False, 1, ABSORBED, 1, held=held, started=number)
            tx.insert_psets([pset])
            tx.add_missed(number, 7, {"sampled": 1})
    with store.begin() as tx:
        assert [tx.forget_outcomes(5, 3), tx.forget_outcomes(5, 3), tx.forget_outcomes(5, 3)] == [3, 1, 0]
        assert [tx.forget_psets(5, 3, 0, 2), tx.forget_psets(5, 3, 2, 2), tx.forget_psets(5, 3, 4, 2)] == [
            2,
            4,
            0,
        ]
        assert [number for number in range(1, 6) if tx.pset_of(1, number)] == [2, 3, 5]
        assert tx.forget_psets(5, 4) == 0
        assert [number for number in range(1, 6) if tx.pset_of(1, number)] == [2, 5]
        assert [tx.forget_missed(8, 3), tx.forget_missed(8, 3), tx.forget_missed(8, 3)] == [3, 2, 0]


def test_a_lease_is_renewed_for_the_run_that_has_it_only(store):
    row = WorkerRow("1/0", 5, 1, 1, 0, 100, job_ms=7, job="Settler._try")
    with store.begin() as tx:
        tx.put_worker(row)
        assert not tx.renew_lease("1/0", 6, 200)
        assert not tx.renew_lease("1/1", 5, 200)
        assert tx.workers() == [row]
        assert tx.renew_lease("1/0", 5, 200)
        assert tx.workers() == [replace(row, expires=200)]
        assert tx.renew_lease("1/0", 5, 200), "also when nothing changes"


def test_changes_of_many_providers_are_read_in_several_looks(store, registered, monkeypatch):
    monkeypatch.setattr(leases, "CHANGES_PER_LOOK", 2)
    lcc = LittleLcc(store)
    for pid in range(1, 6):
        registered(pid)
    seen = lcc.look("1/0").revision
    with store.begin() as tx:
        for pid in (4, 2, 5, 1, 3):
            tell(tx, pid)
    read = []
    while changed := (news := lcc.look("1/0", seen=seen)).changed:
        seen = news.revision
        read.append([one.provider.pid for one in changed])
        assert news.existing is None
    assert read == [[4, 2], [5, 1], [3]]


def test_members_are_told_by_pid(store, registered):
    for pid, group in ((1, ""), (2, "g"), (3, "g"), (4, "h")):
        registered(pid, turngroup=group)
    with store.read() as tx:
        assert tx.member_pids(["1", "2", "g"]) == {1, 2, 3}


def test_the_sweep_of_a_day_belongs_to_one_process(store):
    first, second = Sweeps(store, "1/0"), Sweeps(store, "1/1")
    assert (first.claim(NOW), second.claim(NOW)) == (True, False)
    assert first.keep(NOW + CLAIM - 1), "it renews its claim"
    assert not second.claim(NOW + CLAIM + 1)
    assert second.claim(NOW + 2 * CLAIM), "the first is gone"
    assert not first.keep(NOW + 2 * CLAIM)
    second.end(NOW + 2 * CLAIM)
    assert not second.claim(NOW + DAY)
    assert first.claim(NOW + 2 * CLAIM + DAY)


def test_a_clock_that_was_wrong_keeps_nobody_from_sweeping(store):
    Sweeps(store, "1/0").claim(NOW + 90 * DAY)
    Sweeps(store, "1/0").end(NOW + 90 * DAY)
    assert Sweeps(store, "1/1").claim(NOW)
