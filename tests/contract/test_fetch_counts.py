"""What became of fetches of late: counted with their commit, by provider, span of time, result and code."""

import pytest

from lcc_scrapy.db.records import EVERYBODY, Fetched
from lcc_scrapy.domain.fetch_counts import DAY, HOUR, SPAN, columns, since, span_of
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.ops.housekeeping import sweep
from lcc_scrapy.queue.fetch_counts import FAILING, in_words, of_late
from tests.contract.little_lcc import PID, update

OTHER = 8


@pytest.fixture
def counted(store):
    """Several spans in which things were counted: all in the last hour, the last day, and before."""
    now = 1_800_000_123
    with store.begin() as tx:
        for ago in (0, HOUR, HOUR + SPAN, DAY, DAY + SPAN):
            counts = {Fetched(PID, "stored", 0): 2, Fetched(OTHER, "failed", 404): 1}
            tx.count_fetches(counts, span_of(now - ago))
        tx.count_fetches({Fetched(PID, "stored", 0): 1, Fetched(PID, "failed", 404): 1}, span_of(now))
    return now


def test_counts_are_added_up_since_a_span(store, counted):
    with store.read() as tx:
        assert tx.fetch_counts(since(counted, HOUR), PID) == {("stored", 0): 5, ("failed", 404): 1}
        assert tx.fetch_counts(since(counted, DAY), OTHER) == {("failed", 404): 4}
        assert tx.fetch_counts(counted + SPAN, PID) == tx.fetch_counts(0, EVERYBODY) == {}


def test_counts_are_told_by_spans(store, counted):
    first, last = span_of(counted - HOUR), span_of(counted)
    with store.read() as tx:
        assert tx.fetch_spans(since(counted, HOUR), PID) == {
            (first, "stored"): 2,
            (last, "stored"): 3,
            (last, "failed"): 1,
        }
        assert tx.fetch_spans(last + 1, PID) == tx.fetch_spans(0, EVERYBODY) == {}


def test_columns_of_a_chart_have_every_count_once_and_leave_no_gap(store, counted):
    with store.read() as tx:
        spans = tx.fetch_spans(since(counted, DAY), OTHER)
    day = columns(spans, counted, DAY, HOUR, FAILING)
    assert [one.begun for one in day] == [since(counted, DAY) + HOUR * n for n in range(25)]
    assert [(n, one.tried, one.failed) for n, one in enumerate(day) if one.tried] == [
        (0, 1, 1), (22, 1, 1), (23, 1, 1), (24, 1, 1),
    ]  # fmt: skip
    assert [one.tried for one in columns(spans, counted, HOUR, SPAN, FAILING)] == [1, 0, 0, 0, 0, 0, 1]


def test_what_is_older_than_a_day_is_forgotten_by_housekeeping_in_portions(store, counted):
    with store.begin() as tx:
        before = since(counted, DAY)
        assert [tx.forget_fetch_counts(before, 1) for _ in range(3)] == [1, 1, 0]
        assert tx.fetch_counts(0, OTHER) == {("failed", 404): 4}
    for _ in sweep(store, QueuePolicy(), counted + DAY + SPAN):
        pass
    with store.read() as tx:
        assert tx.fetch_counts(0, PID) == tx.fetch_counts(0, OTHER) == {}


def test_what_was_counted_of_a_provider_goes_with_it(store, counted, registered):
    registered(PID)
    with store.begin() as tx:
        tx.delete_provider(PID)
        assert tx.fetch_counts(0, PID) == {}
        assert tx.fetch_counts(0, OTHER) == {("failed", 404): 5}


def test_every_outcome_is_counted_in_the_commit_that_makes_it_durable(lcc):
    lcc.push(*map(update, "abcd"))
    a, b, c, d = (lcc.ticket(name) for name in "abcd")
    lcc.settle(lcc.served(a), lcc.failed(b, 404, final=True), lcc.failed(c, 603, final=True))
    lcc.settle(lcc.failed(d, 503))
    lcc.settle(lcc.served(a), owner="somebody else")
    with lcc.store.read() as tx:
        late = of_late(tx, lcc.now, PID)
        assert late["hour"] == {
            "since": since(lcc.now, HOUR),
            "stored": {"total": 1, "codes": {}},
            "confirmed": {"total": 0, "codes": {}},
            "retrying": {"total": 1, "codes": {"503": 1}},
            "delayed": {"total": 0, "codes": {}},
            "failed": {"total": 2, "codes": {"404": 1, "603": 1}},
            "discarded": {"total": 0, "codes": {}},
        }
        assert late["day"] == late["hour"] | {"since": since(lcc.now, DAY)}
        assert of_late(tx, lcc.now)["hour"] == late["hour"]
        assert of_late(tx, lcc.now, OTHER)["hour"]["stored"]["total"] == 0


def test_the_url_that_has_waited_longest_is_the_first_of_the_oldest_set(lcc):
    with lcc.store.read() as tx:
        assert tx.oldest_waiting() is None
    lcc.push(update("a"), update("b"))
    lcc.now += 100
    lcc.push(update("c"))
    first = waiting_longest(lcc)
    assert first == ("a", lcc.now - 100)
    lcc.settle(lcc.failed(lcc.ticket("a"), 503))
    assert waiting_longest(lcc) == ("b", lcc.now - 100)
    lcc.settle(lcc.served(lcc.ticket("b")))
    assert waiting_longest(lcc) == ("a", lcc.now - 100), "it waits to be tried again"
    with lcc.store.read() as tx:
        assert tx.oldest_waiting(OTHER) is None
        assert of_late(tx, lcc.now)["oldest_waiting"]["since"] == lcc.now - 100


def waiting_longest(lcc):
    with lcc.store.read() as tx:
        oldest = tx.oldest_waiting(PID)
        assert oldest == tx.oldest_waiting()
    return oldest.row.furl.rpartition("/")[2], oldest.since


def test_counts_are_told_in_plain_words_most_first():
    counts = {
        ("failed", 603): 2,
        ("stored", 0): 118,
        ("failed", 404): 10,
        ("delayed", 602): 3,
        ("stored", 607): 2,
    }
    told = "120 stored (607: 2), 3 waiting for their host (602: 3), 12 failed (404: 10, 603: 2)"
    assert (in_words(counts), in_words({})) == (told, "")
