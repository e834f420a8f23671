"""Whole weeks around the daylight-saving changes, with a clock that the test moves.

A worker fetches from a dozen providers with all kinds of hours while new URLs go on arriving. What may be
fetched when is worked out apart from ``domain/timeslots.py``: from the walls' clocks to UTC, not from UTC
to the hour of a wall's clock.
"""

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from same_thread import SameThread
from sqlalchemy import event
from twisted.internet.task import Clock

from lcc_scrapy.db import schema
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.cache import Answer, Body
from lcc_scrapy.domain.entries import UrlEntry, urlkey
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.queue import Place, Served, Ticket
from lcc_scrapy.domain.timeslots import parse_mask
from lcc_scrapy.domain.turn_limits import TurnLimits
from lcc_scrapy.providers import registration
from lcc_scrapy.queue.group_commit import GroupCommit
from lcc_scrapy.queue.held_turn import TurnPass
from lcc_scrapy.queue.queue_manager import QueueManager
from lcc_scrapy.queue.settlement import Settlement
from lcc_scrapy.queue.turn_leases import Identity
from lcc_scrapy.queue.unit_of_work import UnitOfWork
from tests.memory_store import MemoryStore

MINUTE, HOUR, DAY = 60, 3600, 86400
POLL = 300.0
GRACE = 5.0
TOP_UP = 8 * HOUR
POLICY = QueuePolicy()
MON, TUE, WED, THU, FRI, SAT, SUN = range(7)


# --- what may be fetched when, by the clock on the wall ----------------------------------------------


@dataclass(frozen=True)
class Hours:
    """A mask in the LCC's notation, and what it means: of a weekday (Monday 0) and an hour on the wall."""

    text: str
    opens: Callable[[int, int], bool]
    slots: int = 168

    @property
    def mask(self) -> str:
        return parse_mask(self.text, self.slots)


def nights(day: int, hour: int) -> bool:
    return (day <= FRI and hour >= 20) or (TUE <= day <= SAT and hour < 6)


ALWAYS = Hours("", lambda day, hour: True)
NIGHTS = Hours("mon-fri 20-06", nights)
NIGHTS_AND_SUNDAYS = Hours(
    "mon-fri 20-06, sun 0-6", lambda day, hour: nights(day, hour) or (day == SUN and hour < 6)
)
CHANGING = Hours("2-3", lambda day, hour: hour == 2)
BEFORE_IT = Hours("1-2", lambda day, hour: hour == 1)
NO_NOON = Hours("!12-14", lambda day, hour: hour not in {12, 13})
ONE_A_WEEK = Hours("wed 17-18", lambda day, hour: (day, hour) == (WED, 17))
CHANGING_SUNDAY = Hours("sun 2-3", lambda day, hour: (day, hour) == (SUN, 2))
SUNDAY_MORNING = Hours("sun 1-4", lambda day, hour: day == SUN and 1 <= hour <= 3)
EARLY = Hours("0-8", lambda day, hour: hour < 8)
DAYTIME = Hours("6-20", lambda day, hour: 6 <= hour < 20)
LAST_AND_FIRST = Hours("1" + "0" * 22 + "1", lambda day, hour: hour in {0, 23}, slots=24)
ODD = Hours("01" * 12, lambda day, hour: hour % 2 == 1, slots=24)

Wish = tuple[Hours, tuple[Hours, ...]]
WISHES: tuple[Wish, ...] = (
    (NIGHTS, (ALWAYS,)),
    (ALWAYS, (CHANGING,)),
    (CHANGING, (ALWAYS,)),
    (BEFORE_IT, (ALWAYS,)),
    (ALWAYS, (NO_NOON,)),
    (ONE_A_WEEK, (ALWAYS,)),
    (CHANGING_SUNDAY, (ALWAYS,)),
    (EARLY, (DAYTIME, CHANGING)),
    (LAST_AND_FIRST, (ALWAYS,)),
    (ODD, (CHANGING, BEFORE_IT)),
    (NIGHTS_AND_SUNDAYS, (ALWAYS, SUNDAY_MORNING, CHANGING)),
    (ALWAYS, (ALWAYS, CHANGING, ONE_A_WEEK, SUNDAY_MORNING)),
)
"""Of each provider: its own hours, and those of its URLs."""


@cache
def wall_minutes(zone: str, first: date, days: int) -> tuple[tuple[int, int, int], ...]:
    """Return all minutes of some days that a clock on the wall shows, as (epoch seconds, weekday, hour).

    A minute that the clock skips is none; one that it shows twice comes twice.
    """
    found = set()
    for number in range(days * 24 * 60):
        shown = datetime.combine(first, time()) + timedelta(minutes=number)
        for fold in (0, 1):
            moment = shown.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC)
            if moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == shown:
                found.add((int(moment.timestamp()), shown.weekday(), shown.hour))
    return tuple(sorted(found))


@dataclass(frozen=True)
class Opening:
    """When some hours are open: ``starts`` and ``ends`` in epoch seconds, in order."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @classmethod
    def of(cls, zone: str, first: date, days: int, opens: Callable[[int, int], bool]) -> "Opening":
        open_ = {at for at, day, hour in wall_minutes(zone, first, days) if opens(day, hour)}
        starts = sorted(at for at in open_ if at - MINUTE not in open_)
        ends = sorted(at + MINUTE for at in open_ if at + MINUTE not in open_)
        return cls(tuple(starts), tuple(ends))

    def __contains__(self, now: float) -> bool:
        place = bisect_right(self.starts, now) - 1
        return place >= 0 and now < self.ends[place]

    def within(self, start: float, end: float) -> Iterator[tuple[float, float]]:
        """Return what is open of a stretch of time."""
        for opens, closes in zip(self.starts, self.ends, strict=True):
            if max(start, opens) < min(end, closes):
                yield max(start, opens), min(end, closes)

    def seconds(self, start: float, end: float) -> float:
        return sum(closes - opens for opens, closes in self.within(start, end))


# --- the week ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fetch:
    """One simulated fetch; ``passed`` are URLs before it in the order that could have been fetched then."""

    pid: int
    name: str
    hours: Hours
    start: float
    end: float
    passed: int


@dataclass
class Waiting:
    """A URL in the queue, as the test remembers it."""

    place: tuple[int, int]
    hours: Hours


@dataclass
class Week:
    """A worker with some providers, for some days from midnight of ``first`` on in their time zone."""

    store: Store
    zone: str
    first: date
    days: int
    fetches: list[Fetch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start = datetime.combine(self.first, time(), ZoneInfo(self.zone)).timestamp()
        self.end = self.start + self.days * DAY
        self.clock = Clock()
        self.clock.rightNow = self.start
        self.chance = random.Random(self.zone)
        self.waiting: dict[int, dict[str, Waiting]] = {}
        self.names = self.sets = 0
        self.openings = {
            (own.text, theirs.text): Opening.of(
                self.zone, self.first, self.days + 1, lambda day, hour, one=own, other=theirs: one.opens(day, hour) and other.opens(day, hour)
            )
            for own, of_urls in WISHES
            for theirs in of_urls
        }  # fmt: skip
        thread: Any = SameThread()
        self.manager = QueueManager(
            self.store,
            thread,
            GroupCommit(thread, self.clock, self.commit),
            self.clock,
            identity=Identity("1/0"),
            dead_owners=set,
            zone=ZoneInfo(self.zone),
            limits=TurnLimits(poll=POLL, lease=10 * POLL, window=8),
            wake=lambda: self.clock.callLater(0, self.begin),
            now=self.clock.seconds,
        )

    def commit(self, outcomes: Any) -> Any:
        with self.store.begin() as tx:
            now = int(self.clock.seconds())
            return Settlement(
                tx, outcomes, owner="1/0", machineid=1, now=now, policy=POLICY, keep=lambda _: None
            ).run()

    def opening(self, pid: int, hours: Hours) -> Opening:
        return self.openings[WISHES[pid - 1][0].text, hours.text]

    def run(self) -> None:
        for pid, (own, _) in enumerate(WISHES, 1):
            timezone = self.zone if pid % 2 else ""  # the others live by the LCC's
            registration.add(
                self.store,
                Provider(pid, "", timeofday=own.mask, timezone=timezone),
                [f"http://h{pid}/"],
            )
            self.waiting[pid] = {}
        self.manager.start()
        self.top_up()
        while (calls := self.clock.getDelayedCalls()) and calls[0].getTime() < self.end:
            self.clock.advance(max(0.0, calls[0].getTime() - self.clock.seconds()))

    # --- URLs arrive -----------------------------------------------------------------------------

    def top_up(self) -> None:
        """Push so much that the queue lasts until the next time; hours of all kinds in one set."""
        for pid, (_, of_urls) in enumerate(WISHES, 1):
            wanted: list[tuple[str, Hours]] = []
            for hours in of_urls:
                missing = self.stock(pid, hours) - sum(
                    one.hours is hours for one in self.waiting[pid].values()
                )
                wanted += [(self.new_name(), hours) for _ in range(missing)]
            self.chance.shuffle(wanted)
            self.push(pid, wanted)
        self.clock.callLater(TOP_UP, self.top_up)

    def stock(self, pid: int, hours: Hours) -> int:
        now = self.clock.seconds()
        coming = self.opening(pid, hours).seconds(now, now + TOP_UP + HOUR)
        return 5 + int(coming / (0.4 * self.usual(pid)))

    def usual(self, pid: int) -> int:
        """Return how long a fetch takes, in seconds, more or less: less where the hours are few."""
        open_ = (self.opening(pid, hours).seconds(self.start, self.end) for hours in WISHES[pid - 1][1])
        return 120 if max(open_) < DAY else 900

    def new_name(self) -> str:
        self.names += 1
        return f"{self.names:06d}"

    def push(self, pid: int, wanted: list[tuple[str, Hours]]) -> None:
        self.sets += 1
        urls = {name: f"http://h{pid}/{name}" for name, _ in wanted}
        with self.store.begin() as tx:
            keys = [urlkey(pid, url, "text/html") for url in urls.values()]
            batch = UnitOfWork(tx, [pid], keys, int(self.clock.seconds()), POLICY)
            for number, (name, hours) in enumerate(wanted, 1):
                entry = UrlEntry(urls[name], "text/html", furl=urls[name], timeofday=hours.mask)
                batch.arrive(pid, entry, Place(self.sets, number))
                self.waiting[pid][name] = Waiting((self.sets, number), hours)
            batch.flush()
        self.manager.touched(pid)

    # --- URLs are fetched ------------------------------------------------------------------------

    def begin(self) -> None:
        while (ticket := self.manager.next_ticket()) is not None:
            now, pid = self.clock.seconds(), ticket.row.pid
            name = ticket.row.furl.rpartition("/")[2]
            this = self.waiting[pid].pop(name)
            takes = self.chance.uniform(0.05, 1.95) * self.usual(pid)
            passed = sum(
                one.place < this.place and now in self.opening(pid, one.hours)
                for one in self.waiting[pid].values()
            )
            self.fetches.append(Fetch(pid, name, this.hours, now, now + takes, passed))
            self.clock.callLater(takes, self.finish, ticket)

    def finish(self, ticket: Ticket) -> None:
        self.manager.charge(TurnPass.of(ticket), 100)
        self.manager.fetch_ended(ticket)
        now = int(self.clock.seconds())
        answer = Answer(200, ticket.row.furl, "text/html", "", "", "", "[]", "", "", now)
        self.manager.settle(Served(ticket, answer, Body(100, "0" * 32, "0" * 64, b"")))
        self.begin()

    # --- what is asked of it ---------------------------------------------------------------------

    def is_open(self, pid: int, hours: Hours) -> bool:
        return any(self.opening(pid, hours).within(self.start, self.end))

    def of(self, pid: int) -> list[Fetch]:
        return [one for one in self.fetches if one.pid == pid]

    def idle(self, pid: int) -> list[tuple[float, float]]:
        """Return the stretches in which nothing is fetched though a URL that waits has its hour."""
        ends = [self.start, *(one.end for one in self.of(pid))]
        starts = [*(one.start for one in self.of(pid)), self.end]
        return [
            stretch
            for end, start in zip(ends, starts, strict=True)
            for hours in WISHES[pid - 1][1]
            for stretch in self.opening(pid, hours).within(end, start)
        ]


YEAR = {
    "Europe/Amsterdam": (date(2026, 3, 29), date(2026, 10, 25)),
    "America/New_York": (date(2026, 3, 8), date(2026, 11, 1)),
    "Australia/Lord_Howe": (date(2026, 10, 4), date(2026, 4, 5)),
    "Pacific/Auckland": (date(2026, 9, 27), date(2026, 4, 5)),
    "Asia/Kolkata": (date(2026, 3, 29), date(2026, 10, 25)),
}
"""The Sundays on which clocks go forward, and back."""

IN_CI = {("Europe/Amsterdam", date(2026, 3, 29)), ("Australia/Lord_Howe", date(2026, 4, 5))}
"""An hour forward, and half an hour back; the others are left to ``make soak``."""

WEEKS = [
    pytest.param(zone, day, marks=[] if (zone, day) in IN_CI else pytest.mark.soak)
    for zone, days in YEAR.items()
    for day in days
]


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[SqlStore]:
    """An SQLite file that is not waited for: nothing is cut off here."""
    url = f"sqlite:///{tmp_path / 'lcc.sqlite'}"
    schema.upgrade(url)
    store = SqlStore(url)
    event.listen(
        store.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF").close()
    )
    yield store
    store.close()


@pytest.mark.parametrize(("zone", "sunday"), WEEKS)
def test_a_week_with_a_change_of_the_clock(zone: str, sunday: date) -> None:
    week = Week(MemoryStore(), zone, sunday - timedelta(days=3), 7)
    week.run()
    assert len(week.fetches) > 3000
    check(week)


@pytest.mark.parametrize(("zone", "sunday"), sorted(IN_CI)[:1])
def test_the_days_around_a_change_with_a_store_on_disk(zone: str, sunday: date, on_disk: SqlStore) -> None:
    week = Week(on_disk, zone, sunday - timedelta(days=1), 3)
    week.run()
    assert len(week.fetches) > 1000
    check(week)


def check(week: Week) -> None:
    """Nothing outside its hours, none of them unused, the order kept, one at a time."""
    for pid, (_, of_urls) in enumerate(WISHES, 1):
        fetches = week.of(pid)
        assert {one.hours for one in fetches} == {hours for hours in of_urls if week.is_open(pid, hours)}
        assert [one for one in fetches if one.start not in week.opening(pid, one.hours)] == [], "closed"
        assert [one for one in week.idle(pid) if one[1] - one[0] > POLL + GRACE] == [], "an hour left unused"
        assert [one for one in fetches if one.passed] == [], "before an earlier URL"
        assert [one for one, then in pairwise(fetches) if then.start < one.end] == [], "two at once"


@pytest.mark.parametrize(
    ("zone", "forward", "back"),
    [
        ("Europe/Amsterdam", (0, 1), (2, 1)),
        ("America/New_York", (0, 1), (1, 2)),
        ("Australia/Lord_Howe", (0.5, 1), (1, 1.5)),
        ("Pacific/Auckland", (0, 1), (2, 1)),
        ("Asia/Kolkata", (1, 1), (1, 1)),
    ],
)
def test_the_walls_clocks_show_what_they_show(
    zone: str, forward: tuple[float, ...], back: tuple[float, ...]
) -> None:
    """How many hours ``2-3`` and ``1-2`` last on those Sundays: what the weeks above are held against."""
    for sunday, hours in zip(YEAR[zone], (forward, back), strict=True):
        lasts = [
            Opening.of(zone, sunday, 1, hours.opens).seconds(0, float("inf")) / HOUR
            for hours in (CHANGING, BEFORE_IT)
        ]
        assert tuple(lasts) == hours
