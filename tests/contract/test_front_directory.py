"""PMDB and FEDB, the same on every database."""

from contextlib import closing
from dataclasses import replace

import pytest

from lcc_scrapy.domain.errors import ConfigurationError, StoreUnavailable
from lcc_scrapy.domain.front import FrontError, MoveStep, Moving, SubLcc, SubState
from lcc_scrapy.domain.front_moves import Move
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.given_pids import Found

A = SubLcc("a", "192.0.2.1:9000", "id", "http://192.0.2.1/", "token", "sqlite:///x", 10**9, SubState.FULL)
B = SubLcc("b", "192.0.2.2:9000")


@pytest.fixture(params=["sqlite", "mariadb", "postgresql"])
def directory(request, databases):
    with closing(Directory(databases.empty(request.param))) as made:
        made.create()
        yield made


@pytest.fixture
def filled(directory):
    directory.add(B)
    directory.add(A)
    directory.assign(7, "a")
    return directory


def test_sub_lccs_come_back_as_they_were_added_by_name(filled):
    assert filled.subs() == [A, B]
    assert filled.sub("a") == A
    filled.change(replace(A, uns="192.0.2.9:1", state=SubState.ACTIVE))
    assert filled.sub("a") == replace(A, uns="192.0.2.9:1", state=SubState.ACTIVE)


def test_a_provider_has_exactly_one_sub_lcc(filled):
    with pytest.raises(FrontError, match="provider 7 is assigned already"):
        filled.assign(7, "b")
    assert (filled.sub_of(7), filled.sub_of(8)) == (A, None)
    assert filled.providers() == {"a": 1}
    filled.withdraw(7)
    filled.assign(7, "b")
    assert filled.sub_of(7) == B


def test_logins_go_to_their_sub_lcc_and_unknown_ones_to_the_first(filled):
    assert [filled.route(pid) for pid in (7, 8, None)] == [A, A, A]
    filled.withdraw(7)
    filled.remove("a")
    assert filled.route(7) == B
    filled.remove("b")
    assert filled.route(7) is None


def test_a_name_stands_for_one_sub_lcc(filled):
    with pytest.raises(FrontError, match="there is a sub-LCC a already"):
        filled.add(replace(A, uns="elsewhere:1"))
    assert filled.sub("a") == A


def test_one_that_has_providers_stays(filled):
    with pytest.raises(FrontError, match="has providers"):
        filled.remove("a")
    assert filled.subs() == [A, B]


@pytest.mark.parametrize("what", ["sub", "remove"])
def test_what_is_not_there_is_one_clear_line(filled, what):
    with pytest.raises(FrontError, match="there is no sub-LCC c"):
        getattr(filled, what)("c")
    with pytest.raises(FrontError, match="there is no sub-LCC c"):
        filled.change(replace(A, name="c"))
    with pytest.raises(FrontError, match="there is no sub-LCC c"):
        filled.assign(9, "c")
    with pytest.raises(FrontError, match="provider 9 is not assigned"):
        filled.withdraw(9)


def test_a_database_that_is_no_front_is_refused(databases, directory, tmp_path):
    directory.create()  # a second time, as after a kill
    directory.check()
    with (
        closing(Directory(databases.empty("sqlite"))) as empty,
        pytest.raises(ConfigurationError, match="front"),
    ):
        empty.check()
    with (
        closing(Directory(f"sqlite:///{tmp_path}/none")) as none,
        pytest.raises(ConfigurationError, match="yet"),
    ):
        none.check()
    assert not (tmp_path / "none").exists()


def test_while_a_provider_moves_nobody_is_passed_on_and_both_sub_lccs_stay(filled):
    moving = Moving(7, "a", "b", "paused")
    filled.hold(moving)
    with pytest.raises(FrontError, match="moves already"):
        filled.hold(moving)
    with pytest.raises(StoreUnavailable, match="moves to sub-LCC b"):
        filled.route(7)
    assert filled.route(8) == A
    for name in ("a", "b"):
        with pytest.raises(FrontError, match="has"):
            filled.remove(name)
    with pytest.raises(FrontError, match="moves"):
        filled.withdraw(7)
    moving = filled.copying(moving, "id of a", "id of b", 41)
    assert filled.moving(7) == moving == replace(moving, step=MoveStep.COPY, number=1)
    assert (filled.moves(0), filled.oldest_open_move()) == ([Move(1, 7, "id of a", "id of b", 41)], 1)
    with pytest.raises(FrontError, match="no move that could be given up"):
        filled.give_up_move(7)
    with pytest.raises(StoreUnavailable):
        filled.route(7)
    moving = filled.flip(moving)
    assert filled.route(7) == B
    filled.end_move(moving, 99)
    assert (filled.moves(0)[0].target_seq, filled.oldest_open_move()) == (99, 0)
    assert filled.moving(7) is None


def test_a_move_of_which_nothing_was_copied_may_be_given_up(filled):
    filled.hold(Moving(7, "a", "b", "active"))
    filled.give_up_move(7)
    assert (filled.route(7), filled.moves(0)) == (A, [])


@pytest.mark.parametrize("what", ["drop table moving", "drop table given", "delete from frontinfo"])
def test_a_front_of_an_earlier_version_is_to_be_made_again(databases, directory, what):
    with closing(Directory(databases.empty("sqlite"))) as old:
        old.create()
        with old._engine.begin() as connection:
            connection.exec_driver_sql(what)
        with pytest.raises(ConfigurationError, match="lcc front init"):
            old.check()
        old.create()
        old.check()


# --- many at once, and pids that registration gave out -------------------------------------------


def test_many_providers_are_assigned_all_or_none(filled):
    filled.assign_many({})
    filled.assign_many({8: "b", 9: "a"})
    assert filled.assigned([7, 8, 9, 10]) == {7: "a", 8: "b", 9: "a"}
    assert filled.assigned(range(10_000)) == {7: "a", 8: "b", 9: "a"}
    with pytest.raises(FrontError, match="meanwhile"):
        filled.assign_many({10: "b", 8: "a"})
    with pytest.raises(FrontError, match="there is no sub-LCC c"):
        filled.assign_many({10: "c"})
    assert filled.assigned([8, 10]) == {8: "b"}


FIRST = 1_000_000


def test_a_pid_is_given_out_once_and_pmdb_has_it(filled):
    given = filled.given
    assert given.last() == FIRST - 1
    assert given.give_out(FIRST + 2, "b", after=FIRST - 1, look_at=50)
    assert not given.give_out(FIRST + 3, "a", after=FIRST - 1, look_at=50), "another front was faster"
    assert (given.last(), filled.assigned([FIRST + 2, FIRST + 3])) == (FIRST + 2, {FIRST + 2: "b"})
    assert given.counts() == {"b": 1}
    filled.assign(FIRST + 4, "a")
    assert not given.give_out(FIRST + 4, "b", after=FIRST + 2, look_at=50), "a provider has it"
    assert given.last() == FIRST + 2, "which changed nothing"
    with pytest.raises(FrontError, match="no sub-LCC c"):
        given.give_out(FIRST + 5, "c", after=FIRST + 2, look_at=50)
    assert given.unused([7, FIRST, FIRST + 2, FIRST + 3, FIRST + 4]) == {FIRST, FIRST + 2}


def test_what_became_of_pids_is_kept(filled):
    given = filled.given
    for number in range(4):
        assert given.give_out(FIRST + number, "ab"[number % 2], after=FIRST - 1 + number, look_at=50 + number)
    assert given.due(49, 9) == {}
    assert given.due(60, 2) == {FIRST: "a", FIRST + 1: "b"}
    filled.withdraw(FIRST + 3)
    filled.assign(FIRST + 3, "a")  # an operator did both: it is his now
    assert given.due(60, 9).keys() == {FIRST, FIRST + 1, FIRST + 2}
    given.note(Found([FIRST], {FIRST + 1: 99}, {FIRST + 2: "b"}))
    assert filled.assigned(range(FIRST, FIRST + 4)) == {
        FIRST: "a", FIRST + 1: "b", FIRST + 2: "a", FIRST + 3: "a",
    }, "it moved to another sub-LCC meanwhile"  # fmt: skip
    assert (given.due(98, 9), given.due(99, 9)) == ({}, {FIRST + 1: "b"})
    given.note(Found(nothing={FIRST + 1: "b"}))
    assert filled.assigned(range(FIRST, FIRST + 2)) == {FIRST: "a"}
    assert (given.due(10**9, 9), given.last()) == ({}, FIRST + 3)
    assert given.unused([FIRST, FIRST + 1]) == {FIRST + 1}
