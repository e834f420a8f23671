"""Processes that are kept running until they end well or are told to stop."""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType

from lcc_scrapy.cli.context import FAILED
from lcc_scrapy.config.reloading import HangUp
from lcc_scrapy.domain.restarts import KILLED, CannotBegin, Decision, Finished, History, after_exit
from lcc_scrapy.listeners.socket_handover import KeptSockets
from lcc_scrapy.machine.watchdog import SignsOfLife, Watched

_log = logging.getLogger(__name__)

LOOK = 0.1
"""Seconds between two looks at the processes."""

LISTENING_PATIENCE = 10.0
"""Seconds for which crawls wait for the UNS to listen when all begin: they end without work otherwise."""

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Program:
    """What to run, and under which name it stands in the log."""

    name: str
    command: list[str]
    environment: Mapping[str, str]


@dataclass(slots=True)
class _Child:
    """One process, now or again at ``again_at`` (monotonic seconds)."""

    program: Program
    sockets: KeptSockets | None = None
    watched: Watched | None = None
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    again_at: float = 0.0
    history: History = field(default_factory=History)
    done: bool = False


class Supervisor:
    """Runs crawl processes, and beside them the UNS whose listening sockets it keeps while that restarts.

    One whose event loop stands still for ``watchdog`` seconds is killed, and starts again; 0 = it is not.
    """

    def __init__(
        self,
        crawls: list[Program],
        uns: Program | None = None,
        watchdog: float = 0.0,
        signs_of_life: SignsOfLife | None = None,
    ) -> None:
        self._watchdog = watchdog
        self._signs_of_life = signs_of_life or SignsOfLife()
        self._crawls = [_Child(program) for program in crawls]
        self._uns = _Child(uns, KeptSockets()) if uns is not None else None
        self._children = [*([self._uns] if self._uns else []), *self._crawls]
        self._hang_up = HangUp()
        self._stopping = False
        self._status = 0

    def run(self) -> int:
        """Run them all to the end; returns the status of one that could not begin, else 0."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGHUP, self._pass_on)
        begun = time.monotonic()
        self._signs_of_life.begin()
        while not all(child.done for child in self._children):
            self._signs_of_life.give(time.monotonic())
            self._keep_sockets()
            for child in self._children:
                if (
                    child is self._uns
                    or self._is_listening()
                    or time.monotonic() - begun > LISTENING_PATIENCE
                ):
                    self._look_after(child)
            if self._uns and not self._stopping and all(child.done for child in self._crawls):
                self._stop(signal.SIGTERM, None)
            time.sleep(LOOK)
        if self._uns is not None and self._uns.sockets is not None:
            self._uns.sockets.close()
        return self._status

    def _is_listening(self) -> bool:
        uns = self._uns
        return uns is None or self._stopping or uns.done or bool(uns.sockets and uns.sockets.any())

    def _keep_sockets(self) -> None:
        """Take the sockets that the UNS has given; keep none that nobody will accept from for long."""
        if self._uns is None or self._uns.sockets is None:
            return
        self._uns.sockets.collect()
        absent = self._uns.process is None and self._uns.again_at - time.monotonic() > KILLED
        if absent or self._uns.done or self._stopping:
            self._uns.sockets.drop()

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True
        for child in self._children:
            if child.process is not None:
                child.process.terminate()

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        if self._hang_up.is_meant():
            self._stop(number, frame)
            return
        for child in self._children:
            if child.process is not None:
                child.process.send_signal(number)

    def _look_after(self, child: _Child) -> None:
        if child.done:
            return
        now = time.monotonic()
        if child.process is None:
            if self._stopping:
                child.done = True
            elif now >= child.again_at:
                self._start(child, now)
        elif child.process.poll() is not None:
            self._ended(child, child.process.returncode, now)
        elif self._watchdog and child.watched and child.watched.silence(now) > self._watchdog:
            what = (child.program.name, self._watchdog)
            _log.error("%s gave no sign of life for %g s (LCC_WATCHDOG): killed", *what)
            child.process.kill()
            child.watched.forgive(now)

    def _start(self, child: _Child, now: float) -> None:
        sockets, child.watched = child.sockets, Watched()
        given = {**child.program.environment, **(sockets.environment() if sockets else {})}
        child.process = subprocess.Popen(  # noqa: S603 - our own command
            child.program.command,
            env=child.watched.environment(given),
            pass_fds=(*(sockets.descriptors() if sockets else ()), child.watched.descriptor),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_prepared(os.getpid()),  # noqa: PLW1509 - this process has one thread
        )
        child.started = now
        if self._stopping:  # the signal came meanwhile, and found no process
            child.process.terminate()

    def _ended(self, child: _Child, status: int, now: float) -> None:
        child.process = None
        if child.watched is not None:
            child.watched.close()
            child.watched = None
        decision = Finished() if self._stopping else _after_exit(child, status, now)
        if isinstance(decision, Finished):
            child.done = True
        elif isinstance(decision, CannotBegin):
            child.done = True
            self._status = self._status or decision.status
            self._stop(signal.SIGTERM, None)
        else:
            child.history, child.again_at = decision.history, now + decision.wait
            what = (child.program.name, status, decision.wait)
            _log.warning("%s ended with status %d, starting it again in %g s", *what)


def _after_exit(child: _Child, status: int, now: float) -> Decision:
    listened = child.sockets.any() if child.sockets is not None else None
    return after_exit(status, now - child.started, child.history, has_listened=listened)


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
