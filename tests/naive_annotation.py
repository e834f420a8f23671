"""What matching means, said as plainly as possible: no automaton, no expressions, one keyword after the other."""

import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from functools import cache

from lcc_scrapy.domain.relevance import OCCURRENCES_MAX

UNSPACED = (
    "\u0e00\u0eff",
    "\u1000\u109f",
    "\u1780\u17ff",
    "\u3040\u30ff",
    "\u3400\u4dbf",
    "\u4e00\u9fff",
    "\uf900\ufaff",
)


@cache
def kind_of(c):
    """Tell whether a character belongs to words, and whether it is one."""
    belongs = c.isalnum() or c == "_" or unicodedata.category(c).startswith("M")
    return belongs, any(least <= c <= most for least, most in UNSPACED)


@cache
def words_of_key(key):
    return words_of(key)


def words_of(text):
    """Return the words of a text, one character after the other."""
    seen = "".join(c for c in text if c.isascii() or c == "\u200b" or unicodedata.category(c) != "Cf")
    folded = unicodedata.normalize("NFKC", seen)
    folded = unicodedata.normalize("NFKC", folded.casefold())
    words, word = [], ""
    for c in folded:
        belongs, alone = kind_of(c)
        if word and (alone or not belongs):
            words.append(word)
            word = ""
        if alone and belongs:
            words.append(c)
        elif belongs:
            word += c
    return words + [word] * bool(word)


class NaiveText:
    """The words of a page: text, a gap that no phrase crosses, and title."""

    def __init__(self, title, paragraphs):
        self.words = [*words_of(" ".join(paragraphs)), None, *words_of(title)]
        self.places = defaultdict(list)
        for at, word in enumerate(self.words):
            self.places[word].append(at)

    def where(self, key):
        words = words_of_key(key)
        return [at for at in self.places.get(words[0], ()) if self.words[at : at + len(words)] == words]

    def relevance(self, keywords):
        return sum(one.weight * min(len(self.where(one.key)), OCCURRENCES_MAX) for one in keywords)


@dataclass(frozen=True)
class NaiveRule:
    """A rule as a tree: ``name`` is any, all, not, near or term."""

    name: str
    parts: tuple = ()
    distance: int = 0
    term: str = ""

    def __str__(self):
        if self.name == "term":
            return f'"{self.term}"'
        name = f"near/{self.distance}" if self.name == "near" else self.name
        return f"{name}({', '.join(map(str, self.parts))})"

    def holds(self, text):
        if self.name == "term":
            return bool(text.where(self.term))
        if self.name == "near":
            places = [text.where(part.term) for part in self.parts]
            return any(
                all(any(0 <= at - first <= self.distance for at in other) for other in places)
                for one in places
                for first in one
            )
        held = [part.holds(text) for part in self.parts]
        return {"any": any(held), "all": all(held), "not": not held[0]}[self.name]
