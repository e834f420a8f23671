"""The feed: one latest row per document in commit order, without gaps (design section 3), on every store."""

import threading
from dataclasses import replace

import pytest
import sqlalchemy
from little_lcc import PID, Crash, LittleLcc, assert_books_balance, key, removal, update

from lcc_scrapy.cache import tombstones
from lcc_scrapy.db.records import FORGOTTEN
from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.ops.housekeeping import sweep


def told(rows):
    return [(row.curl.rpartition("/")[2], isinstance(row, CachedUrl)) for row in rows]


def test_documents_and_tombstones_come_in_one_order(lcc):
    lcc.store_pages("a", "b", "c")
    lcc.push(removal("a"))
    lcc.push(update("b"))
    lcc.fetch("b", b"new")
    assert told(lcc.feed()) == [("c", True), ("a", False), ("b", True)]
    assert [row.seq for row in lcc.feed()] == [3, 4, 5]


def test_a_tombstone_says_what_went_when_and_why(lcc):
    lcc.store_pages("a")
    lcc.now += 5
    lcc.push(removal("a"))
    row = lcc.feed()[0]
    assert row == Tombstone(
        key("a"), PID, "http://www.example.org/a", "text/html", "http://www.example.org/a",
        "removed by its provider", lcc.now, 2,
    )  # fmt: skip


def test_a_document_that_returns_loses_its_tombstone(lcc):
    lcc.store_pages("a")
    lcc.push(removal("a"))
    lcc.store_pages("a")
    assert told(lcc.feed()) == [("a", True)]
    assert lcc.feed()[0].seq == 3


def test_what_came_and_went_unseen_leaves_no_tombstone(lcc):
    lcc.push(update("a"))
    lcc.push(removal("a"))
    lcc.fetch_all()
    assert lcc.feed() == []


def subtype_seqs(lcc):
    return {row.curl.rpartition("/")[2]: row.subtype_seq for row in lcc.feed() if isinstance(row, CachedUrl)}


def test_a_document_knows_when_its_subtype_last_changed(lcc):
    lcc.store_pages("a", "b")
    assert subtype_seqs(lcc) == {"a": 0, "b": 0}
    lcc.push(update("a", subtype="lang: nl"))
    lcc.fetch("a", b"new")
    assert subtype_seqs(lcc) == {"a": 3, "b": 0}
    lcc.push(update("a", subtype="lang: nl"), update("b"))
    lcc.fetch("a", b"newer")
    lcc.fetch("b", b"newer")
    assert subtype_seqs(lcc) == {"a": 3, "b": 0}


def test_what_is_only_confirmed_still_knows_when_its_subtype_changed(lcc):
    lcc.push(update("a"))
    lcc.fetch("a", b"same")
    lcc.push(update("a", subtype="lang: nl"))
    lcc.fetch("a", b"same")
    assert subtype_seqs(lcc) == {"a": 2}
    lcc.push(update("a", subtype="lang: nl"))
    lcc.fetch_all(body=b"same")
    assert [(row.seq, row.subtype_seq) for row in lcc.feed()] == [(2, 2)]


def test_a_document_that_came_back_counts_as_one_whose_subtype_changed(lcc):
    lcc.store_pages("a", "b")
    lcc.push(removal("a"))
    lcc.push(update("a"), update("c"))
    lcc.fetch_all()
    assert subtype_seqs(lcc) == {"b": 0, "a": 4, "c": 0}


def forget(lcc, before):
    dropped = sum(tombstones.forget_tombstones(lcc.store, before))
    with lcc.store.read() as tx:
        return dropped, tx.peek(FORGOTTEN)


def test_old_removals_are_forgotten_and_how_far_is_noted(lcc, monkeypatch):
    monkeypatch.setattr(tombstones, "CHUNK", 2)
    lcc.store_pages(*"abcdefg")
    lcc.push(*map(removal, "abc"))
    lcc.now += 100
    lcc.push(*map(removal, "de"))
    assert forget(lcc, lcc.now - 100) == (0, 0)
    assert forget(lcc, lcc.now - 99) == (3, 10)
    assert told(lcc.feed()) == [("f", True), ("g", True), ("d", False), ("e", False)]
    assert forget(lcc, lcc.now - 99) == (0, 10)
    assert forget(lcc, lcc.now + 1) == (2, 12)


def test_a_removal_that_is_younger_keeps_those_behind_it_although_a_clock_went_back(lcc):
    lcc.store_pages("a", "b")
    lcc.push(removal("a"))
    lcc.now -= 1000
    lcc.push(removal("b"))
    assert forget(lcc, lcc.now + 1) == (0, 0)


def test_housekeeping_forgets_removals_after_their_time_and_never_when_it_is_0(lcc):
    lcc.store_pages("a", "b")
    lcc.push(removal("a"))
    day = 86400
    lcc.now += 90 * day
    for policy, left in ((QueuePolicy(tombstones_keep=0), 1), (QueuePolicy(), 1)):
        list(sweep(lcc.store, replace(policy, stale_after=0, expire_after=0), lcc.now))
        assert sum(isinstance(row, Tombstone) for row in lcc.feed()) == left
    list(sweep(lcc.store, QueuePolicy(stale_after=0, expire_after=0), lcc.now + 1))
    assert told(lcc.feed()) == [("b", True)]


def test_documents_come_by_rising_docid(lcc):
    lcc.add(8)
    lcc.store_pages(*"abcde")
    lcc.store_pages(*"ab", pid=8)
    found, last = [], b""
    while True:
        with lcc.store.read() as tx:
            page = tx.documents(last, 3)
        if not page:
            break
        found += page
        last = page[-1].urlkey
    assert found == sorted(lcc.feed(), key=lambda row: row.urlkey)
    assert len(found) == 7


@pytest.mark.parametrize("page", [1, 2, 3, 100])
def test_paging_gives_everything_exactly_once(lcc, page):
    lcc.store_pages(*"abcdefgh")
    lcc.push(*map(removal, "bdf"))
    lcc.store_pages("a", "d")
    assert lcc.feed(page=page) == lcc.feed()
    assert len(lcc.feed()) == 8
    assert lcc.feed(after=lcc.feed()[4].seq, page=page) == lcc.feed()[5:]


def test_the_feed_can_be_had_for_one_provider(lcc):
    lcc.add(8)
    lcc.store_pages("a", "b")
    lcc.store_pages("a", pid=8)
    lcc.push(removal("b"))
    with lcc.store.read() as tx:
        assert told(tx.changes(0, 10, 7)) == [("a", True), ("b", False)]
        assert told(tx.changes(0, 10, 8)) == [("a", True)]
        assert tx.changes(0, 10, 9) == []


def test_a_transaction_that_fails_takes_no_seq_with_it(lcc):
    lcc.store_pages("a")
    with pytest.raises(Crash), lcc.store.begin() as tx:  # noqa: PT012 - the transaction is the point
        assert tx.take("feed", 5) == 2
        raise Crash
    lcc.store_pages("b")
    assert [row.seq for row in lcc.feed()] == [1, 2]


def test_a_reader_that_pages_while_documents_move_misses_none(lcc):
    lcc.store_pages(*"abcdef")
    with lcc.store.read() as tx:
        first = tx.changes(0, 3)
    lcc.push(removal("a"), update("d"))
    lcc.fetch("d", b"moved on")
    rest = lcc.feed(after=first[-1].seq, page=2)
    assert told(rest) == [("e", True), ("f", True), ("a", False), ("d", True)]


@pytest.mark.parametrize("store", ["mariadb", "postgresql"], indirect=True)
def test_what_is_committed_between_two_statements_of_a_reader_is_not_skipped(lcc):
    lcc.store_pages("a", "b")
    interrupted = []

    def meanwhile(_connection, _cursor, statement, *_):
        if statement.startswith("SELECT tombstones") and not interrupted:
            interrupted.append(statement)
            lcc.store_pages("c")
            lcc.push(removal("a"))

    sqlalchemy.event.listen(lcc.store.engine, "before_cursor_execute", meanwhile)
    with lcc.store.read() as tx:
        first = tx.changes(0, 10)
    sqlalchemy.event.remove(lcc.store.engine, "before_cursor_execute", meanwhile)
    assert interrupted
    assert told(lcc.feed(after=first[-1].seq)) == [("c", True), ("a", False)]


def persistently(work):
    """Repeat what a busy database refused, as every worker does."""
    for _ in range(50):
        try:
            return work()
        except StoreUnavailable:
            continue
    raise AssertionError("the database never answers")


@pytest.mark.parametrize("store", ["mariadb", "postgresql"], indirect=True)
def test_a_reader_beside_busy_writers_ends_up_with_what_there_is(lcc):
    """A seq that became visible after a higher one was read would be missing from the mirror."""
    pids = (PID, 8, 9)
    for pid in pids[1:]:
        lcc.add(pid)
    absorbed = {pid: threading.Event() for pid in pids}
    working = threading.Event()
    problems = []

    def absorb(pid):
        mine = LittleLcc(lcc.store, connseq=1000 * pid)
        for number in range(30):
            fresh = [update(f"{number}-{page}") for page in range(4)]
            gone = [removal(f"{number - 3}-{page}") for page in range(2)]
            spooled = mine.spooled(*fresh, *gone, pid=pid)
            persistently(lambda spooled=spooled: mine.absorb(spooled))
        absorbed[pid].set()

    def settle(pid):
        mine = LittleLcc(lcc.store, owner=f"worker-{pid}")
        while True:
            last = absorbed[pid].is_set()
            held = str(pid) in mine.granted or persistently(lambda: mine.grant(only=pid))
            names = persistently(lambda: settle_some(mine, pid)) if held else []
            if last and not names:
                lcc.files.update(mine.files)
                return

    def settle_some(mine, pid):
        tickets = mine.tickets(pid, limit=5)
        mine.settle(*[mine.served(ticket, ticket.row.curl.encode()) for ticket in tickets])
        return tickets

    mirror = {}

    def as_told(row):
        """What a hold or a confirmation changes is no news, so the reader may have read it earlier."""
        return row if isinstance(row, Tombstone) else replace(row, held=0, seen=0, confirmed_time=0)

    def follow():
        after = 0
        while True:
            last = not working.is_set()
            with lcc.store.read() as tx:
                rows = tx.changes(after, 7)
            for row in rows:
                assert row.seq > after
                after = row.seq
                mirror[row.urlkey] = as_told(row)
            if last and not rows:
                return

    def guarded(work, *args):
        try:
            work(*args)
        except BaseException as error:
            problems.append(error)
            for event in absorbed.values():
                event.set()

    working.set()
    reader = threading.Thread(target=guarded, args=(follow,))
    writers = [
        threading.Thread(target=guarded, args=(work, pid)) for pid in pids for work in (absorb, settle)
    ]
    reader.start()
    try:
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(300)
    finally:
        working.clear()
        reader.join(300)
    assert problems == []
    assert mirror == {row.urlkey: as_told(row) for row in lcc.feed()}
    assert len(mirror) > 100
    assert_books_balance(lcc.store, lcc.files)
