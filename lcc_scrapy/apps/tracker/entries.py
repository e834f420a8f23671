"""Entries of listings, one form for all adapters: FTP, rsync, HTTP, checksum files.

An adapter is any iterable of ``Directory``; one that sees single entries passes them to ``by_directory``.
It raises ``Unlisted`` when it cannot list a server to its end: then nothing changes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from lcc_scrapy.domain.errors import LccError

NAME_MAX = 255
"""Bytes of one name."""

TARGET_MAX = 4095
"""Bytes of where a symbolic link leads."""

SIZE_MAX = 2**64 - 1
MOST_DEPTH = 64
MOST_ENTRIES = 50_000_000
MOST_DIRECTORIES = 5_000_000
"""Bounds of one scan; a server with more is not tracked."""

HELD_MAX = 512_000_000
"""Bytes of memory that entries may take which are kept together, each with ``HELD_EACH`` of its own."""

HELD_EACH = 200

Path = tuple[bytes, ...]
"""Names from the server's base down; () is the base itself."""


class Unlisted(LccError):
    """A server cannot be listed, or its listing cannot be used; the text says why."""


@dataclass(slots=True)
class Held:
    """Memory of entries that are kept until something else was read: those of one directory, for example."""

    bytes: int = 0

    def add(self, count: int, size: int) -> None:
        """Keep so many entries with names of ``size`` bytes; raises ``Unlisted`` beyond ``HELD_MAX``."""
        self.bytes += count * HELD_EACH + size
        if self.bytes > HELD_MAX:
            raise Unlisted(f"entries that take more than {HELD_MAX} bytes of memory")

    def drop(self, count: int, size: int) -> None:
        """Keep them no more."""
        self.bytes -= count * HELD_EACH + size


class Kind(StrEnum):
    """What an entry is; devices, pipes and sockets are left out by adapters."""

    FILE = "file"
    DIR = "dir"
    LINK = "link"


class Entry(NamedTuple):
    """One entry. ``size`` in bytes, of files only; ``mtime`` in epoch seconds, None = not said.

    ``digest`` of the content where it is known: 16 bytes are MD5, 20 SHA-1, 32 SHA-256, 64 SHA-512.
    ``target`` is where a link leads.
    """

    path: Path
    kind: Kind
    size: int = 0
    mtime: int | None = None
    digest: bytes | None = None
    target: bytes = b""


class Directory(NamedTuple):
    """What one directory has, in any order.

    ``files`` are (size in decimal digits, name), ``links`` (name, target), ``digests`` (name, digest as in
    ``Entry``). Not ``sound``: something in it cannot be used, so that it has no identity.
    A directory that is named in ``dirs`` and never listed has none either.
    """

    path: Path
    files: list[tuple[bytes, bytes]]
    dirs: list[bytes]
    links: list[tuple[bytes, bytes]]
    digests: list[tuple[bytes, bytes]]
    sound: bool = True


def empty(path: Path) -> Directory:
    """Return a directory without entries, to be filled."""
    return Directory(path, [], [], [], [])


def is_name(name: bytes) -> bool:
    """Tell whether bytes are the name of an entry; any other byte than "/" and NUL is good."""
    return 0 < len(name) <= NAME_MAX and name not in {b".", b".."} and not {0, 47} & set(name)


def of_entries(path: Path, entries: Iterable[Entry]) -> Directory:
    """Return what one directory has: for adapters that list one directory at a time, in any order of them."""
    made, held = empty(path), Held()
    for entry in entries:
        held.add(*weight_of(entry))
        made = put(made, entry)
    return made


def weight_of(entry: Entry) -> tuple[int, int]:
    """Return the weight of an entry, as ``Held`` counts it."""
    return 1, len(entry.path[-1]) + len(entry.target)


def weight(directory: Directory) -> tuple[int, int]:
    """Return the weight of a directory's entries."""
    names = chain(directory.dirs, (name for _, name in directory.files), *directory.links)
    count = len(directory.files) + len(directory.dirs) + len(directory.links)
    return count, sum(map(len, names))


def by_directory(entries: Iterable[Entry]) -> Iterator[Directory]:
    """Gather entries that come depth first, as rsync lists them: behind a directory comes what it has.

    Every directory that is named counts as listed. The entry () is the base. Raises ``Unlisted`` for
    entries that come in another order.
    """
    nested, held = [empty(())], Held()
    for entry in entries:
        parent = entry.path[:-1]
        while len(nested) > 1 and nested[-1].path != parent:
            held.drop(*weight(nested[-1]))
            yield nested.pop()
        if nested[-1].path != parent:
            raise Unlisted("an entry came before its directory")
        if entry.path:
            held.add(*weight_of(entry))
            nested[-1] = put(nested[-1], entry)
        if entry.path and entry.kind is Kind.DIR and is_name(entry.path[-1]):
            nested.append(empty(entry.path))
    yield from reversed(nested)


def put(directory: Directory, entry: Entry) -> Directory:
    """Add an entry to its directory; one that cannot be used makes it unsound."""
    name = entry.path[-1]
    if not is_name(name) or not 0 <= entry.size <= SIZE_MAX or len(entry.target) > TARGET_MAX:
        return directory._replace(sound=False)
    if entry.kind is Kind.DIR:
        directory.dirs.append(name)
    elif entry.kind is Kind.LINK:
        directory.links.append((name, entry.target))
    else:
        directory.files.append((b"%d" % entry.size, name))
        if entry.digest is not None:
            directory.digests.append((name, entry.digest))
    return directory
