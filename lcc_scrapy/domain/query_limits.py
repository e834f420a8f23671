"""What one content user may use at the query socket. Every bound says what happens at it."""

from dataclasses import dataclass

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain import shared_settings as shared
from lcc_scrapy.domain.settings import LIVE, setting
from lcc_scrapy.domain.uns_limits import ConversationLimits


# fmt: off
@dataclass(frozen=True, slots=True)
class Limits(ConversationLimits):
    """Bounds of a conversation with the query socket: sizes in bytes, times in seconds."""

    query_bytes: int = setting("LCC_QUERY_BYTES", "65536", read.at_least(1, read.size), "Bytes of a query; more get 805.", LIVE)
    query_seconds: float = setting("LCC_QUERY_SECONDS", "10s", read.period, "Time from connecting to a complete query; later gets 806.", LIVE)
    idle_seconds: float = setting("LCC_QUERY_IDLE_SECONDS", "60s", read.period, "Time in which a content user takes nothing of the 64 KiB of its answer that are ready for it; then the connection is cut.", LIVE)
    rate: int = setting("LCC_QUERY_MIN_RATE", "2000", read.at_least(1, read.size), "Bytes of an answer per second of waiting for the content user, on average; who is slower for 30 s is cut.", LIVE)
    wait_seconds: float = setting("LCC_QUERY_WAIT_MAX", "10m", read.duration, "Longest time that a query waits for a change, whatever it says; 0 = none waits.", LIVE)
    rate_grace_seconds: float = 30.0
    """Of waiting for the content user, before the rate is looked at."""
    poll_seconds: float = shared.poll()
# fmt: on


DEFAULT_LIMITS = Limits()
