"""Providers that move between sub-LCCs: who follows the front misses nothing and is told nothing twice.

A moved provider's rows get new seqs in the target, and each tells which seq it had in the source. Whoever
follows notes, when it first sees a move, how far it had read the source. From then on the source's rows of
that provider are for the target to tell, and it tells those that had not been read.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.front_cursor import TOLD_MAX, FrontPosition, Note

Came = Sequence[tuple[int, int]]
"""By which moves a row came to where it is: (number of the move, the row's seq in that move's source)."""

NOT_MOVED: Came = ()


class Row(Protocol):
    """A change in the feed of one LCC."""

    @property
    def pid(self) -> int:
        """Return the provider's number."""

    @property
    def seq(self) -> int:
        """Return its place in that feed."""


R = TypeVar("R", bound=Row)


@dataclass(frozen=True, slots=True)
class Move:
    """A provider moves from one LCC (its id) to another. Numbers rise by 1, in the order of commits.

    ``source_seq``: the newest change of the source when nothing of the provider changes there any more;
    ``target_seq``: a change of the target not before the last copied row, None = rows are still copied, or
    removed in the source.
    """

    number: int
    pid: int
    source: str
    target: str
    source_seq: int
    target_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Moves:
    """The moves that matter to a position: those that it has notes of, and newer ones."""

    known: Mapping[int, Move] = field(default_factory=dict)
    of: Mapping[int, Sequence[Move]] = field(default_factory=dict)
    """The same by provider."""

    @classmethod
    def made_of(cls, moves: Iterable[Move]) -> "Moves":
        """Return moves in both orders."""
        known, of = {}, dict[int, list[Move]]()
        for move in moves:
            known[move.number] = move
            of.setdefault(move.pid, []).append(move)
        return cls(known, of)


def lowest(position: FrontPosition) -> int:
    """Return the number behind which all moves matter to a position."""
    return min((note.first - 1 for note in position.notes), default=position.moves)


def begun(position: FrontPosition, oldest_open: int, newest: int) -> FrontPosition:
    """Return the position of somebody who begins: earlier moves are as good as none.

    ``oldest_open`` is the number of the first move that still goes on, 0 = none does; ``newest`` that of the
    newest one. Of these nothing was read in the source.
    """
    notes = (Note(oldest_open, newest, ()),) if oldest_open else ()
    return replace(position, moves=newest, notes=notes)


def noted(position: FrontPosition, moves: Moves) -> FrontPosition | None:
    """Return the position with a note of moves that are new to it; None when it has too many notes.

    What was read of their sources, its parts tell.
    """
    new = _new(position, moves)
    if not new:
        return position
    told = {move.source: _seq(position, move.source) for move in new}
    if len(told) + sum(len(note.told) for note in position.notes) > TOLD_MAX:
        return None
    newest = max(move.number for move in new)
    note = Note(position.moves + 1, newest, tuple(sorted(told.items())))
    return replace(position, moves=newest, notes=(*position.notes, note))


def read_on(
    position: FrontPosition, moves: Moves, reached: Position, rows: Sequence[R], came: Mapping[int, Came]
) -> tuple[list[R], FrontPosition]:
    """Return what is to be told of rows that were read in one LCC up to ``reached``, and the position then.

    ``moves`` must have been read after the rows, with all that ``lowest`` asks for; ``came`` says by their
    seqs how rows came there. Where there are too many notes, an LCC waits: its part of the position stays.
    """
    with_notes = noted(position, moves)
    if with_notes is None:
        if any(move.source == reached.lcc for move in _new(position, moves)):
            return [], position
        rows, reached = _before_unknown(position, reached, rows, came)
    before = with_notes or position
    told = [row for row in rows if _is_told(before, moves, reached.lcc, row, came.get(row.seq, NOT_MOVED))]
    return told, without_finished(before.at(reached), moves)


def _before_unknown(
    position: FrontPosition, reached: Position, rows: Sequence[R], came: Mapping[int, Came]
) -> tuple[Sequence[R], Position]:
    """Return the rows before the first one that came by a move of which there is no note."""
    for place, row in enumerate(rows):
        if any(number > position.moves for number, _ in came.get(row.seq, NOT_MOVED)):
            return rows[:place], replace(reached, seq=row.seq - 1)
    return rows, reached


def _is_told(position: FrontPosition, moves: Moves, lcc: str, row: Row, came: Came) -> bool:
    leaves = any(
        move.source == lcc and row.seq <= move.source_seq and position.note_of(move.number)
        for move in moves.of.get(row.pid, ())
    )
    return not leaves and not _was_told(position, moves, lcc, came)


def _was_told(position: FrontPosition, moves: Moves, lcc: str, came: Came) -> bool:
    """Tell whether a row had been told before moves brought it here, the last one first."""
    for number, was in sorted(came, reverse=True):
        part = position.part(lcc)
        if number > position.moves or (part is not None and number <= part.first):
            return False
        note, move = position.note_of(number), moves.known.get(number)
        if note is None:
            return True  # the note was forgotten because all that came had been read
        if move is None:
            return False
        if was <= note.seq_of(move.source):
            return True
        lcc = move.source
    return False


def without_finished(position: FrontPosition, moves: Moves) -> FrontPosition:
    """Return the position without notes of moves that are over for whoever is there.

    A provider that moved on meanwhile keeps all its notes until the last of its moves has been read.
    """
    of_notes = (one for one in moves.known.values() if position.note_of(one.number))
    busy = {one.pid for one in of_notes if not _is_read(position, one)}
    kept = tuple(note for note in position.notes if _concerns(note, moves, busy))
    return replace(position, notes=kept)


def _concerns(note: Note, moves: Moves, pids: Collection[int]) -> bool:
    return any(note.first <= move.number <= note.last for pid in pids for move in moves.of[pid])


def _is_read(position: FrontPosition, move: Move) -> bool:
    """Tell whether no row of a move can come any more: neither a copy, nor one that left its source since."""
    if move.target_seq is None:
        return False
    ends = ((move.target, move.target_seq), (move.source, move.source_seq))
    parts = ((position.part(lcc), seq) for lcc, seq in ends)
    return all(part is None or part.position.seq >= seq for part, seq in parts)


def _new(position: FrontPosition, moves: Moves) -> list[Move]:
    return [move for number, move in moves.known.items() if number > position.moves]


def _seq(position: FrontPosition, lcc: str) -> int:
    part = position.part(lcc)
    return part.position.seq if part is not None else 0
