"""What a crawl and its settling process say to each other comes out as it went in, whatever sites put into it."""

import io
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.cache import Answer, Body, CachedUrl, LazyBody
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.queue import Cancelled, Delayed, Failed, NotModified, QueuedUrl, Served, Ticket
from lcc_scrapy.domain.retries import Backoff
from lcc_scrapy.domain.revisits import Bounds
from lcc_scrapy.domain.versions import Keep
from lcc_scrapy.machine import framed_pipes
from lcc_scrapy.queue.settlement import Settled
from lcc_scrapy.queue.settling_process import messages

anything = st.text(st.characters(), max_size=20)  # surrogates, too
numbers = st.integers(0, (1 << 63) - 1)
keys = st.binary(min_size=16, max_size=16)
maybe = st.none() | anything
rows = st.builds(
    QueuedUrl, keys, numbers, anything, anything, anything, maybe, anything, st.none() | numbers,
    st.none() | numbers, maybe, anything, numbers, numbers, anything, numbers, numbers, numbers, anything,
    numbers, maybe,
)  # fmt: skip
tickets = st.builds(Ticket, rows, anything, numbers)
answers = st.builds(
    Answer, numbers, anything, anything, anything, anything, anything, anything, anything, anything, numbers
)
bodies = st.one_of(
    st.builds(Body, numbers, anything, anything, data=st.binary()),
    st.builds(LazyBody, st.binary()),
    st.builds(Body, numbers, anything, anything, path=anything.filter(bool), encoding=anything),
    st.builds(Body, numbers, anything, anything, encoding=anything.filter(bool), packed=st.binary()),
)
times = st.floats(0, 1e12)
served = st.builds(Served, tickets, answers, bodies, numbers)
outcomes = st.one_of(
    served,
    st.builds(Served, tickets, answers, bodies, numbers, served),
    st.builds(NotModified, tickets, numbers),
    st.builds(Failed, tickets, numbers, anything, numbers, st.booleans()),
    st.builds(Delayed, tickets, numbers, anything, numbers, st.builds(Backoff, times, numbers, times)),
    st.builds(Cancelled, tickets),
)
cached = st.builds(
    CachedUrl, keys, numbers, anything, anything, anything, maybe, anything, st.none() | numbers,
    st.none() | numbers, maybe, anything, *[numbers] * 4, *[anything] * 8, numbers, anything, *[numbers] * 5,
)  # fmt: skip
CANCELLED = Cancelled(Ticket(QueuedUrl(b"k" * 16, *[None] * 19), "7", 1))  # type: ignore[arg-type]


@given(st.lists(outcomes, max_size=5), numbers)
def test_outcomes_come_out_as_they_went_in(given_outcomes, now):
    file = io.BytesIO(b"".join(messages.commit(given_outcomes, now, None)))
    (kind, told, policy, said), parts = framed_pipes.read(file)
    assert (kind, told, policy, file.read()) == (messages.COMMIT, now, None, b"")
    assert messages.outcomes_of(said, parts) == given_outcomes


@given(st.lists(st.tuples(anything, st.none() | cached, numbers, st.booleans(), times | st.just(math.inf))))
def test_results_come_out_as_they_went_in(results):
    settled = [
        Settled(CANCELLED, result, row, code, removed, again) for result, row, code, removed, again in results
    ]
    (kind, said, logs), rows = framed_pipes.read(io.BytesIO(b"".join(messages.settled(settled, ["a log"]))))
    found = messages.settled_of(said, rows, [CANCELLED] * len(results))
    assert (kind, logs) == (messages.SETTLED, ["a log"])
    assert [(one.result, one.row, one.code, one.removed, one.again) for one in found] == results
    assert all(one.outcome is CANCELLED for one in found)


@pytest.mark.parametrize(
    "policy",
    [
        QueuePolicy(),
        QueuePolicy((), mimetypes=("a/b", "*/*"), versions=Keep(3, 5.5), revisits=Bounds(2, 1, 3)),
    ],
    ids=["default", "other"],
)
def test_the_operators_choices_come_out_as_they_went_in(policy):
    (_, _, said, _), _ = framed_pipes.read(io.BytesIO(b"".join(messages.commit([], 0, policy))))
    assert messages.policy_of(said) == policy


@given(st.data())
def test_a_message_that_was_cut_is_none(data):
    served = data.draw(st.builds(Served, tickets, answers, bodies, numbers))
    whole = b"".join(messages.commit([served], 0, None))
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(framed_pipes.Closed):
        framed_pipes.read(io.BytesIO(whole[:cut]))


def test_answers_that_the_cache_cannot_hold_are_cut_before_they_are_told():
    answer = Answer(200, "u", "t", "", "e" * 9999, "", "[]", "s" * 9999, "p", 0)
    served = Served(CANCELLED.ticket, answer, Body(0, "", "", data=b""), 7)
    (fitted,) = messages.fitted([served])
    assert fitted == replace(served, answer=replace(answer, etag="", status_line="s" * 255))
    assert messages.fitted([fitted])[0] is fitted
