"""Deadlines of a conversation with a content user; pure, the time (seconds, monotonic) is a parameter."""

from lcc_scrapy.apps.query.settings import Limits


class Deadlines:
    """Watches one conversation. Time that the LCC itself takes is not held against the content user."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._opened = now
        self._said = 0
        self._held = 0.0
        self._held_since: float | None = None
        self._over_since: float | None = None
        self._discarded = 0

    def said(self, size: int) -> None:
        """Something was handed to the transport."""
        self._said += size

    def hold(self, now: float) -> None:
        """The content user does not take more."""
        if self._held_since is None:
            self._held_since = now

    def go_on(self, now: float) -> None:
        """The content user has taken all that was said."""
        if self._held_since is not None:
            self._held += now - self._held_since
            self._held_since = None

    def over(self, now: float) -> None:
        """Everything is said."""
        self._over_since = now

    def discarded(self, size: int) -> None:
        """Something came behind the query."""
        self._discarded += size

    def query_is_late(self, now: float) -> bool:
        """Tell whether the time to ask is over."""
        return now - self._opened > self._limits.query_seconds

    def is_over(self, now: float) -> bool:
        """Tell whether the connection is to be cut: nobody reads, or nobody closes, or it never ends."""
        limits = self._limits
        if self._discarded > limits.linger_bytes:
            return True
        if self._held_since is not None:
            waited = now - self._held_since
            held = self._held + waited
            slow = held > limits.rate_grace_seconds and self._said < limits.rate * held
            return slow or waited > limits.idle_seconds
        return self._over_since is not None and now - self._over_since > limits.linger_seconds
