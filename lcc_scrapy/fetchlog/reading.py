"""Reading the fetch log: the files of all workers of this machine, in the order of time."""

import heapq
import json
import os
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from lcc_scrapy.fetchlog.lines import LINE_MAX, written
from lcc_scrapy.fetchlog.writing import files_of_all, numbered

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which lines are wanted; empty = all. ``since``: epoch seconds, 0 = from the beginning."""

    pids: Collection[int] = ()
    codes: Collection[int] = ()
    since: float = 0.0

    def takes(self, line: Line) -> bool:
        """Tell whether a line is wanted."""
        return (
            (not self.pids or line["pid"] in self.pids)
            and (not self.codes or line["code"] in self.codes)
            and (not self.since or line["time"] >= written(self.since))
        )


def read(path: Path, wanted: Wanted) -> Iterator[Line]:
    """Yield the lines that are there now, oldest first."""
    with ExitStack() as opened:
        kept = [_opened(opened, name, oldest) for name, oldest in files_of_all(path).items()]
        yield from heapq.merge(*(_lines_of(files, wanted) for files in kept), key=_time_of)


class Follower:
    """Reads what is added to the files from now on, whoever adds it: also new workers, and new files.

    ``begun`` is when, as lines have it.
    """

    def __init__(self, path: Path, wanted: Wanted) -> None:
        self.begun = written(time.time())
        self._path = path
        self._wanted = wanted
        self._files: dict[Path, _Tail] = {name: _Tail(name) for name in files_of_all(path)}
        for tail in self._files.values():
            tail.skip()

    def more(self) -> list[Line]:
        """Return what came since the last call, in the order of time."""
        for name in files_of_all(self._path):
            self._files.setdefault(name, _Tail(name))
        found = (line for tail in self._files.values() for line in parsed(tail.more()))
        return sorted(filter(self._wanted.takes, found), key=_time_of)

    def close(self) -> None:
        """Close the files."""
        for tail in self._files.values():
            tail.close()


class _Tail:
    """The end of one file, which may be rotated away while it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""

    def skip(self) -> None:
        """Leave out what is there by now."""
        self._open()
        if self._file is not None:
            self._file.seek(0, os.SEEK_END)

    def more(self) -> list[bytes]:
        lines = self._read()
        while self._is_rotated():
            lines += self._read()
            self.close()
            self._open()
            lines += self._read()
        return lines

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> None:
        try:
            self._file = self._path.open("rb")
        except FileNotFoundError:
            self._file = None

    def _read(self) -> list[bytes]:
        if self._file is None:
            self._open()
        if self._file is None:
            return []
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        return lines

    def _is_rotated(self) -> bool:
        """Tell whether the path leads to another file by now."""
        if self._file is None:
            return False
        try:
            return not os.path.samestat(os.fstat(self._file.fileno()), self._path.stat())
        except FileNotFoundError:
            return False  # it is about to be made anew


def _opened(opened: ExitStack, name: Path, oldest: int) -> list[BinaryIO]:
    """Open all that is left of a worker's file, oldest first.

    The newest is opened first: what is rotated meanwhile is then met twice, and not missed.
    """
    files: dict[tuple[int, int], BinaryIO] = {}
    for number in range(oldest + 2):
        with suppress(FileNotFoundError):
            file = opened.enter_context(numbered(name, number).open("rb"))
            status = os.fstat(file.fileno())
            files.setdefault((status.st_dev, status.st_ino), file)
    return [*reversed(files.values())]


def _lines_of(files: Iterable[BinaryIO], wanted: Wanted) -> Iterator[Line]:
    for file in files:
        if os.fstat(file.fileno()).st_mtime >= wanted.since:
            yield from filter(wanted.takes, parsed(iter(partial(file.readline, LINE_MAX), b"")))


def parsed(lines: Iterable[bytes]) -> Iterator[Line]:
    """Yield what lines say; what a kill or a full disk left of one is passed over."""
    for line in lines:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and {"time", "pid", "code"} <= found.keys():
            yield found


def _time_of(line: Line) -> str:
    return str(line["time"])
