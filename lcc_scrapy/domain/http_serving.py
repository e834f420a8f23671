"""HTTP servers of the LCC: where they listen, and what clients of ``lcc web`` and ``lcc files`` may use.

Every bound says what happens at it.
"""

import re
from dataclasses import dataclass
from ipaddress import ip_address

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain import shared_settings as shared
from lcc_scrapy.domain.notations import Networks
from lcc_scrapy.domain.settings import group, setting
from lcc_scrapy.domain.shares import Share

_UNIX = "unix:"
_TCP = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<four>[0-9.]+)|localhost):(?P<port>\d{1,5})")
_PORT_MAX = 65535


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A Unix socket at ``path``, or a TCP port; port 0 is one that is free."""

    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> "Endpoint | None":
        """Read an endpoint; None = nowhere. Raises ``ValueError``."""
        text = text.strip()
        if not text:
            return None
        if text.startswith(_UNIX) and text != _UNIX:
            return cls(path=text.removeprefix(_UNIX))
        match = _TCP.fullmatch(text)
        if match is None or int(match["port"]) > _PORT_MAX:
            raise ValueError(
                f"{text!r}, expected for example 127.0.0.1:8080, [::]:8443 or unix:/run/lcc/web.sock"
            )
        host = match["six"] or match["four"] or "127.0.0.1"
        return cls(str(ip_address(host)), int(match["port"]))

    def __str__(self) -> str:
        if self.path:
            return f"{_UNIX}{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_private(self) -> bool:
        """Tell whether only this machine can reach it."""
        return bool(self.path) or ip_address(self.host).is_loopback


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
    health_file: str = shared.health_file()
    certificate: str = setting("LCC_HTTP_CERTIFICATE", "", str, "File with the certificate and its chain (PEM) for `lcc web` and `lcc files`; empty = plain HTTP. SIGHUP reads it again.")
    key: str = setting("LCC_HTTP_KEY", "", str, "File with its private key (PEM); empty = it is in the same file.")
    allow_plain_remote: bool = setting("LCC_HTTP_ALLOW_PLAIN_REMOTE", "no", read.flag, "Permit `lcc web` and `lcc files` to listen beyond loopback without TLS.")
# fmt: on
