"""When a supervisor starts a process again that has ended: a rule for each cause.

A process that was killed is no worse for it and comes back at once. One that fails by itself may fail
again, so each failure in a row doubles the wait. One that could never begin is not started again.
"""

import os
import signal
from dataclasses import dataclass

KILLED = 0.5
"""Seconds before a killed process is started again."""

FIRST_WAIT, LONGEST_WAIT = 2.0, 60.0
"""Seconds before a process that failed is started again: after its first failure, and at most."""

BEGUN = 10.0
"""Seconds after which a process that gives no sign of having begun counts as one that could."""

STEADY = 60.0
"""Seconds after which earlier failures are forgotten."""

DISK_FAILED = os.EX_IOERR
"""The status of a process whose disk failed: it may begin later, but not soon."""

_CRASHES = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE})
"""Signals by which a process ends for a defect of its own."""


@dataclass(frozen=True, slots=True)
class History:
    """What is known of a process by now: failures in a row, and whether it ever began."""

    failures: int = 0
    has_begun: bool = False


@dataclass(frozen=True, slots=True)
class StartAgain:
    """Start the process again after ``wait`` seconds."""

    wait: float
    history: History


@dataclass(frozen=True, slots=True)
class Finished:
    """The process has done all it had to do."""


@dataclass(frozen=True, slots=True)
class CannotBegin:
    """The process ended with ``status`` before it had begun: starting it again mends nothing."""

    status: int


Decision = StartAgain | Finished | CannotBegin


def after_exit(status: int, lived: float, history: History, *, has_listened: bool | None = None) -> Decision:
    """Decide what follows the end of a process that lived for so many seconds.

    ``status`` is that of ``subprocess``: negative = the signal that ended it. ``has_listened`` is the sign
    of a server that it has begun; None = it gives none. On a loaded machine a start takes long.
    """
    if status == 0:
        return Finished()
    begun = history.has_begun or bool(has_listened) or lived >= (BEGUN if has_listened is None else STEADY)
    if status < 0 and -status not in _CRASHES:
        return StartAgain(KILLED, History(history.failures, has_begun=True))
    if status == DISK_FAILED:
        return StartAgain(LONGEST_WAIT, History(history.failures, begun))
    if status > 0 and not begun:
        return CannotBegin(status)
    failures = 1 if lived >= STEADY else history.failures + 1
    return StartAgain(min(FIRST_WAIT ** min(failures, 10), LONGEST_WAIT), History(failures, has_begun=True))
