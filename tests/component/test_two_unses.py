"""Two UNSes on one store, with logins, sets, kills and jobs in any order: the order of logins holds."""

import json
import random
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from same_thread import ByHand
from twisted.internet.task import Clock

from lcc_scrapy import absorber
from lcc_scrapy.absorber import Absorber, Terms
from lcc_scrapy.domain.entries import UrlEntry
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.loginbook import LoginBook
from lcc_scrapy.storage import intake
from lcc_scrapy.storage.memory import MemoryStore
from lcc_scrapy.storage.records import OpenLogin
from lcc_scrapy.uns.spool import ReadySet
from lcc_scrapy.uns.spoolfile import record_line

PIDS = (1, 2)
BEAT = 10.0


class FakeSet:
    """Seven URLs, each with the number of the login in it."""

    setid, digest, full, ifabsent, removals, urls, unreadable = "", "", False, False, 0, 7, 0
    end = urls

    def __init__(self, pid: int, connseq: int) -> None:
        self.pid, self.connseq = pid, connseq

    def entries(self, offset: int) -> Any:
        for number in range(offset, self.urls):
            url = f"http://h/{number}"
            yield UrlEntry(url, "text/html", furl=url, burl=f"http://login/{self.connseq}"), number + 1

    def records(self, offset: int, limit: int) -> Any:
        chunk = list(islice(self.entries(offset), limit))
        return [json.loads(record_line(entry)) for entry, _ in chunk], offset + len(chunk)

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
        self.conversations: set[tuple[int, int]] = set()
        thread: Any = self.thread
        self.absorber = Absorber(
            self, self.store, thread, self.clock, policy=QueuePolicy(), terms=Terms(self.name, poll=1.0),
            absorbed=lambda _: None, put_away=self.never, now=lambda: 1,
        )  # fmt: skip
        for waiting in self.spool:
            self.absorber.add(waiting)
        self.book = LoginBook(
            self.store, thread, self.clock, uns=self.name, note="", beat=BEAT,
            knows=self.knows, forgotten=self.absorber.look, now=lambda: 1,
        )  # fmt: skip
        self.book.start()
        self.absorber.look()

    def knows(self, login: tuple[int, int]) -> bool:
        return login in self.conversations or login in self.absorber

    def never(self, *_: object) -> None:
        raise AssertionError("a set was put away")

    # the spool
    def open(self, waiting: ReadySet) -> FakeSet:
        return self.spool[waiting]

    def set_aside(self, waiting: ReadySet, reason: str) -> None:
        self.never(waiting, reason)

    def remove(self, waiting: ReadySet) -> None:
        del self.spool[waiting]

    # conversations
    def log_in(self, pid: int) -> None:
        self.thread.run(self._admit, pid).addCallback(self.conversations.add)

    def _admit(self, pid: int) -> tuple[int, int]:
        with self.store.begin() as tx:
            seq = tx.lock_providers([pid])[pid].lastconnseq + 1
            tx.update_provider(pid, {"lastconnseq": seq})
            tx.insert_login(OpenLogin(pid, seq, self.name, 1))
        return pid, seq

    def bring(self, login: tuple[int, int]) -> ReadySet:
        waiting = ReadySet(Path(self.name), *login, 0)
        self.spool[waiting] = FakeSet(*login)
        self.absorber.add(waiting)
        self.absorber.look()
        self.conversations.discard(login)
        return waiting

    def hang_up(self, login: tuple[int, int]) -> None:
        self.conversations.discard(login)
        self.book.forget(*login)

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)


@pytest.mark.parametrize("seed", range(60))
def test_sets_take_effect_in_the_order_of_logins_whatever_happens(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "CHUNK", 3)
    monkeypatch.setattr(absorber, "STEP", 0)
    chance = random.Random(seed)
    store = MemoryStore()
    with store.begin() as tx:
        for pid in PIDS:
            tx.insert_provider(Provider(pid, ""), [])
    unses = [FakeUns("one", store), FakeUns("two", store)]
    brought: list[tuple[int, int]] = []
    for _ in range(400):
        uns = chance.choice(unses)
        talking = sorted(uns.conversations)
        what = chance.choices(("job", "login", "set", "nothing", "time", "kill"), (60, 8, 8, 4, 10, 2))[0]
        if what == "job":
            uns.thread.work_off(chance.randint(1, 4))
        elif what == "login":
            uns.log_in(chance.choice(PIDS))
        elif what == "set" and talking:
            brought.append(chance.choice(talking))
            uns.bring(brought[-1])
        elif what == "nothing" and talking:
            uns.hang_up(chance.choice(talking))
        elif what == "time":
            uns.pass_time(chance.choice((0.5, 1.0, BEAT)))
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
    with store.read() as tx:
        sets = sorted(tx._t.psets.values(), key=lambda pset: pset.psetid)  # type: ignore[attr-defined]
        left = [login for uns in unses for login in tx.logins_of(uns.name, (0, 0), 1000)]
        links = {pid: {row.burl for row in tx.queued_of(pid, b"", 100)} for pid in PIDS}
    assert left == []
    for pid in PIDS:
        mine = sorted(seq for who, seq in brought if who == pid)
        assert [pset.connseq for pset in sets if pset.pid == pid] == mine
        assert links[pid] == ({f"http://login/{mine[-1]}"} if mine else set())
