"""Sitemaps (sitemaps.org 0.9: XML, index, text, gzip) and feeds (RSS 0.9x, 1.0, 2.0, Atom): lists of pages.

No other file is ever read, entities only within the bounds of libxml2; what is not well-formed is read as far
as it can be.
"""

import io
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any

from lxml import etree

from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.links.canonical import canonical
from lcc_scrapy.links.effort import Effort
from lcc_scrapy.links.parsing import show
from lcc_scrapy.links.rules import LinkRules
from lcc_scrapy.wire.xml_parsing import WIDE, BadXml, in_utf8

MOST = 50_000
"""URLs of one sitemap, as the protocol has it."""

LONGEST = 50_000_000
"""Bytes of one sitemap, unpacked; the protocol's 50 MB."""

BASES_DEPTH = 32
"""Elements inside of each other up to which an ``xml:base`` counts."""

_GZIP = b"\x1f\x8b"
_BLANK = b" \t\r\n"
_BEFORE_TEXT = b"\xef\xbb\xbf" + _BLANK
_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_ENTRIES = {"url": "pages", "sitemap": "sitemaps", "item": "pages", "entry": "pages"}
_WRITTEN = frozenset(("loc", "lastmod", "link", "guid", "pubDate", "date", "updated", "published"))
_TIMES = ("lastmod", "updated", "pubDate", "date", "published")
_TEXT_MAX = 4 * URL_MAX
_TIME_MAX = 64
_LINE = re.compile(rb"\s*https?://\S+\s*$", re.IGNORECASE)


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


def read_listing(body: bytes, url: str, rules: LinkRules, effort: Effort | None = None) -> Listing:
    """Read a sitemap or feed served at ``url``; of ``rules``, ``ignore`` and ``strip`` hold.

    Each URL is named once. Anything else than a list names nothing; what is beyond ``MOST``, ``LONGEST`` and
    ``effort`` is not looked at.
    """
    effort = effort or Effort()
    body = _unpacked(body).lstrip(_BLANK)
    collector = _Collector(url)
    if body[:1000].lstrip(_BEFORE_TEXT).startswith(b"<") or body.startswith(WIDE):
        show(_in_utf8(body), lambda: _parser(collector), collector.is_full, effort)
    else:
        collector.lines(body)
    with effort.working():
        sitemaps = tuple(_listed(collector.found["sitemaps"], rules, effort))
        return Listing(tuple(_listed(collector.found["pages"], rules, effort)), sitemaps)


def _parser(collector: Any) -> etree.XMLParser:
    return etree.XMLParser(
        target=collector,
        encoding="utf-8",
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


def _in_utf8(body: bytes) -> bytes:
    """Return a body for the parser, its ampersands mended; b"" where nobody knows its encoding.

    The parser leaves out what it cannot read: a URL without it would be another one.
    """
    try:
        return in_utf8(body, LONGEST, mends=True, replaces=True)
    except BadXml:
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
        written = attributes.get(_XML_BASE, "") if len(self._bases) <= BASES_DEPTH else ""
        self._bases.append(_base(self._bases[-1], written))
        if name in _ENTRIES:
            self._kind, self._entry = _ENTRIES[name], {}
        elif name == "link" and "href" in attributes:
            self._atom_link(attributes)
        if name in _WRITTEN:
            self._name, self._text, self._length = name, [], 0

    def data(self, text: str) -> None:
        """A piece of text."""
        if self._name and self._length < _TEXT_MAX:
            self._text.append(text[:_TEXT_MAX])
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
        text = io.BytesIO(body.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
        for line in islice(text, MOST):
            if len(line) <= _TEXT_MAX and _LINE.match(line):
                self._find("pages", "", line.decode("utf-8", "replace").strip(), "")

    def _atom_link(self, attributes: Mapping[str, str]) -> None:
        relation = attributes.get("rel", "alternate")
        if self._kind and relation == "alternate":
            self._entry.setdefault("href", attributes["href"])
        elif not self._kind and relation == "next":
            self._find("sitemaps", self._bases[-1], attributes["href"], "")

    def _take(self) -> None:
        entry = self._entry
        url = entry.get("loc") or entry.get("href") or entry.get("link") or _permalink(entry.get("guid", ""))
        if url and not self.is_full():
            time = next((entry[name] for name in _TIMES if entry.get(name)), "")
            self._find(self._kind, self._bases[-1], url, time)

    def _find(self, kind: str, base: str, url: str, time: str) -> None:
        """Take note of a URL, unless it is too long to be one, or a part of it could not be read."""
        if len(url) <= URL_MAX and "\ufffd" not in url:
            self.found[kind].append((base, url, time[:_TIME_MAX]))


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _permalink(guid: str) -> str:
    return guid if guid.startswith(("http://", "https://")) else ""


def _base(outer: str, written: str) -> str:
    """Return an ``xml:base`` seen from the outer one, which stays where this is too long or no http URL."""
    try:
        return canonical(written, outer) if written else outer
    except UrlRefused:
        return outer


def _listed(found: list[_Written], rules: LinkRules, effort: Effort) -> Iterator[Listed]:
    given: set[str] = set()
    for base, written, time in found:
        try:
            url = canonical(written, base, strip=rules.strip)
        except UrlRefused:
            url = ""
        if not effort.takes(url):
            return
        if url and url not in given and not rules.ignore.covers(url):
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
