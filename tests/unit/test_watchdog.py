"""Signs of life, as systemd and a parent process see them."""

import os
import socket
import time
from contextlib import closing

import pytest
from twisted.internet.task import Clock

from lcc_scrapy.machine.watchdog import DESCRIPTOR, EVERY, ServiceManager, SignsOfLife, Watched, silence_of


@pytest.fixture
def systemd(tmp_path):
    """Return a socket as systemd has one, and its address."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as made:
        made.bind(str(tmp_path / "notify"))
        made.setblocking(False)
        yield made, str(tmp_path / "notify")


def heard(wire):
    said = []
    try:
        while True:
            said.append(wire.recv(4096).decode())
    except BlockingIOError:
        return said


def test_systemd_hears_when_a_process_is_ready_lives_and_ends(systemd):
    wire, address = systemd
    clock, pid = Clock(), str(os.getpid())
    signs = SignsOfLife({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "6000000", "WATCHDOG_PID": pid})
    signs.start(clock)
    assert heard(wire) == ["READY=1", "WATCHDOG=1"]
    clock.advance(1.9)
    assert heard(wire) == []
    clock.pump([0.1, 2.0])
    assert heard(wire) == ["WATCHDOG=1", "WATCHDOG=1"]
    signs.stop()
    clock.advance(2.0)
    assert heard(wire) == ["STOPPING=1", "WATCHDOG=1"]
    signs.end()
    signs.end()
    clock.advance(10.0)
    assert heard(wire) == []


def test_a_watchdog_of_another_process_is_left_alone(systemd):
    wire, address = systemd
    signs = SignsOfLife({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "6000000", "WATCHDOG_PID": "1"})
    signs.start(Clock())
    assert heard(wire) == ["READY=1"]


def test_an_abstract_address_is_understood():
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as wire:
        wire.bind("\0lcc-test-" + os.urandom(8).hex())
        wire.setblocking(False)
        ServiceManager({"NOTIFY_SOCKET": "@" + wire.getsockname()[1:].decode()}).tell("READY=1")
        assert heard(wire) == ["READY=1"]


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": "/nowhere/at/all", "WATCHDOG_USEC": "9"}])
def test_without_systemd_nothing_happens(environment):
    signs, clock = SignsOfLife(environment), Clock()
    signs.start(clock)
    clock.advance(EVERY)
    signs.stop()
    signs.end()


def test_a_loop_without_a_clock_gives_signs_when_it_is_time(systemd):
    wire, address = systemd
    signs = SignsOfLife({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "6000000"})
    signs.begin()
    for now in (100.0, 101.9, 102.0, 103.0):
        signs.give(now)
    assert heard(wire) == ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]


def test_a_parent_counts_from_the_last_sign_of_its_child():
    watched, clock = Watched(), Clock()
    environment = watched.environment({"A": "b", "NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "1"})
    assert environment == {"A": "b", DESCRIPTOR: str(watched.descriptor)}
    assert watched.silence(1000.0) == 0.0  # it has not begun
    signs = SignsOfLife(environment)
    signs.start(clock)
    assert (watched.silence(1010.0), watched.silence(1015.0)) == (0.0, 5.0)
    clock.advance(EVERY)
    assert watched.silence(1016.0) == 0.0
    watched.forgive(1030.0)
    assert watched.silence(1031.0) == 1.0
    watched.close()


def test_a_parent_that_does_not_read_does_not_hold_its_child_up():
    watched, clock = Watched(), Clock()
    signs = SignsOfLife(watched.environment({}))
    signs.start(clock)
    clock.pump([EVERY] * 70_000)  # more than a pipe holds
    assert watched.silence(1.0) == 0.0
    watched.close()


def test_the_time_of_the_health_file_is_renewed_as_long_as_the_loop_runs(tmp_path):
    file, clock = tmp_path / "health", Clock()
    assert silence_of(str(file)) is None
    signs = SignsOfLife({}, health_file=str(file))
    signs.start(clock)
    os.utime(file, (1, time.time() - 300))
    assert 300 <= silence_of(str(file)) < 400
    clock.advance(EVERY)
    assert silence_of(str(file)) < 100
    signs.end()
    os.utime(file, (1, time.time() - 300))
    clock.advance(10 * EVERY)
    assert silence_of(str(file)) >= 300


def test_a_clock_that_was_set_back_does_not_make_a_negative_silence(tmp_path):
    file = tmp_path / "health"
    SignsOfLife({}, health_file=str(file)).give(0.0)
    os.utime(file, (1, time.time() + 300))
    assert silence_of(str(file)) == 0.0


def test_a_child_leaves_the_health_file_to_its_parent(tmp_path):
    with closing(Watched()) as watched:
        SignsOfLife(watched.environment({}), health_file=str(tmp_path / "health")).start(Clock())
    assert not (tmp_path / "health").exists()


def test_a_health_file_that_cannot_be_written_holds_nobody_up(tmp_path):
    SignsOfLife({}, health_file=str(tmp_path / "nowhere" / "health")).start(Clock())
