"""``lcc crawl``: the processes that it looks after."""

import os
import signal
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest

from lcc_scrapy.cli import supervisor
from lcc_scrapy.cli.supervisor import Program, Supervisor


@pytest.fixture(autouse=True)
def _handlers() -> Any:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def program(name: str, *command: str) -> Program:
    return Program(name, list(command) or [name], dict(os.environ))


class Machine:
    """A machine without processes, on which time passes by sleeping; ``ends`` says how each process ends."""

    def __init__(self, monkeypatch: Any) -> None:
        self.now = 100.0
        self.until = 250.0
        self.started: list[tuple[str, float]] = []
        self.ends: dict[str, list[int]] = {}
        self.stop: Any = None
        machine = self

        class Process:
            def __init__(self, command: list[str], **_: Any) -> None:
                machine.started.append((command[0], machine.now))
                ends = machine.ends.get(command[0])
                self.returncode = ends.pop(0) if ends else None

            def poll(self) -> int | None:
                return self.returncode

            def terminate(self) -> None:
                self.returncode = 0

        monkeypatch.setattr(supervisor.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(supervisor.time, "sleep", self.sleep)
        monkeypatch.setattr(supervisor.subprocess, "Popen", Process)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now > self.until:
            self.stop(signal.SIGTERM, None)

    def run(self, made: Supervisor) -> int:
        self.stop = made._stop
        return made.run()

    def starts(self, name: str) -> list[float]:
        return [at for one, at in self.started if one == name]


@pytest.fixture
def machine(monkeypatch: Any) -> Machine:
    return Machine(monkeypatch)


def test_a_process_that_is_being_started_when_the_signal_comes_is_stopped_too(monkeypatch: Any) -> None:
    start = subprocess.Popen

    def start_slowly(*args: Any, **options: Any) -> Any:
        process = start(*args, **options)
        signal.raise_signal(signal.SIGTERM)
        return process

    monkeypatch.setattr(supervisor.subprocess, "Popen", start_slowly)
    assert Supervisor([program("sleeper", sys.executable, "-c", "import time; time.sleep(60)")]).run() == 0


def test_a_process_whose_disk_failed_is_started_again_after_a_minute_and_the_others_go_on(
    machine: Machine, caplog: Any
) -> None:
    machine.ends["fails"] = [os.EX_IOERR] * 9
    assert machine.run(Supervisor([program("fails"), program("works")])) == 0
    waits = [later - earlier for earlier, later in pairwise(machine.starts("fails"))]
    assert [round(wait) for wait in waits] == [60, 60]
    assert machine.starts("works") == [100.0]
    assert "fails ended with status 74, starting it again in 60 s" in caplog.text


def test_a_process_that_is_killed_again_and_again_is_back_within_a_second_each_time(machine: Machine) -> None:
    machine.ends["killed"] = [-signal.SIGKILL] * 50
    machine.run(Supervisor([program("killed")]))
    starts = machine.starts("killed")
    assert len(starts) == 51
    assert all(later - earlier < 1 for earlier, later in pairwise(starts))


def test_what_cannot_begin_ends_all_with_its_status(machine: Machine) -> None:
    machine.ends["broken"] = [2]
    assert machine.run(Supervisor([program("broken"), program("works")])) == 2
    assert len(machine.started) <= 2


def test_crawls_begin_when_the_uns_listens_or_takes_too_long(machine: Machine) -> None:
    machine.run(Supervisor([program("crawl")], program("uns")))
    (begun,) = machine.starts("crawl")
    assert machine.starts("uns") == [100.0]
    assert begun - 100 == pytest.approx(supervisor.LISTENING_PATIENCE, abs=1)


def test_the_uns_ends_when_all_crawls_have_done_their_work(machine: Machine) -> None:
    machine.ends["crawl"] = [0]
    assert machine.run(Supervisor([program("crawl")], program("uns"))) == 0
    assert machine.now < machine.until


FROZEN = """
import os, signal, sys, time
if not os.path.exists(sys.argv[1]):
    open(sys.argv[1], "w").close()
    os.write(int(os.environ["LCC_WATCHDOG_FD"]), b".")
    os.kill(os.getpid(), signal.SIGSTOP)
"""


def test_a_process_that_stands_still_is_killed_and_started_again(tmp_path: Any, caplog: Any) -> None:
    command = (sys.executable, "-c", FROZEN, str(tmp_path / "begun"))
    assert Supervisor([program("a crawl process", *command)], watchdog=0.5).run() == 0
    told = [record.message for record in caplog.records]
    assert told[0] == "a crawl process gave no sign of life for 0.5 s (LCC_WATCHDOG): killed"
    assert "ended with status -9" in told[1]


def test_a_process_that_gave_no_sign_yet_has_time_to_begin(monkeypatch: Any, machine: Machine) -> None:
    del monkeypatch
    machine.run(Supervisor([program("slow")], watchdog=1.0))
    assert machine.starts("slow") == [100.0]
