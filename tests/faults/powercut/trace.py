"""A record of system calls, as strace writes it.

Strings and paths are written in hexadecimal (``-xx``), so that nothing in them looks like syntax; every
descriptor comes with its path (``-y``), so that neither ``dup`` nor ``fork`` has to be followed.
"""

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.harness import missing

SENDING = ("write", "writev", "sendto", "sendmsg")
_MODELLED = (
    "open", "openat", "creat", "write", "pwrite64", "writev", "pwritev", "ftruncate", "truncate", "fsync",
    "fdatasync", "rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "mkdir", "mkdirat",
    "rmdir", "lseek", "mmap", "fallocate", "syncfs",
)  # fmt: skip
NOT_MODELLED = (
    "openat2", "pwritev2", "sync", "sync_file_range", "copy_file_range", "sendfile",
    "splice", "symlink", "symlinkat",
)  # fmt: skip
"""Recorded all the same: one of them on the data directory is an error, not something overlooked.

Writes by way of io_uring are in no trace; they show when a replay is compared with the real files.
"""

LONGEST = 1 << 26
"""Bytes of one write; a longer one would be recorded in part, which ``read`` notices."""


def strace(record: Path) -> list[str]:
    """Return what goes before a command to record it and all its children."""
    program = shutil.which("strace")
    if program is None:
        missing("strace", "apt-get install strace")
    calls = ",".join(dict.fromkeys((*_MODELLED, *NOT_MODELLED, *SENDING)))
    options = ["-f", "--seccomp-bpf", "-qq", "-y", "-xx", "-s", str(LONGEST), "-e", "signal=none"]
    return [str(program), *options, "-e", f"trace={calls}", "-o", str(record)]


@dataclass(frozen=True, slots=True)
class Call:
    """A call that succeeded. ``began`` and ``ended`` are lines of the record; ``args`` as strace wrote them."""

    name: str
    args: tuple[str, ...]
    result: int
    began: int
    ended: int

    def number(self, index: int) -> int:
        """Return an argument that is a number."""
        return int(self.args[index], 0)

    def is_about(self, path: str) -> bool:
        """Tell whether a path, or one below it, is among the arguments."""
        return any(in_hex(path) in argument for argument in self.args)

    def carries(self, text: bytes) -> bool:
        """Tell whether a text is sent or written."""
        return text in b"".join(self.text(index) for index in range(len(self.args)))

    def text(self, index: int) -> bytes:
        """Return an argument that is a string, or all parts of a vector."""
        return b"".join(_plain(part) for part in re.findall(r'"([^"]*)"', self.args[index]))

    def descriptor(self, index: int) -> tuple[str, str]:
        """Return an argument that is a descriptor: its number, and its path at the time of the call."""
        return _descriptor(self.args[index])

    def opened(self) -> str:
        """Return the number of the descriptor that an ``open`` gave."""
        return str(self.result)

    def path(self, index: int) -> str:
        """Return an argument that is a path; in a call with ``at`` in its name the one before it is a folder."""
        path = self.text(index).decode()
        relative_to = self.descriptor(index - 1)[1] if "at" in self.name.removeprefix("cre") else ""
        return path if path.startswith("/") else f"{relative_to}/{path}"


def _plain(hexadecimal: str) -> bytes:
    return bytes.fromhex(hexadecimal.replace("\\x", ""))


def _descriptor(text: str) -> tuple[str, str]:
    number, _, path = text.partition("<")
    return number, _plain(path.removesuffix("(deleted)").rstrip(">")).decode()


_LINE = re.compile(r"(?P<thread>\d+) +(?P<rest>.*)")
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>")
_CALL = re.compile(r"(?P<name>\w+)\((?P<args>.*)\) += (?P<result>-?\d+|0x[0-9a-f]+|\?)(?P<more>.*)")
_UNFINISHED = " <unfinished ...>"
_ARGUMENTS = re.compile(r", (?![^\[]*\]|[^{]*\})")


def in_hex(text: str) -> str:
    """Return text as it stands in a record."""
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def read(record: Path, about: Sequence[str]) -> Iterator[Call]:
    """Give the calls that succeeded and name, or carry, one of some texts; those of one thread in order.

    A call that other threads' calls interrupted comes where it ended.
    """
    wanted = tuple(map(in_hex, about))
    under_way: dict[str, tuple[int, str]] = {}
    with record.open() as lines:
        for number, line in enumerate(lines):
            found = _LINE.match(line)
            if found is None:
                continue
            thread, rest = found["thread"], found["rest"]
            if rest.endswith(_UNFINISHED):
                under_way[thread] = (number, rest.removesuffix(_UNFINISHED))
                continue
            began = number
            resumed = _RESUMED.match(rest)
            if resumed:
                began, first = under_way.pop(thread)
                rest = first + rest[resumed.end() :]
            if any(text in rest for text in wanted):
                yield from _call(rest, began, number)


def _call(text: str, began: int, ended: int) -> Iterator[Call]:
    found = _CALL.match(text)
    if found is None or found["result"] == "?" or found["result"].startswith("-"):
        return
    assert '"...' not in found["args"], f"line {ended}: recorded in part"
    args = tuple(part.strip() for part in _ARGUMENTS.split(found["args"]))
    yield Call(found["name"], args, int(found["result"], 0), began, ended)
