"""What kills leave: files without rows go at the next start, and no file of a process that lives."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from little_lcc import MACHINE, Crash, LittleLcc, removal, update
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from lcc_scrapy.cache import file_ids, leftovers
from lcc_scrapy.cache.file_ids import BLOCK, FileIds, lock_blocks
from lcc_scrapy.cache.leftovers import Leftovers
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.db.records import FileBlock
from lcc_scrapy.domain.cache import Body
from lcc_scrapy.domain.errors import NotDurable, StoreUnavailable
from lcc_scrapy.domain.versions import Keep
from lcc_scrapy.ops.verification import Verification
from lcc_scrapy.queue.settlement import Settlement

NAMES = "abcdef"


class Thread:
    """Runs jobs at once, and counts them."""

    def __init__(self):
        self.jobs = 0

    def run(self, job, *args):
        self.jobs += 1
        try:
            return succeed(job(*args))
        except Exception:
            return fail()


class Process:
    """A worker: it settles as one does (``wiring``), and may die at any point of that."""

    def __init__(self, lcc, content, number=0):
        self.lcc = lcc
        self.content = content
        self.owner = f"{MACHINE}/{number}"
        self.fileids = FileIds(lcc.store, MACHINE, self.owner)

    def numbered(self, *names):
        return self.fileids.number([self.lcc.served(self.lcc.ticket(name), name.encode()) for name in names])

    def settle(self, outcomes, *, dies=False):
        try:
            with self.lcc.store.begin() as tx:
                lock_blocks(tx, MACHINE, self.fileids.token, outcomes)
                Settlement(
                    tx, outcomes, owner=self.lcc.owner, machineid=MACHINE, now=self.lcc.now,
                    policy=self.lcc.policy, keep=self.keep,
                ).run()  # fmt: skip
                if dies:
                    raise Crash
        except BaseException as error:
            self.fileids.doubt(outcomes, error)
            raise

    def keep(self, kept):
        self.content.keep([(one.fileid, one.body) for one in kept])
        self.lcc.files.update({one.fileid: one.body.data for one in kept})

    def store_pages(self, *names):
        self.settle(self.numbered(*names))

    def dies_before_commit(self, *names):
        """Leave files without rows, the last one half written."""
        outcomes = self.numbered(*names)
        before = dict(self.lcc.files)
        with pytest.raises(Crash):
            self.settle(outcomes, dies=True)
        self.lcc.files.clear()
        self.lcc.files.update(before)
        last = self.content.path_of(outcomes[-1].fileid)
        last.write_bytes(last.read_bytes()[:0])
        return [one.fileid for one in outcomes]

    def leftovers(self, dead=(), thread=None, clock=None):
        return Leftovers(
            self.lcc.store, thread or Thread(), clock or Clock(), content=self.content, mine=self.fileids,
            dead_owners=lambda: {f"{MACHINE}/{number}" for number in dead},
        )  # fmt: skip

    def start(self, dead=()):
        cleaning = self.leftovers(dead)
        cleaning.start()
        assert cleaning.over


class Machine:
    """One machine on a store: its processes, one after the other or at once."""

    def __init__(self, store, folder):
        self.lcc = LittleLcc(store)
        self.content = ContentFiles(folder, MACHINE)
        self.content.prepare()

    def process(self, number=0):
        return Process(self.lcc, self.content, number)

    def files(self):
        return [fileid for fileid, _ in self.content.all_files()]

    def blocks(self):
        with self.lcc.store.read() as tx:
            return [(block.block, block.owner) for block in tx.blocks_of(MACHINE)]

    def verify(self):
        return list(
            Verification(self.lcc.store, self.content, self.lcc.policy, now=lambda: self.lcc.now).run()
        )


@pytest.fixture
def machine(store, tmp_path):
    made = Machine(store, tmp_path / "content")
    made.lcc.add()
    made.lcc.push(*[update(name) for name in NAMES])
    return made


def test_blocks_of_file_ids_are_kept_by_machine_and_number(store):
    blocks = [FileBlock(machine, number, 10 * number, "1/0", 7) for machine in (1, 2) for number in (3, 1)]
    with store.begin() as tx:
        for block in blocks:
            tx.put_block(block)
    with store.begin() as tx:
        assert [one.block for one in tx.blocks_of(1)] == [1, 3]
        assert tx.lock_blocks(2, [3, 9]) == {3: FileBlock(2, 3, 30, "1/0", 7)}
        tx.put_block(replace(blocks[0], owner="1/1", token=1 << 62))
        tx.drop_blocks(2, [3, 9])
    with store.read() as tx:
        assert (tx.blocks_of(2), tx.blocks_of(1)[1].owner) == ([blocks[3]], "1/1")
        assert tx.blocks_of(1)[1].token == 1 << 62


def test_a_start_after_a_kill_removes_files_without_rows_and_no_others(machine):
    killed = machine.process()
    killed.store_pages("a", "b")
    left = killed.dies_before_commit("c", "d")
    assert machine.files() == [1, 2, *left]
    assert [one.fileid for one in machine.verify()] == left
    machine.process().start()
    assert machine.files() == [1, 2]
    assert (machine.verify(), machine.blocks()) == ([], [])


def test_a_start_removes_what_other_dead_workers_left_and_nothing_of_the_living(machine):
    dead, lives = machine.process(1), machine.process(2)
    dead.dies_before_commit("a", "b")
    about_to_be_stored = lives.dies_before_commit("c")
    machine.process(0).start(dead=[1])
    assert machine.files() == about_to_be_stored
    assert machine.blocks() == [(1, lives.owner)]
    lives.store_pages("c")
    machine.process(0).start(dead=[1])
    assert len(machine.verify()) == 1


def test_a_paused_process_that_was_taken_for_dead_stores_under_other_ids(machine):
    paused = machine.process(1)
    paused.store_pages("a")
    outcomes = paused.numbered("b", "c")
    machine.process(0).start(dead=[1])
    with pytest.raises(StoreUnavailable):
        paused.settle(outcomes)
    again = paused.fileids.number(outcomes)
    assert [one.fileid for one in again] == [BLOCK, BLOCK + 1]
    paused.settle(again)
    assert machine.files() == [1, BLOCK, BLOCK + 1]
    assert machine.verify() == []


def test_a_paused_process_stores_nothing_under_its_ids_while_they_are_looked_at(machine):
    paused = machine.process(1)
    outcomes = paused.numbered("a")
    cleaning = machine.process(0).leftovers([1]).steps()
    next(cleaning)
    next(cleaning)
    with pytest.raises(StoreUnavailable):
        paused.settle(outcomes)
    assert machine.files() == []
    assert [one.fileid for one in paused.fileids.number(outcomes)] == [BLOCK]


def test_a_start_leaves_alone_what_its_own_process_is_about_to_store(machine):
    worker = machine.process()
    about_to_be_stored = worker.dies_before_commit("a")
    worker.start()
    assert machine.files() == about_to_be_stored
    worker.store_pages("a")


def test_a_block_that_is_locked_by_a_commit_is_looked_at_when_that_has_ended(machine, monkeypatch):
    """What a process commits between the look at its block and the taking over of it stays."""
    slow = machine.process(1)
    outcomes = slow.numbered("a", "b")
    take_over = Leftovers._take_over

    def later(self, block):
        slow.settle(outcomes)
        return take_over(self, block)

    monkeypatch.setattr(Leftovers, "_take_over", later)
    machine.process(0).start(dead=[1])
    assert machine.files() == [1, 2]
    assert machine.verify() == []


def test_a_block_that_changed_hands_meanwhile_is_left_to_the_other_one(machine):
    machine.process(1).dies_before_commit("a")
    first, second = machine.process(0).leftovers([1]), machine.process(2).leftovers([1])
    steps = first.steps()
    next(steps)
    second.start()
    assert (second.over, machine.files()) == (True, [])
    assert list(steps) == []


def test_a_block_that_is_taken_over_in_the_middle_is_forgotten_by_the_other_one_only(machine):
    machine.process(1).dies_before_commit("a")
    first = machine.process(0).leftovers([1]).steps()
    for _ in range(3):
        next(first)
    second = machine.process(2).leftovers([0]).steps()
    next(second)
    next(second)
    list(first)
    assert machine.blocks() == [(0, f"{MACHINE}/2")]
    list(second)
    assert (machine.files(), machine.blocks()) == ([], [])


def test_a_start_that_is_killed_itself_leaves_the_rest_to_the_next_one(machine, monkeypatch):
    monkeypatch.setattr(leftovers, "PACE", 2)
    machine.process(1).dies_before_commit(*NAMES)
    for _ in range(2):
        steps = machine.process(0).leftovers([1]).steps()
        for _ in range(3):
            next(steps)
        steps.close()
    assert len(machine.files()) == 2
    assert machine.blocks() == [(0, f"{MACHINE}/0")]
    machine.process(0).start()
    assert (machine.files(), machine.blocks()) == ([], [])


def test_each_step_looks_at_a_bounded_number_of_files(machine, monkeypatch):
    monkeypatch.setattr(leftovers, "PACE", 2)
    machine.process(1).dies_before_commit(*NAMES)
    left = []
    for _ in machine.process(0).leftovers([1]).steps():
        left.append(len(machine.files()))
    assert left[-1] == 0
    assert max(before - after for before, after in zip([6, *left], left, strict=False)) == 2


def test_files_of_versions_and_of_the_delete_manager_are_no_leftovers(machine):
    killed = machine.process()
    machine.lcc.policy = replace(machine.lcc.policy, versions=Keep(count=1))
    killed.store_pages("a", "b")
    machine.lcc.push(update("a", b"other"), removal("b"))
    killed.settle(killed.fileids.number([machine.lcc.served(machine.lcc.ticket("a"), b"other")]))
    machine.process().start()
    assert machine.files() == [1, 2, 3]
    assert machine.verify() == []


def test_files_of_an_older_block_in_the_same_folder_are_left_alone(machine):
    machine.content.keep([(1, Body(3, "", "", data=b"old"))])
    with machine.lcc.store.begin() as tx:
        tx.take("fileid", 1)
    machine.process().dies_before_commit("a")
    machine.process().start()
    assert machine.files() == [1]


def test_a_used_up_block_is_forgotten_and_one_with_a_failed_commit_is_not(machine, monkeypatch):
    monkeypatch.setattr(file_ids, "BLOCK", 2)
    worker = machine.process()
    worker.store_pages("a")
    worker.store_pages("b", "c")
    worker.store_pages("d")
    assert machine.blocks() == [(2, worker.owner)]
    assert worker.fileids._clean_blocks() == {2}, "memory of it is bounded"
    with pytest.raises(Crash):
        worker.settle(worker.numbered("e"), dies=True)
    worker.store_pages("f")
    worker.fileids.release()
    assert machine.blocks() == [(2, worker.owner)]


def test_a_block_is_not_forgotten_while_what_is_about_to_be_stored_has_ids_of_it(machine, monkeypatch):
    monkeypatch.setattr(file_ids, "BLOCK", 2)
    worker = machine.process()
    outcomes = worker.numbered("a", "b", "c", "d")
    assert [block for block, _ in machine.blocks()] == [0, 1, 2]
    worker.settle(outcomes)
    worker.store_pages("e", "f")
    assert [block for block, _ in machine.blocks()] == [2, 3]


def test_outcomes_without_a_body_have_no_block(machine):
    worker, ticket = machine.process(), machine.lcc.ticket("a")
    outcomes = worker.fileids.number([machine.lcc.failed(ticket, 500)])
    with pytest.raises(Crash):
        worker.settle(outcomes, dies=True)
    worker.settle(outcomes)
    assert machine.blocks() == []


def test_an_orderly_end_leaves_no_block(machine):
    worker = machine.process()
    worker.store_pages("a")
    worker.fileids.release()
    assert machine.blocks() == []
    worker.store_pages("b")
    assert machine.verify() == []


def test_a_block_that_another_one_has_taken_is_not_forgotten_in_its_place(machine):
    worker = machine.process(1)
    worker.store_pages("a")
    cleaning = machine.process(0).leftovers([1]).steps()
    next(cleaning)
    next(cleaning)
    worker.fileids.release()
    assert machine.blocks() == [(0, f"{MACHINE}/0")]


def test_a_file_that_cannot_be_removed_is_left_to_the_next_start(machine, monkeypatch):
    machine.process().dies_before_commit("a")
    with monkeypatch.context() as refusing:
        refusing.setattr(ContentFiles, "remove", lambda _, lone: [])
        machine.process().start()
    assert machine.files() == [1]
    machine.process().start()
    assert (machine.files(), machine.blocks()) == ([], [])


def test_names_that_were_removed_are_made_durable_before_the_block_is_forgotten(machine, monkeypatch):
    machine.process().dies_before_commit("a")
    seen = []
    monkeypatch.setattr(
        ContentFiles, "sync_removals", lambda _, fileid: seen.append((fileid, machine.blocks()))
    )
    machine.process().start()
    assert seen == [(1, [(0, f"{MACHINE}/0")])]


def test_a_database_that_is_away_is_asked_again(machine, monkeypatch):
    machine.process().dies_before_commit("a")
    clock = Clock()
    cleaning = machine.process().leftovers(clock=clock)
    with monkeypatch.context() as away:
        away.setattr(
            leftovers, "without_row", lambda *_: (_ for _ in ()).throw(StoreUnavailable("gone away"))
        )
        cleaning.start()
        clock.advance(leftovers.RETRY)
    assert not cleaning.over
    clock.advance(leftovers.RETRY)
    assert cleaning.over
    assert machine.files() == []


def test_another_trouble_is_left_to_the_next_start(machine, monkeypatch):
    machine.process().dies_before_commit("a")
    with monkeypatch.context() as broken:
        broken.setattr(
            leftovers, "without_row", lambda *_: (_ for _ in ()).throw(NotDurable("no descriptors"))
        )
        machine.process().start()
    machine.process().start()
    assert machine.files() == []


def test_the_log_says_how_many_files_a_kill_left(machine, caplog):
    caplog.set_level("INFO")
    machine.process().store_pages("a")
    machine.process().start()
    assert caplog.messages == []
    machine.process().dies_before_commit("b", "c")
    machine.process().start()
    assert caplog.messages == ["removed 2 content files without rows, left by a process that was killed"]


@pytest.mark.parametrize("step", [None, Failure(StoreUnavailable("gone away"))])
def test_no_step_begins_after_a_stop(machine, step):
    clock, begun = Clock(), []

    def run(*_):
        begun.append(Deferred())
        return begun[-1]

    cleaning = machine.process().leftovers(thread=SimpleNamespace(run=run), clock=clock)
    cleaning.start()
    cleaning.stop()
    begun[0].callback(step or True)
    assert (len(begun), clock.getDelayedCalls(), cleaning.over) == (1, [], False)


def test_a_database_is_not_asked_again_after_a_stop(machine):
    clock = Clock()
    away = SimpleNamespace(run=lambda *_: fail(StoreUnavailable("gone away")))
    cleaning = machine.process().leftovers(thread=away, clock=clock)
    cleaning.start()
    assert len(clock.getDelayedCalls()) == 1
    cleaning.stop()
    cleaning.stop()
    assert clock.getDelayedCalls() == []
