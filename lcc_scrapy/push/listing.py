"""The list of files: from find(1), or by name from standard input."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from lcc_scrapy.push.command import Status, Stop

_BEFORE_FOLDERS = frozenset({"-H", "-L", "-P"})
_PRINTING = frozenset({"-print", "-print0"})
_NOISY = frozenset({"-printf", "-ls", "-ok", "-okdir"})


@dataclass(frozen=True)
class FindCommand:
    """What was given after ``--find``: options, folders and predicates of find(1)."""

    options: tuple[str, ...]
    folders: tuple[str, ...]
    predicates: tuple[str, ...]

    @classmethod
    def parse(cls, words: Sequence[str]) -> FindCommand:
        """Tell the parts apart; raises `Stop` (64)."""
        rest = list(words)
        options = _take(rest, lambda word: word in _BEFORE_FOLDERS)
        folders = _take(rest, lambda word: not word.startswith(("-", "(", "!", ",")))
        if not folders:
            raise Stop(Status.USAGE, "--find needs a folder: --find DIR [predicates of find(1)]")
        if noisy := _NOISY.intersection(rest):
            raise Stop(Status.USAGE, f"--find cannot be used with {min(noisy)}, which prints by itself")
        return cls(tuple(options), tuple(folders), tuple(rest))

    def arguments(self) -> list[str]:
        """Return the command line. The parentheses keep an ``-o`` of the user from losing our ``-print0``."""
        chosen = [word for given in self.predicates for word in _unprinted(given)]
        grouped = ["(", *chosen, ")"] if chosen else []
        return ["find", *self.options, *self.folders, *grouped, "-type", "f", "-print0"]

    def files(self) -> list[bytes]:
        """Run find and return what it found; raises `Stop` when it did not search everything."""
        for folder in self.folders:
            if not os.path.isdir(folder):  # noqa: PTH112 - as find sees it
                raise Stop(Status.NO_INPUT, f"{folder}: no such folder")
        try:
            done = subprocess.run(self.arguments(), stdout=subprocess.PIPE, check=False)  # noqa: S603
        except FileNotFoundError:
            raise Stop(
                Status.BAD_INPUT, "find(1) is not installed; give the file names on standard input"
            ) from None
        if done.returncode:
            raise Stop(
                Status.BAD_INPUT,
                f"find failed (status {done.returncode}); no end mark is written for its files",
            )
        return done.stdout.split(b"\0")[:-1]


def _take(words: list[str], fits: Callable[[str], bool]) -> list[str]:
    taken: list[str] = []
    while words and fits(words[0]):
        taken.append(words.pop(0))
    return taken


def _unprinted(word: str) -> list[str]:
    """``-print`` of the user's own has no effect: what matches is printed once, by us."""
    return ["-type", "f"] if word in _PRINTING else [word]


def named_files(stream: BinaryIO, *, null: bool = False) -> Iterator[bytes]:
    """Yield the file names of a stream, one per line or each ended by a NUL byte; empty ones are skipped."""
    separator = b"\0" if null else b"\n"
    rest = b""
    while block := stream.read(64 * 1024):
        *names, rest = (rest + block).split(separator)
        yield from filter(None, names)
    if rest:
        yield rest


def relative_to(docroot: bytes, path: bytes) -> bytes:
    """Return the path below the docroot; raises `Stop` (65) when it is not inside."""
    relative = os.path.relpath(path, docroot)
    if relative == b".." or relative.startswith(b"../"):
        raise Stop(Status.BAD_INPUT, f"{os.fsdecode(path)}: not inside the docroot {os.fsdecode(docroot)}")
    return relative
