"""What a process does when room or descriptors are short, or its disk fails: no real trouble, no threads."""

import socket
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import DatabaseError, OperationalError
from twisted.internet.task import Clock

from lcc_scrapy.db.sql.store import named_errors
from lcc_scrapy.db.thread import keep_timers_steady
from lcc_scrapy.domain.errors import (
    DiskFailed,
    DiskFull,
    Exhausted,
    NotDurable,
    NotNow,
    SetTooLarge,
    StoreFull,
    StoreUnavailable,
)
from lcc_scrapy.domain.free_space import Reserve
from lcc_scrapy.domain.steady_clock import SteadyClock
from lcc_scrapy.fetch import download_errors
from lcc_scrapy.http.outgoing import NoConnection
from lcc_scrapy.machine import free_space as disks_module
from lcc_scrapy.machine.ballast import Ballast
from lcc_scrapy.machine.free_space import Disks
from lcc_scrapy.machine.resources import REST, Resources

FLOOR, BALLAST = 8_000_000, 2_000_000


class Machine:
    """A disk with as much room as a test says."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free = 10 * FLOOR
        self.clock = Clock()
        self.ends: list[str] = []
        self.ballast = Ballast(folder, BALLAST)
        monkeypatch.setattr(disks_module, "free_bytes", lambda _: self.free)
        disks = Disks([folder], Reserve(FLOOR, BALLAST), self.ballast)
        self.resources = Resources(disks, self.clock, lambda error: self.ends.append(str(error)))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path, monkeypatch)
    assert made.resources.look() == ""
    assert made.ballast.is_held
    return made


def test_below_the_floor_everything_rests_until_there_is_a_quarter_more(machine: Machine) -> None:
    for free, short in (
        (FLOOR, False),
        (FLOOR - 1, True),
        (FLOOR * 5 // 4 - 1, True),
        (FLOOR * 5 // 4, False),
    ):
        machine.free = free
        machine.resources.look()
        assert machine.resources.short is short
    assert machine.ballast.is_held


def test_on_a_full_disk_the_ballast_goes_and_everything_rests_until_it_is_back(machine: Machine) -> None:
    machine.free = 0
    assert "bytes free on the disk of" in machine.resources.look()
    assert not machine.ballast.is_held
    machine.free = FLOOR * 5 // 4 + BALLAST - 1
    assert "no room for the ballast file" in machine.resources.look()
    machine.free += 1
    assert machine.resources.look() == ""
    assert machine.ballast.is_held


@pytest.mark.parametrize("error", [DiskFull("x"), StoreFull("x")])
def test_whoever_finds_no_room_has_the_ballast_given_up_whatever_the_disk_shows(
    machine: Machine, error: Exception
) -> None:
    machine.resources.notice(error)
    assert machine.resources.short
    machine.resources.look()
    assert not machine.ballast.is_held


@pytest.mark.parametrize(
    ("error", "rests"),
    [
        (NotDurable("x"), True),
        (Exhausted("x"), True),
        (NotNow("x"), False),
        (SetTooLarge("x"), False),
        (StoreUnavailable("x"), False),
        (ValueError("x"), False),
    ],
)
def test_nothing_new_is_begun_for_a_moment_after_something_was_short(
    machine: Machine, error: Exception, *, rests: bool
) -> None:
    machine.resources.notice(error)
    assert machine.resources.short is rests
    machine.clock.advance(REST)
    assert not machine.resources.short
    machine.resources.look()
    assert (machine.ballast.is_held, machine.ends) == (True, [])


def test_a_disk_that_failed_ends_the_process_at_once(machine: Machine) -> None:
    machine.resources.notice(DiskFailed("fsync of x: Input/output error"))
    assert machine.ends == ["fsync of x: Input/output error"]


# --- what SQLite and sockets say -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SQLITE_IOERR_FSYNC", DiskFailed),
        ("SQLITE_IOERR_DIR_FSYNC", DiskFailed),
        ("SQLITE_IOERR_WRITE", DiskFailed),
        ("SQLITE_IOERR_READ", DiskFailed),
        ("SQLITE_CORRUPT", DiskFailed),
        ("SQLITE_FULL", StoreFull),
        ("SQLITE_IOERR_NOMEM", StoreUnavailable),
        ("SQLITE_IOERR_LOCK", StoreUnavailable),
        ("SQLITE_BUSY", StoreUnavailable),
        ("SQLITE_CANTOPEN", StoreUnavailable),
    ],
)
def test_sqlite_tells_a_disk_that_fails_from_one_that_is_full_or_a_file_that_is_busy(
    name: str, kind: type[Exception]
) -> None:
    broken = name == "SQLITE_CORRUPT"
    original = (sqlite3.DatabaseError if broken else sqlite3.OperationalError)("disk I/O error")
    original.sqlite_errorcode = getattr(sqlite3, name)
    error = (DatabaseError if broken else OperationalError)("select", None, original)
    with pytest.raises(kind) as raised, named_errors():
        raise error
    assert type(raised.value) is kind


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (24, Exhausted),
        (23, Exhausted),
        (105, Exhausted),
        (111, download_errors.DownloadConnectionRefusedError),
        (99, download_errors.DownloadConnectionRefusedError),
    ],
)
def test_a_want_of_descriptors_is_not_the_site_s(number: int, kind: type[Exception]) -> None:
    error = NoConnection(OSError(number, "x"))
    assert type(download_errors.translated(error, "http://www.example.org/")) is kind


@pytest.mark.parametrize(
    ("has", "kind"), [(False, Exhausted), (True, download_errors.CannotResolveHostError)]
)
def test_a_name_that_nobody_could_be_asked_for_is_not_unknown(
    monkeypatch: pytest.MonkeyPatch, kind: type[Exception], *, has: bool
) -> None:
    monkeypatch.setattr(download_errors, "_has_descriptors", lambda: has)
    error = NoConnection(socket.gaierror(socket.EAI_AGAIN, "x"))
    assert type(download_errors.translated(error, "http://www.example.org/")) is kind


# --- time ----------------------------------------------------------------------------------------


def test_a_steady_clock_does_not_jump_until_it_is_told_to_follow() -> None:
    wall, steady = [1000.0], [5.0]
    clock = SteadyClock(lambda: wall[0], lambda: steady[0])
    wall[0], steady[0] = 1010.5, 15.0
    assert (clock.now(), clock.follow()) == (1010.0, 0.0)
    wall[0] = 4610.0
    assert (clock.now(), clock.follow(), clock.now()) == (1010.0, 3600.0, 4610.0)


def test_the_timers_of_a_reactor_do_not_care_for_the_wall_and_stay_where_they_are() -> None:
    class Reactor:
        seconds = staticmethod(lambda: 1000.0)

    reactor: Any = Reactor()
    keep_timers_steady(reactor)
    first = reactor.seconds
    assert 1000 <= first() < 1060
    keep_timers_steady(reactor)
    assert reactor.seconds == first, "once is enough"
