"""Who follows the front while providers move misses nothing and is told nothing twice."""

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.front_cursor import TOLD_MAX, FrontPosition, Note, Part
from lcc_scrapy.domain.front_moves import Came, Move, Moves, begun, lowest, noted, read_on, without_finished

_LCCS = ("a", "b", "c")
_PIDS = (1, 2, 3)


@dataclass(frozen=True)
class _Row:
    pid: int
    doc: str
    seq: int
    version: int
    came: Came = ()


@dataclass
class _World:
    """Sub-LCCs with the newest row of each document, providers that move between them, and the moves."""

    rows: dict[str, dict[str, _Row]] = field(default_factory=lambda: {lcc: {} for lcc in _LCCS})
    heads: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_LCCS, 0))
    homes: dict[int, str] = field(default_factory=lambda: {pid: _LCCS[pid % 3] for pid in _PIDS})
    moves: dict[int, Move] = field(default_factory=dict)
    moving: dict[int, Iterator[None]] = field(default_factory=dict)
    versions: int = 0

    def change(self, pid: int, doc: int) -> None:
        if pid not in self.moving:
            self.versions += 1
            self._write(self.homes[pid], _Row(pid, f"{pid}/{doc}", 0, self.versions))

    def move(self, pid: int, target: str) -> None:
        if pid not in self.moving and self.homes[pid] != target:
            self.moving[pid] = self._steps(pid, target)
            self.step(pid)

    def step(self, pid: int) -> None:
        if pid in self.moving and next(self.moving[pid], StopIteration) is StopIteration:
            del self.moving[pid]

    def _steps(self, pid: int, target: str) -> Iterator[None]:
        source, number = self.homes[pid], len(self.moves) + 1
        move = Move(number, pid, source, target, self.heads[source])
        self.moves[number] = move
        yield
        leaving = sorted(
            (row for row in self.rows[source].values() if row.pid == pid), key=lambda row: row.seq
        )
        for row in leaving:
            self._write(target, replace(row, came=(*row.came, (number, row.seq))))
            yield
        self.homes[pid] = target
        yield
        for row in leaving:
            del self.rows[source][row.doc]
            yield
        self.moves[number] = replace(move, target_seq=self.heads[target])

    def _write(self, lcc: str, row: _Row) -> None:
        self.heads[lcc] += 1
        self.rows[lcc][row.doc] = replace(row, seq=self.heads[lcc])

    def page(self, lcc: str, after: int, limit: int) -> tuple[list[_Row], Position]:
        rows = sorted((row for row in self.rows[lcc].values() if row.seq > after), key=lambda row: row.seq)
        seq = rows[limit - 1].seq if len(rows) > limit else self.heads[lcc]
        return rows[:limit], Position(lcc, 1, seq)


class _Follower:
    """Asks each sub-LCC for pages, takes them some time later, and checks what it is told."""

    def __init__(self, world: _World) -> None:
        self.world = world
        open_ = [move.number for move in world.moves.values() if move.target_seq is None]
        self.position = begun(FrontPosition(), min(open_, default=0), len(world.moves)).within(_LCCS)
        self.asked: dict[str, tuple[list[_Row], Position]] = {}
        self.told: dict[str, int] = defaultdict(int)

    def ask(self, lcc: str, limit: int = 2) -> None:
        if lcc not in self.asked:
            part = self.position.part(lcc)
            assert part is not None
            self.asked[lcc] = self.world.page(lcc, part.position.seq, limit)

    def take(self, lcc: str) -> None:
        if lcc not in self.asked:
            return
        rows, reached = self.asked.pop(lcc)
        low = lowest(self.position)
        moves = Moves.made_of(move for number, move in self.world.moves.items() if number > low)
        came = {row.seq: row.came for row in rows}
        told, position = read_on(self.position, moves, reached, rows, came)
        self.position = FrontPosition.parse(str(position))  # as if it were killed after every page
        for row in told:
            assert row.version > self.told[row.doc], f"{row.doc} is told twice, or an old state of it"
            self.told[row.doc] = row.version

    def finish(self) -> None:
        for _ in range(3):
            for lcc in _LCCS:
                self.take(lcc)
                self.ask(lcc, 1000)
                self.take(lcc)
        there = {row.doc: row.version for rows in self.world.rows.values() for row in rows.values()}
        assert self.told == there
        assert self.position.notes == ()


_pid, _lcc, _who = st.sampled_from(_PIDS), st.sampled_from(_LCCS), st.integers(0, 1)
_EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), _pid, st.integers(0, 2)),
        st.tuples(st.just("move"), _pid, _lcc),
        st.tuples(st.just("step"), _pid),
        st.tuples(st.just("step"), _pid),
        st.tuples(st.just("ask"), _who, _lcc),
        st.tuples(st.just("take"), _who, _lcc),
        st.tuples(st.just("begin")),
    ),
    max_size=80,
)


@settings(max_examples=int(os.environ.get("LCC_FRONT_MOVES", "400")))
@given(_EVENTS)
def test_whatever_happens_in_between_each_change_is_told_once(events: list[tuple[object, ...]]) -> None:
    world = _World()
    followers = [_Follower(world), _Follower(world)]
    for what, *values in events:
        if what == "begin":
            followers[1] = _Follower(world)
        elif what in {"ask", "take"}:
            getattr(followers[values[0]], str(what))(values[1])  # type: ignore[call-overload]
        else:
            getattr(world, str(what))(*values)
    for pid in list(world.moving):
        while pid in world.moving:
            world.step(pid)
    for follower in followers:
        follower.finish()


def _moved(world: _World, pid: int, target: str) -> None:
    world.move(pid, target)
    while pid in world.moving:
        world.step(pid)


def test_what_was_told_before_a_move_is_not_told_again_and_what_was_not_is_told_by_the_target() -> None:
    world = _World()
    world.change(1, 0)
    follower = _Follower(world)
    follower.ask("b")
    follower.take("b")
    world.change(1, 1)
    _moved(world, 1, "c")
    follower.ask("b")  # nothing of it is left there
    follower.take("b")
    assert dict(follower.told) == {"1/0": 1}
    follower.finish()
    assert dict(follower.told) == {"1/0": 1, "1/1": 2}


def test_a_page_that_was_read_before_a_move_began_and_is_taken_after_it_repeats_nothing() -> None:
    world = _World()
    follower = _Follower(world)
    world.change(1, 0)
    follower.ask("b")
    _moved(world, 1, "c")
    follower.ask("c")
    follower.take("c")
    assert dict(follower.told) == {"1/0": 1}
    follower.finish()


def test_a_part_that_is_started_over_is_told_all_that_is_there_now() -> None:
    world = _World()
    world.change(1, 0)
    follower = _Follower(world)
    follower.finish()
    _moved(world, 1, "c")
    follower.ask("c")
    follower.take("c")
    assert dict(follower.told) == {"1/0": 1}
    follower.position = follower.position.anew("c")
    follower.told.clear()
    follower.finish()
    assert dict(follower.told) == {"1/0": 1}


def test_a_source_that_is_removed_after_all_its_providers_moved_has_its_note_kept() -> None:
    world = _World()
    world.change(1, 0)
    follower = _Follower(world)
    follower.ask("b")
    follower.take("b")
    _moved(world, 1, "c")
    follower.ask("a")
    follower.take("a")  # notes the move
    follower.position = FrontPosition.parse(str(follower.position.within(["a", "c"])))
    follower.ask("c")
    follower.take("c")
    assert dict(follower.told) == {"1/0": 1}


def _many(count: int) -> tuple[FrontPosition, list[Move]]:
    """Return a position with a note for each of many moves out of "a" which are not over."""
    position, moves = FrontPosition().within(_LCCS).at(Position("a", 1, 0)), []
    for number in range(1, count + 1):
        moves.append(Move(number, number, "a", "b", number))
        new = noted(position.at(Position("a", 1, number)), Moves.made_of(moves))
        assert new is not None
        position = new
    return position, moves


def test_with_too_many_notes_the_source_waits_and_the_target_goes_on_up_to_the_first_unknown_row() -> None:
    position, moves = _many(TOLD_MAX)
    assert FrontPosition.parse(str(position)) == position
    moves.append(Move(TOLD_MAX + 1, 100, "a", "b", 900))
    known = Moves.made_of(moves)
    source = [_Row(200, "200/0", 950, 1)]
    assert read_on(position, known, Position("a", 1, 990), source, {}) == ([], position)
    old, new, late = (_Row(pid, f"{pid}/0", seq, 1) for pid, seq in ((1, 10), (100, 12), (2, 13)))
    came: dict[int, Came] = {10: [(1, 5)], 12: [(TOLD_MAX + 1, 800)], 13: [(2, 1)]}
    told, after = read_on(position, known, Position("b", 1, 20), [old, new, late], came)
    assert told == [old]
    part = after.part("b")
    assert part is not None
    assert (part.position.seq, after.moves) == (11, TOLD_MAX)


def test_moves_that_are_seen_together_share_a_note() -> None:
    moves = [Move(number, number, "a", "b", number, number) for number in range(1, 1001)]
    position = noted(FrontPosition().within(_LCCS).at(Position("a", 1, 5)), Moves.made_of(moves))
    assert position is not None
    assert position.notes == (Note(1, 1000, (("a", 5),)),)
    assert (position.moves, lowest(position), lowest(FrontPosition(moves=7))) == (1000, 0, 7)


@pytest.mark.parametrize(("seq", "kept"), [(8, True), (9, False)])
def test_a_note_is_forgotten_when_the_target_was_read_behind_the_last_copied_row(
    seq: int, *, kept: bool
) -> None:
    position = (
        FrontPosition(notes=(Note(1, 1, (("a", 5),)),), moves=1).within(["b"]).at(Position("b", 1, seq))
    )
    assert bool(without_finished(position, Moves.made_of([Move(1, 7, "a", "b", 6, 9)])).notes) is kept
    assert without_finished(position, Moves.made_of([Move(1, 7, "a", "b", 6)])).notes


_MOVES = (
    Move(1, 7, "a", "b", 10, 20),
    Move(2, 7, "b", "c", 30, 40),
    Move(3, 7, "c", "a", 50, 60),
    Move(4, 8, "a", "b", 12, 22),
)


def _told(position: FrontPosition, lcc: str, came: Came = (), *, seq: int = 100, pid: int = 7) -> bool:
    moves = Moves.made_of(_MOVES)
    row = _Row(pid, "7/0", seq, 1)
    told, _ = read_on(position, moves, Position(lcc, 1, seq), [row], {seq: came} if came else {})
    return told == [row]


def _at(moves: int, *notes: Note, lccs: tuple[str, ...] = _LCCS) -> FrontPosition:
    return replace(FrontPosition().within(lccs), moves=moves, notes=tuple(notes))


_FIRST, _SECOND, _THIRD = Note(1, 1, (("a", 5),)), Note(2, 2, (("b", 25),)), Note(3, 3, (("c", 45),))


@pytest.mark.parametrize(
    ("position", "lcc", "came", "told"),
    [
        (_at(4), "b", (), True),  # a change of its own
        (_at(4, _FIRST), "b", ((1, 5),), False),
        (_at(4, _FIRST), "b", ((1, 6),), True),
        (_at(4), "b", ((1, 6),), False),  # the note is forgotten: all that came was read
        (_at(4, _FIRST, _SECOND), "c", ((1, 6), (2, 26)), True),
        (_at(4, _FIRST, _SECOND), "c", ((1, 5), (2, 26)), False),  # told in a
        (_at(4, _FIRST, _SECOND), "c", ((1, 6), (2, 25)), False),  # told in b
        (_at(4, _SECOND), "c", ((1, 6), (2, 26)), False),  # all of the first move was read
        (_at(4, _SECOND, lccs=("a", "c")), "c", ((1, 6), (2, 26)), False),
        (_at(4, Note(1, 2, (("a", 5), ("b", 25)))), "c", ((2, 26), (1, 6)), True),
        (_at(4), "b", ((9, 1),), True),  # by a move of which the front knows nothing
        (_at(9, Note(8, 9, (("a", 5),))), "b", ((9, 1),), True),
        (_at(4, _FIRST).anew("b"), "b", ((1, 5),), True),  # read from its start since
        (_at(1, _FIRST).anew("b"), "b", ((1, 5),), True),
    ],
)
def test_a_row_that_came_by_moves_is_told_unless_it_was_in_one_of_the_places_before(
    position: FrontPosition, lcc: str, came: Came, *, told: bool
) -> None:
    if position.moves < len(_MOVES):
        position = replace(position, moves=len(_MOVES))
    assert _told(position, lcc, came) is told


@pytest.mark.parametrize(
    ("position", "seq", "pid", "told"),
    [
        (_at(4, _FIRST), 10, 7, False),
        (_at(4, _FIRST), 11, 7, True),  # it has come back since
        (_at(4, _FIRST), 10, 9, True),
        (_at(4, _FIRST), 10, 8, True),  # of that move there is no note any more
        (_at(4, Note(2, 2, ())), 10, 7, True),
    ],
)
def test_a_row_is_not_told_by_the_source_of_a_move_that_was_noted(
    position: FrontPosition, seq: int, pid: int, *, told: bool
) -> None:
    assert _told(position, "a", seq=seq, pid=pid) is told


def test_notes_of_a_provider_are_forgotten_together_and_those_of_others_alone() -> None:
    moves = Moves.made_of(_MOVES)
    position = _at(4, _FIRST, _SECOND, Note(4, 4, (("a", 5),)))
    for lcc, seq in (("a", 99), ("b", 99), ("c", 39)):
        position = position.at(Position(lcc, 1, seq))
    assert [note.first for note in without_finished(position, moves).notes] == [1, 2]
    assert without_finished(position.at(Position("c", 1, 40)), moves).notes == ()


def test_what_is_new_is_noted_once_and_what_was_read_of_no_source_is_nothing() -> None:
    moves = Moves.made_of(_MOVES)
    assert noted(_at(4, _FIRST), moves) == _at(4, _FIRST)
    position = noted(_at(2, _FIRST, lccs=("a", "b")).at(Position("a", 1, 8)), moves)
    assert position is not None
    assert position.notes == (_FIRST, Note(3, 4, (("a", 8), ("c", 0))))
    assert lowest(_at(9, Note(3, 4, ()), Note(5, 7, ()))) == 2


def test_with_too_many_notes_only_sources_of_new_moves_wait() -> None:
    position, moves = _many(TOLD_MAX)
    known = Moves.made_of([*moves, Move(65, 100, "a", "b", 900), Move(66, 101, "c", "b", 900)])
    row = _Row(200, "200/0", 950, 1)
    for lcc in ("a", "c"):
        assert read_on(position, known, Position(lcc, 1, 990), [row], {}) == ([], position)
    told, after = read_on(position, known, Position("b", 1, 990), [row], {950: ((TOLD_MAX, 800),)})
    assert (told, after.part("b")) == ([row], Part(Position("b", 1, 990), 0))
    came: dict[int, Came] = {950: ((TOLD_MAX, 800), (65, 850))}
    assert read_on(position, known, Position("b", 1, 990), [row], came)[0] == []
