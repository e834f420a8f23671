"""What elements of sitemaps, feeds and ResourceSync documents mean, without I/O.

Sitemaps 0.9, RSS 0.9x, 1.0 and 2.0, Atom (RFC 4287), ResourceSync (ANSI/NISO Z39.99). Names are compared
without their namespaces, which sites often get wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lcc_scrapy.apps.sources.rules import (
    MOST_ENTRIES,
    MOST_FILES,
    TEXT_MAX,
    Entry,
    Further,
    Listing,
    Role,
    stamp_of,
)

DEPTH = 64
"""Elements inside of each other."""

HUBS = 8
"""Hubs of one topic that are looked at."""

_BASE = "http://www.w3.org/XML/1998/namespace base"
_ROOTS = {
    "urlset": Role.LIST,
    "sitemapindex": Role.INDEX,
    "rss": Role.NEWS,
    "RDF": Role.NEWS,
    "feed": Role.NEWS,
}
_ENTRIES = frozenset({"url", "sitemap", "item", "entry"})
_TEXTS = frozenset({"loc", "lastmod", "link", "guid", "id", "pubDate", "date", "updated", "published"})
_TIMES = ("lastmod", "updated", "pubDate", "date", "published")
_LISTS = {"resourcelist": Role.LIST, "changelist": Role.NEWS, "capabilitylist": Role.INDEX}
"""What ResourceSync's documents are by their capability; a description names capability lists."""

_OF_LISTS = frozenset({"description", "capabilitylist"})


class Full(Exception):
    """There are as many entries as are read."""


@dataclass(slots=True)
class _Raw:
    """One entry as far as it was read."""

    texts: dict[str, str] = field(default_factory=dict)
    href: str = ""
    change: str = ""
    capability: str = ""
    said: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.texts.get("loc") or self.href or self.texts.get("link") or self._permalink()

    def _permalink(self) -> str:
        name = self.texts.get("guid") or ""
        return name if name.startswith(("http://", "https://")) else ""

    @property
    def stamp(self) -> int:
        times = [self.texts.get(name, "") for name in _TIMES]
        name = self.texts.get("guid") or self.texts.get("id") or ""
        return stamp_of(*times, *self.said, self.change, name)


@dataclass(frozen=True, slots=True)
class _Found:
    url: str
    stamp: int
    gone: bool
    capability: str


class Grammar:
    """Takes the elements of one document in their order; raises ``ValueError`` for what it is not for."""

    def __init__(self) -> None:
        self._depth = 0
        self._root = ""
        self._base = ""
        self._capability = ""
        self._entry: _Raw | None = None
        self._entry_depth = 0
        self._name = ""
        self._text: list[str] = []
        self._length = 0
        self._found: list[_Found] = []
        self._hubs: list[str] = []
        self._topic = ""

    # --- what the parser calls -------------------------------------------------------------------

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        name = tag.rpartition(" ")[2]
        self._depth += 1
        if self._depth > DEPTH:
            raise ValueError(f"more than {DEPTH} elements inside of each other")
        if self._depth == 1:
            self._begin(name, attributes)
        elif name in _ENTRIES and self._entry is None:
            self._entry, self._entry_depth = _Raw(), self._depth
        elif name == "md":
            self._resourcesync(attributes)
        elif name == "link" and "href" in attributes:
            self._link(attributes)
        elif self._entry is not None and self._depth == self._entry_depth + 1 and name in _TEXTS:
            self._name, self._text, self._length = name, [], 0

    def text(self, text: str) -> None:
        """A piece of text."""
        if self._name and self._length < TEXT_MAX:
            self._text.append(text[:TEXT_MAX])
            self._length += len(text)

    def end(self, tag: str) -> None:
        """An element ends."""
        if self._name and self._entry is not None and self._depth == self._entry_depth + 1:
            self._entry.texts.setdefault(tag.rpartition(" ")[2], "".join(self._text)[:TEXT_MAX].strip())
            self._name = ""
        if self._entry is not None and self._depth == self._entry_depth:
            self._take(self._entry)
            self._entry = None
        self._depth -= 1

    # --- what it comes to ------------------------------------------------------------------------

    def listing(self, *, cut: bool = False) -> Listing:
        """Return what the document says; ``cut``: not all of it was read."""
        role = self._role()
        if role is not Role.INDEX:
            entries = tuple(Entry(one.url, one.stamp, one.gone) for one in self._found)
            return Listing(role, entries, (), tuple(self._hubs), self._topic, cut, self._base)
        files = [one for one in map(self._further, self._found) if one is not None]
        return Listing(
            role, files=tuple(files[:MOST_FILES]), cut=cut or len(files) > MOST_FILES, base=self._base
        )

    def _role(self) -> Role:
        role = _ROOTS[self._root]
        if self._root != "urlset" or not self._capability:
            return role
        return Role.INDEX if self._capability in _OF_LISTS else _LISTS.get(self._capability, Role.INDEX)

    def _further(self, one: _Found) -> Further | None:
        """Return a file that an index names; None for those of ResourceSync that are not read (dumps)."""
        if self._root == "sitemapindex":
            if self._capability and self._capability not in _LISTS:
                return None
            return Further(one.url, one.stamp, _LISTS.get(self._capability))
        role = _LISTS.get(one.capability) if self._capability in _OF_LISTS else None
        return Further(one.url, one.stamp, role) if role is not None else None

    def _begin(self, name: str, attributes: Mapping[str, str]) -> None:
        if name not in _ROOTS:
            raise ValueError(f"<{name[:40]}> is no sitemap and no feed")
        self._root, self._base = name, attributes.get(_BASE, "")[:TEXT_MAX]

    def _resourcesync(self, attributes: Mapping[str, str]) -> None:
        if self._entry is None:
            self._capability = self._capability or attributes.get("capability", "")
            return
        self._entry.change = attributes.get("change", "")
        self._entry.capability = attributes.get("capability", "")
        self._entry.said = [attributes.get(name, "")[:TEXT_MAX] for name in ("datetime", "hash", "length")]

    def _link(self, attributes: Mapping[str, str]) -> None:
        relation, href = attributes.get("rel", "alternate"), attributes["href"][:TEXT_MAX]
        if self._entry is not None:
            if relation == "alternate" and self._depth == self._entry_depth + 1:
                self._entry.href = self._entry.href or href
        elif relation == "hub" and len(self._hubs) < HUBS:
            self._hubs.append(href)
        elif relation == "self":
            self._topic = self._topic or href

    def _take(self, raw: _Raw) -> None:
        if not raw.url:
            return
        if len(self._found) >= MOST_ENTRIES:
            raise Full
        self._found.append(_Found(raw.url[:TEXT_MAX], raw.stamp, raw.change == "deleted", raw.capability))
