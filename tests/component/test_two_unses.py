"""Two UNSes on one store, with logins, sets, kills and jobs in any order: sets take effect as they logged in.

Complete sets are absorbed in the order of logins. One that takes too long to be complete is overtaken, and
what it leaves behind is the same as if it had not been.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from same_thread import ByHand
from twisted.internet.task import Clock

from lcc_scrapy.db.records import OpenLogin
from lcc_scrapy.domain.entries import Operation, UrlEntry
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.intake import absorbing, open_sets
from lcc_scrapy.intake.absorber import Absorber, Terms
from lcc_scrapy.intake.absorbing import Step
from lcc_scrapy.intake.open_logins import OpenLogins
from lcc_scrapy.uns.spool import ReadySet
from lcc_scrapy.uns.spool_file import record_line
from tests.memory_store import MemoryStore

PIDS = (1, 2)
BEAT = 10.0
BOUND = 5.0
URLS = [f"http://h/{number}" for number in range(9)]


@dataclass(frozen=True)
class Said:
    """What a set says: URLs that are there, and URLs that are gone."""

    there: tuple[str, ...]
    gone: tuple[str, ...]
    full: bool

    def follow(self, before: dict[str, int], seq: int) -> dict[str, int]:
        """Return which set each URL is from, once this one has taken effect."""
        kept = {} if self.full else {url: one for url, one in before.items() if url not in self.gone}
        return kept | dict.fromkeys(self.there, seq)


class FakeSet:
    """A set whose updates have the number of the login in them."""

    setid, digest, charged, ifabsent, unreadable = "", "", False, False, 0

    def __init__(self, pid: int, connseq: int, said: Said) -> None:
        self.pid, self.connseq, self.full = pid, connseq, said.full
        self._entries = [
            *(UrlEntry(url, "text/html", furl=url, burl=f"http://login/{connseq}") for url in said.there),
            *(UrlEntry(url, "text/html", Operation.REMOVE) for url in said.gone),
        ]
        self.urls = self.end = len(self._entries)
        self.removals = len(said.gone)

    def entries(self, offset: int) -> Any:
        return enumerate(self._entries[offset:], offset + 1)

    def records(self, offset: int, limit: int) -> Any:
        chunk = list(islice(self._entries, offset, offset + limit))
        return [json.loads(record_line(entry)) for entry in chunk], offset + len(chunk)

    def close(self) -> None:
        pass


class FakeUns:
    """What survives a kill is the spool; all else is made anew."""

    def __init__(self, name: str, store: MemoryStore) -> None:
        self.name, self.store = name, store
        self.spool: dict[ReadySet, FakeSet] = {}
        self.start()

    def start(self) -> None:
        self.thread, self.clock = ByHand(), Clock()
        self.conversations: dict[tuple[int, int], bool] = {}
        thread: Any = self.thread
        self.absorber = Absorber(
            self, self.store, thread, self.clock, policy=QueuePolicy(),
            terms=Terms(self.name, poll=1.0, bound=BOUND), absorbed=self.absorbed, put_away=self.never,
            sending_before=self.sending_before, now=lambda: 1,
        )  # fmt: skip
        self.book = OpenLogins(
            self.store, thread, self.clock, uns=self.name, note="", beat=BEAT, poll=1.0,
            knows=self.knows, logged_in=lambda: self.conversations, forgotten=self.absorber.look, now=lambda: 1,
        )  # fmt: skip
        for waiting in self.spool:
            self.absorber.add(waiting)
            self.book.complete(waiting.pid, waiting.seq)
        self.book.start()
        self.absorber.look()

    def knows(self, login: tuple[int, int]) -> bool:
        return login in self.conversations or login in self.absorber

    def sending_before(self, pid: int, seq: int) -> bool:
        return any(sending for (who, one), sending in self.conversations.items() if who == pid and one < seq)

    def never(self, *_: object) -> None:
        raise AssertionError("a set was put away")

    def absorbed(self, step: Step) -> None:
        pass

    # the spool
    def open(self, waiting: ReadySet) -> FakeSet:
        return self.spool[waiting]

    def set_aside(self, waiting: ReadySet, reason: str) -> None:
        self.never(waiting, reason)

    def remove(self, sets: Sequence[ReadySet]) -> None:
        for waiting in sets:
            del self.spool[waiting]

    # conversations
    def log_in(self, pid: int) -> None:
        self.thread.run(self._admit, pid).addCallback(lambda login: self.conversations.update({login: False}))

    def _admit(self, pid: int) -> tuple[int, int]:
        with self.store.begin() as tx:
            seq = tx.lock_providers([pid])[pid].lastconnseq + 1
            tx.update_provider(pid, {"lastconnseq": seq})
            tx.insert_logins([OpenLogin(pid, seq, self.name, 1)])
        return pid, seq

    def begin_set(self, login: tuple[int, int]) -> None:
        self.conversations[login] = True

    def bring(self, login: tuple[int, int], said: Said) -> ReadySet:
        waiting = ReadySet(Path(self.name), *login, 0)
        self.spool[waiting] = FakeSet(*login, said)
        self.book.complete(*login)
        self.absorber.add(waiting)
        self.absorber.look()
        self.conversations.pop(login)
        return waiting

    def hang_up(self, login: tuple[int, int]) -> None:
        self.conversations.pop(login)
        self.book.forget(*login)

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)


def some_set(chance: random.Random) -> Said:
    urls = chance.sample(URLS, 7)
    full = chance.random() < 0.2
    return Said(tuple(urls[:4]), () if full else tuple(urls[4:]), full)


def live(
    seed: int, monkeypatch: pytest.MonkeyPatch, weights: Sequence[int]
) -> tuple[MemoryStore, dict[tuple[int, int], Said]]:
    """Let things happen until everything has been absorbed; return the store, and what was brought."""
    monkeypatch.setattr(absorbing, "CHUNK", 3)
    monkeypatch.setattr(absorbing, "NEW_CHUNK", 3)
    monkeypatch.setattr(open_sets, "STEP", 0)
    chance = random.Random(seed)
    store = MemoryStore()
    with store.begin() as tx:
        for pid in PIDS:
            tx.insert_provider(Provider(pid, ""), [])
    unses = [FakeUns("one", store), FakeUns("two", store)]
    brought: dict[tuple[int, int], Said] = {}
    for _ in range(500):
        uns = chance.choice(unses)
        talking = sorted(uns.conversations)
        what = chance.choices(("job", "login", "begin", "set", "nothing", "time", "kill"), weights)[0]
        if what == "job":
            uns.thread.work_off(chance.randint(1, 4))
        elif what == "login":
            uns.log_in(chance.choice(PIDS))
        elif what == "begin" and talking:
            uns.begin_set(chance.choice(talking))
        elif what == "set" and talking:
            login = chance.choice(talking)
            brought[login] = some_set(chance)
            uns.bring(login, brought[login])
        elif what == "nothing" and talking:
            uns.hang_up(chance.choice(talking))
        elif what == "time":
            uns.pass_time(chance.choice((0.5, 1.0, BOUND, BEAT)))
        elif what == "kill":
            uns.start()
    for uns in unses:
        uns.thread.work_off()
        for login in sorted(uns.conversations):
            uns.hang_up(login)
    for _ in range(5 * int(BEAT)):
        for uns in unses:
            uns.thread.work_off()
            uns.pass_time(1.0)
    assert all(not uns.spool for uns in unses)
    return store, brought


def absorbed(store: MemoryStore, pid: int) -> list[int]:
    sets = sorted(store._tables.psets.values(), key=lambda pset: pset.psetid)
    return [pset.connseq for pset in sets if pset.pid == pid]


def assert_as_if_in_order(store: MemoryStore, brought: dict[tuple[int, int], Said]) -> None:
    with store.read() as tx:
        assert [login for uns in ("one", "two") for login in tx.logins_of(uns, (0, 0), 1000)] == []
        assert [tx.overtaking(pid, 0, b"", 100) for pid in PIDS] == [[], []]
        rows = {pid: tx.queued_of(pid, 0, 100) for pid in PIDS}
    for pid in PIDS:
        assert sorted(absorbed(store, pid)) == sorted(seq for who, seq in brought if who == pid)
        expected: dict[str, int] = {}
        for who, seq in sorted(brought):
            if who == pid:
                expected = brought[who, seq].follow(expected, seq)
        waiting = {row.curl: row.burl for row in rows[pid] if row.operation == "fetch"}
        assert waiting == {url: f"http://login/{seq}" for url, seq in expected.items()}


@pytest.mark.parametrize("seed", range(60))
def test_sets_take_effect_in_the_order_of_logins_whatever_happens(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_as_if_in_order(*live(seed, monkeypatch, (60, 8, 6, 8, 3, 10, 2)))


def test_sets_overtake_others_in_the_histories_above(monkeypatch: pytest.MonkeyPatch) -> None:
    overtook = 0
    for seed in range(10):
        store, _ = live(seed, monkeypatch, (60, 8, 6, 8, 3, 10, 2))
        overtook += sum(absorbed(store, pid) != sorted(absorbed(store, pid)) for pid in PIDS)
    assert overtook > 5
