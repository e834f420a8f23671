"""Cursors: where in the feed a content user is, as a text that only the LCC reads.

URL-safe base64 (no padding) of compact JSON ``{"v":1,"lcc":id,"gen":n,"seq":n,"began":n,"sel":digest}``:
the LCC's id and generation tell whose positions are counted, ``seq`` is the last change that was seen,
``began`` the newest one when this content user read its first page, ``sel`` what is selected. The last
two are left out when they say nothing (0, everything).
"""

import base64
import binascii
import json
from dataclasses import dataclass

from lcc_scrapy.domain.errors import LccError

VERSION = 1
CURSOR_MAX = 1000
SELECTION_MAX = 16
"""Digits of a selection's digest."""


class StartOver(LccError):
    """A cursor of another life of this LCC, of another LCC, or too old. Read everything once, without one."""


class BadCursor(LccError):
    """What was given as a cursor is none, or goes with other filters: a mistake of who asks.

    What a content user has stays good; the right cursor goes on from there.
    """


@dataclass(frozen=True, slots=True)
class Position:
    """A place in one LCC's feed; ``generation`` rises when a backup is restored.

    Whoever is there had nothing of this LCC when the feed was at ``began``; ``selection`` is the digest of
    what it selects.
    """

    lcc: str
    generation: int
    seq: int
    began: int = 0
    selection: str = ""

    def __str__(self) -> str:
        facts: dict[str, object] = {
            "v": VERSION, "lcc": self.lcc, "gen": self.generation, "seq": self.seq,
            **({"began": self.began} if self.began else {}),
            **({"sel": self.selection} if self.selection else {}),
        }  # fmt: skip
        return encoded(facts)

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Read a cursor; raises ``BadCursor`` when it is none, or of another version."""
        facts = decoded(text.strip(), CURSOR_MAX)
        if facts.get("v") != VERSION:
            raise BadCursor(f"cursor of version {facts.get('v')!r}, this program reads {VERSION} only")
        lcc, selection = facts.get("lcc"), facts.get("sel", "")
        generation, seq, began = facts.get("gen"), facts.get("seq"), facts.get("began", 0)
        if not (isinstance(lcc, str) and isinstance(selection, str) and len(selection) <= SELECTION_MAX):
            raise malformed()
        if not (type(generation) is int and type(seq) is int and type(began) is int):
            raise malformed()
        if min(seq, began) < 0:
            raise malformed()
        return cls(lcc, generation, seq, began, selection)

    def is_ahead_of(self, head: "Position") -> bool:
        """Tell whether this was told by a feed that had come farther than one that ends at ``head``."""
        return (self.generation, max(self.seq, self.began)) > (head.generation, head.seq)

    def check(self, head: "Position", *, lags: bool = False) -> None:
        """Raise ``StartOver`` unless the feed that ends at ``head`` can go on from here.

        One that ``lags`` will, when it has come so far. Raises ``BadCursor`` when it can, but something else
        is selected.
        """
        awaited = lags and self.is_ahead_of(head)
        if self.lcc != head.lcc:
            raise StartOver(f"cursor of another LCC ({self.lcc}, this one is {head.lcc}): start over")
        if self.generation != head.generation and not awaited:
            raise StartOver("cursor from before this LCC was restored from a backup: start over")
        if self.selection != head.selection:  # before it is counted: confirmations have numbers of their own
            raise other_selection()
        if self.is_ahead_of(head) and not awaited:
            newest = max(self.seq, self.began)
            raise StartOver(f"cursor from the future (change {newest} of {head.seq}): start over")


def encoded(facts: dict[str, object]) -> str:
    """Return a cursor that holds some facts."""
    text = json.dumps(facts, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decoded(text: str, most: int) -> dict[str, object]:
    """Return the facts in a cursor of at most so many characters; raises ``BadCursor``."""
    if len(text) > most:
        raise malformed()
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        facts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (UnicodeError, binascii.Error, ValueError, RecursionError):
        raise malformed() from None
    if not isinstance(facts, dict):
        raise malformed()
    return facts


def malformed() -> BadCursor:
    """Return the error for a text that is no cursor."""
    return BadCursor("this is not a cursor: give the last one that this LCC gave, as it is")


def other_selection() -> BadCursor:
    """Return the error for a cursor that goes with other filters."""
    return BadCursor(
        "cursor of another selection: give the same filters as before; for others, read without one"
    )
