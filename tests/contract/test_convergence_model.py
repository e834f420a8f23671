"""Random pushes, answers, kills and hours against two promises: convergence, and a bound on requests.

A page that its site serves as it was declared last ends in the cache as declared. No declaration costs more
requests than its tries, and one per last delay while it is pushed again.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from little_lcc import SITE, LittleLcc, assert_books_balance, update

from lcc_scrapy.domain.policy import QueuePolicy

NAMES = ["a", "b"]
BODIES = [b"one", b"two", b"three", b""]
DELAYS = (10, 30, 300)
ANSWERS = ["right", "old edge", "empty", "304", 404, 410, 500, "other type"]


@dataclass
class Page:
    """A page of the site: ``right`` is what it will serve in the end, ``edge`` what a cache before it has."""

    right: bytes | None = None
    edge: bytes = b"one"
    declared: bytes | None = None
    asked: list[int] = field(default_factory=list)
    """When, for what is declared now."""


class Site(RuleBasedStateMachine):
    """An LCC and a site that answers as it pleases, until it is asked to end."""

    make_store = None

    @initialize(strict=st.booleans())
    def begin(self, strict):
        declared = "strict" if strict else "record"
        self.lcc = LittleLcc(type(self).make_store(), QueuePolicy(retry_delays=DELAYS, declared=declared))
        self.lcc.add()
        self.pages = {name: Page() for name in NAMES}
        self.out = []

    @rule(name=st.sampled_from(NAMES), body=st.sampled_from(BODIES))
    def a_page_changes_and_is_pushed(self, name, body):
        page = self.pages[name]
        if page.declared != body:
            page.declared, page.asked = body, []
        page.right = body
        self.lcc.push(update(name, body))

    @rule(full=st.booleans(), touched=st.integers(0, 3))
    def all_is_pushed_again(self, full, touched):
        known = [(name, page.declared) for name, page in self.pages.items() if page.declared is not None]
        entries = [update(name, body, subtype=f"v: {touched}") for name, body in known]
        if entries:
            self.lcc.push(*entries, full=full)

    @rule(
        hows=st.lists(st.sampled_from(ANSWERS), min_size=3, max_size=3), seconds=st.sampled_from([1, 10, 30])
    )
    def all_is_pushed_again_and_asked_for(self, hows, seconds):
        self.all_is_pushed_again(full=False, touched=seconds)
        self.some_are_asked_for(3)
        if self.out:
            self.they_are_answered(hows)
        self.time_passes(seconds)

    @rule(name=st.sampled_from(NAMES), body=st.sampled_from(BODIES))
    def an_edge_has_another_page(self, name, body):
        self.pages[name].edge = body

    @rule(count=st.integers(1, 3))
    def some_are_asked_for(self, count):
        for ticket in self.lcc.tickets(limit=count, out=[ticket.row.urlkey for ticket in self.out]):
            page = self.pages[ticket.row.curl.removeprefix(SITE)]
            self.out.append(ticket)
            if ticket.row.md5 == update("x", page.declared).declared.md5:
                page.asked.append(self.lcc.now)

    def answered(self, ticket, how):
        page = self.pages[ticket.row.curl.removeprefix(SITE)]
        if how == "304" and ticket.etag:
            return self.lcc.not_modified(ticket)
        if isinstance(how, int):
            return self.lcc.failed(ticket, how)
        body = {"right": page.right, "empty": b""}.get(how, page.edge)
        kind = "image/png" if how == "other type" else "text/html"
        return self.lcc.served(ticket, body, etag=f'"{body.decode()}"', served_type=kind)

    @precondition(lambda self: self.out)
    @rule(hows=st.lists(st.sampled_from(ANSWERS), min_size=3, max_size=3))
    def they_are_answered(self, hows):
        out, self.out = self.out, []
        self.lcc.settle(*[self.answered(ticket, how) for ticket, how in zip(out, hows * 9, strict=False)])

    @precondition(lambda self: self.out)
    @rule()
    def the_crawl_is_killed(self):
        """What was under way is asked for again; it was no try."""
        for ticket in self.out:
            page = self.pages[ticket.row.curl.removeprefix(SITE)]
            if ticket.row.md5 == update("x", page.declared).declared.md5 and page.asked:
                page.asked.pop()
        out, self.out = self.out, []
        self.lcc.restart()
        if out:
            self.lcc.settle(*[self.answered(ticket, "old edge") for ticket in out])

    @rule(seconds=st.sampled_from([1, 10, 30, 299, 300, 3600]))
    def time_passes(self, seconds):
        self.lcc.now += seconds

    @invariant()
    def no_declaration_costs_more_requests_than_its_tries(self):
        for page in self.pages.values():
            further = zip(page.asked[len(DELAYS) :], page.asked[len(DELAYS) + 1 :], strict=False)
            assert all(later - before >= DELAYS[-1] for before, later in further), page.asked

    def teardown(self):
        if not hasattr(self, "lcc"):
            return
        self.converges()
        assert_books_balance(self.lcc.store, self.lcc.files)

    def converges(self):
        """From now on the site is right; what is pushed once more ends as it was declared."""
        self.lcc.settle(*[self.answered(ticket, "right") for ticket in self.out])
        self.out = []
        for _ in range(4):
            for _ in range(9):
                tickets = self.lcc.tickets()
                self.lcc.settle(*[self.answered(ticket, "right") for ticket in tickets])
                self.lcc.now += max(DELAYS)
            known = [(name, page.declared) for name, page in self.pages.items() if page.declared is not None]
            if known:
                self.lcc.push(*[update(*one) for one in known])
            if not self.lcc.waiting():
                break
        assert self.lcc.waiting() == []
        for name, page in self.pages.items():
            row = self.lcc.cached(name)
            if page.declared is not None:
                assert row is not None, name
                assert self.lcc.files[row.fetched_fileid] == page.declared


@pytest.mark.parametrize(
    ("store", "examples", "steps"),
    [
        ("memory", 60, 40),
        *[pytest.param(kind, 15, 40, marks=pytest.mark.soak) for kind in ("sqlite", "mariadb", "postgresql")],
    ],
    indirect=["store"],
)
def test_what_is_declared_ends_as_declared_within_bounds(store, examples, steps, empty):
    class Life(Site):
        @staticmethod
        def make_store():
            empty(store)
            return store

    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
