"""A content user's own command, which takes batches of changes as JSON lines on its stdin."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Any

from lcc_scrapy.feed.following import Batch

LOOK = 0.2
"""Seconds between looks at whether the time to stop has come."""


class Command:
    """Runs a shell command for each batch.

    Its environment is ``environment`` and ``FEED_SINCE``, ``FEED_CURSOR`` (the positions before and behind
    the batch), ``FEED_CHANGES`` (how many) and ``FEED_TRY`` (1 = the first). When ``stopping`` says so, it
    has ``patience`` seconds left; then it gets SIGTERM.
    """

    def __init__(
        self,
        command: str,
        environment: Mapping[str, str],
        *,
        stopping: Callable[[], bool] = lambda: False,
        patience: float = 30.0,
    ) -> None:
        self._command = command
        self._environment = environment
        self._stopping = stopping
        self._patience = patience

    def run(self, lines: bytes, batch: Batch[Any]) -> int:
        """Hand a batch over; returns the exit status, negative when a signal ended the command."""
        return self.run_between(lines, (batch.since, batch.position), len(batch.changes), batch.tries)

    def run_between(self, lines: bytes, between: tuple[object, object], count: int, tries: int) -> int:
        """Hand ``count`` lines over, which lie between two positions; returns as ``run`` does."""
        facts = {
            "FEED_SINCE": str(between[0]),
            "FEED_CURSOR": str(between[1]),
            "FEED_CHANGES": str(count),
            "FEED_TRY": str(tries + 1),
        }
        with subprocess.Popen(  # noqa: S603 - what the user said
            ["/bin/sh", "-c", self._command],
            stdin=subprocess.PIPE,
            env={**self._environment, **facts},
            start_new_session=True,  # Ctrl-C is for us; it may end in peace
        ) as process:
            return self._wait(process, lines)

    def _wait(self, process: "subprocess.Popen[bytes]", lines: bytes) -> int:
        given: dict[str, Any] = {"input": lines}
        end = float("inf")
        while True:
            try:
                process.communicate(**given, timeout=LOOK)
            except subprocess.TimeoutExpired:
                given = {}
            else:
                return process.returncode
            if self._stopping() and end == float("inf"):
                end = time.monotonic() + self._patience
            if time.monotonic() > end:
                os.killpg(process.pid, signal.SIGTERM)
                end += self._patience
