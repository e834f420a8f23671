"""What clients of ``lcc web`` and ``lcc files`` may use. Every bound says what happens at it."""

from dataclasses import dataclass

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain import shared_settings as shared
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.domain.settings import group, setting
from lcc_scrapy.domain.shares import Share


# fmt: off
@dataclass(frozen=True, slots=True)
class Bounds:
    """How much the HTTP API does at a time, and for how long. Times are in seconds."""

    waiters: int = setting("LCC_WEB_WAITERS", "1000", read.at_least_one, "Requests to `lcc web` that wait for changes at a time; more get 503.")
    exports: int = setting("LCC_WEB_EXPORTS", "4", read.at_least_one, "Exports and packages of ResourceSync dumps that `lcc web` writes at a time; more get 503.")
    share: Share = group(Share)
    poll: float = shared.poll()
    silence: float = shared.http_silence()
    proxies: Networks = shared.web_proxies()
    refusal_delay: float = 1.0
    """After which a client is told that its share is used up: asking again at once is not worth its while."""


@dataclass(frozen=True, slots=True)
class Service:
    """How an application is served. Times are in seconds; without a certificate it is plain HTTP."""

    connections: int = setting("LCC_HTTP_CONNECTIONS", "2000", read.at_least_one, "Connections to `lcc web` or `lcc files` at a time; requests of more get 503.")
    connections_per_address: int = setting("LCC_HTTP_CONNECTIONS_PER_ADDRESS", "200", read.at_least_one, "Connections of one address (an IPv6 /64 counts as one) to `lcc web` or `lcc files` at a time; more are closed. Programs on the same machine and LCC_WEB_PROXIES may have as many as they like.")
    proxies: Networks = shared.web_proxies()
    silence: float = shared.http_silence()
    stop_seconds: float = shared.stop_timeout()
    certificate: str = setting("LCC_HTTP_CERTIFICATE", "", str, "File with the certificate and its chain (PEM) for `lcc web` and `lcc files`; empty = plain HTTP. SIGHUP reads it again.")
    key: str = setting("LCC_HTTP_KEY", "", str, "File with its private key (PEM); empty = it is in the same file.")
    allow_plain_remote: bool = setting("LCC_HTTP_ALLOW_PLAIN_REMOTE", "no", read.flag, "Permit `lcc web` and `lcc files` to listen beyond loopback without TLS.")
# fmt: on
