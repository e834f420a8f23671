"""URL patterns as in robots.txt (RFC 9309 section 2.2.3): a prefix; ``*`` is any run, ``$`` is the end.

No backtracking: a pattern costs one pass over the text for each of its pieces, so nobody can write one
that takes for ever.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pattern:
    """``pieces`` come in this order, the first at the very start; ``whole``: the last one at the end."""

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
