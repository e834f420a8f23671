"""Sets on their way from a spool into the queue: in turns, within bounds, in the order of logins."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from same_thread import ByHand
from twisted.internet.task import Clock

from lcc_scrapy.db.records import OpenLogin, SetName, TurnDelta, Uns
from lcc_scrapy.domain.absorption import COMPLETE, IDLE, OPEN, TURN
from lcc_scrapy.domain.entries import UrlEntry
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.intake import absorber, absorbing, login_rows, open_sets, small_sets
from lcc_scrapy.intake.absorber import Absorber, Terms
from lcc_scrapy.intake.absorbing import Step
from lcc_scrapy.intake.spooled import AbsorbableSpool, record_loss
from lcc_scrapy.uns.spool import ReadySet, SpoolFolder
from lcc_scrapy.uns.spool_file import SpoolHeader
from tests.memory_store import MemoryStore

CHUNK = 3
POLL = 2.0
PATIENCE = 100.0
BOUND = 30.0


class Shaky(MemoryStore):
    """A database that may be away, or go away at a commit."""

    away = False
    last_commits = 1 << 30
    """Commits that still come through before one does not."""

    @contextmanager
    def begin(self) -> Iterator[Any]:
        if self.away:
            raise StoreUnavailable("gone away")
        with super().begin() as tx:
            yield tx
            self.last_commits -= 1
            if self.last_commits == -1:
                raise StoreUnavailable("gone away while committing")

    def read(self) -> Any:
        if self.away:
            raise StoreUnavailable("gone away")
        return super().read()


@dataclass
class Uns1:
    """A spool with an absorber, and the store behind it."""

    folder: SpoolFolder
    store: Shaky = field(default_factory=Shaky)
    thread: ByHand = field(default_factory=ByHand)
    clock: Clock = field(default_factory=Clock)
    steps: list[Step] = field(default_factory=list)
    put_away: list[tuple[int, int]] = field(default_factory=list)
    queue_max: int = 0
    sending: set[tuple[int, int]] = field(default_factory=set)

    def start(self) -> None:
        self.absorber = Absorber(
            AbsorbableSpool(self.folder, self.lose),
            self.store,
            self.thread,  # type: ignore[arg-type]
            self.clock,
            policy=QueuePolicy(),
            terms=Terms(self.folder.identity, self.queue_max, POLL, PATIENCE, BOUND),
            absorbed=self.steps.append,
            put_away=lambda pid, seq: self.put_away.append((pid, seq)),
            sending_before=lambda pid, seq: any(who == pid and one < seq for who, one in self.sending),
        )
        for waiting in self.folder.ready():
            self.absorber.add(waiting)
        self.absorber.look()

    def lose(self, waiting: ReadySet, _reason: str) -> None:
        record_loss(self.store, waiting.pid, waiting.seq)

    def add_providers(self, *pids: int) -> None:
        with self.store.begin() as tx:
            for pid in pids:
                tx.insert_provider(Provider(pid, ""), [])

    def log_in(self, pid: int, seq: int, uns: str = "", stage: str = OPEN) -> None:
        with self.store.begin() as tx:
            tx.insert_logins([OpenLogin(pid, seq, uns or self.folder.identity, 1, stage=stage)])

    def spool(self, pid: int, seq: int, urls: int, *, full: bool = False, tail: str = "") -> ReadySet:
        """Put a set of as many URLs into the folder, as a conversation does that ends well."""
        self.log_in(pid, seq)
        writer = self.folder.begin(SpoolHeader(pid, seq, 1, set_id=f"set-{seq}", full=full), seq)
        for number in range(urls):
            url = f"http://h{pid}/{seq}/{number}{tail}"
            writer.add(UrlEntry(url, "text/html", furl=url))
        writer.commit()
        return ReadySet(self.folder.path, pid, seq, 1000 * seq)

    def arrive(self, pid: int, seq: int, urls: int) -> None:
        self.absorber.add(self.spool(pid, seq, urls))
        self.absorber.look()

    def arrive_full(self, pid: int, seq: int, urls: int) -> None:
        self.absorber.add(self.spool(pid, seq, urls, full=True))
        self.absorber.look()

    def pass_time(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.thread.work_off()
            self.clock.advance(1)
        self.thread.work_off()

    def waiting(self, pid: int) -> list[str]:
        with self.store.read() as tx:
            rows = sorted(tx.queued_of(pid, 0, 1000), key=lambda row: (row.psetid, row.position))
            return [row.curl.removeprefix(f"http://h{pid}/") for row in rows]

    def fetch(self, pid: int) -> None:
        """Take everything of a provider out of the queue, as the crawl does."""
        with self.store.begin() as tx:
            rows = tx.queued_of(pid, 0, 1000)
            tx.delete_queued([row.urlkey for row in rows])
            tx.add_to_parts({(part.psetid, part.timeofday, pid): -part.nurls for part in tx.parts(pid)}, {})
            tx.add_to_turns({str(pid): TurnDelta(-len(rows))})
            tx.update_provider(pid, {"nurlproc": 0})

    def wanted(self, pid: int) -> str:
        with self.store.read() as tx:
            provider = tx.provider(pid)
            return provider.fullsetwanted if provider else "no such provider"

    def order(self) -> list[int]:
        return [step.pid for step in self.steps]


@pytest.fixture
def uns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Uns1]:
    monkeypatch.setattr(absorbing, "CHUNK", CHUNK)
    monkeypatch.setattr(absorbing, "NEW_CHUNK", CHUNK)
    monkeypatch.setattr(open_sets, "STEP", 0)
    folder = SpoolFolder(tmp_path / "spool")
    folder.lock()
    made = Uns1(folder)
    made.add_providers(1, 2, 3)
    yield made
    made.store.away = False
    made.absorber.stop()
    made.thread.work_off()
    folder.unlock()


def names(seq: int, urls: int) -> list[str]:
    return [f"{seq}/{number}" for number in range(urls)]


# --- turns -------------------------------------------------------------------------------------------


def test_a_huge_set_delays_a_small_one_of_somebody_else_by_one_turn(uns: Uns1) -> None:
    uns.spool(1, 1, 20 * CHUNK)
    uns.spool(2, 2, 1)
    uns.start()
    uns.thread.work_off()
    assert uns.order()[: TURN + 3] == [1] * TURN + [2] + [1] * 2
    assert uns.waiting(1) == names(1, 20 * CHUNK)
    assert uns.waiting(2) == ["2/0"]
    assert uns.folder.ready() == []


def test_a_set_that_arrives_meanwhile_gets_its_turn(uns: Uns1) -> None:
    uns.spool(1, 1, 20 * CHUNK)
    uns.start()
    uns.thread.work_off(2)
    uns.arrive(3, 5, 1)
    uns.thread.work_off()
    assert uns.order().index(3) == TURN
    assert len(uns.waiting(1)) == 20 * CHUNK


def test_the_sets_of_one_provider_are_absorbed_one_at_a_time_in_the_order_of_their_logins(uns: Uns1) -> None:
    for seq, urls in ((3, 2), (1, 8), (2, 1)):
        uns.spool(1, seq, urls)
    uns.start()
    uns.thread.work_off()
    assert uns.waiting(1) == names(1, 8) + names(2, 1) + names(3, 2)


def test_few_files_are_open_however_many_providers_wait(uns: Uns1, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_sets, "OPEN_SETS", 2)
    pids = range(10, 16)
    uns.add_providers(*pids)
    for pid in pids:
        uns.spool(pid, 1, 9 * CHUNK)
    uns.start()
    most = 0
    while uns.thread.work_off(1):
        most = max(most, len(uns.absorber._sets._open))
    assert most == 2
    assert all(uns.waiting(pid) == names(1, 9 * CHUNK) for pid in pids)
    assert uns.order()[: 2 * TURN] == [10] * TURN + [11] * TURN


def test_a_step_takes_chunk_after_chunk_while_there_is_time(
    uns: Uns1, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_sets, "STEP", 600)
    uns.spool(1, 1, 20 * CHUNK + 1, full=True)
    uns.start()
    uns.thread.work_off()
    assert [(step.finished, step.entries) for step in uns.steps] == [(True, 2 * (20 * CHUNK + 1))]
    assert uns.waiting(1) == names(1, 20 * CHUNK + 1)


def test_a_step_of_many_chunks_ends_where_the_room_does(uns: Uns1, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_sets, "STEP", 600)
    uns.queue_max = 8 * CHUNK
    uns.spool(1, 1, 100 * CHUNK)
    uns.start()
    uns.pass_time(10)
    assert (len(uns.steps), uns.waiting(1)) == (1, names(1, 4 * CHUNK))


# --- small sets together -----------------------------------------------------------------------------


@pytest.fixture
def many(uns: Uns1, monkeypatch: pytest.MonkeyPatch) -> Uns1:
    """Ten providers, each with two small sets, and time for all of them."""
    monkeypatch.setattr(open_sets, "STEP", 600)
    monkeypatch.setattr(absorbing, "CHUNK", 100)
    monkeypatch.setattr(absorbing, "NEW_CHUNK", 100)
    uns.add_providers(*range(10, 20))
    for pid in range(10, 20):
        uns.spool(pid, 1, 2)
        uns.spool(pid, 2, 1)
    return uns


def test_small_sets_of_many_providers_are_absorbed_in_one_job_and_each_providers_in_order(
    many: Uns1,
) -> None:
    many.start()
    assert many.thread.work_off(1) == 1
    assert many.order() == list(range(10, 20))
    assert all(many.waiting(pid) == names(1, 2) for pid in range(10, 20))
    assert many.thread.work_off() == 1
    assert all(many.waiting(pid) == [*names(1, 2), "2/0"] for pid in range(10, 20))
    assert many.folder.ready() == []


def test_few_small_sets_go_together_when_time_or_room_is_short(
    many: Uns1, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(absorbing, "CHUNK", 6)
    monkeypatch.setattr(absorbing, "NEW_CHUNK", 6)
    many.start()
    many.thread.work_off(1)
    assert many.order() == [10, 11, 12]
    monkeypatch.setattr(open_sets, "STEP", 0)
    many.thread.work_off(1)
    assert many.order() == [10, 11, 12, 13]


def test_small_sets_go_together_only_as_far_as_there_is_room_in_the_queue(many: Uns1) -> None:
    many.queue_max = 4
    many.start()
    many.thread.work_off(1)
    assert many.order() == [10, 11]
    many.pass_time(3 * POLL)
    assert many.order() == [10, 11]


def test_a_large_set_among_small_ones_is_absorbed_by_itself(many: Uns1) -> None:
    many.add_providers(9)
    many.spool(9, 1, 101)
    many.start()
    while many.thread.work_off(1):
        pass
    assert len(many.waiting(9)) == 101
    assert many.folder.ready() == []
    assert sorted({*many.order()}) == list(range(9, 20))


def test_a_set_of_few_but_long_urls_is_absorbed_to_its_last_one(many: Uns1) -> None:
    many.add_providers(9)
    long = many.spool(9, 1, 90, tail="?" + "x" * 700)
    many.start()
    many.thread.work_off()
    assert not long.path.exists()
    assert len(many.waiting(9)) == 90


def test_a_bad_set_among_small_ones_spoils_no_other(many: Uns1) -> None:
    (bad,) = [one for one in many.folder.ready() if (one.pid, one.seq) == (16, 1)]
    text = bad.path.read_bytes()
    bad.path.write_bytes(text.replace(b'["u","http://h16/1/1"', b'["x","http://h16/1/1"'))
    many.start()
    many.thread.work_off()
    assert many.put_away == [(16, 1)]
    assert many.wanted(16) == "cache crash"
    expected = {pid: [*names(1, 2), "2/0"] for pid in range(10, 20)} | {16: []}
    with many.store.begin() as tx:
        tx.drop_logins([(16, 1)])
    assert {pid: many.waiting(pid) for pid in range(10, 20) if pid != 16} | {16: []} == expected


def test_a_set_that_no_transaction_takes_is_found_among_the_others(
    many: Uns1, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = small_sets.absorb_together

    def refuse_one(store: Any, sets: Any, *rest: Any) -> Any:
        if any(one.login == (17, 1) for one in sets):
            raise ValueError("a defect")
        return together(store, sets, *rest)

    monkeypatch.setattr(open_sets, "absorb_together", refuse_one)
    many.start()
    many.thread.work_off()
    assert many.put_away == [(17, 1)]
    assert many.wanted(17) == "cache crash"
    assert [one.name for one in (many.folder.path / "quarantine").iterdir()] == [
        ReadySet(many.folder.path, 17, 1, 1000).path.name
    ]
    assert all(many.waiting(pid) == [*names(1, 2), "2/0"] for pid in range(10, 20) if pid != 17)


@pytest.mark.parametrize("commits", range(4))
def test_a_commit_of_many_that_fails_is_tried_again_and_nothing_is_absorbed_twice(
    many: Uns1, commits: int
) -> None:
    many.start()
    many.store.last_commits = commits
    many.pass_time(3 * POLL)
    assert all(many.waiting(pid) == [*names(1, 2), "2/0"] for pid in range(10, 20))
    with many.store.read() as tx:
        psets = [tx.pset_of(pid, seq) for pid in range(10, 20) for seq in (1, 2)]
    assert sorted(one.psetid for one in psets if one) == list(range(1, 21))


# --- room in the queue -------------------------------------------------------------------------------


def test_a_full_queue_stops_intake_within_a_set_and_it_goes_on_by_itself(uns: Uns1) -> None:
    uns.queue_max = 4 * CHUNK
    uns.spool(1, 1, 5 * CHUNK)
    uns.start()
    uns.pass_time(10)
    assert uns.waiting(1) == names(1, 2 * CHUNK)
    uns.fetch(1)
    uns.pass_time(POLL)
    uns.fetch(1)
    uns.pass_time(POLL)
    assert uns.waiting(1) == names(1, 5 * CHUNK)[4 * CHUNK :]
    assert uns.folder.ready() == []


def test_a_queue_that_may_grow_takes_in_what_waited(uns: Uns1) -> None:
    uns.queue_max = 4 * CHUNK
    uns.spool(1, 1, 5 * CHUNK)
    uns.start()
    uns.pass_time(10)
    assert len(uns.waiting(1)) == 2 * CHUNK
    uns.absorber.apply(QueuePolicy(), Terms(uns.folder.identity, 0, POLL, PATIENCE))
    uns.pass_time(POLL)
    assert len(uns.waiting(1)) == 5 * CHUNK


def test_one_provider_does_not_fill_the_queue_alone(uns: Uns1) -> None:
    uns.queue_max = 8 * CHUNK
    uns.spool(1, 1, 100 * CHUNK)
    uns.start()
    uns.pass_time(10)
    assert len(uns.waiting(1)) == 4 * CHUNK
    uns.arrive(2, 1, CHUNK)
    uns.arrive(3, 1, 100 * CHUNK)
    uns.pass_time(10)
    assert uns.waiting(2) == names(1, CHUNK)
    assert len(uns.waiting(3)) == 2 * CHUNK


def test_while_nobody_may_go_on_one_looks_again_once_per_poll(uns: Uns1) -> None:
    uns.queue_max = CHUNK
    uns.spool(1, 1, CHUNK + 1)
    uns.start()
    uns.thread.work_off()
    for seq in range(2, 20):
        uns.arrive(1, seq, 1)
        uns.thread.work_off()
    assert len(uns.clock.getDelayedCalls()) == 1
    uns.pass_time(10)
    assert len(uns.clock.getDelayedCalls()) == 1


def test_more_providers_than_one_looks_at_together_are_all_looked_at(
    uns: Uns1, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(absorber, "LOOK", 2)
    pids = range(10, 17)
    uns.add_providers(*pids)
    for pid in pids:
        uns.log_in(pid, 1, "elsewhere")
        uns.spool(pid, 2, 1)
    uns.start()
    uns.thread.work_off()
    assert uns.order() == []
    with uns.store.begin() as tx:
        tx.drop_logins([(14, 1)])
    uns.pass_time(POLL)
    assert set(uns.order()) == {14}


@pytest.mark.parametrize(("full", "looks"), [(False, 2), (True, 1)])
def test_a_round_without_progress_looks_at_each_provider_once_and_at_a_full_queue_once(
    uns: Uns1, monkeypatch: pytest.MonkeyPatch, full: bool, looks: int
) -> None:
    monkeypatch.setattr(absorber, "LOOK", 2)
    pids = range(10, 14)
    uns.add_providers(*pids)
    if full:
        uns.queue_max = CHUNK
        uns.spool(1, 1, CHUNK + 1)
        uns.start()
        uns.thread.work_off()
    else:
        uns.start()
    for pid in pids:
        uns.log_in(pid, 1, "elsewhere")
        uns.absorber.add(uns.spool(pid, 2, 1))
    seen: list[int] = []
    look_at = login_rows.look_at
    monkeypatch.setattr(login_rows, "look_at", lambda *given: seen.append(1) or look_at(*given))
    uns.absorber.look()
    uns.thread.work_off()
    assert len(seen) == looks


# --- the order of logins -----------------------------------------------------------------------------


def test_a_set_waits_for_an_earlier_login_at_another_uns_and_others_do_not(uns: Uns1) -> None:
    uns.log_in(1, 4, "elsewhere")
    uns.spool(1, 5, 1)
    uns.spool(2, 9, 1)
    uns.start()
    uns.pass_time(10)
    assert uns.waiting(1) == []
    assert uns.waiting(2) == ["9/0"]
    with uns.store.begin() as tx:
        tx.drop_logins([(1, 4)])
    uns.pass_time(POLL)
    assert uns.waiting(1) == ["5/0"]


def test_a_later_login_elsewhere_is_not_waited_for(uns: Uns1) -> None:
    uns.log_in(1, 6, "elsewhere")
    uns.spool(1, 5, 1)
    uns.start()
    uns.thread.work_off()
    assert uns.waiting(1) == ["5/0"]


def test_a_complete_set_at_a_uns_that_gives_signs_of_life_is_waited_for_as_long_as_it_takes(
    uns: Uns1,
) -> None:
    uns.log_in(1, 4, "elsewhere", COMPLETE)
    uns.spool(1, 5, 1)
    uns.start()
    for sign in range(20):
        with uns.store.begin() as tx:
            tx.put_uns(Uns("elsewhere", "host", sign))
        uns.pass_time(PATIENCE / 2)
    assert uns.waiting(1) == []


def test_a_uns_that_gives_no_sign_of_life_is_waited_for_no_longer_than_that(
    uns: Uns1, caplog: pytest.LogCaptureFixture
) -> None:
    uns.log_in(1, 3, "elsewhere", COMPLETE)
    uns.log_in(1, 4, "elsewhere")
    uns.spool(1, 5, 1)
    uns.start()
    uns.pass_time(PATIENCE - 2)
    assert uns.waiting(1) == []
    assert not caplog.records
    uns.pass_time(4)
    assert uns.waiting(1) == ["5/0"]
    assert [record.getMessage() for record in caplog.records] == [
        "provider 1: no longer waiting for 2 earlier logins, UNS elsewhere sends no heartbeat"
    ]


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_a_set_that_is_still_being_sent_is_waited_for_up_to_the_bound(uns: Uns1, where: str) -> None:
    """Counted from when the later set was complete, whatever signs of life there are."""
    uns.log_in(1, 4, "" if where == "here" else where)
    if where == "here":
        uns.sending.add((1, 4))
    uns.start()
    uns.pass_time(3 * BOUND)
    uns.arrive(1, 5, 1)
    uns.pass_time(BOUND - 1)
    assert uns.waiting(1) == []
    uns.pass_time(1 + POLL)
    assert uns.waiting(1) == ["5/0"]


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_a_login_that_has_begun_no_set_is_not_waited_for(uns: Uns1, where: str) -> None:
    uns.log_in(1, 4, "" if where == "here" else where, OPEN if where == "here" else IDLE)
    uns.spool(1, 5, 1)
    uns.start()
    uns.thread.work_off()
    assert uns.waiting(1) == ["5/0"]


def test_a_login_that_was_overtaken_delays_no_further_set_until_its_own_is_complete(uns: Uns1) -> None:
    uns.log_in(1, 4, "elsewhere")
    uns.spool(1, 5, 1)
    uns.start()
    uns.pass_time(BOUND + POLL)
    assert uns.waiting(1) == ["5/0"]
    uns.arrive(1, 6, 1)
    uns.thread.work_off()
    assert uns.waiting(1) == ["5/0", "6/0"]
    with uns.store.begin() as tx:
        tx.mark_logins({(1, 4): COMPLETE})
    uns.arrive(1, 7, 1)
    uns.pass_time(BOUND + 2 * POLL)
    assert uns.waiting(1) == ["5/0", "6/0"]
    with uns.store.begin() as tx:
        tx.drop_logins([(1, 4)])
    uns.pass_time(POLL)
    assert uns.waiting(1) == ["5/0", "6/0", "7/0"]


def test_others_go_on_while_a_set_waits_and_a_restart_begins_the_wait_anew(uns: Uns1) -> None:
    uns.log_in(1, 4)
    uns.sending.add((1, 4))
    uns.spool(1, 5, 1)
    uns.spool(2, 5, 1)
    uns.start()
    uns.pass_time(BOUND - 2)
    assert (uns.waiting(1), uns.waiting(2)) == ([], ["5/0"])
    uns.absorber.stop()
    uns.thread.work_off()
    uns.start()
    uns.pass_time(BOUND - 2)
    assert uns.waiting(1) == []
    uns.pass_time(2 + POLL)
    assert uns.waiting(1) == ["5/0"]


def test_a_set_that_was_passed_over_is_put_away_and_its_provider_asked_for_everything(uns: Uns1) -> None:
    uns.spool(1, 4, 2 * CHUNK)
    uns.start()
    uns.thread.work_off(1)
    assert uns.waiting(1) == names(4, CHUNK)
    with uns.store.begin() as tx:
        assert tx.pass_over(1, 5, uns.folder.identity) == 1
    uns.thread.work_off()
    assert uns.waiting(1) == names(4, CHUNK)
    assert uns.put_away == [(1, 4)]
    assert uns.wanted(1) == "cache crash"
    assert [path.name for path in (uns.folder.path / "quarantine").iterdir()] == ["000000000004000-1-4.set"]
    with uns.store.read() as tx:
        assert not tx.sent_before([SetName(1, "set-4", "")], 0)


def test_a_set_forgets_its_login_with_its_last_step(uns: Uns1) -> None:
    uns.spool(1, 4, CHUNK)
    uns.start()
    while not uns.steps or not uns.steps[-1].finished:
        with uns.store.read() as tx:
            assert tx.logins([(1, 4)])
        assert (1, 4) in uns.absorber
        uns.thread.work_off(1)
    with uns.store.read() as tx:
        assert not tx.logins([(1, 4)])
    assert (1, 4) not in uns.absorber
    assert uns.put_away == []


# --- trouble -----------------------------------------------------------------------------------------


def test_a_database_that_is_away_is_waited_for(uns: Uns1, caplog: pytest.LogCaptureFixture) -> None:
    uns.spool(1, 1, 3 * CHUNK)
    uns.start()
    uns.thread.work_off(1)
    uns.store.away = True
    uns.pass_time(20)
    assert [record.getMessage() for record in caplog.records] == [
        "cannot absorb a set now, trying again: gone away"
    ]
    uns.store.away = False
    with caplog.at_level("INFO"):
        uns.pass_time(POLL)
    assert uns.waiting(1) == names(1, 3 * CHUNK)
    assert caplog.messages[1:] == ["sets are absorbed again"]
    uns.absorber.add(uns.spool(1, 2, 1))
    uns.store.away = True
    uns.absorber.look()
    uns.pass_time(POLL)
    assert caplog.messages[2:] == ["cannot absorb a set now, trying again: gone away"]


@pytest.mark.parametrize("commits", range(10))
def test_a_commit_that_fails_anywhere_in_a_full_set_leaves_nothing_out(uns: Uns1, commits: int) -> None:
    uns.spool(1, 1, 3 * CHUNK - 1)
    uns.start()
    uns.thread.work_off()
    uns.arrive_full(1, 2, 1)
    uns.store.last_commits = commits
    uns.pass_time(3 * POLL)
    with uns.store.read() as tx:
        operations = {row.curl: row.operation for row in tx.queued_of(1, 0, 100)}
    assert operations == {
        **{f"http://h1/{name}": "nothing" for name in names(1, 3 * CHUNK - 1)},
        "http://h1/2/0": "fetch",
    }


def test_a_set_that_cannot_be_absorbed_is_put_away_and_the_next_one_goes_on(
    uns: Uns1, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = uns.spool(1, 1, CHUNK)
    uns.spool(1, 2, 1)
    text = bad.path.read_bytes()
    bad.path.write_bytes(text.replace(b'["u","http://h1/1/1"', b'["x","http://h1/1/1"'))
    uns.start()
    uns.thread.work_off()
    assert uns.put_away == [(1, 1)]
    assert uns.wanted(1) == "cache crash"
    with uns.store.begin() as tx:
        tx.drop_logins([(1, 1)])
    uns.pass_time(POLL)
    assert uns.waiting(1) == ["2/0"]


def test_a_set_that_is_gone_from_the_folder_is_lost_information(uns: Uns1) -> None:
    waiting = uns.spool(1, 1, 1)
    waiting.path.unlink()
    uns.start()
    uns.absorber.add(waiting)
    uns.absorber.look()
    uns.thread.work_off()
    assert uns.put_away == [(1, 1)]
    assert uns.wanted(1) == "cache crash"


def test_one_file_that_cannot_be_read_now_does_not_stop_the_others(
    uns: Uns1, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = uns.spool(1, 1, 1)
    for pid in (2, 3):
        uns.spool(pid, 1, CHUNK)
    opened = AbsorbableSpool.open

    def fail_on_one(self: AbsorbableSpool, waiting: ReadySet) -> Any:
        if waiting == broken:
            raise OSError(errno.EIO, "Input/output error")
        return opened(self, waiting)

    monkeypatch.setattr(AbsorbableSpool, "open", fail_on_one)
    uns.start()
    uns.pass_time(10)
    assert uns.waiting(2) == uns.waiting(3) == names(1, CHUNK)
    assert uns.folder.ready() == [broken]
    monkeypatch.undo()
    uns.pass_time(POLL)
    assert uns.waiting(1) == ["1/0"]


def test_stopping_ends_after_the_running_step_and_closes_everything(uns: Uns1) -> None:
    uns.spool(1, 1, 20 * CHUNK)
    uns.start()
    uns.thread.work_off(2)
    ended: list[None] = []
    uns.absorber.stop().addCallback(ended.append)
    assert not ended
    uns.thread.work_off()
    assert ended == [None]
    assert uns.waiting(1) == names(1, 3 * CHUNK)
    assert len(uns.absorber._sets._open) == 0
    uns.arrive(2, 1, 1)
    assert uns.thread.work_off() == 0
    assert uns.clock.getDelayedCalls() == []


def test_stopping_while_nobody_may_go_on_leaves_no_timer(uns: Uns1) -> None:
    uns.log_in(1, 4, "elsewhere")
    uns.spool(1, 5, 1)
    uns.start()
    uns.thread.work_off()
    ended: list[None] = []
    uns.absorber.stop().addCallback(ended.append)
    uns.thread.work_off()
    assert ended == [None]
    assert uns.clock.getDelayedCalls() == []
