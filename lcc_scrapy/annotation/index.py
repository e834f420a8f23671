"""Many URDs made ready to be compared with pages: an automaton for all keywords, and tables of numbers.

A *slot* is the place of a URD in the index, a *pattern* that of a keyword in the automaton.
"""

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from lcc_scrapy.annotation.automata import Automaton
from lcc_scrapy.annotation.streams import pattern_of
from lcc_scrapy.domain.boolean_rules import BadRule, ParsedRule, parse_rule
from lcc_scrapy.domain.relevance import score
from lcc_scrapy.domain.urds import EVERYTHING, Process, Urd

Counts = Mapping[int, int]
"""Occurrences in a text by pattern."""


class _Table:
    """Lists of numbers, one after the other in one array: a list of lists would take ten times as much."""

    def __init__(self, lengths: Iterable[int], kind: str = "I") -> None:
        self.starts = array("I", accumulate(lengths, initial=0))
        self.numbers = array(kind, bytes(self.starts[-1] * array(kind).itemsize))

    def of(self, number: int) -> "array[int]":
        """Return one list."""
        return self.numbers[self.starts[number] : self.starts[number + 1]]


class _Patterns:
    """Gives each keyword the number of its pattern; what cannot be found in any text gets none."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._of_keys: dict[str, int | None] = {}

    def number(self, key: str) -> int | None:
        """Return the number of a keyword's pattern, a new one where it has none yet."""
        if key not in self._of_keys:
            try:
                pattern = pattern_of(key)
            except ValueError:
                self._of_keys[key] = None
            else:
                self._of_keys[key] = self.numbers.setdefault(pattern, len(self.numbers))
        return self._of_keys[key]


class Index:
    """URDs and what of a page concerns them. It never changes, so threads may share it."""

    def __init__(self, urds: Iterable[Urd]) -> None:
        self.urds: tuple[Urd, ...] = tuple(urds)
        self.ids = frozenset(urd.urdid for urd in self.urds)
        self.rules: dict[int, ParsedRule] = {}
        self._scopes: dict[str, list[int]] = defaultdict(list)
        self._owners: dict[str, list[int]] = defaultdict(list)
        self._thresholds = array("q", (urd.threshold for urd in self.urds))
        patterns = _Patterns()
        terms = [self._terms(slot, urd, patterns) for slot, urd in enumerate(self.urds)]
        self._fill(terms, len(patterns.numbers))
        self._automaton = Automaton(list(patterns.numbers))

    def __len__(self) -> int:
        return len(self.urds)

    def counts(self, characters: str) -> Counts:
        """Return what occurs in a stream, how often."""
        return self._automaton.counts(characters)

    def scores(self, counts: Counts) -> dict[int, int]:
        """Return the relevance by slot, 0 where only words of a rule occur; others are not in it."""
        scores: dict[int, int] = {}
        known = scores.get
        starts, slots, weights = self._slots.starts, self._slots.numbers, self._weights.numbers
        for pattern, occurrences in counts.items():
            counted = score(1, occurrences)
            for at in range(starts[pattern], starts[pattern + 1]):
                slot = slots[at]
                scores[slot] = known(slot, 0) + weights[at] * counted
        return scores

    def enough(self, scores: Mapping[int, int]) -> list[int]:
        """Return the slots that reach their threshold or have a rule to be asked."""
        thresholds, rules = self._thresholds, self.rules
        return [slot for slot, relevance in scores.items() if relevance >= thresholds[slot] or slot in rules]

    def occurrences(self, slot: int, counts: Counts) -> list[int]:
        """Return how often each keyword of a URD occurs, and behind these each term of its rule."""
        return [0 if pattern is None else counts.get(pattern, 0) for pattern in self._patterns_of(slot)]

    def whatever_is_in_it(self, url: str, owners: Collection[str]) -> list[int]:
        """Return the slots of URDs with a page in scope that no keyword has to lead to."""
        found = set(self._scopes.get(EVERYTHING, ()))
        for uri in _folders(url):
            found.update(self._scopes.get(uri, ()))
        for owner in owners:
            found.update(self._owners.get(owner, ()))
        return sorted(found)

    # --- building --------------------------------------------------------------------------------

    def _terms(self, slot: int, urd: Urd, patterns: _Patterns) -> "array[int]":
        """Return the patterns of a URD + 1, 0 = none; note by what else it is found."""
        keys = [one.key for one in urd.keywords]
        needs_keyword = urd.processtype is Process.FILTER and urd.threshold > 0
        if urd.processtype is Process.RULE:
            rule = self._rule(slot, urd)
            keys += rule.terms if rule else ()
            needs_keyword = rule is None or not rule.holds_without
        if not needs_keyword:
            self._scopes[urd.uri].append(slot)
            self._owners[urd.owner].append(slot)
        return array("I", (number + 1 if number is not None else 0 for number in map(patterns.number, keys)))

    def _rule(self, slot: int, urd: Urd) -> ParsedRule | None:
        """Read a rule; of one that some other program stored and nobody understands, nothing is found."""
        try:
            self.rules[slot] = parse_rule(urd.rule)
        except BadRule:
            return None
        return self.rules[slot]

    def _fill(self, terms: Sequence["array[int]"], patterns: int) -> None:
        """Make the tables from pattern to slots, and back."""
        self._terms_of = _Table(map(len, terms))
        counts = [0] * (patterns + 1)
        for numbers in terms:
            for number in numbers:
                counts[number] += 1
        self._slots, self._weights = _Table(counts[1:]), _Table(counts[1:])
        free = self._slots.starts[:]
        at = 0
        for slot, numbers in enumerate(terms):
            weights = [one.weight for one in self.urds[slot].keywords]
            self._terms_of.numbers[at : at + len(numbers)] = numbers
            at += len(numbers)
            for place, number in enumerate(numbers):
                if number:
                    to = free[number - 1]
                    self._slots.numbers[to] = slot
                    self._weights.numbers[to] = weights[place] if place < len(weights) else 0
                    free[number - 1] = to + 1

    def _patterns_of(self, slot: int) -> Iterator[int | None]:
        return (number - 1 if number else None for number in self._terms_of.of(slot))


def _folders(url: str) -> Iterator[str]:
    """Yield a URL and all folders that it is in."""
    yield url
    at = url.find("/")
    while at >= 0:
        if at + 1 < len(url):
            yield url[: at + 1]
        at = url.find("/", at + 1)
