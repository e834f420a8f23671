"""Sitemaps (sitemaps.org 0.9: XML, index, text, gzip) and feeds (RSS 0.9x, 1.0, 2.0, Atom): lists of pages.

No other file is ever read, entities only within the bounds of libxml2; what is not well-formed is read as far
as it can be.
"""

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin

from lxml import etree

from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.spidering.canonical import canonical
from lcc_scrapy.spidering.links import LinkRules
from lcc_scrapy.spidering.parsing import show

MOST = 50_000
"""URLs of one sitemap, as the protocol has it."""

LONGEST = 50_000_000
"""Bytes of one sitemap, unpacked; the protocol's 50 MB."""

_GZIP = b"\x1f\x8b"
_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_ENTRIES = {"url": "pages", "sitemap": "sitemaps", "item": "pages", "entry": "pages"}
_WRITTEN = frozenset(("loc", "lastmod", "link", "guid", "pubDate", "date", "updated", "published"))
_TIMES = ("lastmod", "updated", "pubDate", "date", "published")
_TEXT_MAX = 4 * URL_MAX


@dataclass(frozen=True, slots=True)
class Listed:
    """A URL of a list, canonical. ``modified``: epoch seconds, None = not said or not readable."""

    url: str
    modified: int | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """What a list names: pages, and further lists (of a sitemap index, or the next page of a feed)."""

    pages: tuple[Listed, ...] = ()
    sitemaps: tuple[Listed, ...] = ()


def read_listing(body: bytes, url: str, rules: LinkRules) -> Listing:
    """Read a sitemap or feed served at ``url``; of ``rules``, ``ignore`` and ``strip`` hold.

    Each URL is named once. Anything else than a list names nothing; what is beyond ``MOST`` and ``LONGEST``
    is not looked at.
    """
    body = _unpacked(body)
    collector = _Collector(url)
    if body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"<", b"\xff\xfe", b"\xfe\xff")):
        show(body, lambda: _parser(collector), collector.is_full)
    else:
        collector.lines(body)
    pages = _listed(collector.found["pages"], rules)
    return Listing(tuple(pages), tuple(_listed(collector.found["sitemaps"], rules)))


def _parser(collector: Any) -> etree.XMLParser:
    return etree.XMLParser(
        target=collector,
        recover=True,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
    )


def _unpacked(body: bytes) -> bytes:
    """Unpack gzip, as far as it goes."""
    if not body.startswith(_GZIP):
        return body[:LONGEST]
    unpacking = zlib.decompressobj(wbits=31)
    try:
        return unpacking.decompress(body, LONGEST)
    except zlib.error:
        return b""


_Written = tuple[str, str, str]
"""Where a URL stood (its base), the URL, and its time, all as written."""


class _Collector:
    """What the parser tells of a list: ``found`` are the URLs of pages and of further lists, as written."""

    def __init__(self, url: str) -> None:
        self.found: dict[str, list[_Written]] = {"pages": [], "sitemaps": []}
        self._bases = [url]
        self._kind = ""
        self._entry: dict[str, str] = {}
        self._name = ""
        self._text: list[str] = []
        self._length = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        name = _local(tag)
        self._bases.append(urljoin_or(self._bases[-1], attributes.get(_XML_BASE, "")))
        if name in _ENTRIES:
            self._kind, self._entry = _ENTRIES[name], {}
        elif name == "link" and "href" in attributes:
            self._atom_link(attributes)
        if name in _WRITTEN:
            self._name, self._text, self._length = name, [], 0

    def data(self, text: str) -> None:
        """A piece of text."""
        if self._name and self._length < _TEXT_MAX:
            self._text.append(text)
            self._length += len(text)

    def end(self, tag: str) -> None:
        """An element ends."""
        name = _local(tag)
        if name == self._name:
            self._entry.setdefault(name, "".join(self._text).strip())
            self._name = ""
        if name in _ENTRIES and self._kind:
            self._take()
            self._kind = ""
        self._bases.pop()

    def close(self) -> None:
        """The list has ended."""

    def is_full(self) -> bool:
        """Tell whether there are as many URLs as a list may have."""
        return sum(map(len, self.found.values())) >= MOST

    def lines(self, body: bytes) -> None:
        """Read a sitemap that is text: one URL a line, UTF-8."""
        for line in body.decode("utf-8-sig", "replace").splitlines()[:MOST]:
            if re.match(r"\s*https?://\S+\s*$", line[:_TEXT_MAX], re.IGNORECASE):
                self.found["pages"].append(("", line.strip(), ""))

    def _atom_link(self, attributes: Mapping[str, str]) -> None:
        relation = attributes.get("rel", "alternate")
        if self._kind and relation == "alternate":
            self._entry.setdefault("href", attributes["href"])
        elif not self._kind and relation == "next":
            self.found["sitemaps"].append((self._bases[-1], attributes["href"], ""))

    def _take(self) -> None:
        entry = self._entry
        url = entry.get("loc") or entry.get("href") or entry.get("link") or _permalink(entry.get("guid", ""))
        if url and not self.is_full():
            time = next((entry[name] for name in _TIMES if entry.get(name)), "")
            self.found[self._kind].append((self._bases[-1], url, time))


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _permalink(guid: str) -> str:
    return guid if guid.startswith(("http://", "https://")) else ""


def urljoin_or(base: str, url: str) -> str:
    """Return ``url`` seen from ``base``, or ``base`` where it is none."""
    try:
        return urljoin(base, url)
    except ValueError:
        return base


def _listed(found: list[_Written], rules: LinkRules) -> Iterator[Listed]:
    given: set[str] = set()
    for base, written, time in found:
        try:
            url = canonical(written, base, strip=rules.strip)
        except UrlRefused:
            continue
        if url not in given and not rules.ignore.covers(url):
            given.add(url)
            yield Listed(url, _epoch(time))


def _epoch(text: str) -> int | None:
    """Read a W3C date and time (also a year, or a month) or one of RFC 822; without a zone it is UTC."""
    for read in (_w3c, parsedate_to_datetime):
        try:
            moment = read(text)
            return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return None


def _w3c(text: str) -> datetime:
    return datetime.fromisoformat({4: f"{text}-01-01", 7: f"{text}-01"}.get(len(text), text))
