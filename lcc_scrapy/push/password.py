"""The provider's password: where it comes from, and how it leaves the process list."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lcc_scrapy.push.command import Notes, Status, Stop

OPTION = "--pwd"
VARIABLE = "LCC_PWD"

_IN_URL = re.compile(rb"://[^\s/?#:@\0]*:([^\s/?#\0]*)@")
_ARG_START = 48 - 3
"""Place of ``arg_start`` in /proc/self/stat, after the command name (proc(5): field 48 of 1, 2, …)."""


def password(given: str | None, file: Path | None, notes: Notes) -> str:
    """Return the password from ``--pwd``, ``--pwd-file`` (its first line) or the environment."""
    if given is not None:
        return given
    if file is not None:
        return _from_file(file, notes)
    if VARIABLE in os.environ:
        return os.environ[VARIABLE]
    raise Stop(Status.USAGE, f"no password: give --pwd-file FILE, or set {VARIABLE}, or give --pwd")


def _from_file(file: Path, notes: Notes) -> str:
    try:
        mode, text = file.stat().st_mode, file.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise Stop(Status.NO_INPUT, f"{file}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    if mode & 0o077:
        notes.warn(f"others may read {file}; better: chmod 600 {file}")
    return text.partition("\n")[0].rstrip("\r")


def hide_from_process_list() -> None:
    """Make a password given as an argument invisible to ``ps``.

    On Linux the argument's bytes are overwritten where the kernel shows them. Elsewhere the command starts
    itself again with the password in its environment, which other users cannot read.
    """
    if without_password(sys.argv) == sys.argv or overwrite_arguments():
        return
    rest = without_password(getattr(sys, "orig_argv", [sys.executable, *sys.argv]))
    environment = {**os.environ, VARIABLE: _given(sys.argv)}
    os.execve(sys.executable, [sys.executable, *rest[1:]], environment)  # noqa: S606 - ourselves


def without_password(words: Sequence[str]) -> list[str]:
    """Return a command line without ``--pwd``."""
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and word != OPTION and not word.startswith(OPTION + "="):
            kept.append(word)
        skip = word == OPTION and not skip
    return kept


def _given(words: Sequence[str]) -> str:
    found = ""
    for word, following in zip(words, [*words[1:], ""]):
        if word == OPTION:
            found = following
        elif word.startswith(OPTION + "="):
            found = word[len(OPTION) + 1 :]
    return found


def hide_passwords_of_urls() -> None:
    """Make passwords in URLs given as arguments invisible to ``ps``, where that can be done (Linux)."""
    overwrite_arguments(url_password_places)


def overwrite_arguments(found: Callable[[bytes], list[tuple[int, int]]] | None = None) -> bool:
    """Blank passwords in our own argument memory; tells whether they are gone.

    ``found`` returns their places in the command line; without it they are those of ``--pwd``.
    """
    try:
        shown = Path("/proc/self/cmdline").read_bytes()
        start = int(Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[_ARG_START])
        places = (found or secret_places)(shown)
        if places:
            import ctypes  # noqa: PLC0415 - takes longer than to see that there is nothing to hide
        for offset, length in places:
            ctypes.memset(start + offset, ord("*"), length)
        shown = Path("/proc/self/cmdline").read_bytes()
        return all(shown[offset : offset + length] == b"*" * length for offset, length in places)
    except (OSError, ValueError, IndexError):
        return False


def url_password_places(cmdline: bytes) -> list[tuple[int, int]]:
    """Return (offset, length) of every password in a URL."""
    return [(found.start(1), len(found[1])) for found in _IN_URL.finditer(cmdline) if found[1]]


def secret_places(cmdline: bytes) -> list[tuple[int, int]]:
    """Return (offset, length) of every password in arguments that each end in a NUL byte."""
    option, places, offset, follows = OPTION.encode(), [], 0, False
    for word in cmdline.split(b"\0"):
        skip = len(option) + 1 if word.startswith(option + b"=") else 0
        if (follows or skip) and len(word) > skip:
            places.append((offset + skip, len(word) - skip))
        follows = word == option and not follows
        offset += len(word) + 1
    return places
