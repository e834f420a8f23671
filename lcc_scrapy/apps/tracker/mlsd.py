"""Lines of MLSD and MLST (RFC 3659 section 7): facts, a blank, a name. Names are bytes."""

import re
from dataclasses import dataclass

from lcc_scrapy.apps.tracker.entries import Entry, Kind, Path

FACTS_MAX = 64
"""Facts of a line that are looked at."""

_LINK = re.compile(rb"os\.unix=(?:slink|symlink)(?::(.*))?", re.IGNORECASE | re.DOTALL)
_SIZE = re.compile(rb"[0-9]{1,20}")
_ITSELF = frozenset({b"cdir", b"pdir"})
_NO_FILES = re.compile(rb"os\.unix=(?:chr|blk|fifo|pipe|socket|sock)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """One line. ``unique`` is the same for all names of one file on its server; empty = not said."""

    name: bytes
    kind: bytes
    size: bytes = b""
    unique: bytes = b""

    @property
    def is_itself(self) -> bool:
        """Tell whether it is about the listed directory, or the one above."""
        return self.kind.lower() in _ITSELF or self.name in {b".", b".."}

    @property
    def is_device(self) -> bool:
        """Tell whether it is neither file, directory nor link."""
        return _NO_FILES.match(self.kind) is not None

    def entry(self, above: Path) -> Entry:
        """Return the entry; what it does not say in a way that can be used gets a size that cannot be."""
        path, kind = (*above, self.name), self.kind.lower()
        if kind == b"dir":
            return Entry(path, Kind.DIR)
        link = _LINK.fullmatch(self.kind)
        if link is not None:
            return Entry(path, Kind.LINK, target=link[1] or b"?")
        sized = kind == b"file" and _SIZE.fullmatch(self.size)
        return Entry(path, Kind.FILE, int(self.size) if sized else -1)


def parsed(line: bytes) -> Line | None:
    """Read a line without its end; None = it is none."""
    facts, blank, name = line.partition(b" ")
    if not blank or not name:
        return None
    said = dict(_fact(text) for text in facts.split(b";", FACTS_MAX)[:FACTS_MAX])
    return Line(name, said.get(b"type", b""), said.get(b"size", b""), said.get(b"unique", b""))


def _fact(text: bytes) -> tuple[bytes, bytes]:
    name, _, value = text.partition(b"=")
    return name.lower(), value
