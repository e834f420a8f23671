"""Epoch seconds for measuring: the system's clock may be moved at any time, by an hour or a year."""

from collections.abc import Callable

SLACK = 1.0
"""Seconds by which the two clocks may differ unnoticed."""


class SteadyClock:
    """Shows what ``wall`` (epoch seconds) shows, but goes on like ``steady`` when that jumps.

    Who keeps moments in this time calls ``follow`` now and then and moves them by what it returns.
    """

    def __init__(self, wall: Callable[[], float], steady: Callable[[], float]) -> None:
        self._wall = wall
        self._steady = steady
        self._offset = wall() - steady()

    def now(self) -> float:
        """Return the time, in epoch seconds."""
        return self._steady() + self._offset

    def since_start(self) -> float:
        """Return seconds that nobody moves, from some moment on."""
        return self._steady()

    def follow(self) -> float:
        """Agree with the wall clock again; returns by how many seconds that was moved, 0 = it was not."""
        step = self._wall() - self.now()
        if abs(step) < SLACK:
            return 0.0
        self._offset += step
        return step
