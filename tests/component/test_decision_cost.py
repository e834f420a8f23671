"""What a decision costs does not grow with the queue, counted in steps of SQLite's machine: no clock blurs them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import Engine, event

from lcc_scrapy.db import schema
from lcc_scrapy.db.records import WorkerRow
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.absorption import WaitRule
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.intake import login_rows
from lcc_scrapy.providers.registration import add as add_provider
from lcc_scrapy.queue.leases import look_around
from lcc_scrapy.queue.window_rows import Wanted, windows_of
from lcc_scrapy.uns.spool import ReadySet
from tests.long_queue import lengthen

NOW = 1_700_000_000
ME = WorkerRow("1/0", 1, 1, 0, NOW, NOW + 60, 16, 0, 0, 0, hungry=False)
UTC = ZoneInfo("UTC")
COUNTED_BY = 10


class Machine:
    """A store on SQLite whose steps are counted."""

    def __init__(self, folder: Path) -> None:
        url = f"sqlite:///{folder / 'lcc.sqlite'}"
        schema.upgrade(url)
        self.steps = 0
        event.listen(Engine, "connect", self._count)
        self.store = SqlStore(url)

    def _count(self, connection, _record) -> None:
        connection.set_progress_handler(self._stepped, COUNTED_BY)

    def _stepped(self) -> int:
        self.steps += COUNTED_BY
        return 0

    def close(self) -> None:
        self.store.close()
        event.remove(Engine, "connect", self._count)

    def cost(self, work: Callable[[], object]) -> int:
        begun = self.steps
        work()
        return self.steps - begun

    def window(self) -> object:
        with self.store.begin() as tx:
            (granted,) = look_around(tx, ME, NOW, dead=(), limit=1, only=None, seen=0, drained={}).granted
            wanted = Wanted(granted.lease, tuple(granted.members), 32, ())
            (found,) = windows_of(tx, [wanted], NOW, zone=UTC)
            assert len(found.tickets) == 32
            tx.free_turns_of(ME.owner)
        return found

    def choice(self) -> object:
        """Do what intake does before every step."""
        heads = {1: login_rows.Head(waited=0.0, sending=False)}
        waiting = [ReadySet(Path(), 1, 1, 0)]
        return login_rows.look_at(self.store, waiting, heads, 1 << 40, WaitRule("a UNS", 60.0))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    add_provider(made.store, Provider(1, ""), ["http://h/"])
    yield made
    made.close()


@pytest.mark.parametrize(("urls", "per_set"), [(2_000, 1), (20_000, 10_000)])
def test_a_decision_takes_as_many_steps_in_a_long_queue_as_in_a_short_one(
    machine: Machine, urls: int, per_set: int
) -> None:
    lengthen(machine.store, 1, (f"http://h/{n:06d}" for n in range(200)), per_set)
    machine.window()
    short = machine.cost(machine.window), machine.cost(machine.choice)
    lengthen(machine.store, 1, (f"http://h/{n:06d}" for n in range(200, urls)), per_set)
    long = machine.cost(machine.window), machine.cost(machine.choice)
    print(f"steps: {short} with 200 URLs, {long} with {urls}")
    assert long[0] <= short[0] * 1.1
    assert long[1] <= short[1] * 1.1 + COUNTED_BY
