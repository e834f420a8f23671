"""Listings on disk, until a server was listed to its end: nothing is loaded while it comes.

The files have no name, so that a kill leaves none behind.
"""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path as Folder
from tempfile import TemporaryFile
from typing import IO

from lcc_scrapy.apps.tracker import listings
from lcc_scrapy.apps.tracker.entries import Directory, Path, Unlisted
from lcc_scrapy.content.decoding import BadCoding, decoder

PIECE = 256 * 1024


@dataclass(slots=True)
class Text:
    """A listing as ``ls -lR`` makes it. ``packed``: it is in gzip, and no more than ``most`` bytes of it are
    unpacked. It lists what is ``below`` the server's base.
    """

    file: IO[bytes]
    packed: bool = False
    most: int = 0
    below: Path = ()

    def __iter__(self) -> Iterator[Directory]:
        """Read it from its beginning; raises ``Unlisted``."""
        self.file.seek(0)
        read = listings.read(self._unpacked() if self.packed else self._pieces())
        if not self.below:
            yield from read
            return
        yield Directory((), [], [self.below[0]], [], [], sound=False)  # what else is there, nobody listed
        for one in read:
            yield one._replace(path=self.below + one.path)

    def _pieces(self) -> Iterator[bytes]:
        while piece := self.file.read(PIECE):
            yield piece

    def _unpacked(self) -> Iterator[bytes]:
        unpacking, length = decoder("gzip"), 0
        try:
            for packed in self._pieces():
                for piece in unpacking.feed(packed):
                    length += len(piece)
                    if length > self.most:
                        raise Unlisted(f"more than {self.most} bytes unpacked (LCC_TRACKER_BYTES)")
                    yield piece
            unpacking.end()
        except BadCoding as error:
            raise Unlisted(f"the packed listing cannot be unpacked: {error}") from None


@dataclass(slots=True)
class Spool:
    """Directories as they came, written one by one. ``loops`` are links that looked like directories.

    ``backwards``: those that came last are read first, so that each stands before those inside of it.
    """

    file: IO[bytes]
    backwards: bool = False
    loops: dict[Path, bytes] = field(default_factory=dict)
    _begins: "array[int]" = field(default_factory=lambda: array("Q"))

    def write(self, directory: Directory) -> None:
        """Add a directory; a link's target with a NUL in it cannot be one, and makes it unsound."""
        links = [one for one in directory.links if b"\0" not in one[1]]
        sound = directory.sound and len(links) == len(directory.links)
        counts = (len(directory.files), len(directory.dirs), len(links), len(directory.digests))
        fields = [b"/".join(directory.path), b"%d" % sound, *(b"%d" % count for count in counts)]
        fields += [part for one in directory.files for part in one]
        fields += directory.dirs
        fields += [part for one in links for part in one]
        fields += [part for name, digest in directory.digests for part in (name, digest.hex().encode())]
        text = b"\0".join(fields)
        self._begins.append(self.file.tell())
        self.file.write(len(text).to_bytes(8, "big") + text)

    def __iter__(self) -> Iterator[Directory]:
        """Read all directories."""
        for begin in reversed(self._begins) if self.backwards else self._begins:
            self.file.seek(begin)
            made = _read(self.file.read(int.from_bytes(self.file.read(8), "big")))
            yield self._without_loops(made) if self.loops else made

    def _without_loops(self, directory: Directory) -> Directory:
        found = [name for name in directory.dirs if (*directory.path, name) in self.loops]
        if not found:
            return directory
        links = [(name, self.loops[*directory.path, name]) for name in found]
        dirs = [name for name in directory.dirs if name not in set(found)]
        return directory._replace(dirs=dirs, links=directory.links + links)


def _read(text: bytes) -> Directory:
    path, sound, *counts = text.split(b"\0", 6)[:6]
    files, dirs, links, digests = map(int, counts)
    fields = iter(text.split(b"\0")[6:])
    return Directory(
        tuple(path.split(b"/")) if path else (),
        [(next(fields), next(fields)) for _ in range(files)],
        [next(fields) for _ in range(dirs)],
        [(next(fields), next(fields)) for _ in range(links)],
        [(next(fields), bytes.fromhex(next(fields).decode())) for _ in range(digests)],
        sound == b"1",
    )


@dataclass(slots=True)
class Files:
    """Files without names on the disk of ``folder``; all are closed together."""

    folder: Folder
    opened: list[IO[bytes]] = field(default_factory=list)

    def new(self) -> IO[bytes]:
        """Return a new file."""
        made: IO[bytes] = TemporaryFile(dir=self.folder)  # noqa: SIM115 - closed with the others
        self.opened.append(made)
        return made

    def close(self) -> None:
        """Close them all."""
        for one in self.opened:
            one.close()


def visible(listing: Iterable[Directory]) -> Iterator[Directory]:
    """Leave out names with a leading dot, as ``ls`` does: some servers list them and others do not."""
    for one in listing:
        if any(name.startswith(b".") for name in one.path):
            continue
        if any(name[:1] == b"." for _, name in one.files):
            one = one._replace(files=[pair for pair in one.files if pair[1][:1] != b"."])  # noqa: PLW2901
        if one.dirs or one.links or one.digests:
            one = one._replace(  # noqa: PLW2901
                dirs=[name for name in one.dirs if name[:1] != b"."],
                links=[pair for pair in one.links if pair[0][:1] != b"."],
                digests=[pair for pair in one.digests if pair[0][:1] != b"."],
            )
        yield one
