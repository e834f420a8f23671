"""What a database that is away, or a rolled-back transaction, may not do to the rest."""

import gc
import socket
import time
import weakref
from queue import SimpleQueue
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from same_thread import ByHand, SameThread
from twisted.internet.defer import Deferred, fail
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from lcc_scrapy.cache.file_ids import BLOCK, FileIds
from lcc_scrapy.db.sql.store import SILENCE, SqlStore, make_engine
from lcc_scrapy.db.thread import StoreThread
from lcc_scrapy.domain.cache import Body
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.queue import Cancelled, Served
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.login.login_service import PATIENCE, LoginRules, LoginService
from lcc_scrapy.queue.group_commit import GroupCommit
from lcc_scrapy.queue.settlement import Settled
from lcc_scrapy.uns.ports import Login
from lcc_scrapy.uns.set_receiver import _log_failure
from lcc_scrapy.uns.url_validator import MASKS, UrlValidator
from lcc_scrapy.wire.messages import InitAccepted, Quota, SetStart, Url
from tests.memory_store import MemoryStore


def test_settling_tries_again_until_the_process_gives_up() -> None:
    clock, tries = Clock(), []

    def commit(outcomes: Any) -> Any:
        tries.append(outcomes)
        raise StoreUnavailable("gone away")

    thread: Any = SameThread()
    group_commit = GroupCommit(thread, clock, commit)
    outcome: Any = object()
    ends: list[Any] = []
    group_commit.settle(outcome, ends.append)
    clock.advance(1)
    clock.advance(1)
    assert len(tries) == 3
    assert not ends
    group_commit.give_up()
    clock.advance(1)
    group_commit.settle(outcome, ends.append)
    assert [type(end.value) for end in ends] == [StoreUnavailable] * 2
    assert group_commit.when_idle().called


def test_file_ids_are_not_given_again_when_their_transaction_is_rolled_back() -> None:
    store = MemoryStore()
    one, other, third = (FileIds(store, 1, f"1/{number}") for number in range(3))
    assert (numbers(one, 3), numbers(one, 1)) == ([1, 2, 3], [4])
    assert numbers(other, 2) == [BLOCK, BLOCK + 1]
    with pytest.raises(RuntimeError), store.begin():
        raise RuntimeError("the rows of ids 1 to 3 are rolled back")
    assert numbers(one, 1) == [5]
    assert numbers(third, 1) == [2 * BLOCK]


def numbers(fileids: FileIds, count: int) -> list[int]:
    nothing: Any = None
    given: list[Any] = fileids.number([Served(nothing, nothing, Body(0, "", "")) for _ in range(count)])
    return [one.fileid for one in given]


def test_a_set_may_not_split_itself_into_ever_more_hour_masks() -> None:
    accepted = InitAccepted(1, "", ("text/*",), Quota())
    judge = UrlValidator(
        Login(1, accepted, (Root.parse("http://h/"),)), SetStart(full=False, urlprefix="http://h/")
    )

    def verdict(number: int) -> Any:
        mask = f"{number + 1:0168b}"
        return judge.judge(Url({"curl": f"{number}", "mimetype": "text/html", "timeofday": mask}))[1]

    assert [verdict(number) for number in range(MASKS)] == [None] * MASKS
    assert verdict(MASKS).code == 706
    assert verdict(0) is None


def test_a_login_is_told_to_try_again_later_when_the_database_says_nothing() -> None:
    clock: Any = Clock()
    thread: Any = SimpleNamespace(run=lambda *_: Deferred())
    nothing: Any = None
    rules = LoginRules("lcc", ("text/*",), 168, nothing)
    login_service = LoginService(MemoryStore(), thread, clock, rules, nothing, uns="", is_full_for=nothing)
    told: list[Any] = []
    login_service.login("7", "secret", "192.0.2.1").addErrback(lambda failure: told.append(failure.value))
    clock.advance(PATIENCE - 1)
    assert told == []
    clock.advance(1)
    assert isinstance(told[0], StoreUnavailable)
    login_service.close()


class Loop:
    """The event loop as the store's thread sees it."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[Any] = SimpleQueue()

    def callFromThread(self, function: Any, *args: Any) -> None:
        self.calls.put((function, args))

    def turn(self) -> None:
        function, args = self.calls.get(timeout=300)
        function(*args)


def test_a_job_of_which_nobody_waits_for_the_result_any_more_is_not_done() -> None:
    loop, hangs, done = Loop(), Event(), list[str]()
    thread = StoreThread(loop)
    first = thread.run(hangs.wait, 10)
    withdrawn = thread.run(done.append, "withdrawn")
    last = thread.run(done.append, "wanted")
    withdrawn.addErrback(lambda failure: done.append(failure.type.__name__))
    withdrawn.cancel()
    hangs.set()
    for _ in range(3):
        loop.turn()
    assert first.result is True
    assert done == ["CancelledError", "wanted"]
    assert last.called
    thread.close()


def test_a_database_that_is_away_leaves_nothing_for_the_garbage_collector() -> None:
    loop, thread, failures = Loop(), None, list[Any]()
    thread = StoreThread(loop)
    left: list[weakref.ref[Any]] = []

    def job() -> None:
        large = Event()
        left.append(weakref.ref(large))
        try:
            raise OSError
        except OSError as error:
            trouble = error  # a circle, as the frames of SQLAlchemy make them
            raise StoreUnavailable(f"{large} {trouble}") from error

    gc.disable()
    try:
        thread.run(job).addErrback(failures.append)
        loop.turn()
        assert failures.pop().getErrorMessage()
        thread.run(int)  # the thread holds what it did last
        loop.turn()
        assert [one() for one in left] == [None]
    finally:
        gc.enable()
        thread.close()


def test_an_abandoned_thread_is_waited_for_no_longer() -> None:
    loop, hangs, told = Loop(), Event(), list[str]()
    thread = StoreThread(loop)
    for job in (hangs.wait, told.append):
        thread.run(job, 10).addErrback(lambda failure: told.append(failure.getErrorMessage()))
    thread.abandon()
    assert told == ["the database hangs, and the process stops"] * 2
    thread.run(told.append, "too late").addErrback(lambda failure: told.append(failure.getErrorMessage()))
    assert told == ["the database hangs, and the process stops"] * 3
    thread.close()
    hangs.set()
    loop.turn()
    loop.turn()
    assert told == ["the database hangs, and the process stops"] * 3


def test_a_database_that_takes_connections_and_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = SqlStore(f"mysql://root@127.0.0.1:{silent.getsockname()[1]}/lcc", silence=1)
        begun = time.monotonic()
        with pytest.raises(StoreUnavailable), store.begin():
            pass
        assert time.monotonic() - begun < 100, "usually it is waited for 600 s"
        store.close()


def test_options_of_the_database_url_win_over_ours() -> None:
    url = "mysql://root@127.0.0.1/lcc?read_timeout=7"
    ours = dict(make_engine(url).url.query)
    assert (ours["read_timeout"], ours["write_timeout"]) == ("7", str(SILENCE))


def test_a_settlement_that_is_tried_again_writes_the_same_files() -> None:
    clock, store, tries = Clock(), MemoryStore(), list[list[int]]()

    def commit(outcomes: Any) -> Any:
        tries.append([outcome.fileid for outcome in outcomes])
        if len(tries) < 3:
            raise StoreUnavailable("gone away")
        return [Settled(outcome, "stored") for outcome in outcomes]

    thread: Any = SameThread()
    nothing: Any = None
    group_commit = GroupCommit(thread, clock, commit, FileIds(store, 1, "1/0").number)
    settled: list[Any] = []
    for _ in range(3):
        group_commit.settle(Served(nothing, nothing, Body(0, "", "")), settled.append)
    clock.advance(1)
    clock.advance(1)
    assert tries == [[1], [1], [1], [2, 3]]
    assert [one.result for one in settled] == ["stored"] * 3


def test_an_error_of_whoever_hears_of_an_outcome_does_not_concern_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    thread: Any = SameThread()
    nothing: Any = None
    heard: list[Any] = []
    group_commit = GroupCommit(thread, Clock(), lambda outcomes: [Settled(one, "stored") for one in outcomes])
    group_commit.settle(nothing, lambda _: 1 / 0)
    group_commit.settle(nothing, heard.append)
    assert len(heard) == 1
    assert "after an outcome was settled" in caplog.text


def test_what_waits_shares_a_commit_up_to_a_number_and_up_to_bytes_in_memory(monkeypatch: Any) -> None:
    monkeypatch.setattr("lcc_scrapy.queue.group_commit.BATCH_BYTES", 100)
    by_hand, commits = ByHand(), list[list[int]]()

    def commit(outcomes: Any) -> Any:
        commits.append([one.body.length if isinstance(one, Served) else 0 for one in outcomes])
        return [Settled(outcome, "stored") for outcome in outcomes]

    thread: Any = by_hand
    nothing: Any = None
    group_commit = GroupCommit(thread, Clock(), commit, most=4)
    for size in (1, 10, 100, 60, 200, 1, 2, 3, 4, 5):
        body = Body(size, "", "", data=bytes(size)) if size != 3 else Body(3, "", "", path="spilled")
        group_commit.settle(Served(nothing, nothing, body))
    group_commit.settle(Cancelled(nothing))
    by_hand.work_off()
    assert commits == [[1, 10, 100], [60, 200], [1, 2, 3, 4], [5, 0]]


def test_of_a_batch_that_cannot_be_settled_only_the_one_at_fault_fails() -> None:
    settled, ends = list[Any](), list[Any]()

    def commit(outcomes: Any) -> Any:
        if "bad" in outcomes:
            raise ValueError(outcomes)
        settled.extend(outcomes)
        return [Settled(outcome, "stored") for outcome in outcomes]

    thread: Any = ByHand()
    group_commit = GroupCommit(thread, Clock(), commit)
    names: list[Any] = ["first", "a", "b", "bad", "c", "d", "e"]
    for name in names:
        group_commit.settle(name, ends.append)
    idle = group_commit.when_idle()
    thread.work_off(2)
    names.append("later")
    group_commit.settle(names[-1], ends.append)
    assert (group_commit.backlog, idle.called) == (5, False)
    thread.work_off()
    assert settled == [name for name in names if name != "bad"], "in the order in which they came"
    assert [getattr(end, "outcome", "failed") for end in ends] == [
        "failed" if name == "bad" else name for name in names
    ]
    assert (group_commit.backlog, idle.called) == (0, True)


def test_nothing_more_is_begun_while_a_commit_s_worth_is_not_durable() -> None:
    thread: Any = ByHand()
    group_commit = GroupCommit(
        thread, Clock(), lambda all_of_them: [Settled(one, "") for one in all_of_them], most=3
    )
    outcome: Any = "x"
    seen = []
    for _ in range(4):
        group_commit.settle(outcome)
        seen.append((group_commit.backlog, group_commit.is_full()))
    assert seen == [(1, False), (2, False), (3, True), (4, True)]
    thread.work_off(1)
    assert (group_commit.backlog, group_commit.is_full()) == (1, False), "three in one commit"
    thread.work_off(1)
    assert (group_commit.backlog, group_commit.is_full()) == (0, False)


class LateLoop:
    """A store's thread whose results reach a busy event loop only when a test says so."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Any, Any]] = []
        self.ended: list[tuple[Any, Any]] = []

    def run(self, job: Any) -> Any:
        done: Deferred[Any] = Deferred()
        self.jobs.append((job, done))
        return done

    def work_off(self) -> None:
        """Run the jobs, as the thread does."""
        while self.jobs:
            job, done = self.jobs.pop(0)
            try:
                self.ended.append((done, job()))
            except Exception as error:
                self.ended.append((done, Failure(error)))

    def hear(self) -> None:
        """Let the event loop hear what came of them."""
        while self.ended:
            done, result = self.ended.pop(0)
            done.callback(result)


def test_the_next_commit_begins_before_a_busy_loop_has_heard_of_the_first() -> None:
    thread: Any = LateLoop()
    commits, told = list[Any](), list[Any]()

    def commit(outcomes: Any) -> Any:
        commits.append(list(outcomes))
        return [Settled(one, "stored") for one in outcomes]

    group_commit = GroupCommit(thread, Clock(), commit)
    names: list[Any] = ["a", "b", "c", "d"]
    group_commit.settle(names[0], told.append)
    group_commit.settle(names[1], told.append)
    assert len(thread.jobs) == 2, "one runs, one follows, and no more are asked for"
    group_commit.settle(names[2], told.append)
    assert len(thread.jobs) == 2
    first, second = thread.jobs
    thread.jobs = [first]
    thread.work_off()
    group_commit.settle(names[3], told.append)
    thread.jobs = [second]
    thread.work_off()
    assert (commits, told, group_commit.backlog) == ([["a", "b", "c"], ["d"]], [], 4)
    thread.hear()
    assert ([one.outcome for one in told], group_commit.backlog) == (names, 0)


@pytest.mark.parametrize("trouble", [StoreUnavailable("gone away"), ValueError("bad")])
def test_nothing_is_committed_behind_a_failure_before_the_loop_has_heard_of_it(trouble: Exception) -> None:
    thread: Any = LateLoop()
    troubles, tries, told = [trouble], list[Any](), list[Any]()

    def commit(outcomes: Any) -> Any:
        tries.append(list(outcomes))
        if troubles:
            raise troubles.pop()
        return [Settled(one, "stored") for one in outcomes]

    clock = Clock()
    group_commit = GroupCommit(thread, clock, commit, most=2)
    names: list[Any] = ["a", "b", "c"]
    for name in names:
        group_commit.settle(name, told.append)
    thread.work_off()
    assert tries == [["a", "b"]], "c would be settled before a and b"
    thread.hear()
    assert bool(thread.jobs) == isinstance(trouble, ValueError), "a store that is away is left alone a second"
    clock.advance(1)
    while thread.jobs:
        thread.work_off()
        thread.hear()
    assert [name for batch in tries[1:] for name in batch] == names
    assert ([one.outcome for one in told], group_commit.backlog) == (names, 0)


def test_a_thread_that_takes_no_commit_is_asked_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    asked, told = list[Any](), list[Any]()

    def run(job: Any) -> Any:
        asked.append(job)
        return fail(StoreUnavailable("the database hangs"))

    thread: Any = SimpleNamespace(run=run)
    clock = Clock()
    group_commit = GroupCommit(thread, clock, lambda _: [])
    names: list[Any] = ["a", "b", "c"]
    for name in names:
        group_commit.settle(name, told.append)
    assert (len(asked), len(caplog.records), group_commit.backlog) == (1, 1, 3)
    clock.advance(1)
    assert (len(asked), len(caplog.records), told) == (2, 2, [])
    group_commit.give_up()
    clock.advance(1)
    assert (len(told), group_commit.backlog) == (3, 0)


@pytest.mark.parametrize("trouble", [StoreUnavailable("gone away"), ValueError("bad")])
def test_who_gave_up_tries_nothing_again_but_tells_of_what_was_settled_all_the_same(
    trouble: Exception,
) -> None:
    troubles, tries = [None, trouble], []

    def commit(outcomes: Any) -> Any:
        tries.append(list(outcomes))
        if error := troubles.pop(0):
            raise error
        return [Settled(outcome, "stored") for outcome in outcomes]

    thread: Any = ByHand()
    clock = Clock()
    group_commit = GroupCommit(thread, clock, commit, most=2)
    names: list[Any] = ["a", "b", "c", "d", "e"]
    ends: list[Any] = []
    for name in names:
        group_commit.settle(name, ends.append)
    idle = group_commit.when_idle()
    group_commit.give_up()
    thread.work_off()
    clock.advance(10)
    thread.work_off()
    assert tries == [["a", "b"], ["c", "d"]]
    assert [getattr(end, "result", None) or end.value for end in ends] == ["stored"] * 2 + [trouble] * 3
    assert (group_commit.backlog, idle.called) == (0, True)


def test_a_logout_that_the_database_misses_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    _log_failure(Failure(StoreUnavailable("gone away")))
    _log_failure(Failure(ValueError("a mistake in the program")))
    assert [(one.getMessage(), bool(one.exc_info)) for one in caplog.records] == [
        ("uns: gone away", False),
        ("uns: a mistake in the program", True),
    ]
