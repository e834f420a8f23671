"""The delete manager: files that no row needs go when their grace is over, each machine's by itself."""

from types import SimpleNamespace

import pytest
from little_lcc import key, removal, update
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from lcc_scrapy.cache import delete_manager
from lcc_scrapy.cache.delete_manager import DeleteManager
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.db.records import FileToDelete
from lcc_scrapy.domain.cache import Body
from lcc_scrapy.domain.errors import StoreUnavailable

HERE, AWAY = 1, 2


class Machines:
    """Two machines' content folders beside one store; ``manager`` is that of one of them."""

    def __init__(self, lcc, folder):
        self.lcc = lcc
        self.folder = folder

    def manager(self, machineid):
        content = ContentFiles(self.folder, machineid)
        return DeleteManager(self.lcc.store, None, Clock(), content, outcomes_kept=1000)

    def path(self, machineid, fileid):
        return ContentFiles(self.folder, machineid).path_of(fileid)

    def delete_later(self, machineid, *fileids, after=3600):
        content = ContentFiles(self.folder, machineid)
        content.prepare()
        content.keep([(fileid, Body(4, "", "", data=b"gone")) for fileid in fileids])
        with self.lcc.store.begin() as tx:
            tx.delete_later([FileToDelete(machineid, fileid, 4, self.lcc.now + after) for fileid in fileids])

    def waiting(self):
        with self.lcc.store.read() as tx:
            return [len(tx.files_to_delete(machineid, 1 << 60, 100)) for machineid in (HERE, AWAY)]


@pytest.fixture
def machines(lcc, tmp_path):
    made = Machines(lcc, tmp_path)
    yield made
    with lcc.store.begin() as tx:
        for machineid in (HERE, AWAY):
            tx.forget_deleted(machineid, [11, 12, 13])


def test_a_file_stays_for_its_grace_and_then_goes(machines):
    machines.delete_later(HERE, 11)
    manager = machines.manager(HERE)
    assert manager.step(machines.lcc.now + 3599) == 0
    assert machines.path(HERE, 11).exists()
    assert manager.step(machines.lcc.now + 3600) == 1
    assert not machines.path(HERE, 11).exists()
    assert machines.waiting() == [0, 0]


def test_files_of_a_machine_that_is_away_are_kept_in_mind_and_go_when_it_is_back(machines):
    machines.delete_later(HERE, 11)
    machines.delete_later(AWAY, 12, 13)
    later = machines.lcc.now + 90 * 86_400
    assert machines.manager(HERE).step(later) == 1
    assert machines.waiting() == [0, 2]
    assert machines.path(AWAY, 12).exists()
    assert machines.manager(AWAY).step(later) == 2
    assert machines.waiting() == [0, 0]
    assert not machines.path(AWAY, 12).exists()


def test_a_file_that_is_gone_already_is_forgotten(machines):
    machines.delete_later(HERE, 11)
    machines.path(HERE, 11).unlink()
    assert machines.manager(HERE).step(machines.lcc.now + 3600) == 1
    assert machines.waiting() == [0, 0]


def test_a_backlog_goes_in_steps_the_oldest_first(machines, monkeypatch):
    monkeypatch.setattr(delete_manager, "PACE", 2)
    machines.delete_later(HERE, 13, after=30)
    machines.delete_later(HERE, 11, 12, after=10)
    manager = machines.manager(HERE)
    assert manager.step(machines.lcc.now + 60) == 2
    assert machines.path(HERE, 13).exists()
    assert manager.step(machines.lcc.now + 60) == 1
    assert manager.step(machines.lcc.now + 60) == 0


def test_a_replaced_and_a_removed_document_leave_their_files_to_it_and_free_their_quota_at_once(machines):
    lcc = machines.lcc
    lcc.push(update("a"))
    lcc.fetch("a", b"one")
    first = lcc.cached("a").fetched_fileid
    lcc.push(update("a", b"other"))
    lcc.fetch("a", b"other")
    second = lcc.cached("a").fetched_fileid
    lcc.push(removal("a"))
    assert (lcc.provider().fileused, lcc.provider().spaceused) == (0, 0)
    with lcc.store.read() as tx:
        files_to_delete = {file.fileid: file.not_before for file in tx.files_to_delete(HERE, 1 << 60, 10)}
    assert files_to_delete == dict.fromkeys((first, second), lcc.now + 3600)


def test_what_last_went_wrong_with_a_url_is_forgotten_after_its_time(machines):
    lcc = machines.lcc
    lcc.push(update("a"))
    lcc.settle(lcc.failed(lcc.ticket("a"), 404, final=True))
    for later, known in ((1000, True), (1001, False)):
        machines.manager(HERE).step(lcc.now + later)
        with lcc.store.read() as tx:
            assert (tx.outcome(key("a")) is not None) is known


def test_a_turn_without_urls_is_forgotten_when_it_has_nothing_to_wait_for(machines):
    lcc = machines.lcc
    lcc.push(update("a"))
    (granted,) = lcc.grant()
    lcc.settle(lcc.failed(lcc.ticket("a"), 404, final=True))
    lcc.rest(granted, not_before=lcc.now + 10.0)
    for later, known in ((9, True), (10, False)):
        machines.manager(HERE).step(lcc.now + later)
        with lcc.store.read() as tx:
            assert (tx.turn("7") is not None) is known


class Thread:
    """Runs jobs at once; ``jobs`` counts them."""

    def __init__(self):
        self.jobs = 0

    def run(self, job):
        self.jobs += 1
        return succeed(job())


def test_a_backlog_takes_a_tenth_of_the_thread_s_time(monkeypatch):
    steps = iter([(2, 0.5), (2, 0.1), (1, 0.1)])
    monkeypatch.setattr(delete_manager, "PACE", 2)
    monkeypatch.setattr(DeleteManager, "_timed_step", lambda _: next(steps))
    clock, thread = Clock(), Thread()
    DeleteManager(None, thread, clock, None, outcomes_kept=1).start()
    for seconds, jobs in ((4.4, 1), (0.2, 2), (0.8, 2), (0.2, 3), (9.8, 3)):
        clock.advance(seconds)
        assert thread.jobs == jobs


def test_a_step_that_fails_is_told_and_the_next_one_comes_all_the_same(monkeypatch, caplog):
    steps = [fail(StoreUnavailable("gone away")), succeed((0, 0.0)), succeed((0, 0.0))]
    thread = SimpleNamespace(run=lambda _: steps.pop())
    steps.reverse()
    clock = Clock()
    DeleteManager(None, thread, clock, None, outcomes_kept=1).start()
    assert caplog.messages == ["cannot delete files now: gone away"]
    clock.advance(9.9)
    assert len(steps) == 2
    clock.advance(0.1)
    assert len(steps) == 1


def test_no_step_begins_after_a_stop():
    under_way, clock = Deferred(), Clock()
    manager = DeleteManager(None, SimpleNamespace(run=lambda _: under_way), clock, None, outcomes_kept=1)
    manager.start()
    manager.stop()
    under_way.callback((0, 0.0))
    assert clock.getDelayedCalls() == []


def test_a_step_that_is_to_come_does_not_after_a_stop():
    clock = Clock()
    manager = DeleteManager(
        None, SimpleNamespace(run=lambda _: succeed((0, 0.0))), clock, None, outcomes_kept=1
    )
    manager.start()
    assert len(clock.getDelayedCalls()) == 1
    manager.stop()
    manager.stop()
    assert clock.getDelayedCalls() == []


def test_a_step_says_how_many_files_went_and_how_long_that_took(machines):
    machines.delete_later(HERE, 11, after=-machines.lcc.now)
    deleted, took = machines.manager(HERE)._timed_step()
    assert deleted == 1
    assert 0 < took < 600
