"""The quota counters against a count of the rows, whatever happens to documents, on every store."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from little_lcc import MACHINE, PID, SITE, LittleLcc, assert_books_balance, key, removal, update

from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import quota_refusal
from lcc_scrapy.domain.queue import Cancelled
from lcc_scrapy.intake import absorbing
from lcc_scrapy.ops.housekeeping import sweep
from lcc_scrapy.ops.verification import Verification
from lcc_scrapy.providers import portions, registration
from lcc_scrapy.providers.narrowing import Narrowing
from lcc_scrapy.queue.held_removals import confirm_removals

NAMES = [f"{part}/{number}" for part in ("x", "y") for number in range(12)]
some = st.lists(st.sampled_from(NAMES), max_size=14)
sizes = st.lists(st.sampled_from([0, 1, 30, 60, 100]), min_size=1, max_size=14)


class QuotaLife(RuleBasedStateMachine):
    """Documents come, grow, shrink and go on every path there is."""

    make_store = None
    folder = None

    @initialize()
    def begin(self):
        self.lcc = LittleLcc(type(self).make_store(), QueuePolicy(max_removal=0.3))
        self.lcc.add(filesmax=10, spacemax=400)
        self.content = ContentFiles(self.folder, MACHINE, 0)
        self.content.prepare()

    # --- documents ---------------------------------------------------------------------------------

    def settle(self, *outcomes):
        settled = self.lcc.settle(*outcomes)
        for one in settled:
            if one.result == "stored" and one.row is not None:
                path = self.content.path_of(one.row.fetched_fileid)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(one.outcome.body.data)
        return settled

    @rule(names=some, lengths=sizes)
    def documents_are_pushed_and_fetched(self, names, lengths):
        """Every verdict is that of the rule, given what is in use at that moment."""
        self.lcc.push(*map(update, names))
        tickets = self.lcc.tickets()
        nothing = [ticket for ticket in tickets if ticket.row.operation == "nothing"]
        self.settle(*map(Cancelled, nothing))
        tickets = [ticket for ticket in tickets if ticket not in nothing]
        bodies = [bytes([number % 250]) * lengths[number % len(lengths)] for number in range(len(tickets))]
        files, space, before = self.in_use()
        expected = []
        for ticket, body in zip(tickets, bodies, strict=True):
            copy = before.get(ticket.row.urlkey)
            expected.append(quota_refusal(self.lcc.provider(), files, space, copy, len(body)))
            if not expected[-1]:
                files, space = files + (copy is None), space + len(body) - (copy or 0)
        settled = self.settle(*[self.lcc.served(t, body) for t, body in zip(tickets, bodies, strict=True)])
        assert [one.code for one in settled] == expected

    def in_use(self):
        with self.lcc.store.read() as tx:
            rows = tx.cached_of(PID, b"", 1000)
        lengths = {row.urlkey: row.fetched_len for row in rows}
        return len(rows), sum(lengths.values()), lengths

    @rule(names=some)
    def documents_are_not_found_any_more(self, names):
        self.lcc.push(*map(update, names))
        self.settle(*[self.lcc.failed(ticket, 404, final=True) for ticket in self.lcc.tickets()])

    @rule(names=some)
    def documents_are_removed(self, names):
        self.lcc.push(*map(removal, names))

    @rule(names=some)
    def a_full_set_comes(self, names):
        self.lcc.push(*map(update, names), full=True)

    @rule()
    def removals_are_confirmed(self):
        confirm_removals(self.lcc.store, PID, self.lcc.now, self.lcc.policy)

    @rule(roots=st.sampled_from([[SITE], [SITE + "x/"], [SITE + "y/"]]))
    def roots_change(self, roots):
        registration.change(self.lcc.store, PID, {}, lambda _: roots)
        list(Narrowing(self.lcc.store, PID, self.lcc.now, self.lcc.policy).run())

    @rule(name=st.sampled_from(NAMES))
    def content_is_lost_and_the_operator_verifies(self, name):
        with self.lcc.store.read() as tx:
            row = tx.cached([key(name)]).get(key(name))
        if row is not None:
            self.content.path_of(row.fetched_fileid).unlink()
        removed = self.lcc.provider().removed
        list(Verification(self.lcc.store, self.content, self.lcc.policy, repair=True).run())
        assert self.lcc.provider().removed == removed

    @rule(days=st.sampled_from([1, 1, 1, 100]))
    def days_pass(self, days):
        self.lcc.now += days * 86_400
        list(sweep(self.lcc.store, self.lcc.policy, self.lcc.now))

    @rule(filesmax=st.sampled_from([0, 3, 10]), spacemax=st.sampled_from([0, 100, 400]))
    def the_operator_changes_the_quota(self, filesmax, spacemax):
        self.lcc.change(filesmax=filesmax, spacemax=spacemax)

    # --- what must hold after every step -----------------------------------------------------------

    @invariant()
    def the_counters_are_exact(self):
        with self.lcc.store.read() as tx:
            provider = tx.provider(PID)
            assert (provider.fileused, provider.spaceused) == tx.usage(PID)
            assert provider.heldremovals == tx.count_held(PID)

    def teardown(self):
        if hasattr(self, "lcc"):
            assert_books_balance(self.lcc.store)


@pytest.mark.parametrize(
    ("store", "examples", "steps"),
    [("memory", 80, 40), ("sqlite", 8, 25), ("mariadb", 5, 25), ("postgresql", 5, 25)],
    indirect=["store"],
)
def test_the_quota_is_exact_whatever_happens(store, *, examples, steps, empty, monkeypatch, tmp_path):
    monkeypatch.setattr(absorbing, "CHUNK", 5)
    monkeypatch.setattr(absorbing, "NEW_CHUNK", 5)
    monkeypatch.setattr(portions, "CHUNK", 5)

    class Life(QuotaLife):
        folder = tmp_path

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
