"""Deadlines of a conversation with a provider; pure, the time (seconds, monotonic) is a parameter."""

from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.uns.states import State


class Deadlines:
    """Watches one conversation. Time that the LCC itself takes is not held against the provider."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._opened = now
        self._heard = now
        self._state = State.CONNECTED
        self._entered = now
        self._bytes = 0

    def heard(self, size: int, now: float) -> None:
        """Bytes have come, or the provider has taken some of what waited for it."""
        self._heard = now
        self._bytes += size

    def watch(self, state: State, now: float) -> None:
        """Note the state after each step; a new one begins its own reckoning."""
        if state is not self._state:
            self._state, self._entered, self._heard, self._bytes = state, now, now, 0

    def login_is_late(self, now: float) -> bool:
        """Tell whether the time to log in is over."""
        return now - self._opened > self._limits.login_seconds

    def complaint(self, now: float) -> str:
        """Tell what is too slow now; empty = nothing."""
        limits = self._limits
        if self._state is State.CONNECTED and self.login_is_late(now):
            return f"no login within {limits.login_seconds:g} s"
        if self._state not in {State.READY, State.RECEIVING}:
            return ""
        if now - self._opened > limits.total_seconds:
            return f"not done within {limits.total_seconds:g} s"
        if now - self._heard > limits.idle_seconds:
            return f"nothing for {limits.idle_seconds:g} s"
        return self._rate_complaint(now - self._entered)

    def _rate_complaint(self, elapsed: float) -> str:
        limits = self._limits
        slow = elapsed > limits.rate_grace_seconds and self._bytes < limits.rate * elapsed
        return f"slower than {limits.rate} bytes/s" if slow and self._state is State.RECEIVING else ""

    def linger_is_over(self, now: float) -> bool:
        """Tell whether the connection may be cut, the answer having been given."""
        too_long = now - self._entered > self._limits.linger_seconds
        return self._state in {State.LINGERING, State.CLOSED} and (
            too_long or self._bytes > self._limits.linger_bytes
        )
