"""What the mirror tracker knows: domains, their servers, and the directories of these (seed 004)."""

import re
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes, urlsplit

from lcc_scrapy.domain.errors import LccError, UrlRefused
from lcc_scrapy.domain.roots import URL_MAX, HttpUrl

DOMAIN_MAX = 63
SITE_MAX = 300
VALIDATOR_MAX = 255
ADAPTER_MAX = 16
PORTS = {"ftp": 21, "http": 80, "https": 443, "rsync": 873}
"""Schemes of servers that are tracked, and their usual ports."""

_DOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_FTP_TYPE = re.compile(rb";type=[aid]$", re.IGNORECASE)
_KEPT = "!$&'()*+,;=:@~"
"""What stays as it is in the path of a URL, beside letters, digits and ``-._``."""


class BadDomain(LccError):
    """The name of a domain that is none."""


@dataclass(frozen=True, slots=True)
class TrackedDomain:
    """One row of ``tr_domain``: servers that are tracked together, mostly a top-level domain.

    ``peer`` is the tracker (URL) that alone may speak for the domain, empty = this one. ``generation`` is
    raised by every change of what its servers have, from ``created`` on; of a peer's domain it is the
    peer's. ``validator`` is that of the peer's manifest, ``checked`` when it was last asked for, ``error``
    what came of it. ``owner`` fetches the domain until ``claimed``; without an owner nobody does before.
    Times in epoch seconds, 0 = never.
    """

    domain: str
    created: int
    peer: str = ""
    generation: int = 0
    validator: str = ""
    checked: int = 0
    error: str = ""
    owner: str = ""
    claimed: int = 0


@dataclass(frozen=True, slots=True)
class Host:
    """One row of ``tr_host``: a server, by the URL of its base. Times in epoch seconds, 0 = never.

    ``site`` is scheme, host and port. Its directories are ``dirs`` rows of ``tr_dir`` from ``first`` on;
    0 = it was not listed yet. ``scanned`` is when it was, by ``adapter``; ``digests`` of contents are known,
    ``unsound`` directories have no identity. It is listed again at ``due``, by ``owner`` until ``claimed``,
    after ``failures`` in a row, the last with ``error``. ``validator`` is that of its listing.
    """

    hostid: int
    domain: str
    url: str
    site: str
    created: int
    first: int = 0
    dirs: int = 0
    files: int = 0
    links: int = 0
    digests: int = 0
    unsound: int = 0
    scanned: int = 0
    adapter: str = ""
    validator: str = ""
    due: int = 0
    owner: str = ""
    claimed: int = 0
    failures: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Staged:
    """One row of ``tr_load``: rows of ``tr_dir`` that no server shows: they come, or they go.

    ``claimed`` is until when somebody loads them (epoch seconds); 0 = they are to be removed.
    """

    first: int
    dirs: int
    claimed: int


class TrackedDirectory(NamedTuple):
    """One row of ``tr_dir``; numbers are those of ``summing.Row``, counted from the host's ``first``.

    ``md5`` and ``sha`` (the first 16 bytes of it) are None where it has no identity, or no file. ``tag``
    is the beginning of ``md5``, by which it is found.
    """

    dirid: int
    hostid: int
    parent: int
    first: int
    dirs: int
    name: bytes
    md5: bytes | None
    sha: bytes | None
    tag: int | None


TAG = Struct(">i")


def tag_of(md5: bytes) -> int:
    """Return four bytes of an identity as a number: an index of these is half as large."""
    return int(TAG.unpack_from(md5)[0])


def checked_domain(name: str) -> str:
    """Return the name of a domain in lower case; raises ``BadDomain``."""
    lower = name.lower()
    if not _DOMAIN.fullmatch(lower):
        raise BadDomain(f"{name!r} is no domain: letters, digits and hyphens, such as de")
    return lower


@dataclass(frozen=True, slots=True)
class Place:
    """The URL of a file or directory: ``path`` are its names from the root of its site down."""

    scheme: str
    host: str
    port: int
    path: tuple[bytes, ...] = ()
    is_directory: bool = True
    query: str = ""

    @classmethod
    def parse(cls, text: str) -> "Place":
        """Parse a URL; raises ``UrlRefused``. A URL that ends with "/" is that of a directory."""
        if len(text) > URL_MAX:
            raise UrlRefused(705, f"a URL of more than {URL_MAX} characters")
        try:
            text.encode()  # a lone surrogate has no bytes
            parts = urlsplit(text)
            port = parts.port
        except ValueError as error:
            raise UrlRefused(705, f"{text!r}: {error}") from None
        if parts.scheme not in PORTS or not parts.hostname or "@" in parts.netloc:
            raise UrlRefused(705, f"{text!r} is no {', '.join(PORTS)} URL without a user")
        name = parts.hostname.removesuffix(".")
        host = HttpUrl.parse(f"http://[{name}]/" if ":" in name else f"http://{name}/").host
        raw = parts.path or "/"
        path = tuple(unquote_to_bytes(one) for one in raw.split("/") if one)
        if parts.scheme == "ftp":
            path = tuple(_FTP_TYPE.sub(b"", one) for one in path)
        if any(one in {b".", b".."} or {0, 47} & set(one) for one in path):
            raise UrlRefused(705, f"{text!r} has dot segments or encoded slashes")
        return cls(parts.scheme, host, port or PORTS[parts.scheme], path, raw.endswith("/"), parts.query)

    @property
    def site(self) -> str:
        """Return scheme, host and port: ``ftp://ftp.example.org``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}{'' if self.port == PORTS[self.scheme] else f':{self.port}'}"

    def __str__(self) -> str:
        return url_of(self.site, self.path, is_directory=self.is_directory)


def url_of(site: str, path: tuple[bytes, ...], *, is_directory: bool) -> str:
    """Return the URL of a path on a site."""
    text = "/".join(quote(name, safe=_KEPT) for name in path)
    return f"{site}/{text}{'/' if text and is_directory else ''}"
