"""A simulated year: real logins, pushes, intake and housekeeping; only time and the web are the test's.

By the 192nd day all has happened that can; databases are spared the rest, unless ``LCC_YEAR=whole`` (``make soak``).
"""

import os
from hashlib import md5

import pytest
from little_lcc import SITE, START, LittleLcc, assert_books_balance
from twisted.internet.task import Clock

from lcc_scrapy.ops.housekeeping import Housekeeper
from lcc_scrapy.providers.registration import want_full_set
from tests.little_uns import SameThread, little_uns

DAY = 86_400
PAGES = [f"page{number:02}" for number in range(100)]
FAITHFUL, QUIET, VANISHED, OWING = 7, 8, 9, 10
WHOLE, ENOUGH = 365, 200
IS_LONG = os.environ.get("LCC_YEAR") == "whole"


def page(name):
    body = (SITE + name).encode()
    return {
        "c": name,
        "mimetype": "text/html",
        "len": str(len(body)),
        "md5": md5(body, usedforsecurity=False).hexdigest(),
    }


class Year:
    """Days go by: at each day's end every provider does what it does, then the LCC what it does."""

    def __init__(self, lcc, uns):
        self.lcc, self.uns = lcc, uns
        self.clock = Clock()
        self.documents, self.wanted = {}, {}
        self.keeper = Housekeeper(
            lcc.store,
            SameThread(),
            self.clock,
            lcc.policy,
            owner="1/0",
            swept=self.swept,
            now=lambda: self.lcc.now,
        )
        self.gone = []

    def swept(self, step):
        self.gone.extend((step.pid, reason) for _, reason in step.removed)

    def absorb_and_fetch(self, *pids):
        self.uns.absorb()
        for pid in pids:
            self.lcc.fetch_all(pid)

    def begin_day(self, day):
        self.lcc.now = START + day * DAY

    def end_day(self, day):
        """Let the housekeeping do its work of the day, and write down how things stand."""
        midnight = (day + 1) * DAY
        while (due := min(call.getTime() for call in self.clock.getDelayedCalls())) < midnight:
            self.clock.advance(due - self.clock.seconds())
        for pid in (FAITHFUL, QUIET, VANISHED, OWING):
            one = self.lcc.provider(pid)
            self.documents.setdefault(pid, {})[day] = one.fileused
            self.wanted.setdefault(pid, {})[day] = one.fullsetwanted

    def days(self, pid, history):
        """Return the days on which something changed, with what it changed to."""
        values = getattr(self, history)[pid]
        return {day: value for day, value in values.items() if value != values.get(day - 1)}


@pytest.mark.soak_of("sqlite")
@pytest.mark.slow
@pytest.mark.parametrize(
    "store",
    [
        "memory",
        "sqlite",
        pytest.param("mariadb", marks=pytest.mark.skipif(not IS_LONG, reason="LCC_YEAR=whole takes it in")),
    ],
    indirect=True,
)
def test_a_year(store, tmp_path, monkeypatch, request):
    whole = IS_LONG or request.node.callspec.params["store"] == "memory"
    lcc = LittleLcc(store)
    for pid in (FAITHFUL, QUIET, VANISHED, OWING):
        lcc.add(pid, fullsetsallowed=10)
    with little_uns(lcc, tmp_path / "spool", monkeypatch) as uns:
        year = Year(lcc, uns)
        for pid in (FAITHFUL, QUIET, VANISHED, OWING):
            uns.push(*map(page, PAGES), pid=pid)
        year.absorb_and_fetch(FAITHFUL, QUIET, VANISHED, OWING)
        fetched = len(lcc.files)
        year.keeper.start()
        for day in range(1, (WHOLE if whole else ENOUGH) + 1):
            year.begin_day(day)
            uns.push(*map(page, PAGES if day % 30 == 0 else PAGES[:3]), full=day % 30 == 0, pid=FAITHFUL)
            uns.log_in(QUIET).hang_up()
            if day == 10:
                want_full_set(store, OWING, "moving house")
            uns.push(page(PAGES[0]), pid=OWING)
            uns.absorb()
            year.end_day(day)
        year.keeper.stop()
    assert len(lcc.files) == fetched

    for pid in (FAITHFUL, QUIET):
        assert set(year.documents[pid].values()) == {100}
        assert set(year.wanted[pid].values()) == {""}

    assert year.days(VANISHED, "wanted") == {1: "", 90: "old files", 180: "expired files"}
    assert year.days(VANISHED, "documents") == {1: 100, 180: 50, 181: 25, 182: 5, 183: 0}

    assert year.days(OWING, "wanted") == {1: "", 10: "moving house", 99: "old files", 189: "expired files"}
    assert year.days(OWING, "documents") == {1: 100, 189: 50, 190: 25, 191: 5, 192: 1}
    assert lcc.documents(OWING) == PAGES[:1]

    assert set(year.gone) == {(pid, "not confirmed for too long") for pid in (VANISHED, OWING)}
    assert len(year.gone) == 199
    assert_books_balance(store, lcc.files)
