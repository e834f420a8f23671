"""PMDB and FEDB, the same on every database."""

from contextlib import closing
from dataclasses import replace

import pytest

from lcc_scrapy.domain.errors import ConfigurationError, StoreUnavailable
from lcc_scrapy.domain.front import FrontError, MoveStep, Moving, SubLcc, SubState
from lcc_scrapy.domain.front_moves import Move
from lcc_scrapy.front.directory import Directory

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


def test_a_front_of_an_earlier_version_is_to_be_made_again(databases, directory):
    with closing(Directory(databases.empty("sqlite"))) as old:
        old.create()
        with old._engine.begin() as connection:
            connection.exec_driver_sql("drop table moving")
        with pytest.raises(ConfigurationError, match="lcc front init"):
            old.check()
        old.create()
        old.check()
