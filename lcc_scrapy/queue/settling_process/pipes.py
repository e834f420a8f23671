"""Pipes that take a whole message at once, where the system lets them."""

import fcntl
import io
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, BinaryIO

SIZE = 1 << 20
"""Bytes that a pipe holds, if it may: each time that it is full, both ends wait for each other."""

_BUFFER = 1 << 18
_PIECES = 1000
"""Of one writev(2); Linux takes 1,024."""


def buffered(raw: Any) -> BinaryIO:
    """Return what reads from a pipe with few calls; closing it closes the pipe."""
    return io.BufferedReader(raw, _BUFFER)


def enlarge(descriptor: int) -> None:
    """Let a pipe hold more."""
    with suppress(OSError, AttributeError):
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, SIZE)


def write(descriptor: int, pieces: Sequence[bytes]) -> None:
    """Write pieces one after the other, with few calls: each gives up the interpreter's lock."""
    for start in range(0, len(pieces), _PIECES):
        some = pieces[start : start + _PIECES]
        done = os.writev(descriptor, some)
        if done < sum(map(len, some)):  # a signal came in between
            _write_rest(descriptor, memoryview(b"".join(some))[done:])


def _write_rest(descriptor: int, rest: memoryview) -> None:
    while rest:
        rest = rest[os.write(descriptor, rest) :]
