"""Long lists in parts: which parts there are and what each holds, without reading everything first."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.selection import Change, Selection
from lcc_scrapy.feed.reader import PAGE, Feed, Reader, begin

PART = 50_000
"""Entries of one document (sitemaps.org)."""

_USUAL = PART // 2
_KEY_BITS = 128
BITS_MAX = 12


@dataclass(frozen=True, slots=True)
class Keys:
    """The documents with keys from ``first`` to ``last``, both included; keys are digests of 128 bits."""

    first: int
    last: int

    def name(self, of: str) -> str:
        """Return what names them in URLs; names are in the order of what they name."""
        return f"{of}-{self.first:032x}-{self.last:032x}"

    def pages(self, feed: Feed, selection: Selection) -> Iterator[list[CachedUrl]]:
        """Yield lists of selected documents by rising key, ``PAGE`` at most each."""
        last = _key(self.first - 1)
        while page := feed.documents(last, PAGE):
            last = page[-1].urlkey
            inside = list(takewhile(lambda row: int.from_bytes(row.urlkey) <= self.last, page))
            yield [row for row in inside if selection.admits(row)]
            if len(inside) < len(page):
                return


def _key(number: int) -> bytes:
    return number.to_bytes(_KEY_BITS // 8) if number >= 0 else b""


@dataclass(frozen=True, slots=True)
class DocumentsPart:
    """The documents whose key begins with the ``bits`` first bits of ``number``."""

    bits: int
    number: int

    def name(self, of: str) -> str:
        """Return what names it in URLs."""
        return f"{of}-{self.bits:02}-{self.number:04}"

    @property
    def keys(self) -> Keys:
        """The keys of its documents."""
        width = _KEY_BITS - self.bits
        return Keys(self.number << width, (self.number + 1 << width) - 1)

    def could_hold(self, keys: Keys) -> bool:
        """Tell whether keys may be some of a part as large as this, or twice that: guesses change."""
        return 0 <= keys.last - keys.first < 2 << _KEY_BITS - self.bits


def documents_parts(feed: Feed) -> list[DocumentsPart]:
    """Return parts of about half of ``PART`` documents; how many there are is guessed by the first ones."""
    page = feed.documents(b"", PAGE)
    if len(page) < PAGE:
        return [DocumentsPart(0, 0)]
    guessed = PAGE * 2**_KEY_BITS // (int.from_bytes(page[-1].urlkey) + 1)
    bits = min((guessed // _USUAL).bit_length(), BITS_MAX)
    return [DocumentsPart(bits, number) for number in range(1 << bits)]


@dataclass(frozen=True, slots=True)
class ChangesPart:
    """The changes behind ``after`` up to ``upto``, ``PART`` at most."""

    after: int
    upto: int

    def name(self, of: str) -> str:
        """Return what names it in URLs; names are in the order of what they name."""
        return f"{of}-{self.after:019}-{self.upto:019}"

    def pages(self, feed: Feed, selection: Selection) -> Iterator[list[Change]]:
        """Yield lists of selected changes by rising seq; raises ``StartOver`` when some are forgotten."""
        start = replace(begin(feed, selection), seq=self.after, began=self.after)
        reader = Reader(feed, selection, start)
        for page in reader.looks():
            yield [change for change in page if change.seq <= self.upto]
            if reader.reached.seq >= self.upto:
                return


def changes_parts(after: int, upto: int) -> list[ChangesPart]:
    """Return parts that cover what changed; one, too, when nothing did."""
    starts = range(after, upto, PART) or [after]
    return [ChangesPart(start, min(start + PART, upto)) for start in starts]
