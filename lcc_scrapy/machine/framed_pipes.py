"""Messages through pipes to and from child processes: JSON, and bytes as they are.

A message is the length of some JSON, this JSON, and parts: bytes whose lengths it tells.
"""

import fcntl
import io
import json
import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, BinaryIO

_LENGTH = struct.Struct("!Q")
encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode

PIPE_SIZE = 1 << 20
"""Bytes that a pipe holds, if it may: each time that it is full, both ends wait for each other."""

_BUFFER = 1 << 18
_PIECES = 1000
"""Of one writev(2); Linux takes 1,024."""


class Closed(Exception):
    """The other side has ended."""


def buffered(raw: Any) -> BinaryIO:
    """Return what reads from a pipe with few calls; closing it closes the pipe."""
    return io.BufferedReader(raw, _BUFFER)


def enlarge(descriptor: int) -> None:
    """Let a pipe hold more."""
    with suppress(OSError, AttributeError):
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_SIZE)


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


def written(said: Sequence[Any], parts: Sequence[bytes] = ()) -> list[bytes]:
    """Return a message in pieces that are to be written one after the other."""
    head = encode((said, [len(part) for part in parts])).encode("ascii")
    return [_LENGTH.pack(len(head)) + head, *parts]


def read(file: BinaryIO) -> tuple[list[Any], list[bytes]]:
    """Read a message and its parts; raises ``Closed``."""
    (length,) = _LENGTH.unpack(_taken(file, _LENGTH.size))
    said, sizes = json.loads(_taken(file, length))
    return said, [_taken(file, size) for size in sizes]


def _taken(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise Closed
    return data
