"""Reads the output of ``ls -lR`` as FTP servers give it: GNU ls, vsftpd, proftpd, pure-ftpd.

Blocks of lines stand behind heads like ``./sub:``. The block of the base may have no head, blank lines
stand before heads and perhaps behind them. Names are bytes. Devices, pipes and sockets are left out.
"""

import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field

from lcc_scrapy.apps.tracker.entries import (
    NAME_MAX,
    SIZE_MAX,
    TARGET_MAX,
    Directory,
    Held,
    Path,
    Unlisted,
    empty,
)

LINE_MAX = 8192
"""Bytes of a line."""

_ARROW = b" -> "
_HEAD = rb"\S{9,11}+ ++\d++ ++\S++ ++\S++ ++"
_TIME = rb" ++\S++ ++\S++ ++[\d:]{4,5}+ "
_SIZE = rb"(0|[1-9]\d{0,18}+)"
_NAME = rb"([^\n]{1,%d}+)(?=\n)"
_FILES = re.compile(rb"\n-" + _HEAD + _SIZE + _TIME + _NAME % NAME_MAX)
_DIRS = re.compile(rb"\nd" + _HEAD + rb"\d++" + _TIME + _NAME % NAME_MAX)
_LINKS = re.compile(rb"\nl" + _HEAD + rb"\d++" + _TIME + _NAME % (NAME_MAX + len(_ARROW) + TARGET_MAX))
# what the three above leave over: ISO times, no column for the group, sizes as they should not be
_LOOSE = re.compile(
    rb"([-dl])\S{9,11}+ ++\d++ ++\S++ ++(?:\S++ ++)?(\d++) ++"
    rb"(?:\S++ ++\S++ ++[\d:]{4,5}+|\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d(?:\.\d++ [-+]\d{4})?)?) ([^\n]++)"
)
_IGNORED = re.compile(rb"[bcpsD]\S{9,11}+ |total \d++$")
_ITSELF = frozenset({b".", b".."})


def read(pieces: Iterable[bytes]) -> Iterator[Directory]:
    """Yield the directories of a listing that comes in pieces of any size.

    Raises ``Unlisted`` for a line without end, and for a directory with more than ``Held`` has room for. One
    with a line that cannot be read is not sound.
    """
    reading = _Reading()
    for begins, text in _paragraphs(pieces):
        head, _, rest = text.partition(b"\n")
        is_head = begins and head.endswith(b":") and not _LOOSE.fullmatch(head)
        if is_head:
            yield from reading.begin(head[:-1])
        if rest or not is_head:
            reading.take(rest if is_head else text)
    yield from reading.end()


def _paragraphs(pieces: Iterable[bytes]) -> Iterator[tuple[bool, bytes]]:
    """Yield lines between blank ones, and whether a blank line or the beginning was before them."""
    rest, fresh = b"", True
    for piece in pieces:
        text, newline, rest = (rest + piece).rpartition(b"\n")
        if len(rest) > LINE_MAX:
            raise Unlisted(f"a line of more than {LINE_MAX} bytes")
        if newline:
            fresh = yield from _cut(text + newline, fresh)
    if rest:
        yield from _cut(rest, fresh)


def _cut(text: bytes, fresh: bool) -> Generator[tuple[bool, bytes], None, bool]:
    lines = b""
    text = text.replace(b"\r\n", b"\n") if b"\r" in text else text
    for number, part in enumerate(text.split(b"\n\n")):
        begins = fresh or number > 0 or part.startswith(b"\n")
        lines = part.strip(b"\n")
        if lines:
            yield begins, lines
    return not lines


@dataclass(slots=True)
class _Reading:
    """``base`` is how heads begin, None = not seen yet; ``here`` is the directory whose lines come."""

    base: bytes | None = None
    here: Directory = field(default_factory=lambda: empty(()))
    held: Held = field(default_factory=Held)
    is_sound: bool = True
    has_begun: bool = False

    def begin(self, head: bytes) -> Iterator[Directory]:
        """Go on to the directory of a head."""
        if self.base is None:
            self.base = b"" if self.has_begun else _base_of(head)
            if not self.has_begun:
                self.has_begun = True
                return
        yield from self.end()
        self.here, self.held, self.is_sound = empty(_path(head, self.base)), Held(), True

    def end(self) -> Iterator[Directory]:
        """Yield the directory that is complete."""
        if self.has_begun:
            yield self.here if self.is_sound else self.here._replace(sound=False)

    def take(self, text: bytes) -> None:
        """Read lines of the directory."""
        self.has_begun = True
        if text.startswith(b"total "):
            text = text.partition(b"\n")[2]
        body = b"\n%b\n" % text
        files = _FILES.findall(body)
        lines = body.count(b"\n") - 1
        self.held.add(lines, len(text))
        if len(files) == lines or self._take_others(body, lines - len(files)):
            self.here.files.extend(files)
        else:
            self._take_lines(text)

    def _take_others(self, body: bytes, lines: int) -> bool:
        """Read what is no file; False = there are other lines than these, and nothing was read."""
        dirs, links = _DIRS.findall(body), _LINKS.findall(body)
        if len(dirs) + len(links) != lines:
            return False
        self.here.dirs.extend([name for name in dirs if name not in _ITSELF])
        for link in links:
            self._link(link)
        return True

    def _take_lines(self, text: bytes) -> None:
        for line in text.split(b"\n"):
            found = _LOOSE.fullmatch(line) if len(line) <= LINE_MAX else None
            if found:
                self._entry(*found.groups())
            elif line and not _IGNORED.match(line):
                self.is_sound = False

    def _entry(self, kind: bytes, size: bytes, name: bytes) -> None:
        if kind == b"l":
            self._link(name)
        elif kind == b"d":
            self.here.dirs.extend([] if name in _ITSELF else [name])
        elif len(size) <= len(str(SIZE_MAX)) and int(size) <= SIZE_MAX and len(name) <= NAME_MAX:
            self.here.files.append((b"%d" % int(size), name))
        else:
            self.is_sound = False

    def _link(self, text: bytes) -> None:
        name, arrow, target = text.partition(_ARROW)
        if arrow and target and 0 < len(name) <= NAME_MAX and len(target) <= TARGET_MAX:
            self.here.links.append((name, target))
        else:
            self.is_sound = False


def _base_of(head: bytes) -> bytes:
    """Return how heads below the first one begin: that is the base, whatever it is called."""
    return head.rstrip(b"/") + b"/"


def _path(head: bytes, base: bytes) -> Path:
    """Return where a head's directory lies; one outside of the base is nowhere."""
    text = head.removeprefix(base) if head.startswith(base) else b"/"
    return tuple(text.removeprefix(b"./").strip(b"/").split(b"/"))
