"""Cursors of the front: where in the feeds of several LCCs a content user is, as a text for the front only.

URL-safe base64 (no padding) of compact JSON ``{"v":"front-1","parts":[[id,gen,seq,began,first],…],
"sel":digest,"moves":n,"notes":[[first,last,[[place,seq],…]],…]}``. A place is that of a part in ``parts``, or
the id of an LCC that has none any more. A part is a ``Position`` in one LCC (``domain/cursor.py``).
What says nothing (0, everything, none) is left out.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from lcc_scrapy.domain import cursor
from lcc_scrapy.domain.cursor import SELECTION_MAX, BadCursor, Position, StartOver

VERSION = "front-1"
PARTS_MAX = 64
"""LCCs behind one front."""
TOLD_MAX = 64
"""Seqs in all notes of moves together."""
LCC_ID_MAX = 36
FRONT_CURSOR_MAX = 15_000
"""Characters. The largest cursor has fewer, and fits into the head of an HTTP request (16 KiB)."""

_NUMBER_MAX = 2**63


@dataclass(frozen=True, slots=True)
class Part:
    """A place in one LCC's feed. ``first``: the newest move of a provider when this part was begun.

    Generation 0 = nothing was read yet.
    """

    position: Position
    first: int = 0

    @property
    def since(self) -> Position | None:
        """Return the cursor to read on from, None = read from the start."""
        return self.position if self.position.generation else None


@dataclass(frozen=True, slots=True)
class Note:
    """How far the sources of the moves ``first`` to ``last`` had been read when these were first seen."""

    first: int
    last: int
    told: tuple[tuple[str, int], ...]

    def seq_of(self, lcc: str) -> int:
        """Return the last change of a source that had been read; 0 = none."""
        return dict(self.told).get(lcc, 0)


@dataclass(frozen=True)
class FrontPosition:
    """A place in the feeds of several LCCs, by their ids; ``selection`` is the digest of what is selected.

    ``moves`` is the newest move of a provider (``domain/front_moves.py``) that was noted.
    """

    parts: tuple[Part, ...] = ()
    selection: str = ""
    moves: int = 0
    notes: tuple[Note, ...] = ()

    def part(self, lcc: str) -> Part | None:
        """Return the place in the feed of an LCC, None where it has not been read yet."""
        return self._by_lcc.get(lcc)

    def note_of(self, move: int) -> Note | None:
        """Return the note that is about a move."""
        return next((note for note in self.notes if note.first <= move <= note.last), None)

    def at(self, position: Position) -> "FrontPosition":
        """Return this with another place in one LCC."""
        before = self._by_lcc[position.lcc]
        part = Part(replace(position, selection=self.selection), before.first)
        return replace(self, parts=_ordered({**self._by_lcc, position.lcc: part}.values()))

    def anew(self, lcc: str) -> "FrontPosition":
        """Return this with one LCC to be read from its start."""
        part = Part(Position(lcc, 0, 0, 0, self.selection), self.moves)
        return replace(self, parts=_ordered({**self._by_lcc, lcc: part}.values()))

    def within(self, lccs: Collection[str]) -> "FrontPosition":
        """Return this with the parts of these LCCs only. New ones are read from their starts.

        Raises ``StartOver`` where nothing is left of a cursor.
        """
        parts = tuple(part for part in self.parts if part.position.lcc in lccs)
        if self.parts and not parts and not self.notes:
            raise StartOver("cursor of another front (it has none of this one's sub-LCCs): start over")
        position = replace(self, parts=parts)
        for lcc in lccs:
            position = position if position.part(lcc) else position.anew(lcc)
        return position

    def check(self, selection: str) -> None:
        """Raise ``BadCursor`` when something else was selected."""
        if self.selection != selection:
            raise cursor.other_selection()

    @cached_property
    def _by_lcc(self) -> dict[str, Part]:
        return {part.position.lcc: part for part in self.parts}

    def __str__(self) -> str:
        places = {part.position.lcc: place for place, part in enumerate(self.parts)}
        notes = [
            [note.first, note.last, [[places.get(lcc, lcc), seq] for lcc, seq in note.told]]
            for note in self.notes
        ]
        facts: dict[str, object] = {
            "v": VERSION, "parts": [_written(part) for part in self.parts],
            **({"sel": self.selection} if self.selection else {}),
            **({"moves": self.moves} if self.moves else {}),
            **({"notes": notes} if notes else {}),
        }  # fmt: skip
        return cursor.encoded(facts)

    @classmethod
    def parse(cls, text: str) -> "FrontPosition":
        """Read a cursor; raises ``BadCursor`` when it is none, of a single LCC, or of another version."""
        facts = cursor.decoded(text.strip(), FRONT_CURSOR_MAX)
        if facts.get("v") != VERSION:
            version = f"cursor of version {facts.get('v')!r}, not of a front ({VERSION})"
            raise BadCursor(f"{version}: give the front's own")
        try:
            return _read(cls, facts)
        except (TypeError, ValueError, IndexError):
            raise cursor.malformed() from None


def _written(part: Part) -> list[object]:
    place = part.position
    values = [place.lcc, place.generation, place.seq, place.began, part.first]
    while values[-1] == 0:
        values.pop()
    return values


def _read(cls: type[FrontPosition], facts: dict[str, object]) -> FrontPosition:
    """Return a position; raises ``TypeError``, ``ValueError`` or ``IndexError`` for what is none."""
    selection = _text(facts.get("sel", ""), SELECTION_MAX)
    parts = [_part(one, selection) for one in _list(facts.get("parts"), PARTS_MAX)]
    lccs: list[object] = [part.position.lcc for part in parts]
    if len(set(lccs)) != len(lccs):
        raise ValueError
    moves = _number(facts.get("moves", 0))
    notes = tuple(_note(one, lccs) for one in _list(facts.get("notes", []), TOLD_MAX + 1))
    if any(note.last > moves for note in notes) or sum(len(note.told) for note in notes) > TOLD_MAX:
        raise ValueError
    return cls(_ordered(parts), selection, moves, notes)


def _part(given: object, selection: str) -> Part:
    lcc, *numbers = _list(given, 5)
    generation, seq, began, first = ([_number(one) for one in numbers] + [0] * 4)[:4]
    return Part(Position(_text(lcc, LCC_ID_MAX), generation, seq, began, selection), first)


def _note(given: object, lccs: list[object]) -> Note:
    first, last, told = _list(given, 3)
    pairs = (_list(one, 2) for one in _list(told, TOLD_MAX))
    note = Note(_number(first), _number(last), tuple((_lcc(a, lccs), _number(b)) for a, b in pairs))
    if not 0 < note.first <= note.last:
        raise ValueError
    return note


def _lcc(given: object, lccs: list[object]) -> str:
    return _text(given if isinstance(given, str) else lccs[_number(given)], LCC_ID_MAX)


def _list(given: object, most: int) -> list[object]:
    if not isinstance(given, list) or len(given) > most:
        raise ValueError
    return given


def _text(given: object, most: int) -> str:
    if not isinstance(given, str) or len(given) > most:
        raise ValueError
    return given


def _number(given: object) -> int:
    if type(given) is not int or not 0 <= given < _NUMBER_MAX:
        raise ValueError
    return given


def _ordered(parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda part: part.position.lcc))
