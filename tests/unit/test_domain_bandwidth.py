"""Bandwidth: never more than the limit, and never less than there is to have (design section 5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.bandwidth import AHEAD, CREDIT, Demand, Meter, Pace, allotments, shared_limit


def test_without_a_limit_nothing_waits():
    pace = Pace()
    pace.charge(100.0, 10**12)
    assert (pace.delay(100.0), pace.pause(100.0)) == (0, 0)


def test_the_next_fetch_waits_until_the_bytes_have_been_paid_for():
    pace = Pace(1000, ready_at=100.0)
    pace.charge(100.0, 5000)
    assert pace.delay(100.0) == 5.0
    assert pace.delay(104.0) == 1.0
    assert pace.delay(106.0) == 0.0


def test_a_body_may_run_ahead_a_little_before_it_is_paused():
    pace = Pace(1000, ready_at=100.0)
    pace.charge(100.0, 400)
    assert pace.pause(100.0) == 0.0
    pace.charge(100.0, 1100)
    assert pace.pause(100.0) == pytest.approx(1.5 - AHEAD)


def test_time_long_past_is_no_credit():
    pace = Pace(1000)
    pace.charge(1_000_000.0, 1000)
    assert pace.delay(1_000_000.0) == 1.0 - CREDIT


@given(
    st.integers(1, 10**7),
    st.lists(st.tuples(st.floats(0, 30), st.integers(0, 10**6)), min_size=1, max_size=60),
)
def test_the_average_never_exceeds_the_limit_and_its_credit(limit, fetches):
    pace, now, charged = Pace(limit), 1000.0, []
    for gap, size in fetches:
        now += gap + pace.delay(now + gap)
        charged.append((now, size))
        pace.charge(now, size)
    for first, (start, _) in enumerate(charged):
        total = 0
        for moment, size in charged[first:]:
            assert total <= limit * (moment - start + CREDIT) * (1 + 1e-9) + 1e-3
            total += size


@given(st.integers(1, 10**6), st.lists(st.integers(1, 10**5), min_size=1, max_size=50))
def test_a_provider_that_always_has_work_gets_its_whole_limit(limit, sizes):
    pace, now = Pace(limit, ready_at=1000.0), 1000.0
    for size in sizes:
        now += pace.delay(now)
        pace.charge(now, size)
    assert now + pace.delay(now) == pytest.approx(1000.0 + sum(sizes) / limit)


def test_one_worker_has_the_whole_limit():
    for demand in (Demand(0, False), Demand(990, False), Demand(1000, True)):
        assert allotments(1000, {"a": demand}) == {"a": 1000}


def test_hungry_workers_share_what_others_leave():
    given_ = allotments(1000, {"a": Demand(160, False), "b": Demand(900, True), "c": Demand(1, True)})
    assert given_ == {"a": 200, "b": 400, "c": 400}


def test_an_idle_worker_keeps_a_little_to_begin_with():
    given_ = allotments(10_000, {"a": Demand(0, False), "b": Demand(9000, True)})
    assert given_ == {"a": 100, "b": 9900}


def test_workers_that_want_more_than_there_is_have_equal_shares():
    assert allotments(1000, {name: Demand(800, False) for name in "ab"}) == {"a": 500, "b": 500}


def test_a_clock_that_is_moved_changes_no_wait():
    pace = Pace(1000, ready_at=100.0)
    pace.charge(100.0, 5000)
    for step in (3600, -7200):
        now = pace.ready_at - 5 + step
        pace.moved(step)
        assert (pace.delay(now), pace.may_start_at()) == (5, now + 5 - AHEAD)


def test_a_rate_is_measured_over_whole_periods():
    meter = Meter(10.0, 100.0)
    meter.transferred = 1000
    assert [meter.measure(100.0 + after) for after in (0, 9.9, 10, 19.9, 20)] == [0, 0, 100, 100, 0]


demands = st.builds(Demand, st.floats(0, 10**7), st.booleans())


@given(st.integers(1000, 10**9), st.dictionaries(st.text(max_size=3), demands, min_size=1, max_size=20))
def test_all_together_get_the_limit(limit, wanted):
    given_ = allotments(limit, wanted)
    assert given_.keys() == wanted.keys()
    assert min(given_.values()) >= 1
    assert abs(sum(given_.values()) - limit) <= len(wanted)


def test_members_of_a_group_share_the_smallest_limit():
    assert [shared_limit(some) for some in ([], [0, 0], [0, 300, 200])] == [0, 0, 200]


def test_a_changed_limit_keeps_what_is_owed_in_bytes():
    pace = Pace(1000, 5000.0)
    pace.charge(5000.0, 10_000)
    owed = pace.delay(5000.0) * 1000
    pace.change(5000.0, 5000)
    assert pace.delay(5000.0) * 5000 == pytest.approx(owed)
    pace.change(5000.0, 0)
    assert pace.delay(5000.0) == 0


def test_a_fetch_waits_for_nothing_after_the_limit_was_lifted():
    pace = Pace(100)
    pace.charge(1000.0, 100_000)
    pace.change(1000.0, 0)
    assert pace.may_start_at() == 0.0
    assert (pace.pause(1000.0), pace.delay(1000.0)) == (0.0, 0.0)


def test_a_changed_limit_leaves_unused_bandwidth_as_it_was():
    pace = Pace(100, 1000.0)
    pace.change(1000.0 + CREDIT, 1000)
    pace.charge(1000.0 + CREDIT, 1000)
    assert pace.ready_at == 1001.0


def test_nobody_shares_a_limit_where_nobody_is():
    assert allotments(1000, {}) == {}


def test_a_share_is_never_nothing_for_that_would_be_no_limit():
    assert allotments(1, {name: Demand(0.0, hungry=False) for name in "abcde"}) == dict.fromkeys("abcde", 1)
