"""The words of a page as one string to be searched, and the way back from it to the page's text.

Words are separated and framed by single blanks, so that `` java `` is found where the whole word is. Between
two parts (text and title) there are two, so that no phrase is found across them.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lcc_scrapy.domain.words import keeps_places, word_spans, words_of, words_of_keyword

BLOCK = 4096
"""Characters of text whose words are counted together: where a word stands is looked for in one block."""

BLOCK_SHOWN = 16 * BLOCK
"""Of a longer block, which has no mark where it could end, the beginning is shown for any word."""

CONTEXT = 80
"""Characters of text on either side of a word in an extract."""

WORD_SHOWN = 200
"""Characters of the found words in an extract."""


_ENDS = re.compile("[ ,;:./\u3001\u3002\uff0c]")
"""Where a block may end: none of these becomes another character together with what follows."""
_CHUNK = re.compile("[^ ]+")


@dataclass(frozen=True, slots=True)
class Extract:
    """Keywords in context: they stand in ``text`` at the ``marks`` (from, to)."""

    text: str
    marks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: in which part of the texts, from which character to which."""

    part: int
    begin: int
    end: int


@dataclass(slots=True)
class _Part:
    text: str
    begins: int
    words: list[int] = field(default_factory=list)
    """For each block, how many words of this part stand before it."""
    blocks: list[tuple[int, int]] = field(default_factory=list)
    spans: dict[int, list[tuple[int, int]]] = field(default_factory=dict)


def pattern_of(key: str) -> str:
    """Return what a keyword is in a stream; raises ``ValueError``."""
    return f" {' '.join(words_of_keyword(key))} "


class Stream:
    """The words of some texts; ``characters`` is what is searched."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._parts: list[_Part] = []
        pieces: list[str] = []
        length = 0
        for text in texts:
            part = _Part(text, length)
            piece = f" {' '.join(self._words(part))} "
            self._parts.append(part)
            pieces.append(piece)
            length += len(piece)
        self.characters = "".join(pieces)

    @staticmethod
    def _words(part: _Part) -> list[str]:
        words: list[str] = []
        for begin, end in _blocks(part.text):
            part.words.append(len(words))
            part.blocks.append((begin, end))
            words += words_of(part.text[begin:end])
        return words

    def place(self, pattern: str) -> Place | None:
        """Return where a pattern stands first in the texts; None = nowhere."""
        at = self.characters.find(pattern)
        if at < 0:
            return None
        number = bisect_right(self._parts, at, key=lambda one: one.begins) - 1
        part = self._parts[number]
        word = self.characters.count(" ", part.begins, at)
        begin, _ = _span(part, word)
        _, end = _span(part, word + pattern.count(" ") - 2)
        return Place(number, begin, min(end, begin + WORD_SHOWN))

    def extracts(self, places: Iterable[Place], most: int) -> list[Extract]:
        """Return some places in context; those that stand together give one extract."""
        shown: list[tuple[int, range, list[tuple[int, int]]]] = []
        for place in places:
            around = _around(self._parts[place.part].text, place.begin, place.end)
            for part, span, marks in shown:
                if part == place.part and place.begin in span and place.end <= span.stop:
                    marks.append((place.begin, place.end))
                    break
            else:
                if len(shown) < most:
                    shown.append((place.part, around, [(place.begin, place.end)]))
        return [_extract(self._parts[part].text, span, marks) for part, span, marks in shown]

    def places(self, pattern: str, most: int) -> list[int]:
        """Return the first places of what is searched, in words from the beginning."""
        found: list[int] = []
        at = word = 0
        while len(found) < most and (place := self.characters.find(pattern, at)) >= 0:
            word += self.characters.count(" ", at, place)
            found.append(word)
            at = place + 1
            word += 1
        return found


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield pieces of a text that end between words."""
    begin = 0
    while begin < len(text):
        mark = _ENDS.search(text, begin + BLOCK)
        end = len(text) if mark is None else mark.start()
        yield begin, end
        begin = end


def _span(part: _Part, word: int) -> tuple[int, int]:
    """Return where a word stands in the text."""
    number = bisect_right(part.words, word) - 1
    if number not in part.spans:
        part.spans[number] = _spans(part.text, *part.blocks[number])
    spans = part.spans[number]
    return spans[word - part.words[number]] if spans else (part.blocks[number][0],) * 2


def _spans(text: str, begin: int, end: int) -> list[tuple[int, int]]:
    """Return where all words of a block stand; of one that is written otherwise, where its chunk does."""
    if end - begin > BLOCK_SHOWN:
        return []
    block = text[begin:end]
    if keeps_places(block):
        return [(begin + start, begin + stop) for start, stop in word_spans(block)]
    spans: list[tuple[int, int]] = []
    for chunk in _CHUNK.finditer(block):
        inside = word_spans(chunk[0])
        same = keeps_places(chunk[0])
        spans += [
            (
                begin + chunk.start() + (start if same else 0),
                begin + (chunk.start() + stop if same else chunk.end()),
            )
            for start, stop in inside
        ]
    return spans


def _around(text: str, begin: int, end: int) -> range:
    """Return what is shown around a place: up to blanks where there are any nearby."""
    first, last = max(0, begin - CONTEXT), min(len(text), end + CONTEXT)
    if first:
        first = text.find(" ", first, begin) + 1 or first
    if last < len(text):
        last = max(end, text.rfind(" ", end, last))
    return range(first, last)


def _extract(text: str, span: range, marks: list[tuple[int, int]]) -> Extract:
    head, tail = "\u2026" if span.start else "", "\u2026" if span.stop < len(text) else ""
    moved = len(head) - span.start
    placed = tuple((begin + moved, end + moved) for begin, end in sorted(set(marks)))
    return Extract(f"{head}{text[span.start : span.stop]}{tail}", placed)
