"""The rules of one robot, compiled once: the most specific match wins (RFC 9309 section 2.2.2).

Everything is compared as octets in ASCII: what is not ASCII is percent-encoded, in whatever charset it was
written, and what needs no percent-encoding is decoded. A check costs a binary search, and bounded work for
patterns with a ``*`` inside.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from lcc_scrapy.domain.roots import URL_MAX


@dataclass(frozen=True, slots=True)
class Pattern:
    """A URL pattern (RFC 9309 section 2.2.3): a prefix; ``*`` is any run, ``$`` is the end.

    ``pieces`` come in this order, the first at the very start; ``whole``: the last one at the end. A match
    costs one pass over the text for each piece: without backtracking, no pattern takes for ever.
    """

    pieces: tuple[str, ...]
    whole: bool

    @classmethod
    def parse(cls, text: str) -> "Pattern":
        """Read a pattern; every text is one."""
        whole = text.endswith("$")
        first, *others = (text[:-1] if whole else text).split("*")
        if not others:
            return cls((first,), whole)
        *inner, last = others
        return cls((first, *filter(None, inner), last), whole)

    def matches(self, text: str) -> bool:
        """Tell whether ``text`` begins with what the pattern says, or is it as a whole."""
        first, *others = self.pieces
        if not text.startswith(first):
            return False
        if not others:
            return not self.whole or len(text) == len(first)
        at = len(first)
        for piece in others[:-1]:
            at = text.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        if self.whole:
            return len(text) - at >= len(others[-1]) and text.endswith(others[-1])
        return text.find(others[-1], at) >= 0


LONGEST = 3 * URL_MAX
"""Characters of the longest URL when each of them is percent-encoded; a longer rule matches none."""

PIECES = 1000
"""Pieces between ``*`` that the rules of one robot are compared with, one by one."""

_ENCODED = re.compile(
    r"%(2[DdEe]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee]|[0-9A-Fa-f][a-f]|[a-f][0-9A-Fa-f])"
)
"""Percent-encoding that is not in normal form: of unreserved characters, or with lower-case digits."""

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SAFE = "/%:=&?~+!$,;@()*"
_PLAIN = re.compile(r"[A-Za-z0-9._~/-]*")
"""What is compared as it is."""

_DATA = re.compile(r"[:/?@]")

_ALLOWED = 1
"""The rank of no rule at all: it is weaker than any rule, and allows."""

_ENTRY = 200
"""Bytes that a rule takes beside its characters, about."""


@dataclass(frozen=True, slots=True)
class Wildcard:
    """A rule with ``*`` inside: its pattern, and the same with the data of queries encoded."""

    rank: int
    path: Pattern
    query: Pattern

    def matches(self, path: str, query: str) -> bool:
        """Tell whether a URL matches, given in both spellings; where these are one, it is compared once."""
        if self.path.matches(path):
            return True
        return not (path is query and self.path is self.query) and self.query.matches(query)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules by what they match. A rank is twice the octets of a rule, and 1 more where it allows.

    ``prefixes`` are sorted. ``ranks`` holds the best rank of each and of all prefixes of it, ``parents`` the
    index of its longest proper prefix, -1 = none. ``wholes``: ranks of rules that end in ``$``.
    ``wildcards``: best rank first. ``widened``: how many rules count as the prefix before their first ``*``,
    or not at all.
    """

    prefixes: tuple[str, ...] = ()
    ranks: Sequence[int] = ()
    parents: Sequence[int] = ()
    wholes: Mapping[str, int] = field(default_factory=dict)
    wildcards: tuple[Wildcard, ...] = ()
    widened: int = 0

    @classmethod
    def compile(cls, rules: Iterable[tuple[str, bool]]) -> "RuleSet":
        """Compile rules as they stand in the file: (path pattern, whether it allows)."""
        sorting = _Sorting()
        for pattern, allow in rules:
            sorting.take(pattern, allow=allow)
        prefixes = tuple(sorted(sorting.prefixes))
        ranks, parents = _nested(prefixes, sorting.prefixes)
        wildcards = sorted(sorting.wildcards, key=lambda rule: -rule.rank)
        return cls(prefixes, ranks, parents, sorting.wholes, tuple(wildcards), sorting.widened)

    @property
    def footprint(self) -> int:
        """Return the bytes of memory that the rules take, about."""
        texts = [*self.prefixes, *self.wholes]
        pieces = [piece for rule in self.wildcards for piece in (*rule.path.pieces, *rule.query.pieces)]
        return sum(map(len, texts)) + sum(map(len, pieces)) + _ENTRY * (len(texts) + len(pieces))

    def allows(self, target: str) -> bool:
        """Tell whether a path with its query, percent-encoded, may be fetched."""
        path = query = target
        if not _PLAIN.fullmatch(target):
            path = _normal(target).replace("*", "%2A").replace("$", "%24")
            query = _query_encoded(path)
        best = max(self._rank_of_prefix(query), self.wholes.get(query, _ALLOWED))
        for rule in self.wildcards:
            if rule.rank <= best:
                break
            if rule.matches(path, query):
                best = rule.rank
        return bool(best & 1)

    def _rank_of_prefix(self, text: str) -> int:
        """Return the best rank of all prefixes of a text: that of the longest one has the others in it."""
        at = bisect_right(self.prefixes, text) - 1
        while at >= 0 and not text.startswith(self.prefixes[at]):
            at = self.parents[at]
        return self.ranks[at] if at >= 0 else _ALLOWED


class _Sorting:
    """Sorts rules by how they are matched; of equal ones the best rank stays, so that allow wins."""

    def __init__(self) -> None:
        self.prefixes: dict[str, int] = {}
        self.wholes: dict[str, int] = {}
        self.wildcards: list[Wildcard] = []
        self.widened = 0
        self._pieces = 0

    def take(self, pattern: str, *, allow: bool) -> None:
        """Take a rule in."""
        anchor = pattern.endswith("$")
        path = _normal(pattern.removesuffix("$")).replace("$", "%24")
        query = _query_encoded(path)
        rank = 2 * (len(query) + anchor) + allow
        if len(query) - query.count("*") > LONGEST:
            return
        prefix, star, rest = query.partition("*")
        if not star and anchor:
            _raise(self.wholes, query, rank)
        elif not rest.strip("*"):
            _raise(self.prefixes, prefix, rank)  # nothing but ``*`` at the end is a prefix, with ``$`` too
        else:
            plain = Pattern.parse(path + "$" * anchor)
            coded = plain if query == path else Pattern.parse(query + "$" * anchor)
            self._wildcard(plain, coded, rank)

    def _wildcard(self, path: Pattern, query: Pattern, rank: int) -> None:
        """Take a pattern with ``*`` inside; of too many, a disallow counts as its beginning, an allow not."""
        if self._pieces + len(path.pieces) <= PIECES:
            self._pieces += len(path.pieces)
            self.wildcards.append(Wildcard(rank, path, query))
            return
        self.widened += 1
        if not rank & 1:
            _raise(self.prefixes, query.pieces[0], rank)


def _raise(ranks: dict[str, int], text: str, rank: int) -> None:
    ranks[text] = max(rank, ranks.get(text, 0))


def _nested(prefixes: tuple[str, ...], own: Mapping[str, int]) -> tuple[Sequence[int], Sequence[int]]:
    """Return the best rank and the parent of each of the sorted prefixes."""
    ranks, parents = array("q"), array("q")
    above: list[int] = []
    for at, text in enumerate(prefixes):
        while above and not text.startswith(prefixes[above[-1]]):
            above.pop()
        parent = above[-1] if above else -1
        parents.append(parent)
        ranks.append(max(own[text], ranks[parent]) if above else own[text])
        above.append(at)
    return ranks, parents


def _normal(text: str) -> str:
    """Return a path or pattern as it is compared: unreserved characters plain, others encoded."""
    if _PLAIN.fullmatch(text):
        return text
    return _ENCODED.sub(_decoded_if_plain, quote(text, safe=_SAFE))


def _decoded_if_plain(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return character if character in _UNRESERVED else found[0].upper()


def _query_encoded(text: str) -> str:
    """Encode what separates a URL's parts where it is data: behind the first ``?``."""
    path, mark, query = text.partition("?")
    return path + mark + _DATA.sub(lambda found: f"%{ord(found[0]):02X}", query)
