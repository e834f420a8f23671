"""Limits of one content user. Every bound says what happens at it."""

from dataclasses import dataclass

_M = 1000**2


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one conversation: sizes in bytes, times in seconds."""

    query_bytes: int = 65536
    """Of a query; more is answered with 805."""
    query_seconds: float = 10.0
    """Until the query is complete; later is answered with 806."""
    idle_seconds: float = 60.0
    """In which nothing of a portion of the answer is taken; then the connection is cut."""
    rate: int = 2000
    """Bytes of the answer per second of waiting for the content user; one that is slower is cut."""
    rate_grace_seconds: float = 30.0
    """Of waiting for the content user, before the rate is looked at."""
    wait_seconds: float = 600.0
    """To wait for a change; who asks for more waits so long."""
    poll_seconds: float = 2.0
    """Between looks at whether there is a change."""
    linger_seconds: float = 60.0
    """After the answer, in which the rest is read and discarded; then the connection is cut."""
    linger_bytes: int = 64 * _M
    """Read and discarded behind the query; then the connection is cut."""
    retry_after: int = 300
    """What 803 and 804 advise."""


DEFAULT_LIMITS = Limits()
