"""The verbs of a transaction, the same on every store."""

import inspect
import sqlite3
import threading
from dataclasses import replace

import pytest
import sqlalchemy
from little_lcc import MACHINE, PID, START, Crash, LittleLcc, dump, key, removal, update, url
from sqlalchemy import event

from lcc_scrapy.db.records import (
    LAST_KEY,
    LAST_NUMBER,
    FileToDelete,
    LongFetch,
    StoredTurn,
    TurnDelta,
    WorkerRow,
)
from lcc_scrapy.db.sql.many import CASES, SQLITE_ROWS
from lcc_scrapy.db.sql.move_verbs import MoveVerbs
from lcc_scrapy.db.sql.store import SqlStore, make_engine
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.cache import UrlMeta
from lcc_scrapy.domain.entries import Declared
from lcc_scrapy.domain.errors import ConfigurationError, StoreUnavailable
from lcc_scrapy.domain.providers import State, Wanted
from lcc_scrapy.ops.machines import KNOWN_SECONDS, MachineAddresses, register_address
from tests.memory_store import MemoryTx

SQL = pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)


def test_every_store_has_the_same_verbs():
    def verbs(transaction):
        return {
            name: list(inspect.signature(verb).parameters.items())
            for name, verb in inspect.getmembers(transaction, inspect.isfunction)
            if not name.startswith("_")
        }

    of_moves = vars(MoveVerbs).keys()  # between two databases: for SQL only
    assert verbs(MemoryTx) == {name: verb for name, verb in verbs(Tx).items() if name not in of_moves}


def _seen_by_a_set(lcc):
    with lcc.store.begin() as tx:
        tx.mark_seen([key("a")], 99, START)


def _fetched_and_pushed_again(lcc):
    lcc.fetch("a")
    lcc.push(update("a", declared=Declared(1_700_000_001)))


def test_a_transaction_that_fails_changes_nothing(lcc):
    lcc.store_pages("a")
    before = dump(lcc.store)
    with pytest.raises(Crash), lcc.store.begin() as tx:  # noqa: PT012 - the transaction is the point
        tx.update_provider(PID, {"name": "another"})
        tx.delete_cached([key("a")])
        tx.set_info("id", "x")
        raise Crash
    assert dump(lcc.store) == before


def test_a_reader_sees_what_was_committed_and_no_more(lcc):
    with lcc.store.begin() as tx:
        tx.set_info("id", "old")
    with pytest.raises(Crash), lcc.store.begin() as tx:  # noqa: PT012 - the transaction is the point
        tx.set_info("id", "new")
        raise Crash
    with lcc.store.read() as tx:
        assert (tx.info("id"), tx.info("other")) == ("old", None)


def test_an_empty_fact_is_none(lcc):
    with lcc.store.begin() as tx:
        tx.set_info("id", "x")
        tx.set_info("id", "")
        tx.set_info("other", "")
    with lcc.store.read() as tx:
        assert (tx.info("id"), tx.info("other")) == (None, None)


# --- providers --------------------------------------------------------------------------------------


def test_a_provider_comes_back_as_it_was_put_in(lcc, provider):
    full = provider(
        2**40, filesmax=2**50, spacemax=2**62, fullsetsallowed=0, bandwidth=10**12, timeofday="01" * 84,
        priority=2, lastconnip="2001:db8::ffff:192.0.2.33", name="Größe 日本 ", contact="'; drop table pidb; --",
        state=State.PAUSED, timezone="Europe/Amsterdam", fullsetwanted=Wanted.CACHE_CRASH, turngroup="farm",
        allowprivate=True, ignorerobots=True, strictmtime=True, declared="strict", created=START,
    )  # fmt: skip
    with lcc.store.begin() as tx:
        tx.insert_provider(full, ["http://b.example/", "http://a.example/"])
    with lcc.store.read() as tx:
        assert tx.provider(2**40) == full
        assert tx.roots(2**40) == ["http://b.example/", "http://a.example/"]
        assert tx.provider(2**40).fullsetsallowed == 0
        assert tx.provider(PID).fullsetsallowed is None
        assert tx.provider(99) is None
        assert tx.roots(99) == []


def test_providers_are_paged_by_rising_pid(lcc):
    for pid in (30, 10, 20):
        lcc.add(pid)
    with lcc.store.read() as tx:
        assert [one.pid for one in tx.providers()] == [7, 10, 20, 30]
        assert [one.pid for one in tx.providers(after=7, limit=2)] == [10, 20]
        assert list(tx.lock_providers([30, 7, 99, 7])) == [7, 30]
        assert tx.lock_providers([]) == {}


def test_columns_of_a_provider_are_set_and_counters_added_to(lcc):
    with lcc.store.begin() as tx:
        tx.update_provider(PID, {"name": "x", "fullsetsallowed": 3})
        tx.update_provider(PID, {})
        tx.add_to_provider(PID, {"lastconnseq": 5, "fileused": 0})
        tx.add_to_provider(PID, {"lastconnseq": -2})
        tx.add_to_provider(99, {"lastconnseq": 1})
        tx.update_provider(99, {"name": "nobody"})
    got = lcc.provider()
    assert (got.name, got.fullsetsallowed, got.lastconnseq) == ("x", 3, 3)


def test_counters_of_many_providers_are_added_to_at_once(lcc):
    pids = range(1000, 1000 + 2 * CASES + 1)
    for pid in pids:
        lcc.add(pid)
    with lcc.store.begin() as tx:
        tx.add_to_providers({pid: {"nurlproc": pid, "fileused": -(pid % 2)} for pid in pids})
        tx.add_to_providers({1000: {"spaceused": 2**40}, 1001: {"nurlproc": 0}, 999: {"nurlproc": 1}})
        tx.add_to_providers({})
        found = tx.lock_providers(pids)
        tx.add_to_providers({pid: {"nurlproc": -pid, "fileused": pid % 2} for pid in pids})
        tx.add_to_providers({1000: {"spaceused": -(2**40)}})
    assert [(one.nurlproc, one.fileused) for one in found.values()] == [(pid, -(pid % 2)) for pid in pids]
    assert [one.spaceused for one in found.values()] == [2**40] + [0] * 2 * CASES


def test_a_provider_goes_with_its_roots_errors_and_sets(lcc):
    lcc.add(8)
    for pid in (7, 8):
        lcc.push(update("a"), pid=pid)
        lcc.settle(lcc.failed(lcc.ticket("a", pid), 404, final=True))
    with lcc.store.begin() as tx:
        tx.delete_provider(8)
    with lcc.store.read() as tx:
        assert [one.pid for one in tx.providers()] == [7]
        assert (tx.roots(8), tx.errors(8, 9), tx.pset_of(8, 2), tx.outcome(key("a", pid=8))) == (
            [],
            [],
            None,
            None,
        )
        assert len(tx.errors(7, 9)) == 1


def test_roots_are_replaced_as_a_whole(lcc):
    with lcc.store.begin() as tx:
        tx.replace_roots(PID, ["http://z.example/", "http://a.example/"])
        assert tx.roots(PID) == ["http://z.example/", "http://a.example/"]
        tx.replace_roots(PID, [])
        assert tx.roots(PID) == []


# --- keys -------------------------------------------------------------------------------------------


def test_keys_are_bytes_and_rows_come_by_rising_key(lcc):
    names = [f"n{number}" for number in range(50)]
    lcc.push(*map(update, names))
    for ticket in lcc.tickets()[:25]:
        lcc.settle(lcc.served(ticket))
    with lcc.store.read() as tx:
        paged, after = [], b""
        while rows := tx.cached_of(PID, after, 7):
            paged += [row.urlkey for row in rows]
            after = paged[-1]
        assert paged == sorted(paged)
        assert len(paged) == 25
        unseen = tx.unseen(PID, 99, b"", LAST_KEY, 1000)
        assert unseen == paged
        assert {type(one) for one in [*paged, *unseen]} == {bytes}
        assert tx.unseen(PID, 99, unseen[9], LAST_KEY, 5) == unseen[10:15]
        assert tx.unseen(PID, 99, unseen[9], unseen[12], 5) == unseen[10:13]
        assert tx.unseen(PID, 1, b"", LAST_KEY, 1000) == tx.unseen(8, 99, b"", LAST_KEY, 1000) == []
        counts = [
            tx.count_absent(pid, psetid, b"", LAST_KEY) for pid, psetid in ((PID, 99), (PID, 1), (8, 99))
        ]
        assert counts == [25, 0, 0]


def test_waiting_urls_come_as_they_arrived_and_keep_their_numbers(lcc):
    names = [f"n{number}" for number in range(50)]
    lcc.push(*map(update, names))
    for ticket in lcc.tickets()[:25]:
        lcc.settle(lcc.served(ticket))
    lcc.push(update("n30", declared=Declared(mtime=7)), update("late"))
    arrived = [key(name) for name in (*names[25:], "late")]
    with lcc.store.begin() as tx:
        paged, after = [], 0
        while after != LAST_NUMBER:
            rows, after = tx.queued_of(PID, after, 7), tx.reach_waiting(PID, after, 7)
            paged.append([row.urlkey for row in rows])
        assert [one for page in paged for one in page] == arrived
        assert list(map(len, paged)) == [7, 7, 7, 5]
        unseen = tx.unseen_waiting(PID, 99, 0, LAST_NUMBER, 1000)
        assert [one for _, one in unseen] == arrived
        assert {type(one) for _, one in unseen} == {bytes}
        tenth, twelfth = unseen[9][0], unseen[12][0]
        assert tx.unseen_waiting(PID, 99, tenth, LAST_NUMBER, 5) == unseen[10:15]
        assert tx.unseen_waiting(PID, 99, tenth, twelfth, 5) == unseen[10:13]
        assert (
            tx.unseen_waiting(PID, 1, 0, LAST_NUMBER, 9) == tx.unseen_waiting(8, 99, 0, LAST_NUMBER, 9) == []
        )
        assert tx.count_waiting(PID, tenth, twelfth) == 3
        assert (tx.count_waiting(PID, 0, LAST_NUMBER), tx.count_waiting(8, 0, LAST_NUMBER)) == (26, 0)
    lcc.settle(*[lcc.served(ticket) for ticket in lcc.tickets()[:3]])
    with lcc.store.read() as tx:
        assert tx.unseen_waiting(PID, 99, 0, LAST_NUMBER, 1000) == unseen[3:]


def test_what_was_counted_while_it_waited_is_not_counted_as_a_document(lcc):
    lcc.push(*map(update, "abc"))
    lcc.settle(*[lcc.served(ticket) for ticket in lcc.tickets()[:1]])
    lcc.push(update("a", declared=Declared(mtime=7)))
    with lcc.store.begin() as tx:
        assert tx.mark_unfetched(PID, 1, 0, LAST_NUMBER) == 0
        assert tx.mark_unfetched(PID, 99, 0, LAST_NUMBER) == 2
        assert tx.count_waiting(PID, 0, LAST_NUMBER) == 2
    lcc.settle(*[lcc.served(ticket) for ticket in lcc.tickets()])
    with lcc.store.begin() as tx:
        assert tx.unseen(PID, 99, b"", LAST_KEY, 9) == sorted(map(key, "abc"))
        assert [tx.count_absent(PID, psetid, b"", LAST_KEY) for psetid in (99, 100)] == [1, 3]


def test_portions_by_key_have_every_document_once(lcc):
    names = [f"n{number}" for number in range(50)]
    lcc.push(*map(update, names))
    for ticket in lcc.tickets()[:40]:
        lcc.settle(lcc.served(ticket))
    with lcc.store.read() as tx:
        found, upto, portions = [], b"", 0
        while upto != LAST_KEY:
            after, upto = upto, tx.reach(PID, upto, 7)
            some = [row.urlkey for row in tx.cached_of(PID, after, 50) if row.urlkey <= upto]
            assert len(some) <= 7
            found += some
            portions += 1
        assert len(found) == 40
        assert set(found) < set(map(key, names))
        assert portions == 1 + 40 // 7
        assert tx.reach(PID, b"", 41) == tx.reach(8, b"", 1) == LAST_KEY


def test_more_keys_than_fit_one_statement_are_no_problem(lcc):
    keys = [number.to_bytes(16, "big") for number in range(2500)]
    lcc.push(update("a"))
    with lcc.store.begin() as tx:
        tx.mark_seen([*keys, key("a")], 5, START)
        assert list(tx.queued([*keys, key("a")])) == [key("a")]
        assert tx.queued([key("a")])[key("a")].seen == 5
        assert tx.cached(keys) == {}
        tx.delete_queued(keys)
        tx.delete_tombstones(keys)


@pytest.mark.parametrize(
    "change",
    [
        lambda lcc: None,
        lambda lcc: lcc.push(update("a", declared=Declared(1_700_000_000))),
        lambda lcc: lcc.push(removal("a")),
        lambda lcc: lcc.settle(lcc.failed(lcc.ticket("a"), 500)),
        lambda lcc: lcc.fetch("a"),
        _seen_by_a_set,
        _fetched_and_pushed_again,
    ],
    ids=["nothing", "update", "removal", "retry", "fetched", "seen", "gone and back"],
)
def test_a_row_that_was_read_before_is_read_again_where_it_changed(lcc, change):
    lcc.push(update("a"), update("b"))
    known = [lcc.queued("a"), lcc.queued("b")]
    change(lcc)
    with lcc.store.read() as tx:
        found, asked = tx.queued([], known), tx.queued([key("a"), key("b")])
        assert found == asked == tx.queued([key("b"), key("a")], known[:1])
    assert found[key("b")] == known[1]


def test_a_row_that_is_there_already_is_not_added_again(lcc):
    lcc.push(update("a"))
    before = dump(lcc.store)
    with lcc.store.read() as tx:
        row = tx.queued([key("a")])[key("a")]
    with pytest.raises((ValueError, sqlalchemy.exc.IntegrityError)), lcc.store.begin() as tx:
        tx.insert_queued([row])
    assert dump(lcc.store) == before


def test_the_longest_values_fit(lcc):
    longest = "https://www.example.org/" + "x" * (2048 - 24)
    values = {"furl": longest, "burl": longest, "subtype": "s: " + "ü" * 252, "timeofday": "10" * 84}
    lcc.push(replace(update("a"), curl="😀" * 2048, mimetype="a/" + "b" * 125, **values))
    lcc.fetch_all()
    with lcc.store.read() as tx:
        row = tx.cached_of(PID, b"", 1)[0]
    assert (row.curl, row.furl, row.subtype) == ("😀" * 2048, longest, values["subtype"])


# --- counters, files, machines ----------------------------------------------------------------------


def test_numbers_are_taken_from_one_on_and_never_twice(lcc):
    with lcc.store.begin() as tx:
        assert tx.peek("x") == 0
        assert [tx.take("x", count) for count in (1, 3, 1)] == [1, 2, 5]
        assert (tx.take("y", 2), tx.peek("x"), tx.peek("y")) == (1, 5, 2)


@SQL
def test_writers_that_take_the_first_number_at_the_same_moment_get_different_ones(lcc):
    taken, problems = [], []
    together = threading.Barrier(6)

    def work():
        together.wait(300)
        left = 10
        for _ in range(500):
            try:
                with lcc.store.begin() as tx:
                    first = tx.take("fresh", 3)
            except StoreUnavailable:
                continue
            taken.extend(range(first, first + 3))
            left -= 1
            if not left:
                return
        problems.append("never answered")

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert problems == []
    assert sorted(taken) == list(range(1, 181))


def test_what_two_threads_write_at_the_same_moment_is_kept(lcc):
    begun = threading.Event()

    def write_second():
        begun.wait()
        with lcc.store.begin() as tx:
            tx.set_info("second", "b")

    second = threading.Thread(target=write_second)
    second.start()
    with lcc.store.begin() as tx:
        tx.set_info("first", "a")
        begun.set()
        second.join(0.05)
    second.join()
    with lcc.store.read() as tx:
        assert [tx.info("first"), tx.info("second")] == ["a", "b"]


def test_doomed_files_come_oldest_first_when_they_are_due(lcc):
    files = [
        FileToDelete(MACHINE, 1, 10, 300),
        FileToDelete(MACHINE, 2, 10, 100),
        FileToDelete(2, 1, 10, 100),
    ]
    with lcc.store.begin() as tx:
        tx.delete_later(files)
        assert [file.fileid for file in tx.files_to_delete(MACHINE, 300, 9)] == [2, 1]
        assert [file.fileid for file in tx.files_to_delete(MACHINE, 299, 9)] == [2]
        assert tx.files_to_delete(MACHINE, 300, 1) == [files[1]]
        assert tx.known_to_delete(MACHINE, [1, 2, 3]) == {1, 2}
        tx.forget_deleted(MACHINE, [1, 2, 3])
        assert (tx.files_to_delete(MACHINE, 999, 9), tx.files_to_delete(2, 999, 9)) == ([], [files[2]])
        tx.forget_deleted(2, [1])


def test_documents_are_found_by_their_files(lcc):
    lcc.store_pages("a", "b")
    a = lcc.cached("a")
    with lcc.store.read() as tx:
        assert tx.files_of(MACHINE, [a.fetched_fileid, 99]) == {a.fetched_fileid: a}
        assert tx.files_of(2, [a.fetched_fileid]) == {}


def test_machines_are_numbered_once(lcc):
    with lcc.store.begin() as tx:
        first = tx.insert_machine("id-1", "here", START)
        second = tx.insert_machine("id-2", "there", START)
        assert first != second
        assert (tx.machine("id-1"), tx.machine("id-2"), tx.machine("id-3")) == (first, second, None)


def test_addresses_of_machines_are_looked_up_once_a_minute_and_settings_go_first(lcc):
    with lcc.store.begin() as tx:
        numbers = [tx.insert_machine(f"id-{number}", "", START) for number in (1, 2, 3)]
    one, two, three = numbers
    clock = [0.0]
    address_of = MachineAddresses(lcc.store, {three: "https://said"}, lambda: clock[0])
    assert [address_of(number) for number in numbers] == [None, None, "https://said"]
    register_address(lcc.store, two, "https://second:8081")
    register_address(lcc.store, three, "https://third:8081")
    clock[0] = KNOWN_SECONDS - 1
    assert address_of(two) is None
    clock[0] = KNOWN_SECONDS
    assert [address_of(number) for number in numbers] == [None, "https://second:8081", "https://said"]
    register_address(lcc.store, two, "")
    clock[0] = 2 * KNOWN_SECONDS
    assert (address_of(two), address_of(one)) == (None, None)


def test_a_turn_begins_with_its_first_url_and_goes_with_its_last(lcc):
    with lcc.store.begin() as tx:
        tx.add_to_turns({"7": TurnDelta(2, arrived=True, priority=1)})
        tx.add_to_turns({"7": TurnDelta(-1)})
        assert tx.turn("7") == StoredTurn("7", priority=1, waiting=1, arrivals=1)
        tx.add_to_turns({"7": TurnDelta(-1)})
        assert tx.turn("7") is None


def test_many_turns_are_counted_at_once(lcc):
    keys = [f"group {number}" for number in range(75)]
    with lcc.store.begin() as tx:
        tx.add_to_turns({key: TurnDelta(2, arrived=True, priority=2) for key in keys})
        tx.lease_turns(keys[:1], "one", 3)
        tx.change_turn(keys[1], {"look_at": 7.5})
        tx.add_to_turns({key: TurnDelta(-2) for key in [*keys[:1], *keys[2:]]} | {keys[1]: TurnDelta(-1)})
        left = tx.lock_turns(keys)
        tx.free_turns_of("one")
        tx.add_to_turns({keys[1]: TurnDelta(-1)})
        assert tx.lock_turns(keys) == {}
    assert list(left) == keys[:2]
    assert (left[keys[0]].owner, left[keys[0]].waiting) == ("one", 0)
    assert left[keys[1]] == StoredTurn(keys[1], priority=2, waiting=1, arrivals=1, look_at=7.5)


def test_set_parts_are_counted_at_once_and_empty_ones_go(lcc):
    with lcc.store.begin() as tx:
        tx.add_to_parts(
            {(psetid, mask, PID): 2 for psetid in range(1, 41) for mask in ("", "1" * 24)}, {PID: 1}
        )
        tx.add_to_parts({(1, "", PID): 3, (2, "", PID): -1, (3, "", PID): 0}, {})
        tx.add_to_parts({(psetid, "", PID): -2 for psetid in range(3, 41)}, {})
        parts = tx.parts(PID)
        tx.add_to_parts({(one.psetid, one.timeofday, PID): -one.nurls for one in parts}, {})
        assert tx.parts(PID) == []
    assert [(one.psetid, one.nurls) for one in parts if not one.timeofday] == [(1, 5), (2, 1)]
    assert [one.nurls for one in parts if one.timeofday] == [2] * 40
    assert {one.pri for one in parts} == {1}


def test_documents_are_added_and_replaced_with_the_answers_that_they_came_with(lcc):
    lcc.store_pages("a")
    rows = [
        replace(lcc.cached("a"), urlkey=bytes([number]) * 16, fetched_fileid=number, seq=100 + number)
        for number in range(75)
    ]
    keys = [row.urlkey for row in rows]
    answers = {key: UrlMeta(key, "HTTP/1.1 200 OK", "[]", "192.0.2.1", START) for key in keys}
    anew = {key: replace(answers[key], headers="[1]") for key in keys[::3]}
    changed = [replace(row, etag="another") for row in rows]
    with lcc.store.begin() as tx:
        tx.insert_cached(rows[:50], {key: answers[key] for key in keys[:40]})
        assert tx.metas([*keys, key("a")]).keys() == {*keys[:40], key("a")}
        tx.update_cached(rows, answers)
        assert tx.metas(keys) == answers
        tx.update_cached(changed, anew)
        assert (tx.metas(keys), tx.cached(keys)) == (answers | anew, dict(zip(keys, changed, strict=True)))
        tx.update_cached([], anew)
        tx.delete_cached(keys)
        assert tx.metas(keys) == {}


@SQL
def test_a_settlement_takes_as_many_statements_for_many_providers_as_for_one(lcc):
    statements: list[str] = []
    event.listen(lcc.store.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    counts = []
    for pids in (range(100, 101), range(200, 240)):
        outcomes = []
        for pid in pids:
            lcc.add(pid)
            lcc.push(update("a"), pid=pid)
            outcomes.append(lcc.served(lcc.ticket("a", pid)))
        statements.clear()
        lcc.settle(*outcomes)
        counts.append(len(statements))
    print(counts)
    assert counts[1] <= counts[0] + 4 * len(SQLITE_ROWS)


def test_a_leased_turn_stays_until_it_is_given_back(lcc):
    with lcc.store.begin() as tx:
        tx.add_to_turns({"7": TurnDelta(1)})
        tx.lease_turns(["7"], "one", 3)
        tx.add_to_turns({"7": TurnDelta(-1)})
        lease = tx.lock_turns(["7", "7", "9"])["7"]
        assert (lease.owner, lease.token, lease.waiting) == ("one", 3, 0)
        assert tx.leased_turns("one") == {"7": 3}
        tx.rest_turns([replace(lease, token=2)])
        tx.rest_turns([replace(lease, owner="two")])
        assert tx.turn("7") == lease
        tx.rest_turns([lease])
        assert tx.turn("7") is None


def test_a_turn_remembers_its_limits_though_nothing_waits(lcc):
    with lcc.store.begin() as tx:
        tx.add_to_turns({"7": TurnDelta(1)})
        tx.lease_turns(["7"], "one", 3)
        tx.add_to_turns({"7": TurnDelta(-1)})
        resting = replace(tx.turn("7"), not_before=START + 9.5)
        tx.rest_turns([resting])
        assert tx.turn("7") == replace(resting, owner="")
        tx.add_to_turns({"7": TurnDelta(1, arrived=True)})
        assert tx.free_turns(START + 9, 10) == []
        assert [row.turnkey for row in tx.free_turns(START + 10, 10)] == ["7"]
        tx.add_to_turns({"7": TurnDelta(-1)})
        tx.forget_turns(START + 9)
        assert tx.turn("7") is not None
        tx.forget_turns(START + 10)
        assert tx.turn("7") is None


def test_what_arrives_while_a_turn_is_put_to_rest_wakes_it(lcc):
    with lcc.store.begin() as tx:
        tx.add_to_turns({"7": TurnDelta(1, arrived=True), "8": TurnDelta(1, arrived=True)})
        tx.lease_turns(["7", "8"], "one", 3)
        seven, eight = tx.turn("7"), tx.turn("8")
        tx.add_to_turns({"7": TurnDelta(1, arrived=True), "8": TurnDelta(1)})
        tx.rest_turns([replace(seven, look_at=START + 1000.0)])
        tx.rest_turns([replace(eight, look_at=START + 1000.0)])
        assert (tx.turn("7").look_at, tx.turn("8").look_at) == (0, START + 1000)
        assert tx.count_turns(START) == 1
        tx.wake_turns()
        assert tx.count_turns(START) == 2
        tx.add_to_turns({"7": TurnDelta(-2), "8": TurnDelta(-2)})


def test_a_worker_is_known_by_its_run(lcc):
    one = WorkerRow("1/0", 5, 1, 4711, START, START + 60, 16, 2, 3, 1000, True, 7, 5)
    with lcc.store.begin() as tx:
        assert not tx.beat(one)
        tx.put_worker(one)
        assert tx.beat(replace(one, expires=START + 90))
        assert not tx.beat(replace(one, token=6))
        tx.put_worker(WorkerRow("1/1", 6, 1, 4712, START, START + 60))
        assert [row.expires for row in tx.workers()] == [START + 90, START + 60]
        tx.drop_worker("1/1")
        assert tx.workers() == [replace(one, expires=START + 90)]


def test_long_fetches_are_told_of_by_turn_and_go_with_their_worker(lcc):
    one = LongFetch("7", "1/0", 3, b"k" * 16, START, 0, 10, 0)
    with lcc.store.begin() as tx:
        assert tx.long_fetch("7") is None
        tx.put_fetches([one, replace(one, turnkey="8")])
        tx.put_fetches(
            [replace(one, paced=START + 1, transferred=20, size=30), replace(one, turnkey="9", owner="1/1")]
        )
        assert tx.long_fetch("7") == replace(one, paced=START + 1, transferred=20, size=30)
        tx.drop_fetches("1/0", ["8", "9"])
        assert (tx.long_fetch("8"), tx.long_fetch("9").owner) == (None, "1/1")
        tx.free_turns_of("1/0")
        assert (tx.long_fetch("7"), tx.long_fetch("9").owner) == (None, "1/1")


def test_turns_of_higher_priority_are_counted_of_one_worker(lcc):
    with lcc.store.begin() as tx:
        for turnkey, priority, owner in (("a", 2, "1/0"), ("b", 1, "1/0"), ("c", 2, "1/1"), ("d", 2, "1/0")):
            tx.add_to_turns({turnkey: TurnDelta(1, arrived=True, priority=priority)})
            tx.lease_turns([turnkey], owner, 1)
        tx.add_to_turns({"d": TurnDelta(-1)})
        assert [tx.count_above("1/0", priority) for priority in (0, 1, 2)] == [2, 1, 0]
        tx.add_to_turns({turnkey: TurnDelta(-1) for turnkey in "abc"})
        assert [tx.free_turns_of(owner) for owner in ("1/0", "1/1")] == [3, 1]


def test_members_and_roots_are_read_for_many_turns_at_once(lcc):
    lcc.add(8, turngroup="farm")
    lcc.add(9, turngroup="farm")
    with lcc.store.begin() as tx:
        tx.replace_roots(9, ["http://a/", "http://b/"])
        assert [row.pid for row in tx.members(["7", "8", "farm", "nobody"])] == [7, 8, 9]
        assert tx.roots_of([8, 9, 10]) == {8: ["http://www.example.org/"], 9: ["http://a/", "http://b/"]}
        tx.update_provider(9, {"revision": 4})
        assert [row.pid for row in tx.changed_providers(3)] == [9]
        assert tx.changed_providers(4) == []


# --- what each database needs -----------------------------------------------------------------------


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_sqlite_takes_the_writers_lock_at_once_and_only_for_writers(store):
    def begun(transaction):
        statements = []
        sqlalchemy.event.listen(
            store.engine, "before_cursor_execute", note := lambda *a: statements.append(a[2])
        )
        try:
            with transaction:
                pass
        finally:
            sqlalchemy.event.remove(store.engine, "before_cursor_execute", note)
        return [one for one in statements if not one.startswith("PRAGMA busy_timeout")]

    assert begun(store.begin()) == ["BEGIN IMMEDIATE", "COMMIT"]
    assert begun(store.read()) == ["BEGIN"]
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        journal = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
    assert journal == ("wal" if sqlite3.sqlite_version_info >= (3, 51, 3) else "truncate")


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_two_sqlite_writers_wait_for_each_other(lcc):
    started, threads = threading.Event(), []

    def write():
        started.set()
        with lcc.store.begin() as tx:
            tx.add_to_provider(PID, {"lastconnseq": 1})

    with lcc.store.begin() as tx:
        threads.append(threading.Thread(target=write))
        threads[0].start()
        started.wait(300)
        tx.add_to_provider(PID, {"lastconnseq": 1})
    threads[0].join(300)
    assert lcc.provider().lastconnseq == 2


@pytest.mark.parametrize("store", ["mariadb", "postgresql"], indirect=True)
def test_a_reader_that_stands_still_stops_no_writer(lcc):
    lcc.store_pages("a")
    with lcc.store.read() as tx:
        assert len(tx.changes(0, 10)) == 1
        lcc.push(update("b"))
        lcc.fetch("b")
        lcc.store_pages("c")
    assert lcc.documents() == ["a", "b", "c"]


@pytest.mark.parametrize("store", ["mariadb"], indirect=True)
def test_mariadb_refuses_what_does_not_fit_instead_of_cutting_it(lcc):
    with pytest.raises(sqlalchemy.exc.DBAPIError), lcc.store.begin() as tx:
        tx.update_provider(PID, {"name": "x" * 256})
    assert lcc.provider().name == ""
    with lcc.store.engine.connect() as connection:
        assert "STRICT_ALL_TABLES" in connection.exec_driver_sql("SELECT @@sql_mode").scalar()


@pytest.mark.parametrize("store", ["mariadb"], indirect=True)
def test_mariadb_that_does_not_put_commits_on_disk_is_refused(store, monkeypatch):
    store.check()
    with store.engine.connect() as connection:
        before = connection.exec_driver_sql("SELECT @@GLOBAL.innodb_flush_log_at_trx_commit").scalar()
    said = "SELECT 'innodb_flush_log_at_trx_commit', '2' UNION SELECT 'innodb_doublewrite', 'ON'"
    monkeypatch.setattr("lcc_scrapy.db.sql.durability.text", lambda _: sqlalchemy.text(said))
    with pytest.raises(ConfigurationError, match="innodb_flush_log_at_trx_commit=2"):
        store.check()
    assert before == 1


@SQL
def test_the_query_of_the_seed_runs_verbatim(lcc):
    lcc.store_pages("a")
    lcc.now += 10
    lcc.push(update("b"))
    lcc.fetch("b")
    query = (
        f"select furl, mimetype, fetched_machineid, fetched_fileid from lccurl where fetched_time > {START};"
    )
    with lcc.store.engine.connect() as connection:
        rows = connection.exec_driver_sql(query).all()
    assert rows == [(url("b"), "text/html", MACHINE, lcc.cached("b").fetched_fileid)]


@pytest.mark.parametrize(
    "address",
    [
        "mysql+pymysql://root@127.0.0.1:1/lcc",
        "postgresql+psycopg://postgres@127.0.0.1:1/lcc",
        "sqlite:////nowhere/at/all/lcc.sqlite",
    ],
)
def test_a_database_that_does_not_answer_is_unavailable(address):
    store = SqlStore(address)
    for transaction in (store.begin, store.read):
        with pytest.raises(StoreUnavailable) as caught, transaction():
            pass
        assert "\n" not in str(caught.value)
    store.close()


@pytest.mark.parametrize(
    ("address", "driver"),
    [
        ("mysql://root@h/lcc", "mysql+pymysql"),
        ("mariadb://root@h/lcc", "mariadb+pymysql"),
        ("postgresql://u@h/lcc", "postgresql+psycopg"),
        ("sqlite:///x", "sqlite"),
    ],
)
def test_an_address_without_a_driver_gets_the_one_that_comes_with_us(address, driver):
    engine = make_engine(address)
    assert engine.url.drivername == driver
    engine.dispose()


def test_a_postgresql_that_forgets_commits_is_refused(databases):
    url = sqlalchemy.make_url(databases.url("postgresql"))
    store = SqlStore(str(url.update_query_dict({"options": "-csynchronous_commit=off"})))
    try:
        with pytest.raises(ConfigurationError, match="synchronous_commit=off; the LCC needs on"):
            store.check()
    finally:
        store.close()


def test_another_kind_of_database_is_refused_with_one_line():
    with pytest.raises(ConfigurationError, match="oracle is not supported"):
        make_engine("oracle://h/lcc")


def test_an_error_of_our_own_is_not_taken_for_an_unavailable_database(store):
    little = LittleLcc(store)
    little.add()
    with pytest.raises((ValueError, sqlalchemy.exc.IntegrityError)):
        little.add()


def test_changes_tell_how_they_came_from_other_sub_lccs(store):
    with store.begin() as tx:
        tx.put_moved({7: [(2, 9), (1, 70)], 8: [(2, 10)]})
    with store.read() as tx:
        assert tx.moved([6, 7]) == {7: ((1, 70), (2, 9))}
        assert tx.moved(range(1, 2500)) == {7: ((1, 70), (2, 9)), 8: ((2, 10),)}
        assert tx.moved([]) == {}
