"""Lines between Squid and a ``url_rewrite_program`` that works on several at a time."""

import re
from dataclasses import dataclass

LONGEST = 16384
"""Bytes of a line; longer ones are passed over."""

_CHANNEL = re.compile(r"\d{1,10}")
_SITE = re.compile(r"([a-z]+://)(?:[^/?#]*@)?([^/?#@]*)")


@dataclass(frozen=True, slots=True)
class Asked:
    """One line of Squid: ``ID URL ADDRESS/NAME USER METHOD …``; what is missing is empty."""

    channel: str
    url: str = ""
    address: str = ""
    method: str = ""

    @classmethod
    def parse(cls, line: bytes) -> "Asked | None":
        """Read a line; None if nobody waits for an answer to it, because it has no channel."""
        channel, *parts = line.decode("ascii", "replace").split() or [""]
        if not _CHANNEL.fullmatch(channel):
            return None
        url, client, _user, method = (*parts, *[""] * 4)[:4]
        return cls(channel, url, client.partition("/")[0], method)

    @property
    def is_worth_looking_up(self) -> bool:
        """Tell whether it is about something that a mirror may have."""
        return self.method in {"GET", "HEAD"} and self.url.startswith(("http://", "https://", "ftp://"))

    @property
    def site(self) -> str:
        """Return scheme, host and port, for the log: all else may be a secret of a client."""
        found = _SITE.match(self.url)
        return "".join(found.groups()) if found else "-"


def unchanged(channel: str) -> str:
    """Return the line that leaves a URL as it is."""
    return f"{channel} ERR\n"


def changed(channel: str, url: str, *, redirects: bool) -> str:
    """Return the line that replaces a URL: by an answer 302, or without the client's knowledge."""
    result = f'status=302 url="{url}"' if redirects else f'rewrite-url="{url}"'
    return f"{channel} OK {result}\n"
