"""Every pattern of the package takes time that grows as the text does, whichever of its repeats is fed.

For each repeat of a pattern, and each pair of repeats of one sequence, a long text is made that feeds it and fails
behind it. A pattern that tries all ways to share such a text among its repeats takes minutes for it.
"""

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from re import _constants as ops
from re import _parser as parser
from types import ModuleType
from typing import Any

import pytest

import lcc_scrapy

LONG = 40_000
"""Times that what a repeat takes is repeated."""

MOST = 0.5
"""CPU seconds; a text is read in milliseconds, and in ten seconds by who looks at each pair of places."""

MANY = 50
"""A repeat that may go on for so long is fed."""

REPEATS = {ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT}
CATEGORIES = {ops.CATEGORY_DIGIT: "1", ops.CATEGORY_SPACE: " ", ops.CATEGORY_WORD: "a"}
LETTERS = " \t\r\n1a0A;,=\"'<>-_./:\\&%?#()[]{}|+*!~\x80é"


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(lcc_scrapy.__path__, "lcc_scrapy."):
        if ".migrations" not in found.name and not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def patterns() -> dict[tuple[str | bytes, int], tuple[str, "re.Pattern[Any]"]]:
    return {
        (one.pattern, one.flags): (f"{module.__name__}.{name}", one)
        for module in modules()
        for name, one in vars(module).items()
        if isinstance(one, re.Pattern)
    }


def one_of(members: list[Any]) -> str:
    """Return a character of a set."""
    return next((letter for letter in LETTERS if is_in(letter, members)), "a")


def is_in(letter: str, members: list[Any]) -> bool:
    negated = bool(members) and members[0][0] is ops.NEGATE
    found = False
    for kind, what in members:
        if kind is ops.LITERAL:
            found |= ord(letter) == what
        elif kind is ops.RANGE:
            found |= what[0] <= ord(letter) <= what[1]
        elif kind is ops.CATEGORY:
            digit, space = letter.isdigit(), letter.isspace()
            word = letter.isalnum() or letter == "_"
            found |= {
                ops.CATEGORY_DIGIT: digit, ops.CATEGORY_NOT_DIGIT: not digit, ops.CATEGORY_SPACE: space,
                ops.CATEGORY_NOT_SPACE: not space, ops.CATEGORY_WORD: word, ops.CATEGORY_NOT_WORD: not word,
            }[what]  # fmt: skip
    return found != negated


def sample(node: Any) -> str:  # noqa: PLR0911 - one for each kind of node
    """Return a short text that a part of a pattern takes."""
    kind, what = node
    if kind is ops.LITERAL:
        return chr(what)
    if kind is ops.NOT_LITERAL:
        return next(letter for letter in LETTERS if ord(letter) != what)
    if kind is ops.ANY:
        return "a"
    if kind is ops.IN:
        return one_of(what)
    if kind in REPEATS:
        return texts(what[2]) * what[0]
    if kind is ops.SUBPATTERN:
        return texts(what[3])
    if kind is ops.ATOMIC_GROUP:
        return texts(what)
    if kind is ops.BRANCH:
        return texts(what[1][0])
    return ""


def texts(nodes: Any) -> str:
    return "".join(sample(node) for node in nodes)


def sequences(nodes: Any, before: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield every sequence within a pattern, with what has to stand before it."""
    nodes = list(nodes)
    yield before, nodes
    for kind, what in nodes:
        inner: list[Any] = []
        if kind in REPEATS:
            inner = [what[2]]
        elif kind is ops.SUBPATTERN:
            inner = [what[3]]
        elif kind is ops.ATOMIC_GROUP:
            inner = [what]
        elif kind is ops.BRANCH:
            inner = what[1]
        for one in inner:
            yield from sequences(one, before)
        before += sample((kind, what))


def feeds(nodes: list[Any]) -> list[tuple[int, str]]:
    """Return the repeats of a sequence, by place, each with what it takes once."""
    found = []
    for place, (kind, what) in enumerate(nodes):
        while kind is ops.SUBPATTERN and len(what[3]) == 1:
            kind, what = what[3][0]  # noqa: PLW2901 - what is repeated stands in brackets
        if kind in REPEATS and what[1] >= MANY:
            taken = {texts(what[2])}
            if len(what[2]) == 1 and what[2][0][0] is ops.IN:
                taken |= {letter for letter in LETTERS if is_in(letter, what[2][0][1])}
            found += [(place, one) for one in sorted(taken) if one]
    return found


def hostile(pattern: "re.Pattern[Any]") -> Iterator[str]:
    """Yield texts that feed each repeat, and each pair of repeats with the same, and fail behind it."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    flags = pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    for before, nodes in sequences(parser.parse(source, flags), ""):
        for place, fed in feeds(nodes):
            head = before + texts(nodes[:place])
            for end in ("\0", "!\n"):
                yield head + fed * LONG + end


def text_for(pattern: "re.Pattern[Any]", text: str) -> str | bytes:
    return text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


PATTERNS = patterns()


def test_the_search_for_hostile_texts_finds_a_pattern_that_is_known_to_be_slow() -> None:
    slow = re.compile(r"\s*(\d+)\s*([a-z]?)\s*")
    assert any(seconds(slow, one) > MOST for one in hostile(slow))
    assert len(PATTERNS) > 100


def seconds(pattern: "re.Pattern[Any]", text: str) -> float:
    subject, began = text_for(pattern, text), time.process_time()
    pattern.fullmatch(subject)  # type: ignore[arg-type]
    return time.process_time() - began


@pytest.mark.parametrize("name", sorted({name for name, _ in PATTERNS.values()}))
def test_a_pattern_takes_time_that_grows_as_its_text(name: str) -> None:
    pattern = next(one for known, one in PATTERNS.values() if known == name)
    slow = {text[:80] for text in dict.fromkeys(hostile(pattern)) if seconds(pattern, text) > MOST}
    assert not slow, pattern.pattern
