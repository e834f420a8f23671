"""Finds many patterns in a stream at once (Aho, Corasick 1975), by the package ``ahocorasick_rs``."""

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from lcc_scrapy.domain.errors import MissingExtra

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick

WINDOW = 8 * 1024
"""Characters that are searched at a time: what is found in them is in memory."""

_NUMBER = itemgetter(0)


class Automaton:
    """Counts how often each of some patterns occurs; the patterns are framed by blanks (``pattern_of``)."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._longest = max(map(len, patterns), default=0)
        self._automaton = _built(patterns) if patterns else None

    def counts(self, characters: str) -> "Counter[int]":
        """Return by the number of each pattern that occurs how often it does, overlapping ones too."""
        counted: Counter[int] = Counter()
        if self._automaton is None:
            return counted
        for begin, end in _windows(len(characters)):
            start = max(0, begin - self._longest)
            hits = self._automaton.find_matches_as_indexes(characters[start:end], overlapping=True)
            if start < begin:
                new = begin - start
                hits = [hit for hit in hits if hit[2] > new]
            counted.update(map(_NUMBER, hits))
        return counted


def _windows(length: int) -> Iterator[tuple[int, int]]:
    """Yield what is to be searched; what ends in a window is counted there, wherever it begins."""
    return ((begin, min(begin + WINDOW, length)) for begin in range(0, length, WINDOW))


def require_library() -> None:
    """Raise ``MissingExtra`` where pages cannot be searched."""
    _library()


def _library() -> Any:
    try:
        import ahocorasick_rs  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("annotation", "ahocorasick_rs") from None
    return ahocorasick_rs


def _built(patterns: Sequence[str]) -> "AhoCorasick":
    """Build the kind that is built most quickly; the others find no more pages a second here."""
    library = _library()
    made: AhoCorasick = library.AhoCorasick(
        patterns,
        matchkind=library.MatchKind.Standard,
        store_patterns=False,
        implementation=library.Implementation.NoncontiguousNFA,
    )
    return made
