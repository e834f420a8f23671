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
from lcc_scrapy.domain.queue import DUE
from lcc_scrapy.domain.removal_guard import DAY, FEW, room
from lcc_scrapy.domain.turn import NEVER
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
    confirmed: int = 0


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
        self.ended: dict[str, tuple[int, bytes | None]] = {}
        self.in_a_row = 0

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
            if (row.operation, row.declared) != ("fetch", body):
                row.operation, row.declared, row.tries, row.level, row.not_before = "fetch", body, 0, 0, 0
        elif body is None or name not in self.cache or self.cache[name].body != body:
            self.queue[name] = self.with_tries_left(name, Row(self.sets, position, body))
        else:
            self.cache[name].declared, self.cache[name].confirmed = body, self.lcc.now

    def with_tries_left(self, name, row):
        """What failed for good, and is declared again as it was, is asked for once, not too soon."""
        at, declared = self.ended.get(name, (0, ""))
        since = name in self.cache and self.cache[name].confirmed > at
        if declared != row.declared or since:
            return row
        row.tries = len(DELAYS)
        row.not_before = at + DELAYS[-1] if at + DELAYS[-1] > self.lcc.now else DUE
        return row

    def overtaken(self, row, version, said):
        """Tell whether a newer declaration arrived than the one that was fetched, and whether it is another one."""
        same = (row.declared, row.operation) == (said, "fetch")
        return row.version != version and not (same and said is not None), not same

    def tries_again(self, row):
        """Let a row try again, if it has any tries left."""
        if row.tries >= len(DELAYS):
            return False
        row.not_before = self.lcc.now + DELAYS[row.tries]
        row.tries = row.level = row.tries + 1
        return True

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
        names = [name for *_, name in sorted(rows)]
        if not eligible:
            return names
        due = [name for name in names if self.queue[name].not_before == DUE and name not in self.out]
        found = []
        for name in names:
            if not self.queue[name].not_before and name not in self.out:
                if found and len(found) % 4 == 3 and due:
                    found.append(due.pop(0))
                found.append(name)
        return found + due

    @rule(count=st.integers(1, 12))
    def a_window_is_handed_out(self, count):
        if not self.queue:
            return
        window = self.lcc.window(limit=count, out=[key(name) for name in self.out])
        for row in self.queue.values():
            if 0 < row.not_before <= self.lcc.now:
                row.not_before = DUE
        expected = self.order(eligible=True)
        got = [ticket.row.curl.removeprefix(SITE) for ticket in window.tickets]
        assert got == expected[:count]
        assert window.more or len(expected) <= count
        assert not window.more or len(expected) >= count, "only a full window may have a successor"
        due = [row.not_before for row in self.queue.values() if row.not_before > DUE]
        assert window.look_at == min(due, default=NEVER)
        for name, ticket in zip(got, window.tickets, strict=True):
            self.out[name] = (ticket, self.queue[name].version, self.queue[name].declared)

    def settle(self, how):
        """Settle everything that is out, in one batch; ``how`` makes the outcome of a ticket."""
        out, self.out = self.out, {}
        self.lcc.settle(*[how(ticket) for ticket, _, _ in out.values()])
        self.asked = {
            name: ticket.etag if ticket.row.last_etag else "" for name, (ticket, _, _) in out.items()
        }
        return [(name, version, said) for name, (_, version, said) in out.items()]

    def live(self, name):
        """Return the row an outcome is about, after dropping one that says nothing."""
        row = self.queue.get(name)
        if row is not None and row.operation == "nothing":
            del self.queue[name]
            return None
        return row

    def mismatched(self, name, row):
        if self.in_a_row >= 20 or not self.tries_again(row):
            self.errors += 1
            self.in_a_row += 1
            self.ended[name] = self.lcc.now, row.declared
            del self.queue[name]

    @precondition(lambda self: self.out)
    @rule(body=st.sampled_from(BODIES))
    def documents_are_served(self, body):
        for name, version, said in self.settle(lambda ticket: self.lcc.served(ticket, body)):
            row = self.live(name)
            if row is None:
                continue
            overtaken, another = self.overtaken(row, version, said)
            newest = not overtaken or row.declared == body
            declared = row.declared if newest else said
            copy = self.cache.get(name)
            if declared in (None, body):
                self.cache[name] = Copy(body, declared, copy is not None and copy.held, self.lcc.now)
                if newest:
                    del self.queue[name]
                    self.in_a_row = 0
                continue
            stores = copy is None or copy.body not in (declared, row.declared if another else declared)
            if stores:
                self.cache[name] = Copy(body, declared, copy is not None and copy.held, self.lcc.now)
            elif not another:
                copy.declared, copy.confirmed = declared, self.lcc.now
            if another:
                continue
            self.mismatched(name, row)

    @precondition(lambda self: self.out)
    @rule()
    def nothing_was_modified(self):
        for name, version, said in self.settle(self.lcc.not_modified):
            row = self.live(name)
            if row is None:
                continue
            if self.asked[name]:  # it is still what came in place of what was declared
                if not self.overtaken(row, version, said)[1]:
                    if name in self.cache:
                        self.cache[name].declared, self.cache[name].confirmed = row.declared, self.lcc.now
                    self.mismatched(name, row)
                continue
            if name not in self.cache:
                row.version += 1
                continue
            self.cache[name].declared = said
            self.cache[name].confirmed = self.lcc.now
            if row.version == version:
                del self.queue[name]

    @precondition(lambda self: self.out)
    @rule(code=st.sampled_from([404, 500, 403, 605]))
    def fetches_fail(self, code):
        for name, version, said in self.settle(lambda ticket: self.lcc.failed(ticket, code)):
            row = self.live(name)
            if row is None:
                continue
            overtaken, another = self.overtaken(row, version, said)
            better = code in {404, 500, 403}
            if (overtaken and another) or (overtaken and not better) or (better and self.tries_again(row)):
                continue
            if overtaken:
                row.not_before = self.lcc.now + DELAYS[-1]
                continue
            del self.queue[name]
            self.errors += 1
            if better:
                self.ended[name] = self.lcc.now, said
            else:
                self.ended.pop(name, None)
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
