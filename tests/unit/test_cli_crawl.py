"""``lcc crawl``: the processes that it looks after."""

import os
import signal
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest

from lcc_scrapy.cli import crawl
from lcc_scrapy.cli.crawl import Crew


@pytest.fixture(autouse=True)
def _handlers() -> Any:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.timeout(20)
def test_a_process_that_is_being_started_when_the_signal_comes_is_stopped_too(monkeypatch: Any) -> None:
    start = subprocess.Popen

    def start_slowly(*args: Any, **options: Any) -> Any:
        process = start(*args, **options)
        signal.raise_signal(signal.SIGTERM)
        return process

    monkeypatch.setattr(crawl.subprocess, "Popen", start_slowly)
    assert Crew([[sys.executable, "-c", "import time; time.sleep(60)"]], dict(os.environ)).run() == 0


def test_a_process_whose_disk_failed_is_started_again_after_a_minute_and_the_others_go_on(
    monkeypatch: Any, caplog: Any
) -> None:
    crew = Crew([["fails"], ["works"]], {})
    now = [100.0]
    monkeypatch.setattr(crawl.time, "monotonic", lambda: now[0])
    started: list[tuple[str, float]] = []

    class Process:
        def __init__(self, command: list[str], **_: Any) -> None:
            started.append((command[0], now[0]))
            self.returncode = os.EX_IOERR if command[0] == "fails" else None

        def poll(self) -> int | None:
            return self.returncode

        def terminate(self) -> None:
            self.returncode = 0

    def sleep(_: float) -> None:
        now[0] += 5
        if now[0] > 250:
            crew._stop(signal.SIGTERM, None)

    monkeypatch.setattr(crawl.subprocess, "Popen", Process)
    monkeypatch.setattr(crawl.time, "sleep", sleep)
    assert crew.run() == 0
    times = [at for name, at in started if name == "fails"]
    assert [later - earlier for earlier, later in pairwise(times)] == [65, 65]
    assert [at for name, at in started if name == "works"] == [100.0]
    assert "ended with status 74, starting it again in 60 s" in caplog.text
