"""Roots: which URLs a provider may have fetched (seed 003 section 3, table ``proots``).

URLs are compared after parsing and normalising, never as text, so that look-alikes, dot segments,
encoded slashes and userinfo cannot step out of a root.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import quote, unquote, urlsplit

from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.hostnames import ascii_name, former_name
from lcc_scrapy.domain.values import quickly_made

URL_MAX = 2048
"""Longest URL in characters; the columns that hold URLs are as wide."""

_HOST_MAX = 253
_NAME = re.compile(r"[a-z0-9._-]+")
_DEFAULT_PORT = {"http": 80, "https": 443}
_UNUSABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_AUTHORITY = re.compile(r"[^\[\]]*|\[[0-9A-Fa-f:.]+\](?::[0-9]*)?")
_ENDS_IN_NUMBER = re.compile(r"(?:^|\.)(?:\d+|0x[0-9a-f]*)\.?$")
_UNSAFE_PATH = re.compile(r"%2f|%5c|\\", re.IGNORECASE)
_PORT = "[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
_PLAIN = re.compile(
    rf"(https?)://([a-z0-9._-]+)(?::({_PORT}))?(/[A-Za-z0-9_.~/%:=&+!$,;'@()*-]*)"
    r"(?:\?([A-Za-z0-9_.~/%:=&?+!$,;@()*-]+))?"
)
"""URLs that are requested as they are written."""

_WRITTEN = re.compile(
    rf"(https?)://([a-z0-9._-]+)(?::({_PORT}))?(/[A-Za-z0-9_.~/%:=&+!$,;'@()*|\[\]-]*\??)"
    r"(?:\?([A-Za-z0-9_.~/%:=&?+!$,;@()*|\[\]{}^`\\-]+))?"
)
"""URLs that are requested as they are written, though we would write those of a push in another way."""

_NEEDS_NO_QUOTING = re.compile(r"[A-Za-z0-9_.~/%:=&?#+!$,;'@()*-]*")
_LOOKS_ODD = re.compile(r"[%\\]|/\.")
_SAFE = "/%:=&?~#+!$,;'@()*"
"""What stays as it is. Scrapy encodes no more than this leaves, and the apostrophe of a query."""


@quickly_made
@dataclass(frozen=True, slots=True)
class HttpUrl:
    """A URL as it is requested: ASCII only, host in IDNA form and lower case, no fragment."""

    scheme: str
    host: str
    port: int
    path: str
    query: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORT[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.target}"

    @property
    def target(self) -> str:
        """What a request names: path and query."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @classmethod
    def parse(cls, text: str) -> "HttpUrl":
        """Parse what a provider or a site wrote; raw blanks and non-ASCII are percent-encoded.

        Raises ``UrlRefused`` 705 (not valid, or not http(s)) or 707 (longer than ``URL_MAX``).
        """
        plain = _PLAIN.fullmatch(text)
        if plain is not None and len(text) <= URL_MAX:
            scheme, host, said, path, query = plain.groups(default="")
            port = int(said) if said else _DEFAULT_PORT[scheme]
            return cls(scheme, _host(host), port, path, query)
        if len(text) > URL_MAX:
            raise UrlRefused(707, f"URL of {len(text)} characters, at most {URL_MAX}")
        if _UNUSABLE.search(text):
            raise UrlRefused(705, "control character in URL")
        url = cls._parse(text.strip(" "))
        if len(str(url)) > URL_MAX:
            raise UrlRefused(707, f"URL of {len(str(url))} characters when encoded, at most {URL_MAX}")
        return url

    @classmethod
    def as_written(cls, text: str) -> "HttpUrl":
        """Read a URL to be requested as browsers write it (URL Standard): some octets are less encoded.

        A query that is empty is part of ``path``: with its question mark it is another URL. Where a text is
        not written so, this is ``parse``.
        """
        found = _WRITTEN.fullmatch(text) if len(text) <= URL_MAX else None
        if found is None:
            return cls.parse(text)
        scheme, host, said, path, query = found.groups(default="")
        return cls(scheme, _host(host), int(said) if said else _DEFAULT_PORT[scheme], path, query)

    @classmethod
    def _parse(cls, text: str) -> "HttpUrl":
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as error:
            raise UrlRefused(705, str(error)) from None
        if port == 0:
            raise UrlRefused(705, "port 0")
        if parts.scheme not in _DEFAULT_PORT:
            raise UrlRefused(705, f"scheme {parts.scheme or 'missing'!r}, expected http or https")
        if "@" in parts.netloc:
            raise UrlRefused(705, "user name in URL")
        if not _AUTHORITY.fullmatch(parts.netloc):
            raise UrlRefused(705, "brackets that do not hold just an IPv6 address")
        path, query = _quoted(parts.path or "/"), _quoted(parts.query).replace("'", "%27")
        return cls(parts.scheme, _host(parts.hostname), port or _DEFAULT_PORT[parts.scheme], path, query)

    @property
    def has_default_port(self) -> bool:
        """Tell whether the port is the usual one of the scheme."""
        return self.port == _DEFAULT_PORT[self.scheme]

    def covers_origin_of(self, other: "HttpUrl") -> bool:
        """Tell whether both have one origin; https counts for http of the same host, at the usual ports."""
        if other.host != self.host:
            return False
        return (other.port, other.scheme) == (self.port, self.scheme) or (
            (self.scheme, other.scheme) == ("http", "https")
            and self.has_default_port
            and other.has_default_port
        )

    @property
    def netloc(self) -> str:
        """``host:port``, the unit of a robots.txt and of a connection pool."""
        return f"{self.host}:{self.port}"


parsed_again: Callable[[str], HttpUrl] = lru_cache(maxsize=4096)(HttpUrl.as_written)
"""``HttpUrl.as_written`` for what is asked several times within one fetch."""


def _quoted(text: str) -> str:
    return text if _NEEDS_NO_QUOTING.fullmatch(text) else quote(text, safe=_SAFE)


@lru_cache(maxsize=1024)
def _host(host: str | None) -> str:
    """Return a host in the one way in which it is compared: a name in IDNA form, or a canonical address."""
    if not host:
        raise UrlRefused(705, "host missing")
    try:
        return _address_v6(host) if ":" in host else _name_or_address_v4(host)
    except ValueError:
        raise UrlRefused(705, f"host name {host!r}") from None


def _address_v6(host: str) -> str:
    """Read an address; the result has no dotted part (WHATWG URL)."""
    address = IPv6Address(host)
    if address.ipv4_mapped is None:
        return str(address)
    high, low = divmod(int(address.ipv4_mapped), 1 << 16)  # CPython 3.13 has str() write it dotted
    return f"::ffff:{high:x}:{low:x}"


def _name_or_address_v4(host: str) -> str:
    """Read a name, or an address where it ends in a number (WHATWG URL): not octal, hexadecimal or short."""
    if "%" in host:
        host = unquote(host, errors="strict")
    if len(host) > _HOST_MAX:  # IDNA takes milliseconds for what is longer
        raise ValueError("not a host name")
    name = ascii_name(host)
    if len(name) > _HOST_MAX or not _NAME.fullmatch(name):
        raise ValueError("not a host name")
    return str(IPv4Address(name)) if _ENDS_IN_NUMBER.search(name) else name


def _plain_path(path: str) -> str | None:
    """Return the path decoded for comparison, or None when it could mean another place."""
    if not _LOOKS_ODD.search(path):
        return path
    if _UNSAFE_PATH.search(path):
        return None
    decoded = unquote(path, errors="surrogateescape")
    if any(segment.split(";")[0] in {".", ".."} for segment in decoded.split("/")):
        return None
    return decoded


_plain_path_of_root: Callable[[str], str | None] = lru_cache(maxsize=4096)(_plain_path)
"""The same for the path of a root, with which many URLs are compared."""


def compared_path(url: HttpUrl) -> str | None:
    """Return a path as roots compare it; None where it could mean another place: no root covers that."""
    return _plain_path(url.path)


_ROOTS_SHOWN, _SHOWN_OF_ROOT, _LONGEST_REFUSAL = 3, 60, 200
"""Roots that a refusal names, characters of each, and of it all: a column has to hold it."""


@dataclass(frozen=True, slots=True)
class Root:
    """A directory prefix that a provider has shown to own (table ``proots``)."""

    url: HttpUrl

    @classmethod
    def parse(cls, text: str) -> "Root":
        """Parse ``http://host/dir/``; raises ``UrlRefused`` with what is wrong with it."""
        if "://" not in text:
            raise UrlRefused(705, f"root {text!r} has no scheme: write http://{text}")
        url = HttpUrl.parse(text)
        if url.query:
            raise UrlRefused(705, f"root {text!r} has a query")
        if _plain_path(url.path) is None:
            raise UrlRefused(705, f"root {text!r} has dot segments or encoded slashes")
        return cls(url)

    def __str__(self) -> str:
        return str(self.url)

    def covers(self, url: HttpUrl) -> bool:
        """Tell whether ``url`` lies below this root; https counts for an http root of the same host."""
        return covering(url, (self,)) is not None

    def is_above(self, path: str) -> bool:
        """Tell whether a path, as roots compare it, lies below this root's."""
        prefix = _plain_path_of_root(self.url.path)
        if prefix is None:
            return False
        return path == prefix or path.startswith(prefix if prefix.endswith("/") else prefix + "/")

    def beginnings(self) -> tuple[str, ...]:
        """Return texts that end in a slash, so that whatever plainly goes on from one lies below this root.

        Plainly: in characters that need no quoting, with no fragment, no empty query, no dot at the beginning
        of a segment, and no encoded dot, slash or backslash. A root of which that cannot be said has none.
        """
        if _LOOKS_ODD.search(self.url.path):
            return ()
        below = replace(self.url, path=self.url.path.rstrip("/") + "/")
        upgraded = replace(below, scheme="https", port=_DEFAULT_PORT["https"])
        return (str(below), str(upgraded)) if self.url.has_default_port else (str(below),)


def inside(url: HttpUrl, roots: tuple[Root, ...]) -> bool:
    """Tell whether any root covers ``url``."""
    return covering(url, roots) is not None


def covering(url: HttpUrl, roots: Sequence[Root]) -> Root | None:
    """Return the first root that covers ``url``; decoding its path, which may be long, is done once."""
    there = [root for root in roots if root.url.covers_origin_of(url)]
    path = _plain_path(url.path.removesuffix("?")) if there else None
    if path is not None:
        for root in there:
            if root.is_above(path):
                return root
    return None


def not_below(roots: Sequence[Root], url: HttpUrl | None = None) -> str:
    """Say, for its provider, which roots a URL does not lie below: the first few of them.

    Where a root has the name that IDNA 2003 gave the host of ``url``, the root to add is named instead.
    """
    if not roots:
        return "it has no roots"
    missing = root_to_add(url, roots) if url is not None else None
    if missing is not None:
        old, new = missing
        text = f"{new.url.host} was read as {old.url.host} before, which is another site: add the root {new}"
        return text if len(text) <= _LONGEST_REFUSAL else f"add the root {new}"[:_LONGEST_REFUSAL]
    names = [str(root)[:_SHOWN_OF_ROOT] for root in roots[:_ROOTS_SHOWN]]
    more = len(roots) - len(names)
    return f"not below {', '.join(names)}{f' or {more} more' if more else ''}"


def root_to_add(url: HttpUrl, roots: Sequence[Root]) -> tuple[Root, Root] | None:
    """Return the root that covered ``url`` by the names of IDNA 2003, and the one that is missing."""
    before = under_former_name(url)
    old = covering(before, roots) if before is not None else None
    return (old, Root(replace(old.url, host=url.host))) if old is not None else None


def under_former_name(url: HttpUrl) -> HttpUrl | None:
    """Return a URL with the name that IDNA 2003 gave its host; None where that is the same."""
    former = former_name(url.host) if "xn--" in url.host else ""
    return replace(url, host=former) if former else None


def fetch_url(url: str, roots: tuple[Root, ...]) -> str:
    """Return a link as it is fetched; empty when it may not be, which nobody has to be told."""
    try:
        parsed = HttpUrl.parse(url)
    except UrlRefused:
        return ""
    return str(parsed) if inside(parsed, roots) else ""


def hosts(roots: tuple[Root, ...]) -> frozenset[str]:
    """Return ``host:port`` of whatever the roots cover."""
    plain = {root.url.netloc for root in roots}
    upgraded = {
        f"{root.url.host}:{_DEFAULT_PORT['https']}"
        for root in roots
        if root.url.scheme == "http" and root.url.has_default_port
    }
    return frozenset(plain | upgraded)
