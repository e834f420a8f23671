"""The conversation at the query socket: the table, and what is done at each of its arrows."""

import itertools

import pytest

from lcc_scrapy.apps.query.deadlines import Deadlines
from lcc_scrapy.apps.query.session import Begin, Close, GoOn, HalfClose, Session, WaitAMoment, Write
from lcc_scrapy.apps.query.settings import Limits
from lcc_scrapy.apps.query.states import (
    TABLE,
    Answered,
    LookAgain,
    NothingYet,
    Portion,
    Refused,
    State,
    StreamEnded,
    Vanished,
)
from lcc_scrapy.apps.query.wire.messages import Query
from lcc_scrapy.domain.errors import Refusal

EVENTS = (
    Query(), Portion(b"x"), NothingYet(), LookAgain(), Answered(), Refused(Refusal(803)), StreamEnded(), Vanished(),
)  # fmt: skip


@pytest.mark.parametrize(("state", "event"), list(itertools.product(State, EVENTS)))
def test_the_table_is_followed_and_what_is_not_in_it_changes_nothing(state, event):
    session = Session()
    session.state = state
    before = session.outcome
    effects = session.take(event)
    following = TABLE.get((state, type(event)))
    assert session.state is (following or state)
    assert bool(effects) is (following is not None)
    assert following or session.outcome == before


def test_a_query_that_waits_is_answered_when_something_changed():
    session = Session()
    assert session.take(Query(wait=9)) == [Begin(Query(wait=9))]
    assert session.take(Portion(b"<a>")) == [Write(b"<a>"), GoOn()]
    assert session.take(NothingYet()) == [WaitAMoment()]
    assert session.take(LookAgain()) == [GoOn()]
    assert session.take(Answered()) == [HalfClose()]
    assert session.take(StreamEnded()) == [Close()]
    assert session.outcome == "answered"


def test_a_refusal_fits_to_what_was_said_before():
    fresh, begun = Session(), Session()
    begun.take(Query())
    begun.take(Portion(b"<a>"))
    (first, _), (second, _) = fresh.take(Refused(Refusal(805, "x"))), begun.take(Refused(Refusal(803)))
    assert b"<lococa:query_rejected" in first.data
    assert second.data.startswith(b"<broken_off")


LIMITS = Limits(idle_seconds=60, rate=1000, rate_grace_seconds=30, linger_seconds=10, linger_bytes=100)


def test_who_takes_nothing_of_what_is_ready_is_not_waited_for_longer():
    patience = Deadlines(LIMITS, 0)
    patience.said(10**6)
    patience.hold(5)
    assert not patience.is_over(65)
    assert patience.is_over(65.1)
    patience.go_on(65.1)
    assert not patience.is_over(1000)


def test_who_is_slow_on_average_is_cut_and_our_own_time_does_not_count():
    patience = Deadlines(LIMITS, 0)
    for start in range(0, 100, 20):
        patience.said(15_000)
        patience.hold(start)
        patience.go_on(start + 10)
    patience.hold(5000)
    assert not patience.is_over(5020)
    assert patience.is_over(5026)


def test_who_reads_everything_and_never_closes_or_never_stops_sending_is_cut():
    patience = Deadlines(LIMITS, 0)
    assert not patience.is_over(10**6)
    patience.over(10**6)
    assert not patience.is_over(10**6 + 10)
    assert patience.is_over(10**6 + 11)
    talkative = Deadlines(LIMITS, 0)
    talkative.discarded(101)
    assert talkative.is_over(0)
