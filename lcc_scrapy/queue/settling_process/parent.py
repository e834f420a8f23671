"""The crawl's side of its settling process: starts it, hands commits over, starts it again when it has died.

The event loop never waits for it: ``SettlingProcess`` belongs to the store's thread, but for ``kill``. A
child that stands still in a commit (stopped, or its disk hangs) keeps locks that others need; it is killed,
and so is one that stands still at its start while a commit waits for it.
"""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

from lcc_scrapy.cache.file_ids import BlocksLost
from lcc_scrapy.domain import errors
from lcc_scrapy.domain.errors import ConfigurationError, LccError, StoreUnavailable
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.queue import Outcome
from lcc_scrapy.machine.framed_pipes import Closed, buffered, enlarge, read, write, written
from lcc_scrapy.queue.settlement import Settled
from lcc_scrapy.queue.settling_process import messages

PROGRAM = f"{__package__}.child"

START_TIMEOUT = 300.0
"""Seconds until a process that does not say that it is ready is given up."""

STOP_TIMEOUT = 5.0
"""Seconds for a process to end that nothing is asked of any more."""

DEATHS = 3
"""Children in a row that may die: at the start before it is given up, later before outcomes are blamed."""

DYING = 1.0
"""Seconds for a process to be gone whose pipes are closed."""

LOOKS = 10
"""Looks at a child until it is killed for standing still."""

_log = logging.getLogger(__name__)


class CommitFailed(Exception):
    """A commit failed for a reason of its own, as it may again; the text says which."""


class SettlingProcess:
    """A ``Committer`` whose commits are made by a child process.

    The child begins to run at once, and to work with ``begin``. One that dies makes the commit under way
    ``StoreUnavailable``: whether it happened shows when it is tried again, for then nothing is left to do.
    So does one that cannot be started. After ``DEATHS`` in a row it is ``CommitFailed``: whoever asked tries
    fewer outcomes at a time, so that one which no child survives holds up no others.
    """

    def __init__(self) -> None:
        self._child: _Child | None = _Child()
        self._beginning: messages.Beginning | None = None
        self._closed = False
        self._deaths = 0
        self._watch = _Watch()

    def begin(self, beginning: messages.Beginning) -> None:
        """Wait until the child is ready; raises ``ConfigurationError`` when ``DEATHS`` could not begin."""
        self._beginning = beginning
        self._watch.start(beginning.pause)
        for left in reversed(range(DEATHS)):  # the first may have been killed by somebody
            try:
                self._make_ready(self._child or self._start())
            except StoreUnavailable as error:
                if not left:
                    raise ConfigurationError(
                        f"{error}: what it said is in the log; LCC_SETTLING_PROCESS = no does without it"
                    ) from None
            else:
                return

    def commit(self, outcomes: Sequence[Outcome], now: int, policy: QueuePolicy) -> list[Settled]:
        """Let the child commit outcomes."""
        fitted = messages.fitted(outcomes)
        child = self._watch.asked = self._child or self._start()
        try:
            self._make_ready(child)
            settled = child.commit(fitted, now, policy)
        except (Closed, OSError):
            raise self._died(child) from None
        finally:
            self._watch.asked = None
        self._deaths = 0
        return settled

    def _died(self, child: "_Child") -> Exception:
        """Start another child; returns what the commit failed with."""
        self._child = None
        told = child.end(DYING)
        _log.warning("%s: another one is started", told)
        with suppress(StoreUnavailable):
            self._start()
        self._deaths += 1
        if self._deaths < DEATHS:
            return StoreUnavailable(told)
        self._deaths = 0
        return CommitFailed(f"{told}, as {DEATHS - 1} before it")

    def _start(self) -> "_Child":
        if self._closed:
            raise StoreUnavailable("the process stops")
        self._child = _Child()
        return self._child

    def _make_ready(self, child: "_Child") -> None:
        if not child.ready and self._beginning is not None:
            try:
                child.begin(self._beginning)
            except (Closed, OSError):
                self._child = None
                raise StoreUnavailable(f"{child.end(DYING)} before it was ready") from None

    def kill(self) -> None:
        """End it at once, from any thread: whoever waits for a commit hears that it failed."""
        self._closed = True
        if self._child is not None:
            self._child.kill()

    def close(self) -> None:
        """Let the child end; one that does not, or has not begun, is killed."""
        self._closed = True
        self._watch.stop()
        if self._child is not None:
            self._child.end(STOP_TIMEOUT if self._child.ready else 0)
            self._child = None


class _Child:
    """One child process, with the pipes to and from it."""

    def __init__(self) -> None:
        self.ready = False
        self._policy: QueuePolicy | None = None
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this program
                [sys.executable, "-P", "-m", PROGRAM, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env={name: value for name, value in os.environ.items() if not name.startswith("LCC_")},
                start_new_session=True,  # Ctrl-C is for the crawl
            )
        except OSError as error:
            raise StoreUnavailable(f"no settling process can be started: {error.strerror}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests = self._process.stdin.fileno()
        self._answers = buffered(self._process.stdout)
        for descriptor in (self._requests, self._answers.fileno()):
            enlarge(descriptor)

    def begin(self, beginning: messages.Beginning) -> None:
        """Tell it what it has to know, and wait until it is ready; raises ``Closed`` or ``OSError``."""
        timer = Timer(START_TIMEOUT, self.kill)
        timer.start()
        try:
            write(self._requests, written(beginning.said()))
            read(self._answers)
        finally:
            timer.cancel()
        self.ready = True

    def commit(self, outcomes: Sequence[Outcome], now: int, policy: QueuePolicy) -> list[Settled]:
        """Let it commit; raises ``Closed`` or ``OSError`` when it has died, else what the commit raised."""
        write(self._requests, messages.commit(outcomes, now, policy if policy != self._policy else None))
        self._policy = policy
        said, parts = read(self._answers)
        _relay(said[-1])
        if said[0] == messages.FAILED:
            raise _error(*said[1:-1])
        return messages.settled_of(said[1], parts, outcomes)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def work(self) -> tuple[str, ...]:
        """Return its processor time and the bytes it has written so far, as proc(5) has them."""
        process = Path(f"/proc/{self._process.pid}")
        with suppress(OSError):
            _, _, fields = (process / "stat").read_text().rpartition(")")
            user, system = fields.split()[11:13]
            return user, system, (process / "io").read_text().splitlines()[1]
        return ()

    def end(self, timeout: float) -> str:
        """Close its pipes and see it end, at the latest after so many seconds; returns how it ended."""
        for file in (self._process.stdin, self._answers):
            if file is not None:
                file.close()
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            status = self._process.wait()
        return f"the settling process {_how(status)}"


class _Watch:
    """Kills the child of which a commit is asked when it has done nothing for too long."""

    def __init__(self) -> None:
        self.asked: _Child | None = None
        self._ended = Event()

    def start(self, patience: float) -> None:
        """Watch from now on, in a thread; ``patience`` in seconds."""
        Thread(target=self._run, args=(patience,), daemon=True, name="lcc-settling-watch").start()

    def stop(self) -> None:
        """Watch no longer."""
        self._ended.set()

    def _run(self, patience: float) -> None:
        before: tuple[_Child | None, tuple[str, ...]] = (None, ())
        since = time.monotonic()
        while not self._ended.wait(min(1.0, patience / LOOKS)):
            child = self.asked
            now, seen = time.monotonic(), (child, child.work() if child is not None else ())
            if child is None or seen != before:
                before, since = seen, now
            elif now - since >= patience:
                _log.warning("the settling process stood still for %d s: it is killed", now - since)
                child.kill()
                since = now


def _how(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


_KINDS: Mapping[str, type[LccError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, LccError)
}


def _error(kind: str, text: str, blocks: Iterable[int], trouble: str) -> Exception:
    """Make the error of a commit of what the child said of it."""
    if blocks:
        return BlocksLost(blocks)
    if kind:
        return _KINDS.get(kind, LccError)(text)
    failed = CommitFailed(text)
    failed.add_note(trouble)
    return failed


def _relay(records: Iterable[Any]) -> None:
    """Log what the child did."""
    for name, level, message, named, trouble in records:
        logger = logging.getLogger(name)
        if logger.isEnabledFor(level):
            record = logger.makeRecord(name, level, "", 0, message, (named,) if named else (), None)
            record.exc_text = trouble
            logger.handle(record)
