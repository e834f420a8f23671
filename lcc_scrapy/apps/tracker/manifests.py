"""Checksum files: lines of a SHA-256 and a name, as ``sha256sum`` writes them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from lcc_scrapy.apps.tracker.entries import Directory, Held, Path, Unlisted, is_name

NAMES = frozenset({b"SHA256SUMS", b"SHA256SUM", b"sha256sum.txt", b"sha256sums.txt"})
"""What checksum files are called."""

LINE_MAX = 16 * 1024
MOST = 1_000_000
"""Lines that are taken in of all checksum files of a server, if memory (``Held``) has room for so many.

The files behind have no known content.
"""

_LINE = re.compile(rb"(\\?)([0-9a-fA-F]{64}) [ *](.+)", re.DOTALL)
_ESCAPES = {b"\\n": b"\n", b"\\r": b"\r", b"\\\\": b"\\"}

Digests = Mapping[Path, Mapping[bytes, bytes]]
"""SHA-256 of the content of files, by directory and name."""


@dataclass(slots=True)
class Collected:
    """What the checksum files of a server say."""

    digests: dict[Path, dict[bytes, bytes]] = field(default_factory=dict)
    _left: int = MOST
    _held: Held = field(default_factory=Held)

    def add(self, lines: Iterable[bytes], below: Path) -> None:
        """Take in a checksum file in ``below``, as far as there is room."""
        with suppress(Unlisted):
            for path, name, digest in islice(read(lines, below), self._left):
                self._left -= 1
                its = self.digests.get(path)
                self._held.add(1 if its is not None else 2 + len(path), len(name) + len(digest))
                self.digests.setdefault(path, {})[name] = digest


def read(lines: Iterable[bytes], below: Path) -> Iterator[tuple[Path, bytes, bytes]]:
    """Yield (directory, name, SHA-256) of a checksum file in ``below``; other lines are passed over."""
    for line in lines:
        match = _LINE.fullmatch(line.rstrip(b"\r\n"))
        path = _path(match[3], escaped=bool(match[1])) if match else ()
        if match and path:
            yield below + path[:-1], path[-1], bytes.fromhex(match[2].decode())


def _path(text: bytes, *, escaped: bool) -> Path:
    """Return a path below the checksum file; () = it leads elsewhere."""
    if escaped:
        text = re.sub(rb"\\[nr\\]", lambda match: _ESCAPES[match[0]], text)
    path = tuple(text.removeprefix(b"./").split(b"/"))
    return path if all(map(is_name, path)) else ()


def with_digests(listing: Iterable[Directory], digests: Digests) -> Iterator[Directory]:
    """Add what checksum files say of the files that are listed."""
    for one in listing:
        known = digests.get(one.path)
        if known:
            found = [(name, known[name]) for _, name in one.files if name in known]
            yield one._replace(digests=[*one.digests, *found])
        else:
            yield one


def found_in(listing: Iterable[Directory]) -> Iterator[Path]:
    """Yield the paths of the checksum files that are listed."""
    for one in listing:
        for _, name in one.files:
            if name in NAMES:
                yield (*one.path, name)
