"""States of a turn: what each table lets happen, and that nothing else does."""

from itertools import product

import pytest

from lcc_scrapy.domain.turn_states import FETCHES, WINDOW, Event, State, TurnState

WINDOWS = sorted({state for table_row in WINDOW.items() for state in (table_row[0][0], table_row[1])})
WORK = sorted({state for table_row in FETCHES.items() for state in (table_row[0][0], table_row[1])})
BUSY = (State.FETCHING, State.SETTLING)
TO_BE_READ = (State.UNREAD, State.READING, State.OUTDATED)


def after(*events: Event) -> TurnState:
    state = TurnState()
    for event in events:
        assert state.happens(event), f"{event} at {state}"
    return state


@pytest.mark.parametrize(("window", "fetches", "event"), list(product(WINDOWS, WORK, Event)))
def test_an_event_happens_in_every_table_that_knows_it_or_changes_nothing(
    window: State, fetches: State, event: Event
) -> None:
    state = TurnState(window, fetches)
    in_window, in_fetches = (any(known is event for _, known in table) for table in (WINDOW, FETCHES))
    may = (not in_window or (window, event) in WINDOW) and (not in_fetches or (fetches, event) in FETCHES)
    assert state.happens(event) is may
    expected = (
        WINDOW[window, event] if may and in_window else window,
        FETCHES[fetches, event] if may and in_fetches else fetches,
    )
    assert (state.window, state.fetches) == expected


def test_a_fetch_may_begin_beside_others_and_before_outcomes_are_durable() -> None:
    state = after(Event.HAND_OUT, Event.HAND_OUT, Event.FETCH_ENDS)
    assert state.fetches is State.SETTLING
    assert state.happens(Event.HAND_OUT)


@pytest.mark.parametrize("window", TO_BE_READ)
def test_a_turn_is_not_given_back_before_its_window_was_read(window: State) -> None:
    assert not TurnState(window, State.IDLE).happens(Event.GIVE_BACK)


@pytest.mark.parametrize("window", [State.READ, State.LEAVING])
@pytest.mark.parametrize("fetches", BUSY)
def test_a_turn_is_not_given_back_while_something_is_under_way_in_it(window: State, fetches: State) -> None:
    assert not TurnState(window, fetches).happens(Event.GIVE_BACK)


@pytest.mark.parametrize("window", [*TO_BE_READ, State.READ])
def test_a_turn_that_leaves_hands_nothing_out_and_is_not_read(window: State) -> None:
    state = TurnState(window, State.SETTLING)
    assert state.happens(Event.LEAVE)
    for event in Event:
        happened = event in {Event.ALL_SETTLED, Event.GIVE_BACK, Event.LOSE}
        assert TurnState(state.window, State.IDLE).happens(event) is (happened and event != Event.ALL_SETTLED)
    assert state.happens(Event.ALL_SETTLED)
    assert state.happens(Event.GIVE_BACK)


def test_what_changes_during_a_read_is_read_again() -> None:
    state = after(Event.READ_BEGINS, Event.READ_ANEW, Event.READ_ENDS)
    assert state.window is State.UNREAD


def test_a_turn_whose_read_failed_is_still_to_be_read() -> None:
    assert after(Event.READ_BEGINS, Event.READ_FAILS).window is State.UNREAD


@pytest.mark.parametrize(
    ("window", "fetches"), list(product([*TO_BE_READ, State.READ, State.LEAVING], [State.IDLE, *BUSY]))
)
def test_nothing_happens_to_a_turn_any_more_once_its_lease_is_lost(window: State, fetches: State) -> None:
    state = TurnState(window, fetches)
    assert state.happens(Event.LOSE)
    assert (state.window, state.fetches) == (State.GONE, State.GONE)
    assert not any(state.happens(event) for event in Event)


@pytest.mark.parametrize("window", [*TO_BE_READ, State.READ])
@pytest.mark.parametrize("fetches", [State.IDLE, State.SETTLING])
def test_a_url_may_be_handed_out_whatever_becomes_of_the_window_and_leaves_that_as_it_is(
    window: State, fetches: State
) -> None:
    state = TurnState(window, fetches)
    assert state.happens(Event.HAND_OUT)
    assert (state.window, state.fetches) == (window, State.FETCHING)


def test_a_window_that_was_read_is_read_on_when_it_runs_low_and_only_then() -> None:
    state = after(Event.READ_BEGINS)
    assert not state.happens(Event.READ_ON)
    assert state.happens(Event.READ_ENDS)
    assert state.window is State.READ
    assert state.happens(Event.READ_ON)
    assert state.window is State.UNREAD
    assert not state.happens(Event.READ_ON)


@pytest.mark.parametrize("window", [State.UNREAD, State.READ])
def test_a_window_whose_rows_changed_is_to_be_read_again(window: State) -> None:
    state = TurnState(window)
    assert state.happens(Event.READ_ANEW)
    assert state.window is State.UNREAD


def test_what_changes_during_a_read_that_fails_is_read_again() -> None:
    state = after(Event.READ_BEGINS, Event.READ_ANEW, Event.READ_FAILS)
    assert state.window is State.UNREAD


@pytest.mark.parametrize("window", [State.READ, State.LEAVING])
def test_an_idle_turn_that_was_read_or_leaves_can_be_given_back_once(window: State) -> None:
    state = TurnState(window, State.IDLE)
    assert state.happens(Event.GIVE_BACK)
    assert (state.window, state.fetches) == (State.GONE, State.GONE)
    assert not any(state.happens(event) for event in Event)
