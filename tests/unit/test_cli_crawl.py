"""``lcc crawl``: the processes that it looks after."""

import os
import signal
import subprocess
import sys
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
