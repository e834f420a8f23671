"""The base of the provider commands: exit statuses, messages on stderr, progress on a terminal."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import NoReturn

from lcc_scrapy.domain.printable import printable

SIGPIPE_STATUS = 141
INTERRUPT_STATUS = 130


class Status(IntEnum):
    """Exit statuses; those from 64 are the ones of ``sysexits.h``."""

    DONE = 0
    URL_ERRORS = 1
    REFUSED = 3
    USAGE = 64
    BAD_INPUT = 65
    NO_INPUT = 66
    UNAVAILABLE = 69
    TRY_LATER = 75
    LOGIN_REFUSED = 77


class Stop(Exception):
    """End the command with this status and one line that says why."""

    def __init__(self, status: Status, text: str) -> None:
        super().__init__(text)
        self.status = status


class Parser(argparse.ArgumentParser):
    """An argument parser that exits 64 on wrong usage and takes no abbreviated options."""

    def __init__(self, prog: str, description: str, examples: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=examples,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, in two lines, and exit 64."""
        self.exit(Status.USAGE, f"{self.prog}: {printable(message)}\nTry '{self.prog} --help'.\n")


class Notes:
    """Messages for the user, on stderr. ``quiet`` leaves warnings only; ``verbose`` adds detail."""

    def __init__(self, prog: str, *, quiet: bool = False, verbose: bool = False) -> None:
        self._prog = prog
        self._quiet = quiet
        self._verbose = verbose

    def warn(self, text: str) -> None:
        """Say something that the user should act on."""
        _say(self._prog, text)

    def tell(self, text: str) -> None:
        """Say how it went; not when quiet."""
        if not self._quiet:
            _say(self._prog, text)

    def detail(self, text: str) -> None:
        """Say what only the curious want to know."""
        if self._verbose:
            _say(self._prog, text)

    def progress(self) -> Progress:
        """Return a progress line; it stays silent unless stderr is a terminal."""
        return Progress(self._prog, shown=not self._quiet and sys.stderr.isatty())


class Progress:
    """One line on the terminal that is rewritten a few times a second."""

    INTERVAL = 0.2

    def __init__(self, prog: str, *, shown: bool) -> None:
        self._prog = prog
        self._shown = shown
        self._next = 0.0
        self._dirty = False

    def show(self, text: str) -> None:
        """Rewrite the line when it is due."""
        if self._shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + self.INTERVAL
            self._dirty = True
            print(f"\r\x1b[K{self._prog}: {text}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away."""
        if self._dirty:
            self._dirty = False
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def megabytes(count: int) -> str:
    """Write a number of bytes as MB (1,000,000 bytes)."""
    return f"{count / 1e6:,.1f} MB"


def run(prog: str, body: Callable[[], int]) -> int:
    """Run a command: whatever ends it gives one line and a sensible status, never a traceback."""
    try:
        status = body()
        sys.stdout.flush()
    except Stop as stop:
        _say(prog, str(stop))
        return stop.status
    except BrokenPipeError:
        _abandon_stdout()
        _say(prog, "the next command stopped reading")
        return SIGPIPE_STATUS
    except KeyboardInterrupt:
        _abandon_stdout()
        _say(prog, "interrupted")
        return INTERRUPT_STATUS
    except OSError as error:
        _abandon_stdout()
        _say(prog, str(error))
        return Status.TRY_LATER
    return status


def _say(prog: str, text: str) -> None:
    print(f"{prog}: {printable(text)}", file=sys.stderr, flush=True)


def _abandon_stdout() -> None:
    """Keep the interpreter from flushing once more into a closed pipe at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
