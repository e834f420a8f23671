"""Settling in a child process: the same rows, files and results, whatever becomes of either process."""

import io
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import md5, sha256
from pathlib import Path
from typing import Any

import pytest
import test_settlement
from little_lcc import MACHINE, LittleLcc, assert_books_balance, dump, update

from lcc_scrapy.cache.file_ids import BlocksLost, FileIds
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.domain.cache import Body
from lcc_scrapy.domain.errors import ConfigurationError, DiskFailed, DiskFull, NotDurable, StoreUnavailable
from lcc_scrapy.domain.policy import STRICT
from lcc_scrapy.domain.queue import Cancelled, Delayed, Served
from lcc_scrapy.domain.retries import Backoff
from lcc_scrapy.intake import absorbing
from lcc_scrapy.machine import framed_pipes
from lcc_scrapy.ops.verification import Verification
from lcc_scrapy.queue.committing import Commits, Holder
from lcc_scrapy.queue.settlement import DISCARDED, STORED
from lcc_scrapy.queue.settling_process import messages, parent
from lcc_scrapy.queue.settling_process.messages import Beginning
from lcc_scrapy.queue.settling_process.parent import DEATHS, CommitFailed, SettlingProcess
from tests.harness import wait_for
from tests.memory_store import MemoryStore

NAMES = "abcdefgh"


class ToldLcc(LittleLcc):
    """An LCC whose outcomes, and what became of them, go through messages."""

    def settle(self, *outcomes: Any, owner: str | None = None) -> list[Any]:
        request = io.BytesIO(b"".join(messages.commit(outcomes, self.now, self.policy)))
        (_, now, policy, said), bodies = framed_pipes.read(request)
        assert (now, messages.policy_of(policy)) == (self.now, self.policy)
        assert not request.read()
        results = super().settle(*messages.outcomes_of(said, bodies), owner=owner)
        (_, said, _), rows = framed_pipes.read(io.BytesIO(b"".join(messages.settled(results, []))))
        return messages.settled_of(said, rows, outcomes)


@pytest.fixture
def lcc(monkeypatch: pytest.MonkeyPatch) -> Iterator[LittleLcc]:
    """As in ``conftest``, in memory: what is told is the same for every store."""
    monkeypatch.setattr(absorbing, "CHUNK", 3)
    made = ToldLcc(MemoryStore())
    made.add()
    yield made
    assert_books_balance(made.store, made.files)


for _name, _test in vars(test_settlement).items():  # what holds for settling holds for what is told of it
    if _name.startswith("test_"):
        globals()[_name] = _test


# --- a process ---------------------------------------------------------------------------------------


class House:
    """An LCC on a real store, whose results are settled in one of the two ways."""

    def __init__(self, store: Any, folder: Path) -> None:
        self.lcc = LittleLcc(store)
        self.lcc.owner = "1/0"
        self.lcc.add()
        self.lcc.push(*[update(name) for name in NAMES])
        self.content = ContentFiles(folder, MACHINE)
        self.content.prepare()
        self.fileids = FileIds(store, MACHINE, self.lcc.owner)

    @property
    def holder(self) -> Holder:
        return Holder(self.lcc.owner, MACHINE, self.fileids.token)

    @property
    def beginning(self) -> Beginning:
        url = self.lcc.store.url.render_as_string(hide_password=False)
        return Beginning(url, str(self.content.folder), self.holder)

    def numbered(self, *names: str) -> list[Any]:
        tickets = {ticket.row.curl.rpartition("/")[2]: ticket for ticket in self.lcc.tickets()}
        return self.fileids.number([self.lcc.served(tickets[name], name.encode()) for name in names])

    def settle(self, committer: Any, outcomes: Any) -> list[Any]:
        """Settle as a worker does (``wiring``)."""
        try:
            return committer.commit(outcomes, self.lcc.now, self.lcc.policy)
        except BaseException as error:
            self.fileids.doubt(outcomes, error)
            raise

    def files(self) -> dict[int, bytes]:
        return {fileid: self.content.path_of(fileid).read_bytes() for fileid, _ in self.content.all_files()}

    def verify(self) -> list[Any]:
        now = lambda: self.lcc.now  # noqa: E731
        return list(Verification(self.lcc.store, self.content, self.lcc.policy, now=now).run())


@pytest.fixture
def house(sqlite_stores: Any, tmp_path: Path) -> House:
    return House(sqlite_stores.fresh(), tmp_path / "content")


@pytest.fixture
def begun() -> Iterator[Callable[[House], SettlingProcess]]:
    """Return what makes a settling process that is ready."""
    made = []

    def begin(house: House, pause: float = 30.0) -> SettlingProcess:
        made.append(SettlingProcess())
        made[-1].begin(replace(house.beginning, pause=pause))
        return made[-1]

    yield begin
    for process in made:
        process.close()


@pytest.fixture
def trouble(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Return what lets processes that are started get into trouble, once."""

    def get(name: str) -> None:
        monkeypatch.setattr(parent, "PROGRAM", "troubled_settler")
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
        monkeypatch.setenv("TEST_TROUBLE", name)
        monkeypatch.setenv("TEST_ONCE", str(tmp_path / "once"))

    return get


def pid_of(process: SettlingProcess) -> int:
    assert process._child is not None
    return process._child._process.pid


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def shown(one: Any) -> tuple[Any, ...]:
    return one.result, one.row, one.code, one.removed, one.again


def every_kind(house: House) -> Iterator[list[Any]]:
    """Give outcomes of every kind, in commits that build on each other."""
    lcc = house.lcc
    packed = Body(9, md5(b"aaaaaaaaa").hexdigest(), sha256(b"aaaaaaaaa").hexdigest(), data=b"aaaaaaaaa",
                  encoding="gzip", packed=b"packed")  # fmt: skip
    spilled = house.content.unfinished_path("body")
    spilled.write_bytes(b"large")
    large = Body(5, md5(b"large").hexdigest(), sha256(b"large").hexdigest(), path=str(spilled))
    tickets = {ticket.row.curl.rpartition("/")[2]: ticket for ticket in lcc.tickets()}
    served = {name: lcc.served(ticket, name.encode()) for name, ticket in tickets.items()}
    yield house.fileids.number([
        replace(served["a"], body=packed),
        replace(served["b"], body=large),
        lcc.served(tickets["c"], b""),
        lcc.served(tickets["d"], b"d", served_type="text/html", status_line="HTTP/1.1 200 \udcff\0", etag="x" * 999),
        lcc.failed(tickets["e"], 451, detail="gone \ud800 for \0 good"),
        lcc.failed(tickets["f"], 500),
        Delayed(tickets["g"], 602, "refused", lcc.now, Backoff(lcc.now + 60, 1, lcc.now, broken=(5,))),
        replace(served["h"], ticket=replace(tickets["h"], token=tickets["h"].token + 1)),
    ])  # fmt: skip
    lcc.push(
        *[update(name) for name in "ab"], update("d", b"D"), *[test_settlement.removal(name) for name in "fh"]
    )
    tickets = {ticket.row.curl.rpartition("/")[2]: ticket for ticket in lcc.tickets()}
    lcc.policy = replace(lcc.policy, declared=STRICT, retry_delays=())
    yield house.fileids.number([
        lcc.not_modified(tickets["a"]),
        lcc.failed(tickets["b"], 404, final=True),
        lcc.served(tickets["d"], b"d", served_type="image/png"),
        Cancelled(tickets["h"]),
        *[Cancelled(tickets[name]) for name in "f" if name in tickets],
    ])  # fmt: skip


@pytest.mark.parametrize("kind", ["sqlite", "mariadb", "postgresql"])
def test_every_kind_of_outcome_gives_the_same_rows_files_and_results(
    kind: str, request: pytest.FixtureRequest, empty: Any, begun: Any, tmp_path: Path
) -> None:
    if kind == "sqlite":
        store = request.getfixturevalue("sqlite_stores").fresh()
    else:
        store = request.getfixturevalue("sql_stores")(kind)
    found = []
    for way in ("in this process", "in a child"):
        empty(store)
        house = House(store, tmp_path / way)
        house.fileids.token = 7
        committer = begun(house) if way == "in a child" else Commits(store, house.content, house.holder)
        results = [
            [shown(one) for one in house.settle(committer, outcomes)] for outcomes in every_kind(house)
        ]
        found.append((results, dump(store), house.files()))
    (results, rows, files), (other_results, other_rows, other_files) = found
    assert {result for commit in results for result, *_ in commit} == {
        "stored", "confirmed", "failed", "retrying", "delayed", "discarded", "lost",
    }  # fmt: skip
    assert other_results == results
    assert other_rows == rows
    assert other_files == files
    assert set(files.values()) == {b"packed", b"large", b"", b"d"}


def test_what_the_child_imports_has_no_event_loop_and_no_scrapy() -> None:
    words = "import sys; import lcc_scrapy.queue.settling_process.serving; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert not {"scrapy", "twisted", "lxml", "aiohttp", "alembic", "sqlalchemy.orm"} & set(
        loaded.stdout.split()
    )


def test_large_bodies_and_many_small_ones_go_through_the_pipe(house: House, begun: Any) -> None:
    process, lcc = begun(house), house.lcc
    ticket = lcc.ticket("a")
    many = [Served(ticket, lcc.served(ticket).answer, Body(3, "", "", data=b"abc"), 1) for _ in range(3000)]
    with pytest.raises(BlocksLost):
        process.commit(many, lcc.now, lcc.policy)
    bodies = {name: os.urandom(5_000_000) for name in NAMES}
    served = [lcc.served(ticket, bodies[ticket.row.curl.rpartition("/")[2]]) for ticket in lcc.tickets()]
    assert {one.result for one in house.settle(process, house.fileids.number(served))} == {STORED}
    assert sorted(house.files().values()) == sorted(bodies.values())


def test_lost_blocks_are_told_so_that_other_ids_are_given(house: House, begun: Any) -> None:
    process, outcomes = begun(house), house.numbered("a")
    with house.lcc.store.begin() as tx:
        tx.drop_blocks(MACHINE, [0])
    with pytest.raises(StoreUnavailable, match="took this one for dead"):
        house.settle(process, outcomes)
    again = house.fileids.number(outcomes)
    assert again[0].fileid != outcomes[0].fileid
    assert house.settle(process, again)[0].result == STORED


def test_what_the_child_logs_is_logged_by_the_crawl(house: House, begun: Any, caplog: Any) -> None:
    process = begun(house)
    house.settle(process, house.numbered(*NAMES))
    house.lcc.policy = replace(house.lcc.policy, max_removal=0.0)
    house.lcc.push(*[update(f"x{number}") for number in range(30)])
    tickets = house.lcc.tickets()
    house.settle(process, house.fileids.number([house.lcc.served(one, b"x") for one in tickets]))
    house.lcc.push(*[update(f"x{number}") for number in range(30)])
    house.settle(process, [house.lcc.failed(one, 404, final=True) for one in house.lcc.tickets()])
    held = [record for record in caplog.records if "removal" in record.getMessage()]
    assert held
    assert {record.name for record in held} == {"lcc_scrapy.queue.settlement"}
    assert held[0].args["pid"] == 7


# --- its death ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before", "half a file", "all files", "after"])
def test_a_child_that_dies_loses_nothing_and_leaves_nothing_twice(
    when: str, house: House, begun: Any, trouble: Any, caplog: Any
) -> None:
    trouble(when)
    process = begun(house)
    first, outcomes = pid_of(process), house.numbered("a", "b", "c")
    with pytest.raises(StoreUnavailable, match="settling process was ended by SIGKILL"):
        house.settle(process, outcomes)
    results = house.settle(process, house.fileids.number(outcomes))
    assert pid_of(process) != first
    assert {one.result for one in results} == {DISCARDED if when == "after" else STORED}
    assert house.lcc.documents() == ["a", "b", "c"]
    assert Counter(house.files().values()) == Counter([b"a", b"b", b"c"])
    assert house.verify() == []
    assert [record for record in caplog.records if "another one is started" in record.getMessage()]


def test_outcomes_that_no_child_survives_are_tried_fewer_at_a_time(
    house: House, begun: Any, trouble: Any
) -> None:
    trouble("a body")
    process, outcomes = begun(house), house.numbered("a", "b", "c")
    for _ in range(DEATHS - 1):
        with pytest.raises(StoreUnavailable):
            house.settle(process, outcomes)
    with pytest.raises(CommitFailed, match="SIGKILL, as 2 before it"):
        house.settle(process, outcomes)
    for one in (outcomes[0], outcomes[2]):
        assert house.settle(process, [one])[0].result == STORED
    with pytest.raises(StoreUnavailable):
        house.settle(process, outcomes[1:2])
    assert house.lcc.documents() == ["a", "c"]


def test_a_child_that_is_killed_while_it_has_nothing_to_do_is_replaced(house: House, begun: Any) -> None:
    process = begun(house)
    os.kill(pid_of(process), signal.SIGKILL)
    with pytest.raises(StoreUnavailable):
        house.settle(process, house.numbered("a"))
    assert house.settle(process, house.numbered("a"))[0].result == STORED


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=str)
def test_signals_that_are_for_the_crawl_do_not_end_the_child(
    number: signal.Signals, house: House, begun: Any
) -> None:
    process = begun(house)
    os.kill(pid_of(process), number)
    assert house.settle(process, house.numbered("a"))[0].result == STORED


def test_a_child_that_stands_still_within_a_commit_is_killed_and_nothing_is_lost(
    house: House, begun: Any, caplog: Any
) -> None:
    process, outcomes = begun(house, pause=0.3), house.numbered("a", "b")
    for _ in range(2):
        os.kill(pid_of(process), signal.SIGSTOP)
        with pytest.raises(StoreUnavailable, match="SIGKILL"):
            house.settle(process, outcomes)
        process._make_ready(process._child)  # the one that was started instead
    assert "stood still" in caplog.text
    assert {one.result for one in house.settle(process, outcomes)} == {STORED}
    assert Counter(house.files().values()) == Counter([b"a", b"b"])
    assert house.verify() == []


def test_a_child_that_stands_still_at_its_start_is_killed_when_a_commit_waits_for_it(
    house: House, begun: Any, caplog: Any
) -> None:
    process, outcomes = begun(house, pause=0.3), house.numbered("a")
    os.kill(pid_of(process), signal.SIGKILL)
    with pytest.raises(StoreUnavailable):
        house.settle(process, outcomes)
    os.kill(pid_of(process), signal.SIGSTOP)  # the one that was started instead
    with pytest.raises(StoreUnavailable, match="SIGKILL before it was ready"):
        house.settle(process, outcomes)
    assert "stood still" in caplog.text
    assert house.settle(process, outcomes)[0].result == STORED


def test_a_child_that_is_stopped_while_it_has_nothing_to_do_is_left_alone(house: House, begun: Any) -> None:
    process = begun(house, pause=0.1)
    first = pid_of(process)
    os.kill(first, signal.SIGSTOP)
    process._watch._ended.wait(0.5)
    process._watch.stop()  # a busy machine may keep the commit waiting for longer than that
    os.kill(first, signal.SIGCONT)
    assert house.settle(process, house.numbered("a"))[0].result == STORED
    assert pid_of(process) == first


def test_a_child_that_works_or_writes_is_not_killed(house: House, begun: Any, trouble: Any) -> None:
    trouble("slow disk")
    process = begun(house, pause=0.5)
    first = pid_of(process)
    assert house.settle(process, house.numbered("a"))[0].result == STORED
    assert pid_of(process) == first


def test_a_child_that_is_stopped_is_waited_for(house: House, begun: Any) -> None:
    process, outcomes, found = begun(house), house.numbered("a"), []
    os.kill(pid_of(process), signal.SIGSTOP)
    waiting = threading.Thread(target=lambda: found.append(house.settle(process, outcomes)))
    waiting.start()
    waiting.join(0.2)
    assert not found
    os.kill(pid_of(process), signal.SIGCONT)
    waiting.join()
    assert found[0][0].result == STORED


def test_who_waits_for_a_stopped_child_hears_when_it_is_killed(house: House, begun: Any) -> None:
    process, outcomes, errors = begun(house), house.numbered("a"), []

    def settle() -> None:
        try:
            house.settle(process, outcomes)
        except StoreUnavailable as error:
            errors.append(error)

    os.kill(pid_of(process), signal.SIGSTOP)
    waiting = threading.Thread(target=settle)
    waiting.start()
    process.kill()
    waiting.join()
    assert errors
    with pytest.raises(StoreUnavailable, match="the process stops"):
        house.settle(process, outcomes)


PARENT = """
import sys, time
from lcc_scrapy.queue.committing import Holder
from lcc_scrapy.queue.settling_process.messages import Beginning
from lcc_scrapy.queue.settling_process.parent import SettlingProcess
process = SettlingProcess()
process.begin(Beginning(sys.argv[1], sys.argv[2], Holder("1/0", 1, 7)))
print(process._child._process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("frozen", [False, True], ids=["running", "stopped"])
def test_a_parent_that_dies_takes_the_child_along(frozen: bool, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, f"sqlite:///{tmp_path}/lcc.sqlite", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as crawl:
        assert crawl.stdout is not None
        pid = int(crawl.stdout.readline())
        assert not has_ended(pid)
        if frozen:
            os.kill(pid, signal.SIGSTOP)
        crawl.kill()
        wait_for(lambda: has_ended(pid), what="the child to end")


def test_a_child_ends_when_it_is_closed(house: House) -> None:
    process = SettlingProcess()
    process.begin(house.beginning)
    pid = pid_of(process)
    process.close()
    assert has_ended(pid)


def test_a_child_that_was_never_asked_anything_ends_when_it_is_closed() -> None:
    process = SettlingProcess()
    pid = pid_of(process)
    process.close()
    assert has_ended(pid)


def test_a_child_that_cannot_begin_is_told_in_one_line(
    house: House, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setattr(parent, "PROGRAM", "no_such_program")
    process = SettlingProcess()
    with pytest.raises(ConfigurationError) as error:
        process.begin(house.beginning)
    assert str(error.value) == (
        "the settling process ended with status 1 before it was ready: what it said is in the log;"
        " LCC_SETTLING_PROCESS = no does without it"
    )
    assert "no_such_program" in capfd.readouterr().err


def test_a_child_that_is_killed_before_it_is_ready_is_replaced(house: House) -> None:
    process = SettlingProcess()
    os.kill(pid_of(process), signal.SIGKILL)
    process.begin(house.beginning)
    assert house.settle(process, house.numbered("a"))[0].result == STORED
    process.close()


def test_a_child_that_cannot_be_started_again_is_tried_again(
    house: House, begun: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, outcomes = begun(house), house.numbered("a")
    os.kill(pid_of(process), signal.SIGKILL)
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(StoreUnavailable, match="SIGKILL"):
        house.settle(process, outcomes)
    with pytest.raises(StoreUnavailable, match="can be started: No such file"):
        house.settle(process, outcomes)
    monkeypatch.undo()
    assert house.settle(process, outcomes)[0].result == STORED


# --- its troubles ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("no room", DiskFull, "No space left on device"),
        ("broken disk", DiskFailed, "Input/output error"),
        ("defect", CommitFailed, "ZeroDivisionError: a defect"),
    ],
)
def test_trouble_of_the_child_is_that_of_the_crawl_and_changes_nothing(
    name: str, kind: type[Exception], words: str, house: House, *, begun: Any, trouble: Any
) -> None:
    trouble(name)
    process, before, outcomes = begun(house), dump(house.lcc.store), house.numbered("a", "b")
    with pytest.raises(kind, match=words):
        house.settle(process, outcomes)
    after = dump(house.lcc.store)
    assert (after["qdb"], after["lccurl"], house.files()) == (before["qdb"], before["lccurl"], {})
    if name == "no room":
        assert {one.result for one in house.settle(process, outcomes)} == {STORED}


def test_a_content_folder_that_cannot_be_written_to_is_tried_again(house: House, begun: Any) -> None:
    process, outcomes = begun(house), house.numbered("a")
    home = house.content.folder / str(MACHINE)
    home.rename(home.with_name("away"))
    home.write_text("in the way")
    with pytest.raises(NotDurable):
        house.settle(process, outcomes)
    home.unlink()
    assert house.settle(process, outcomes)[0].result == STORED


@pytest.mark.parametrize(
    "url",
    [
        "mysql://nobody@127.0.0.1:1/none",
        "postgresql://nobody@127.0.0.1:1/none",
        "sqlite:////no/such/folder/x",
    ],
)
def test_a_database_that_is_away_is_told_as_it_is_elsewhere(url: str, house: House) -> None:
    process = SettlingProcess()
    process.begin(replace(house.beginning, url=url))
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            process.commit(house.numbered("a"), house.lcc.now, house.lcc.policy)
    process.close()
