"""The input of lcccp: checked to its last line and spooled before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from lcc_scrapy.push import pipe
from lcc_scrapy.push.command import Progress
from lcc_scrapy.push.state import attributes_in
from lcc_scrapy.wire import writing
from lcc_scrapy.wire.messages import Url

_DIGITS = 19
"""What fits in 63 bits; the LCC refuses a longer len."""

_NEW, _KNOWN, _KEPT, _REMOVED = b"+", b"~", b"k", b"-"


@dataclass(frozen=True)
class Item:
    """One URL of a set. ``new``: the LCC has no copy yet, as far as known. ``size``: bytes, 0 = not said."""

    xml: bytes
    size: int
    new: bool


@dataclass(frozen=True)
class Demand:
    """How many files and bytes something takes."""

    files: int = 0
    space: int = 0

    def plus(self, item: Item) -> Demand:
        """Return the demand with one more URL."""
        return Demand(self.files + 1, self.space + item.size)


class Submission:
    """The URLs to send, in a spool file; memory does not grow with their number."""

    def __init__(self, spool: BinaryIO, timeofday: str = "") -> None:
        self._spool = spool
        self._timeofday = timeofday
        self._tally = dict.fromkeys((_NEW, _KNOWN, _KEPT, _REMOVED), 0)
        self.hand_over: pipe.HandOver | None = None
        self.relative = ""
        """The first URL without scheme://; empty = none."""
        self.fault = ""
        self.ended = False
        """Whether there was an end mark at all."""
        self.cut = False
        """Whether lines are missing, as far as the end mark tells."""

    def read(self, stream: BinaryIO, progress: Progress) -> None:
        """Spool every line; raises `Stop` (65) at one that cannot be read."""
        reading = pipe.Reading(stream)
        for line in reading:
            if isinstance(line, pipe.HandOver):
                self.hand_over = line
            else:
                self._keep(*self._sorted(line))
            progress.show(f"{reading.entries:,} URLs read")
        progress.clear()
        self.fault = reading.fault
        self.ended = reading.end is not None
        self.cut = reading.end is None or reading.end.count != reading.entries

    def _sorted(self, line: Url | pipe.Keep) -> tuple[bytes, Mapping[str, str]]:
        if isinstance(line, pipe.Keep):
            return _KEPT, {"curl": line.curl, "mimetype": line.mimetype or "*/*"}
        if pipe.is_removal(line):
            return _REMOVED, line.attributes
        new = self.hand_over is None or pipe.NEW in line.attributes
        return _NEW if new else _KNOWN, self._as_sent(line.attributes)

    def _as_sent(self, given: Mapping[str, str]) -> dict[str, str]:
        attributes = pipe.unmarked(given)
        if self._timeofday:
            attributes.setdefault("timeofday", self._timeofday)
        return attributes

    def item(self, line: bytes) -> Item:
        """Return a line of the state as a URL of this set."""
        given = attributes_in(line)
        attributes = self._as_sent(given)
        return Item(writing.url(attributes), _size(attributes), pipe.NEW in given)

    def _keep(self, tag: bytes, attributes: Mapping[str, str]) -> None:
        if not self.relative and "://" not in attributes.get("curl", ""):
            self.relative = attributes.get("curl", "")
        self._spool.write(tag + str(_size(attributes)).encode() + b"\t" + writing.url(attributes))
        self._tally[tag] += 1

    @property
    def removals(self) -> int:
        """How many removals there are."""
        return self._tally[_REMOVED]

    def count(self, *, full: bool) -> int:
        """Return how many URLs a set of that kind has."""
        return sum(self._tally[tag] for tag in self._tags(full=full))

    def items(self, *, full: bool) -> Iterator[Item]:
        """Yield the URLs of a set: a full one names what is there, a partial one what changed.

        Removals from an input that lost lines are not believed.
        """
        tags = self._tags(full=full)
        self._spool.seek(0)
        for line in self._spool:
            if line[:1] in tags:
                size, _, xml = line[1:].partition(b"\t")
                yield Item(xml, int(size), line[:1] == _NEW)

    def _tags(self, *, full: bool) -> frozenset[bytes]:
        if full:
            return frozenset({_NEW, _KNOWN, _KEPT})
        return frozenset({_NEW, _KNOWN, _REMOVED} if self.removals_count else {_NEW, _KNOWN})

    @property
    def removals_count(self) -> bool:
        """Whether removals are sent: the input names them, and its end mark, if any, counts right."""
        return not (self.ended and self.cut)


def _size(attributes: Mapping[str, str]) -> int:
    size = attributes.get("len", "")
    return int(size) if size.isascii() and size.isdigit() and len(size) < _DIGITS else 0
