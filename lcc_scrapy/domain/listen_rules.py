"""Where and for how many connections a socket listens, and the settings of this for the UNS."""

from collections.abc import Sequence
from dataclasses import dataclass

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.domain.settings import LIVE, setting


@dataclass(frozen=True, slots=True)
class ListenRules:
    """What every listener has to say. Twice as many connections as may be are cut without a word."""

    endpoints: Sequence[str]
    """Twisted endpoint strings; empty = do not listen."""
    allow_plain_remote: bool
    """Listen beyond loopback without TLS: passwords, tokens and documents in plain sight."""
    connections_per_address: int
    """An IPv6 /64 counts as one address. Unix sockets have no address."""
    connections_max: int
    proxies: Networks
    """Whose PROXY header is believed at ``haproxy:`` endpoints; others are cut there."""
    stop_seconds: float
    """For conversations to end by themselves when the server stops."""


# fmt: off
@dataclass(frozen=True, slots=True)
class UnsListenRules(ListenRules):
    """Those of the UNS."""

    endpoints: tuple[str, ...] = setting("LCC_UNS_ENDPOINTS", "tcp:9000:interface=127.0.0.1", read.listed, "Where the UNS listens: Twisted endpoint strings separated by blanks; empty = nowhere.")
    allow_plain_remote: bool = setting("LCC_UNS_ALLOW_PLAIN_REMOTE", "no", read.flag, "Permit listening beyond loopback without TLS.")
    connections_per_address: int = setting("LCC_CONNECTIONS_PER_ADDRESS", "10", read.at_least_one, "Connections of one address to the UNS at a time; more get 104.", LIVE)
    connections_max: int = setting("LCC_CONNECTIONS_MAX", "1000", read.at_least_one, "Connections to the UNS at a time, a fifth of them kept for addresses from which a provider has logged in since the start; more get 104.", LIVE)
    proxies: Networks = setting("LCC_UNS_PROXIES", "127.0.0.0/8 ::1", read.networks, "Addresses and networks of proxies in front of `haproxy:` endpoints, separated by blanks: who is let in there, and believed when it says whose a connection is.", LIVE)
    connections_per_provider: int = setting("LCC_CONNECTIONS_PER_PROVIDER", "10", read.at_least_one, "Conversations of one provider with the UNS at a time, from all its addresses; more get 104.", LIVE)
    stop_seconds: float = 5.0
# fmt: on
