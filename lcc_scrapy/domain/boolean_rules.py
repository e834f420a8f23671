"""Boolean rules of URDs: which words have to be in a text, and which must not be.

::

    rule  = any(rule, …) | all(rule, …) | not(rule) | near/n(term, term, …) | term
    term  = a word, or words in double quotes

``near/n``: all terms occur, and their beginnings are at most ``n`` words apart, in whatever order. Blanks and
the case of ``any``, ``all``, ``not`` and ``near`` do not matter.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lcc_scrapy.domain.urds import KEYWORD_MAX, KEYWORDS_MAX, RULE_MAX
from lcc_scrapy.domain.words import words_of_keyword

DEPTH_MAX = 32
"""Operators inside of each other."""

NEAR_MAX = 1000
"""Words between terms of ``near``."""

NEARS_MAX = 20
"""``near`` in one rule: each of them looks at all places of its terms."""

PLACES_MAX = 2000
"""Places of one term that ``near`` looks at, the first ones of a text."""

_TOKEN = re.compile(
    r'\s*(?:(?P<operator>any|all|not|near/(?P<distance>[0-9]+))\s*\(|"(?P<phrase>[^"]*)"'
    r'|(?P<mark>[(),])|(?P<word>[^\s(),"]+)|(?P<bad>"))',
    re.IGNORECASE,
)


class BadRule(ValueError):
    """A rule is not understood; the text says in one line what is wrong, and at which character from 1 on."""


class Occurrences(Protocol):
    """What a rule asks of a text."""

    def has(self, term: str) -> bool:
        """Tell whether a term occurs."""

    def places(self, term: str) -> Sequence[int]:
        """Return where a term begins, in words from the beginning of the text, rising."""


class Rule(Protocol):
    """A rule, or part of one."""

    def holds(self, text: Occurrences) -> bool:
        """Tell whether a text is wanted."""


@dataclass(frozen=True, slots=True)
class Term:
    """A word or phrase that occurs; ``key`` is its words joined by blanks, as they are compared."""

    key: str

    def holds(self, text: Occurrences) -> bool:
        """Tell whether it occurs."""
        return text.has(self.key)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one part holds."""

    parts: tuple[Rule, ...]

    def holds(self, text: Occurrences) -> bool:
        """Tell whether one does."""
        return any(part.holds(text) for part in self.parts)


@dataclass(frozen=True, slots=True)
class AllOf:
    """All parts hold."""

    parts: tuple[Rule, ...]

    def holds(self, text: Occurrences) -> bool:
        """Tell whether they do."""
        return all(part.holds(text) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    """A part does not hold."""

    part: Rule

    def holds(self, text: Occurrences) -> bool:
        """Tell whether it does not."""
        return not self.part.holds(text)


@dataclass(frozen=True, slots=True)
class Near:
    """All terms begin within ``distance`` words."""

    distance: int
    terms: tuple[str, ...]

    def holds(self, text: Occurrences) -> bool:
        """Tell whether they do, at the first ``PLACES_MAX`` places of each."""
        if not all(text.has(term) for term in self.terms):
            return False
        places = sorted((at, term) for term in set(self.terms) for at in text.places(term)[:PLACES_MAX])
        return _meet(places, self.distance, len(set(self.terms)))


def _meet(places: Sequence[tuple[int, str]], distance: int, terms: int) -> bool:
    """Tell whether ``terms`` different ones stand within ``distance``: a window that moves on."""
    inside: Counter[str] = Counter()
    oldest = 0
    for at, term in places:
        inside[term] += 1
        while places[oldest][0] < at - distance:
            inside[places[oldest][1]] -= 1
            if not inside[places[oldest][1]]:
                del inside[places[oldest][1]]
            oldest += 1
        if len(inside) == terms:
            return True
    return False


@dataclass(frozen=True, slots=True)
class ParsedRule:
    """A rule with the terms that it names; ``holds_without``: also for a text that has none of them."""

    rule: Rule
    terms: tuple[str, ...]
    near: frozenset[str]
    holds_without: bool


def parse_rule(text: str) -> ParsedRule:
    """Read a rule; raises ``BadRule``."""
    if len(text) > RULE_MAX:
        raise BadRule(f"rule of {len(text)} characters, at most {RULE_MAX}")
    parser = _Parser(text)
    rule = parser.rule(0)
    parser.end()
    return ParsedRule(rule, tuple(parser.terms), frozenset(parser.near), rule.holds(_Nothing()))


class _Nothing:
    def has(self, term: str) -> bool:  # noqa: ARG002 - the interface
        return False

    def places(self, term: str) -> Sequence[int]:  # noqa: ARG002 - the interface
        return ()


class _Parser:
    """A recursive descent; ``terms`` are those seen, each once, in their order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._nears = 0
        self.terms: dict[str, None] = {}
        self.near: set[str] = set()

    def rule(self, depth: int) -> Rule:
        """Read a rule that begins here."""
        token = self._next("a word, a phrase in quotes, any(, all(, not( or near/n(")
        if token["operator"] is None:
            return Term(self._term(token))
        if depth >= DEPTH_MAX:
            raise self._bad(token, f"more than {DEPTH_MAX} operators inside of each other")
        if token["distance"] is not None:
            return self._near(token)
        parts = [self.rule(depth + 1)]
        while self._goes_on():
            parts.append(self.rule(depth + 1))
        return self._combined(token, parts)

    def end(self) -> None:
        """Hold that nothing else stands there."""
        rest = self._text[self._at :]
        if rest.strip():
            at = self._at + len(rest) - len(rest.lstrip())
            raise BadRule(f"rule, character {at + 1}: {rest.strip()[:20]!r}, expected its end")

    def _combined(self, token: re.Match[str], parts: list[Rule]) -> Rule:
        name = token["operator"].lower()
        if name == "not":
            if len(parts) > 1:
                raise self._bad(token, "not( ) takes one part")
            return Not(parts[0])
        return AnyOf(tuple(parts)) if name == "any" else AllOf(tuple(parts))

    def _near(self, token: re.Match[str]) -> Rule:
        distance = int(token["distance"][:6])
        self._nears += 1
        if self._nears > NEARS_MAX:
            raise self._bad(token, f"more than {NEARS_MAX} times near")
        if not 0 < distance <= NEAR_MAX:
            raise self._bad(token, f"expected near/1 to near/{NEAR_MAX}")
        terms = [self._near_term()]
        while self._goes_on():
            terms.append(self._near_term())
        if len(terms) == 1:
            raise self._bad(token, "near takes two terms or more")
        self.near.update(terms)
        return Near(distance, tuple(terms))

    def _near_term(self) -> str:
        token = self._next("a word or a phrase in quotes")
        if token["operator"] is not None:
            raise self._bad(token, "near takes words and phrases")
        return self._term(token)

    def _term(self, token: re.Match[str]) -> str:
        written = token["word"] if token["phrase"] is None else token["phrase"]
        if written is None:
            raise self._bad(token, f"{token[0].strip()!r}, expected a word")
        try:
            key = " ".join(words_of_keyword(written))
        except ValueError as error:
            raise self._bad(token, str(error)) from None
        if len(written) > KEYWORD_MAX:
            raise self._bad(token, f"term of {len(written)} characters, at most {KEYWORD_MAX}")
        self.terms[key] = None
        if len(self.terms) > KEYWORDS_MAX:
            raise self._bad(token, f"more than {KEYWORDS_MAX} terms")
        return key

    def _goes_on(self) -> bool:
        token = self._next("a comma or a closing bracket")
        if token["mark"] not in {",", ")"}:
            raise self._bad(token, f"{token[0].strip()[:20]!r}, expected a comma or a closing bracket")
        return token["mark"] == ","

    def _next(self, expected: str) -> re.Match[str]:
        token = _TOKEN.match(self._text, self._at)
        if token is None:
            raise BadRule(f"rule, character {len(self._text) + 1}: it ends, expected {expected}")
        if token["bad"]:
            raise self._bad(token, "a quote that is not closed")
        self._at = token.end()
        return token

    def _bad(self, token: re.Match[str], why: str) -> BadRule:
        blanks = len(token[0]) - len(token[0].lstrip())
        return BadRule(f"rule, character {token.start() + blanks + 1}: {why}")
