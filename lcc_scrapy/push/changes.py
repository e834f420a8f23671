"""The difference between a site as it is and the state that the LCC knows.

Nothing is decided before the whole site was seen, so every line waits in a spool, each behind one byte
that says what it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import BinaryIO

from lcc_scrapy.push import pipe, refusals
from lcc_scrapy.push.state import Damaged, Header, Reader, StateFile, attributes_in, key_of
from lcc_scrapy.wire.messages import Url

SMALL_SITE = 20
"""Up to so many known URLs, any share of them may be removed at once."""

DECLARED = frozenset({"md5", "len", "mtime"})
"""What tells contents apart. A known URL without any of them is in doubt: it equals nothing."""

_OF_CONTENT = DECLARED | {pipe.FAILED}
_SEEN = -1


class Tag(bytes, Enum):
    """What a line of the spool is."""

    NEW = b"+"
    CHANGED = b"~"
    SAME = b"="
    KEPT = b"k"
    """Known, and present though not checked: the old line."""
    UNKNOWN = b"?"
    """Present, not checked, and not known: part of a full set only."""
    REMOVED = b"-"
    REFUSED = b"!"
    """As it was when the LCC refused it: lcccp sends it when the LCC may take it now."""


_IN_STATE = frozenset({Tag.NEW, Tag.CHANGED, Tag.SAME, Tag.KEPT, Tag.REFUSED})
_IN_PARTIAL_SET = frozenset({Tag.NEW, Tag.CHANGED, Tag.REMOVED})
_IN_FULL_SET = frozenset({Tag.NEW, Tag.CHANGED, Tag.SAME, Tag.KEPT, Tag.UNKNOWN, Tag.REFUSED})


def same_content(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Tell whether a URL needs no notification.

    Equal md5 and len are the same content, whatever the mtime; without an md5 on either side, len and
    mtime must be equal, or mtime alone where neither has a len. Every other attribute must be equal too.
    """
    if not all(name in old and old[name] == new.get(name) for name in _compared(old, new)):
        return False
    return _other(old) == _other(new)


def _compared(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[str, ...]:
    if "md5" in old and "md5" in new:
        return "md5", "len"
    return ("len", "mtime") if {"md5", "len"} & {*old, *new} else ("mtime",)


def _is_still_refused(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    before = pipe.unmarked(old)
    return pipe.REFUSED in old and (before == new or same_content(before, new))


def _other(attributes: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in attributes.items() if name not in _OF_CONTENT}


class Known:
    """The URLs of a state: where in the file each stands, and which were seen again.

    Memory: about 200 bytes a URL.
    """

    def __init__(
        self,
        header: Header | None = None,
        file: BinaryIO | None = None,
        places: dict[bytes, int] | None = None,
        unsure: int = 0,
    ) -> None:
        self.header = header or Header()
        self._file = file
        self._places = places or {}
        self.count = len(self._places)
        self.sure = self.count - unsure
        """How many of them the LCC has for certain, whatever their content."""

    @classmethod
    def load(cls, state: StateFile, *, pending: bool = False) -> Known:
        """Read a state (or the pending one); a missing one knows nothing. Raises `Damaged` when not whole."""
        try:
            file = (state.pending if pending else state.path).open("rb")
        except FileNotFoundError:
            return cls()
        places, unsure = {}, 0
        try:
            reader = Reader(file)
            for offset, line in reader.lines():
                attributes = attributes_in(line)
                places[key_of(attributes)] = offset
                unsure += pipe.NEW in attributes
        except Damaged:
            file.close()
            raise
        return cls(reader.header, file, places, unsure)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def has(self, key: bytes) -> bool:
        """Tell whether a key is known or was seen."""
        return key in self._places

    def see(self, key: bytes) -> bytes | None:
        """Return the line of a key seen for the first time, b"" when it is new, None when seen before."""
        place = self._places.get(key)
        self._places[key] = _SEEN
        if place is None:
            return b""
        return None if place == _SEEN else self._line(place)

    def unseen(self) -> Iterator[bytes]:
        """Yield the lines of the keys that were not seen, in their order."""
        return (self._line(place) for place in self._places.values() if place != _SEEN)

    def _line(self, place: int) -> bytes:
        if self._file is None:
            raise Damaged("it is gone")
        self._file.seek(place)
        return self._file.readline()


@dataclass
class Counts:
    """How many lines of each kind there are.

    ``withdrawn`` are gone, too, but the LCC may never have had them; ``refused`` are as they were when the
    LCC refused them; ``unseen`` are kept without having been named; ``twice`` were given more than once and
    count once.
    """

    new: int = 0
    changed: int = 0
    same: int = 0
    kept: int = 0
    removed: int = 0
    withdrawn: int = 0
    refused: int = 0
    unseen: int = 0
    twice: int = 0

    @property
    def present(self) -> int:
        """How many URLs of the site the input named."""
        return self.new + self.changed + self.same + self.kept + self.refused

    @property
    def gone(self) -> int:
        """How many removals are sent."""
        return self.removed + self.withdrawn

    def __str__(self) -> str:
        kept = f", {self.kept:,} kept" if self.kept else ""
        refused = f", {self.refused:,} refused before" if self.refused else ""
        return (
            f"{self.new:,} new, {self.changed:,} changed, {self.gone:,} removed, "
            f"{self.same:,} unchanged{kept}{refused}"
        )


class Comparison:
    """Takes the lines of a site one by one; `finish` finds what is gone.

    ``undated_is_same``: a line without md5, len and mtime is no change of a URL that the LCC has.
    """

    def __init__(self, known: Known, spool: BinaryIO, *, undated_is_same: bool = False) -> None:
        self._known = known
        self._undated_is_same = undated_is_same
        self._spool = spool
        self._kept_curls: set[str] = set()
        self._named_as_gone: set[bytes] = set()
        self.counts = Counts()

    def take(self, line: Url | pipe.Keep) -> None:
        """Compare one line with the state. An explicit removal counts as absence, in any input."""
        if isinstance(line, pipe.Keep):
            self._keep(line)
        elif pipe.is_removal(line):
            self._named_as_gone.add(key_of(line.attributes))
        else:
            self._update(line.attributes)

    def _update(self, given: Mapping[str, str]) -> None:
        attributes = pipe.unmarked(given)
        found = self._known.see(key_of(attributes))
        if found is None:
            self.counts.twice += 1
            return
        old = attributes_in(found) if found else {pipe.NEW: "yes"}
        line = pipe.write(Url(attributes))
        if _is_still_refused(old, attributes):
            self.counts.refused += 1
            self._put(Tag.REFUSED, refusals.marked(line, old[pipe.REFUSED]))
        elif pipe.NEW in old:
            self.counts.new += 1
            self._put(Tag.NEW, line)
        elif same_content(old, attributes) or self._is_told(old, attributes):
            self.counts.same += 1
            self._put(Tag.SAME, refusals.with_failure_of(old, line))
        else:
            self.counts.changed += 1
            self._put(Tag.CHANGED, line)

    def _is_told(self, old: Mapping[str, str], new: Mapping[str, str]) -> bool:
        return self._undated_is_same and not DECLARED & new.keys() and _other(old) == _other(new)

    def _keep(self, keep: pipe.Keep) -> None:
        self.counts.kept += 1
        self._kept_curls.add(keep.curl)
        attributes = {"curl": keep.curl, "mimetype": keep.mimetype}
        if keep.mimetype and not self._known.has(key_of(attributes)):
            self._put(Tag.UNKNOWN, pipe.write(Url(attributes)))

    def finish(self, *, complete: bool) -> None:
        """Settle what was not seen: removed, or kept where the input says so or was not complete."""
        for line in self._known.unseen():
            attributes = attributes_in(line)
            absent = complete or key_of(attributes) in self._named_as_gone
            if not absent or attributes.get("curl") in self._kept_curls:
                self.counts.unseen += 1
                self._put(Tag.KEPT, line)
            else:
                unsure = pipe.NEW in attributes
                self.counts.withdrawn += unsure
                self.counts.removed += not unsure
                key = {name: attributes.get(name, "") for name in ("curl", "mimetype")}
                self._put(Tag.REMOVED, pipe.write(Url({**key, "op": "remove"})))

    def _put(self, tag: Tag, line: bytes) -> None:
        self._spool.write(tag + line)

    def state_lines(self) -> Iterator[bytes]:
        """Yield the lines of the next state."""
        return (line for tag, line in self._tagged() if tag in _IN_STATE)

    def set_lines(self, *, full: bool) -> Iterator[bytes]:
        """Yield the lines of the set to send; those that the LCC does not have yet are marked."""
        wanted = _IN_FULL_SET if full else _IN_PARTIAL_SET
        for tag, line in self._tagged():
            if tag in wanted:
                yield _marked(line) if tag in {Tag.NEW, Tag.UNKNOWN} else refusals.without_failure(line)

    def _tagged(self) -> Iterator[tuple[bytes, bytes]]:
        self._spool.seek(0)
        return ((line[:1], line[1:]) for line in self._spool)

    def too_many_removals(self, percent: float) -> bool:
        """Tell whether so large a share is gone that a mistake is likelier.

        Withdrawn URLs count only where nothing is left.
        """
        counts, known = self.counts, self._known.sure
        if percent >= 100 or not counts.gone:  # noqa: PLR2004 - per cent
            return False
        return not (counts.present or counts.unseen) or (
            known > SMALL_SITE and counts.removed * 100 > percent * known
        )


def _marked(line: bytes) -> bytes:
    return line[: -len(b"/>\n")] + f' {pipe.NEW}="yes"/>\n'.encode()
