"""Signs of life of an event loop: for systemd (sd_notify(3)), for `lcc crawl`, and for `lcc health`.

systemd and `lcc crawl` restart a process whose event loop stands still. Both are named by the environment:
NOTIFY_SOCKET and WATCHDOG_USEC by systemd, LCC_WATCHDOG_FD by `lcc crawl`. `lcc health` looks at the time of
LCC_HEALTH_FILE.
"""

import os
import socket
import time
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from lcc_scrapy.machine.wake_file import Clock

DESCRIPTOR = "LCC_WATCHDOG_FD"
READY, STOPPING, _ALIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"
EVERY = 5.0
"""Seconds between two signs of life at most."""

SILENCE = 120.0
"""Seconds without a sign of life after which `lcc health` calls a process dead where LCC_WATCHDOG is 0."""

_SIGN = b"."
_MODE = 0o640


class ServiceManager:
    """systemd, where it started this process with Type=notify; else nobody is told anything."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        watched = environment.get("WATCHDOG_PID", "") in {"", str(os.getpid())}
        microseconds = environment.get("WATCHDOG_USEC", "")
        self.watchdog = int(microseconds) / 1e6 if watched and microseconds.isdecimal() else 0.0
        """Seconds after which a process that gives no sign of life is restarted; 0 = nobody watches."""

    def tell(self, state: str) -> None:
        """Say something of this process."""
        if self._address:
            unix = socket.AF_UNIX, socket.SOCK_DGRAM
            with suppress(OSError), socket.socket(*unix) as wire:  # noqa: TID251 - a Unix socket
                wire.setblocking(False)
                wire.connect(self._address)
                wire.send(state.encode())


class SignsOfLife:
    """Gives signs of life from an event loop, from ``start`` to ``end``.

    The time of ``health_file`` is one; a process that `lcc crawl` watches leaves that file to `lcc crawl`.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ, *, health_file: str = "") -> None:
        self._manager = ServiceManager(environment)
        descriptor = environment.get(DESCRIPTOR, "")
        self._descriptor = int(descriptor) if descriptor.isdecimal() else None
        self._file = Path(health_file) if health_file and self._descriptor is None else None
        watched = self._manager.watchdog
        self._every = min(EVERY, watched / 3) if watched else EVERY
        self._clock: Clock | None = None
        self._timer: Any = None
        self._next = 0.0

    def start(self, clock: Clock) -> None:
        """Say that this process is ready, and give signs of life from now on."""
        self._clock = clock
        self.begin()
        self._go_on()

    def begin(self) -> None:
        """Say that this process is ready: for a loop without a clock, which calls ``give``."""
        self._manager.tell(READY)

    def give(self, now: float) -> None:
        """Give a sign of life if it is time for one; ``now`` in seconds, monotonic."""
        if now >= self._next:
            self._next = now + self._every
            self._give()

    def stop(self) -> None:
        """Say that this process begins to end; meanwhile it goes on giving signs of life."""
        self._manager.tell(STOPPING)

    def end(self) -> None:
        """Give none any more: the loop ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_on(self) -> None:
        assert self._clock is not None
        self._timer = self._clock.callLater(self._every, self._go_on)
        self._give()

    def _give(self) -> None:
        if self._manager.watchdog:
            self._manager.tell(_ALIVE)
        if self._descriptor is not None:
            with suppress(OSError):  # nobody reads it at the moment
                os.write(self._descriptor, _SIGN)
        if self._file is not None:
            with suppress(OSError):  # `lcc health` will miss it
                self._file.touch(_MODE)


def silence_of(health_file: str) -> float | None:
    """Return for how many seconds no sign of life came into a file, None where none ever did."""
    try:
        return max(time.time() - Path(health_file).stat().st_mtime, 0.0)
    except FileNotFoundError:
        return None


class Watched:
    """The signs of life of a child process, seen from its parent."""

    def __init__(self) -> None:
        self._mine, self._its = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._heard: float | None = None

    @property
    def descriptor(self) -> int:
        """What the child has to inherit."""
        return self._its

    def environment(self, given: Mapping[str, str]) -> MutableMapping[str, str]:
        """Return the environment of the child: it has nothing to tell systemd."""
        own = {name: value for name, value in given.items() if name not in {"NOTIFY_SOCKET", "WATCHDOG_USEC"}}
        return {**own, DESCRIPTOR: str(self._its)}

    def silence(self, now: float) -> float:
        """Return for how many seconds nothing came, 0 for a child that has not begun yet."""
        with suppress(BlockingIOError):
            while os.read(self._mine, 4096):
                self._heard = now
        return 0.0 if self._heard is None else now - self._heard

    def forgive(self, now: float) -> None:
        """Count from now on: it was killed for its silence."""
        self._heard = now

    def close(self) -> None:
        """The child is gone."""
        os.close(self._mine)
        os.close(self._its)
