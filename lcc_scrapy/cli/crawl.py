"""``lcc crawl``: several crawl processes on one machine, started, watched and stopped together."""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType

import click

from lcc_scrapy.cli.context import (
    FAILED,
    UNWORKABLE,
    Failure,
    Lcc,
    Unworkable,
    never_to_be_tried_again,
    pass_lcc,
)

_log = logging.getLogger(__name__)

LOOK = 0.2
BEGUN = 10.0
"""Seconds after which a process counts as one that could begin: what ends earlier cannot work here."""
LONGEST_WAIT = 60.0
DISK_FAILED = os.EX_IOERR
"""The status of a process whose disk failed: it may begin later, but not at once."""

_PR_SET_PDEATHSIG = 1


@click.command()
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Crawl processes.")
@click.option("--spider", default="lcc_push", show_default=True, help="The spider that each of them runs.")
@click.option(
    "-a", "arguments", metavar="NAME=VALUE", multiple=True, help="Spider argument; may be repeated."
)
@click.option("--no-uns", is_flag=True, help="Listen nowhere: `lcc uns` runs beside it.")
@pass_lcc
@never_to_be_tried_again()
def crawl(lcc: Lcc, *, workers: int, spider: str, arguments: tuple[str, ...], no_uns: bool) -> None:
    """Run several crawl processes that share the queue, its turns and LCC_BANDWIDTH.

    The first one listens for providers (LCC_UNS_ENDPOINTS); all of them fetch. One that dies is started
    again. SIGTERM or Ctrl-C stops them all, a second one at once; SIGHUP makes them read settings and
    certificates again. Outside a Scrapy project they run with
    the LCC's own settings.

    \b
    lcc crawl --workers 3
    lcc crawl --workers 2 --no-uns        # beside `lcc uns`
    """  # noqa: D301
    from lcc_scrapy import logs

    _ = lcc.home
    logs.begin(lcc.settings, lcc.config.log_format)
    listening = not no_uns and bool(lcc.config.uns_endpoints)
    base = [sys.executable, "-m", "scrapy", "crawl", spider]
    ours = {name: value for name, value in lcc.given.items() if name.startswith("LCC_")}
    for name, value in lcc.given.items() - ours.items():
        base += ["-s", f"{name}={value}"]
    for argument in arguments:
        base += ["-a", argument]
    silent = ["-s", "LCC_UNS_ENDPOINTS="]
    commands = [base if listening and not number else base + silent for number in range(workers)]
    crew = Crew(commands, _environment() | ours)  # a database's address is nothing for the process list
    status = crew.run()
    if status:
        kind = Unworkable if status == UNWORKABLE else Failure
        raise kind(f"a crawl process could not begin: it ended with status {status}")


def _environment() -> dict[str, str]:
    """Return the environment of the processes: outside a Scrapy project, the LCC's own settings hold."""
    from scrapy.utils.project import inside_project

    own = {} if inside_project() else {"SCRAPY_SETTINGS_MODULE": "lcc_scrapy.settings"}
    return {**os.environ, **own}


@dataclass(slots=True)
class _Hand:
    """One process: its command, when it was started, and how long to wait before it is started again."""

    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    again_at: float = 0.0
    wait: float = 1.0
    done: bool = False


class Crew:
    """Processes that are kept running until they end well or are told to stop."""

    def __init__(self, commands: list[list[str]], environment: dict[str, str]) -> None:
        self._environment = environment
        self._hands = [_Hand(command) for command in commands]
        from lcc_scrapy.reloading import HangUp

        self._hang_up = HangUp()
        self._stopping = False
        self._status = 0

    def run(self) -> int:
        """Run them all to the end; returns the status of one that could not begin, else 0."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGHUP, self._pass_on)
        while not all(hand.done for hand in self._hands):
            for hand in self._hands:
                self._look_after(hand)
            time.sleep(LOOK)
        return self._status

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True
        for hand in self._hands:
            if hand.process is not None:
                hand.process.terminate()

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        if self._hang_up.is_meant():
            self._stop(number, frame)
            return
        for hand in self._hands:
            if hand.process is not None:
                hand.process.send_signal(number)

    def _look_after(self, hand: _Hand) -> None:
        if hand.done:
            return
        now = time.monotonic()
        if hand.process is None:
            if self._stopping:
                hand.done = True
            elif now >= hand.again_at:
                self._start(hand, now)
        elif hand.process.poll() is not None:
            self._ended(hand, hand.process.returncode, now)

    def _start(self, hand: _Hand, now: float) -> None:
        hand.process = subprocess.Popen(  # noqa: S603 - our own command
            hand.command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_prepared(os.getpid()),  # noqa: PLW1509 - this process has one thread
        )
        hand.started = now
        if self._stopping:  # the signal came meanwhile, and found no process
            hand.process.terminate()

    def _ended(self, hand: _Hand, status: int, now: float) -> None:
        hand.process = None
        if status == 0 or self._stopping:
            hand.done = True
        elif status == DISK_FAILED:
            self._again_in(hand, LONGEST_WAIT, status, now)
        elif hand.wait == 1.0 and status > 0 and now - hand.started < BEGUN:
            hand.done = True
            self._status = self._status or status
            self._stop(signal.SIGTERM, None)
        else:
            wait = min(2 * hand.wait, LONGEST_WAIT) if now - hand.started < LONGEST_WAIT else 2.0
            self._again_in(hand, wait, status, now)

    @staticmethod
    def _again_in(hand: _Hand, wait: float, status: int, now: float) -> None:
        hand.wait = wait
        hand.again_at = now + wait
        _log.warning("a crawl process ended with status %d, starting it again in %.0f s", status, wait)


def _prepared(parent: int) -> Callable[[], None]:
    """Return what a child calls first: a SIGHUP waits until it can be understood, and our end is its end."""
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

    def prepare() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if libc is None:
            return
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(FAILED)

    return prepare
