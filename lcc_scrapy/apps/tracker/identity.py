"""Identities of directories: of two that are equal, one is an exact replica of the other.

Both come in two forms: *plain*, of the files of a directory only, and *tree*, of its subdirectories too. Both
forms of a directory without subdirectories are equal. Names are sorted by their bytes, whatever the locale
of a server. Owner, mode and date never count, symbolic links neither.

``md5`` is the seed's (004, "The summarizer"): MD5 of size and name of each file, and of the name and
hexadecimal identity of each subdirectory. ``sha`` is SHA-256 over fields, each behind its length in eight
bytes: names of the files, their sizes, and in the tree form names and ``sha`` of the subdirectories. Names
are joined by NUL, sizes by blanks.
"""

from collections.abc import Iterable, Sequence
from hashlib import md5, sha256
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

Files = list[tuple[bytes, bytes]]
"""(size in decimal digits, name) of each file."""

name_of = itemgetter(1)
_LENGTH = 8


class Identity(NamedTuple):
    """16 bytes of ``md5`` and 32 of ``sha``."""

    md5: bytes
    sha: bytes


Named = Sequence[tuple[bytes, Identity]]
"""Subdirectories by name."""


class Fields(NamedTuple):
    """The files of a directory as they are summed: names and sizes in the order of the names."""

    names: bytes
    sizes: bytes

    @classmethod
    def of(cls, files: Files) -> "Fields":
        """Join what is sorted by name."""
        if not files:
            return cls(b"", b"")
        sizes, names = zip(*files, strict=True)
        return cls(b"\0".join(names), b" ".join(sizes))

    @property
    def size(self) -> int:
        """Bytes of both."""
        return len(self.names) + len(self.sizes)

    def files(self) -> Iterable[tuple[bytes, bytes]]:
        """Return (size, name) as before."""
        return zip(self.sizes.split(b" "), self.names.split(b"\0"), strict=True) if self.sizes else ()

    def sha(self, *more: bytes) -> bytes:
        """Return SHA-256 over these and further fields."""
        whole = (self.names, self.sizes, *more) if more else self
        return sha256(b"".join([len(one).to_bytes(_LENGTH, "big") + one for one in whole])).digest()


def plain(files: Files) -> Identity:
    """Return the identity of files, in any order."""
    files = sorted(files, key=name_of)
    return plain_of(files, Fields.of(files))


def plain_of(files: Files, fields: Fields) -> Identity:
    """Return the same of files sorted by name, and their fields."""
    text = b"".join(chain.from_iterable(files))
    return Identity(md5(text, usedforsecurity=False).digest(), fields.sha())


def tree(fields: Fields, subdirectories: Named) -> Identity:
    """Return the identity of files and subdirectories, these in any order."""
    its = sorted(subdirectories)
    parts = [(name, size + name) for size, name in fields.files()]
    parts += [(name, name + one.md5.hex().encode()) for name, one in its]
    parts.sort()
    text = b"".join([part for _, part in parts])
    more = (b"\0".join([name for name, _ in its]), b"".join([one.sha for _, one in its])) if its else ()
    return Identity(md5(text, usedforsecurity=False).digest(), fields.sha(*more))
