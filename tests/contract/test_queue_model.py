"""Random lives of a queue against a plain model of the rules (design section 5)."""

from dataclasses import dataclass

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
from little_lcc import PID, SITE, LittleLcc, assert_books_balance, key, removal, update, url

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.removal_guard import DAY, FEW, room
from lcc_scrapy.domain.turns import NEVER
from lcc_scrapy.intake import absorbing
from lcc_scrapy.intake.absorbing import Intake
from lcc_scrapy.queue.held_removals import confirm_removals

NAMES = [f"n{number}" for number in range(24)]
BODIES = [b"one", b"two", b"three"]
DELAYS = (60, 600, 3600)

some_names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=12)
declared = st.sampled_from([None, *BODIES])
updates = st.lists(st.tuples(st.sampled_from(NAMES), declared), max_size=24)


@dataclass
class Row:
    set: int
    position: int
    declared: bytes | None
    operation: str = "fetch"
    version: int = 1
    tries: int = 0
    level: int = 0
    not_before: int = 0


@dataclass
class Copy:
    body: bytes
    declared: bytes | None
    held: bool = False


class QueueLife(RuleBasedStateMachine):
    """The model: what waits, what is stored, what is out; then the same is asked of the store."""

    make_store = None

    @initialize()
    def begin(self):
        self.lcc = LittleLcc(type(self).make_store())
        self.lcc.add()
        self.queue: dict[str, Row] = {}
        self.cache: dict[str, Copy] = {}
        self.out = {}
        self.sets = self.errors = self.removed = self.since = self.read = 0
        self.mirror = {}

    # --- the rules, once more and as plain as can be ---------------------------------------------

    def removed_today(self):
        return self.removed if self.lcc.now - self.since < DAY else 0

    def guard(self, removing, waiting=0):
        return removing > room(self.removed_today(), len(self.cache) + waiting, 0.5)

    def take_copy(self, name, *, counts=True):
        if self.cache.pop(name, None) and counts:
            before = self.removed_today()
            self.since = self.since if before else self.lcc.now
            self.removed = before + 1

    def cancel(self, name):
        if name in self.queue:
            row = self.queue[name]
            row.operation, row.version, row.not_before = "nothing", row.version + 1, 0

    def arrives(self, name, body, position):
        if name in self.cache:
            self.cache[name].held = False
        if name in self.queue:
            row = self.queue[name]
            row.version += 1
            row.operation, row.declared, row.tries, row.level, row.not_before = "fetch", body, 0, 0, 0
        elif body is None or name not in self.cache or self.cache[name].declared != body:
            self.queue[name] = Row(self.sets, position, body)

    # --- sets ------------------------------------------------------------------------------------

    def absorb(self, content, crash_after, **values):
        self.sets += 1
        spooled = self.lcc.spooled(*content, **values)
        step = intake_step = Intake(self.lcc.store, spooled, self.lcc.policy)
        for number in range(1000):
            if number == crash_after:
                intake_step = Intake(self.lcc.store, spooled, self.lcc.policy)
            if intake_step.step(self.lcc.now).finished:
                return
        raise AssertionError(step)

    @rule(
        content=st.lists(
            st.tuples(st.sampled_from(NAMES), st.sampled_from(["remove", None, *BODIES])), max_size=24
        ),
        crash_after=st.integers(0, 9),
    )
    def a_partial_set_arrives(self, content, crash_after):
        removals = [name for name, what in content if what == "remove"]
        hold = len(removals) > FEW and self.guard(len(self.cache.keys() & set(removals)))
        entries = [removal(name) if what == "remove" else update(name, what) for name, what in content]
        self.absorb(entries, crash_after)
        for position, (name, what) in enumerate(content, 1):
            if what != "remove":
                self.arrives(name, what, position)
            elif name in self.cache and (hold or self.guard(1)):
                self.cache[name].held = True
            else:
                self.cancel(name)
                self.take_copy(name)

    @rule(content=updates, unreadable=st.sampled_from([0, 0, 0, 1]), crash_after=st.integers(0, 9))
    def a_full_set_arrives(self, content, unreadable, crash_after):
        self.absorb([update(*one) for one in content], crash_after, full=True, unreadable=unreadable)
        named = {name for name, _ in content}
        for name in named & self.cache.keys():
            self.cache[name].held = False
        absent = self.cache.keys() - named
        new = {name for name, row in self.queue.items() if row.operation == "fetch"} - self.cache.keys()
        if not content or unreadable or self.guard(len(absent | (new - named)), len(new)):
            for name in absent:
                self.cache[name].held = True
        else:
            for name in self.queue.keys() - named:
                self.cancel(name)
            for name in absent:
                self.take_copy(name)
        for position, (name, body) in enumerate(content, 1):
            self.arrives(name, body, position)

    @rule()
    def the_operator_confirms_removals(self):
        held = [name for name, copy in self.cache.items() if copy.held]
        assert confirm_removals(self.lcc.store, PID, self.lcc.now, self.lcc.policy) == len(held)
        for name in held:
            self.cancel(name)
            self.take_copy(name, counts=False)

    # --- fetching --------------------------------------------------------------------------------

    def order(self, *, eligible=False):
        rows = [(row.set, row.level, row.position, name) for name, row in self.queue.items()]
        now = self.lcc.now
        return [name for *_, name in sorted(rows) if not eligible or self.queue[name].not_before <= now]

    @rule(count=st.integers(1, 12))
    def a_window_is_handed_out(self, count):
        if not self.queue:
            return
        window = self.lcc.window(limit=count, out=[key(name) for name in self.out])
        for row in self.queue.values():
            if row.not_before <= self.lcc.now:
                row.not_before = 0
        expected = [name for name in self.order(eligible=True) if name not in self.out]
        got = [ticket.row.curl.removeprefix(SITE) for ticket in window.tickets]
        assert got == expected[:count]
        assert window.more or len(expected) <= count
        assert not window.more or len(expected) >= count, "only a full window may have a successor"
        due = [row.not_before for row in self.queue.values() if row.not_before]
        assert window.look_at == min(due, default=NEVER)
        for name, ticket in zip(got, window.tickets, strict=True):
            self.out[name] = (ticket, self.queue[name].version, self.queue[name].declared)

    def settle(self, how):
        """Settle everything that is out, in one batch; ``how`` makes the outcome of a ticket."""
        out, self.out = self.out, {}
        self.lcc.settle(*[how(ticket) for ticket, _, _ in out.values()])
        return [(name, version, said) for name, (_, version, said) in out.items()]

    def live(self, name):
        """Return the row an outcome is about, after dropping one that says nothing."""
        row = self.queue.get(name)
        if row is not None and row.operation == "nothing":
            del self.queue[name]
            return None
        return row

    @precondition(lambda self: self.out)
    @rule(body=st.sampled_from(BODIES))
    def documents_are_served(self, body):
        for name, version, said in self.settle(lambda ticket: self.lcc.served(ticket, body)):
            row = self.live(name)
            if row is None:
                continue
            newest = row.version == version or row.declared == body
            held = name in self.cache and self.cache[name].held
            self.cache[name] = Copy(body, row.declared if newest else said, held)
            self.errors += self.cache[name].declared not in (None, body)
            if newest:
                del self.queue[name]

    @precondition(lambda self: self.out)
    @rule()
    def nothing_was_modified(self):
        for name, version, said in self.settle(self.lcc.not_modified):
            row = self.live(name)
            if row is None:
                continue
            if name not in self.cache:
                row.version += 1
                continue
            self.cache[name].declared = said
            if row.version == version:
                del self.queue[name]

    @precondition(lambda self: self.out)
    @rule(code=st.sampled_from([404, 500, 403, 605]))
    def fetches_fail(self, code):
        for name, version, _ in self.settle(lambda ticket: self.lcc.failed(ticket, code)):
            row = self.live(name)
            if row is None or row.version != version:
                continue
            if code in {500, 403} and row.tries < len(DELAYS):
                row.not_before = self.lcc.now + DELAYS[row.tries]
                row.tries = row.level = row.tries + 1
                continue
            del self.queue[name]
            self.errors += 1
            if code in {404, 403} and name in self.cache:
                if self.guard(1):
                    self.cache[name].held = True
                else:
                    self.take_copy(name)

    @rule()
    def the_worker_restarts(self):
        """Its tickets are worth nothing any more, and say so."""
        out, self.out = self.out, {}
        self.lcc.restart()
        if self.queue and out:
            settled = self.lcc.settle(*[self.lcc.served(ticket, b"late") for ticket, _, _ in out.values()])
            assert {one.result for one in settled} == {"lost"}

    @rule(seconds=st.sampled_from([1, 60, 600, 3600, 86_400]))
    def time_passes(self, seconds):
        self.lcc.now += seconds

    # --- what must hold after every step ---------------------------------------------------------

    @invariant()
    def store_and_model_agree(self):
        with self.lcc.store.read() as tx:
            cached = tx.cached_of(PID, b"", 1000)
            waiting = tx.queued_of(PID, 0, 1000)
            changes = tx.changes(self.read, 1000)
            provider = tx.provider(PID)
        in_order = sorted(waiting, key=lambda row: (row.psetid, row.position))
        assert [row.curl.removeprefix(SITE) for row in in_order] == self.order()
        for row in waiting:
            mine = self.queue[row.curl.removeprefix(SITE)]
            assert (row.operation, row.version, row.not_before, row.tries) == (
                mine.operation, mine.version, mine.not_before, mine.tries,
            )  # fmt: skip
        stored = {row.curl: (self.lcc.files[row.fetched_fileid], row.held > 0, row.len) for row in cached}
        assert stored == {
            url(name): (copy.body, copy.held, None if copy.declared is None else len(copy.declared))
            for name, copy in self.cache.items()
        }
        assert provider.nurlerrs == self.errors
        for change in changes:
            assert change.seq > self.read
            self.read = change.seq
            self.mirror.pop(change.urlkey, None)
            if isinstance(change, CachedUrl):
                self.mirror[change.urlkey] = change.fetched_fileid
        assert self.mirror == {row.urlkey: row.fetched_fileid for row in cached}

    def teardown(self):
        if hasattr(self, "lcc"):
            assert_books_balance(self.lcc.store, self.lcc.files)


@pytest.mark.parametrize(
    ("store", "examples", "steps"),
    [("memory", 120, 50), ("sqlite", 15, 30), ("mariadb", 6, 30), ("postgresql", 6, 30)],
    indirect=["store"],
)
def test_the_queue_lives_as_the_model_says(store, examples, steps, empty, monkeypatch):
    monkeypatch.setattr(absorbing, "CHUNK", 5)
    monkeypatch.setattr(absorbing, "NEW_CHUNK", 5)

    class Life(QueueLife):
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
