"""``lcc crawl``: processes that are started, watched and stopped together."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import pytest

from lcc_scrapy.db.sql.store import SqlStore
from tests.harness import BIN, Lcc, free_port, lccs, wait_for

pytestmark = pytest.mark.slow


class Crew:
    """An ``lcc crawl`` in an LCC of its own."""

    def __init__(self, lcc: Lcc) -> None:
        self.lcc = lcc
        self.log = lcc.folder / "crew.log"

    def start(self, *options: str) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [str(BIN / "lcc"), "crawl", *options],
                env=self.lcc.environment, cwd=self.lcc.folder, stdout=log, stderr=log,
            )  # fmt: skip

    def workers(self) -> dict[str, int]:
        workers: list[dict[str, int]] = self.lcc.status()["workers"]  # type: ignore[assignment]
        return {str(worker["worker"]): worker["process"] for worker in workers}

    def wait_for_workers(self, count: int, without: int = 0) -> dict[str, int]:
        found: dict[str, int] = {}

        def are_there() -> bool:
            nonlocal found
            found = self.workers()
            return len(found) == count and without not in found.values()

        wait_for(are_there, 40, f"{count} workers")
        return found

    def stop(self, how: int = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(300)


@pytest.fixture
def crew(tmp_path) -> Iterator[Crew]:
    with lccs(tmp_path) as make:
        made = Crew(make())
        yield made
        with suppress(AttributeError):
            if made.process.poll() is None:
                made.stop()


def test_processes_share_the_queue_and_stop_together(crew: Crew) -> None:
    crew.start("--workers", "2")
    processes = crew.wait_for_workers(2)
    assert crew.lcc.lcc("status").stdout.count("process ") == 2
    wait_for(lambda: crew.lcc.lcccp(9, "--check").returncode == 77, 20, "the UNS")
    assert crew.stop() == 0
    assert all(is_gone(process) for process in processes.values())
    assert crew.workers() == {}


def test_a_process_that_dies_is_started_again(crew: Crew) -> None:
    crew.start("--workers", "2", "--no-uns")
    victim = crew.wait_for_workers(2)["1/1"]
    os.kill(victim, signal.SIGKILL)
    after = crew.wait_for_workers(2, without=victim)
    assert sorted(after) == ["1/0", "1/1"]
    assert "a crawl process ended with status -9, starting it again in 0.5 s" in crew.log.read_text()
    assert crew.stop() == 0


@pytest.mark.slow
def test_a_process_that_stands_still_is_started_again(crew: Crew) -> None:
    crew.lcc.settings["LCC_WATCHDOG"] = "12s"
    crew.start("--workers", "2", "--no-uns")
    victim = crew.wait_for_workers(2)["1/1"]
    os.kill(victim, signal.SIGSTOP)
    wait_for(lambda: is_gone(victim), 60, "the end of the process that stands still")
    crew.wait_for_workers(2, without=victim)
    assert "a crawl process gave no sign of life for 12 s (LCC_WATCHDOG): killed" in crew.log.read_text()
    assert crew.stop() == 0


def test_when_it_is_killed_its_processes_stop_too(crew: Crew) -> None:
    crew.start("--workers", "2", "--no-uns")
    processes = crew.wait_for_workers(2)
    crew.process.kill()
    crew.process.wait(300)
    wait_for(lambda: all(map(is_gone, processes.values())), 30, "the processes to stop")


def test_what_cannot_begin_is_one_line_and_no_endless_try(crew: Crew) -> None:
    taken = free_port()
    import socket

    with socket.create_server(("127.0.0.1", taken)):
        crew.lcc.settings["LCC_UNS_ENDPOINTS"] = f"tcp:{taken}:interface=127.0.0.1"
        crew.start("--workers", "2")
        assert crew.process.wait(300) == 1
    assert crew.log.read_text().splitlines()[-1].startswith("lcc: error: a crawl process could not begin")
    assert crew.workers() == {}


def test_a_database_of_a_newer_version_is_refused_once_and_for_good(crew: Crew) -> None:
    store = SqlStore(crew.lcc.shared_url)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE lcc_version SET version_num = '9999'")
    store.close()
    crew.start("--workers", "2")
    assert crew.process.wait(300) == 2
    assert crew.log.read_text().startswith("lcc: error: the database has schema 9999")


def test_outside_a_project_the_settings_are_the_lccs_own(crew: Crew) -> None:
    done = subprocess.run(
        [str(BIN / "lcc"), "crawl", "--no-uns", "-a", "stop_when_done=1"],
        env={name: value for name, value in crew.lcc.environment.items() if name != "SCRAPY_SETTINGS_MODULE"},
        cwd=crew.lcc.folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_processes_that_have_done_all_end_it(crew: Crew) -> None:
    crew.start("--workers", "2", "-a", "stop_when_done=1")
    assert crew.process.wait(300) == 0


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False
