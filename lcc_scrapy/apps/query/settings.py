"""Where the query socket listens, and what one content user may use there. Every bound says what happens at it."""

from dataclasses import dataclass

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain import shared_settings as shared
from lcc_scrapy.domain.listen_rules import ListenRules
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.domain.settings import LIVE, group, setting
from lcc_scrapy.domain.uns_limits import ConversationLimits


# fmt: off
@dataclass(frozen=True, slots=True)
class QueryListenRules(ListenRules):
    """Where it listens, and for how many."""

    endpoints: tuple[str, ...] = setting("LCC_QUERY_ENDPOINTS", "", read.listed, "Where `lcc query` listens: Twisted endpoint strings separated by blanks.")
    allow_plain_remote: bool = setting("LCC_QUERY_ALLOW_PLAIN_REMOTE", "no", read.flag, "Permit `lcc query` to listen beyond loopback without TLS.")
    connections_per_address: int = setting("LCC_QUERY_CONNECTIONS_PER_ADDRESS", "10", read.at_least_one, "Connections of one address to the query socket at a time; more get 804.", LIVE)
    connections_max: int = setting("LCC_QUERY_CONNECTIONS_MAX", "100", read.at_least_one, "Connections to the query socket at a time; more get 804.", LIVE)
    proxies: Networks = setting("LCC_QUERY_PROXIES", "127.0.0.0/8 ::1", read.networks, "Addresses and networks of proxies in front of `haproxy:` endpoints of `lcc query`.", LIVE)
    stop_seconds: float = shared.stop_timeout()


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


@dataclass(frozen=True, slots=True)
class QuerySettings:
    """All settings of `lcc query` and `lcc front query`."""

    listen: QueryListenRules = group(QueryListenRules)
    threads: int = setting("LCC_QUERY_THREADS", "4", read.at_least_one, "Threads in which answers are read from database and disk, a portion of one answer at a time; each needs a database connection.")
    limits: Limits = group(Limits)
# fmt: on


DEFAULT_LIMITS = Limits()
