"""Rules for the links of a page: which kinds, how many, and which are ignored.

They are apart from what reads pages, so that settings are read without importing a parser. Ignored links are
not fetched (seed 002 section 4: ``ignore.types``, ``BlockDomain``).

An ignore file has one pattern a line; ``#`` begins a comment at the start of a line or behind a blank:

* ``.mp4``: file names that end so, in upper or lower case
* ``ads.example.org``: this host and all below it
* ``/cgi-bin/``, ``/*?print=``: paths that begin so on every host
* ``http://www.example.org/old/``: URLs that begin so

In paths and URLs ``*`` stands for anything and ``$`` at the end for the end, as in robots.txt.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.robots_rules import Pattern
from lcc_scrapy.domain.roots import HttpUrl

DOCUMENTS = frozenset(
    ("a", "area", "frame", "iframe", "link", "next", "prev", "alternate", "feed", "canonical", "refresh")
)
"""Relations whose targets are pages themselves. ``link``: another ``rel`` of a link element (up, index…)."""

REQUISITES = frozenset(
    ("stylesheet", "icon", "img", "source", "video", "audio", "track", "embed", "object", "script")
)
"""Relations whose targets are parts of the page that names them."""

_COMMENT = re.compile(r"(?:^|\s)#.*")
_EXTENSION = re.compile(r"\.[a-z0-9_-]+(?:\.[a-z0-9_-]+)*", re.IGNORECASE)
_DOMAIN = re.compile(r"[^\s/*:?]+")
_URL = re.compile(r"https?://[^\s/]+(?:/\S*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class IgnoreList:
    """URLs not to be fetched. ``extensions`` with their dot and ``domains`` in lower case."""

    extensions: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    paths: tuple[Pattern, ...] = ()
    urls: tuple[Pattern, ...] = ()

    @classmethod
    def parse(cls, lines: Iterable[str]) -> "IgnoreList":
        """Read the lines of an ignore file; raises ``ValueError`` naming the line that is wrong."""
        found: dict[str, list[str]] = {"extensions": [], "domains": [], "paths": [], "urls": []}
        for number, line in enumerate(lines, 1):
            text = _COMMENT.sub("", line).strip()
            try:
                if text:
                    kind, value = _read(text)
                    found[kind].append(value)
            except (ValueError, UrlRefused) as error:
                raise ValueError(f"line {number}: {error}") from None
        return cls(
            frozenset(found["extensions"]),
            frozenset(found["domains"]),
            tuple(map(Pattern.parse, found["paths"])),
            tuple(map(Pattern.parse, found["urls"])),
        )

    def with_extensions(self, words: Iterable[str]) -> "IgnoreList":
        """Return the list with further extensions; their dot may be left out."""
        more = frozenset("." + word.lower().lstrip(".") for word in words)
        return IgnoreList(self.extensions | more, self.domains, self.paths, self.urls)

    def covers(self, url: str) -> bool:
        """Tell whether a canonical URL is on the list."""
        if not (self.extensions or self.domains or self.paths or self.urls):
            return False
        host, slash, rest = url.partition("://")[2].partition("/")
        target = slash + rest
        return (
            self._has_extension(target.partition("?")[0])
            or self._has_domain(host.partition(":")[0])
            or any(pattern.matches(target) for pattern in self.paths)
            or any(pattern.matches(url) for pattern in self.urls)
        )

    def _has_extension(self, path: str) -> bool:
        name = path.rpartition("/")[2].partition(";")[0].lower()
        endings = (name[at:] for at, character in enumerate(name) if character == ".")
        return bool(self.extensions) and any(ending in self.extensions for ending in endings)

    def _has_domain(self, host: str) -> bool:
        while host and self.domains:
            if host in self.domains:
                return True
            host = host.partition(".")[2]
        return False


NOTHING = IgnoreList()
"""The list of nothing."""


def _read(text: str) -> tuple[str, str]:
    if _EXTENSION.fullmatch(text):
        return "extensions", text.lower()
    if text.startswith(("/", "*/")) and not re.search(r"\s", text):
        return "paths", text
    if _URL.fullmatch(text):
        return "urls", _url(text)
    if _DOMAIN.fullmatch(text):
        return "domains", HttpUrl.parse(f"http://{text.removeprefix('.')}/").host
    raise ValueError(f"{text!r}, expected .extension, a domain, /path or http://host/path, with * and $")


def _url(text: str) -> str:
    """Return a URL pattern with scheme and host as canonical URLs have them, a host with ``*`` as it is."""
    scheme, _, rest = text.partition("://")
    host, slash, path = rest.partition("/")
    if "*" in host:
        return f"{scheme.lower()}://{host.lower()}{slash}{path}"
    return str(HttpUrl.parse(f"{scheme}://{host}/")) + path


@dataclass(frozen=True, slots=True)
class LinkRules:
    """What is wanted of a page.

    ``relations``: kinds of links; ``most``: links at most, further ones are dropped; ``longest``: bytes of a
    page that are looked at; ``ignore``: URLs not to be given; ``strip``: parameters to leave out of URLs, in
    lower case; ``agent``: the product token by which robots directives may address us, in lower case.
    """

    relations: frozenset[str] = DOCUMENTS
    most: int = 10_000
    longest: int = 4_000_000
    ignore: IgnoreList = NOTHING
    strip: frozenset[str] = frozenset()
    agent: str = "lcc-scrapy"
