"""Reads files of sources that are not XML: sitemaps of one URL a line, JSON Feed (version 1.1)."""

import json
import re
from collections.abc import Iterator
from typing import Any

from lcc_scrapy.apps.sources.rules import MOST_ENTRIES, TEXT_MAX, Entry, Listing, Role, stamp_of

JSON_MAX = 5_000_000
"""Bytes of a JSON Feed: as objects in memory it takes many times as much."""

_URL = re.compile(rb"https?://\S+", re.IGNORECASE)
_LINE_MAX = TEXT_MAX


def read_json(pieces: Iterator[bytes]) -> Listing:
    """Read a JSON Feed; raises ``ValueError``."""
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > JSON_MAX:
            raise ValueError(f"a JSON Feed of more than {JSON_MAX} bytes")
    feed = json.loads(body)
    if not isinstance(feed, dict) or "jsonfeed.org" not in str(feed.get("version", ""))[:100]:
        raise ValueError("this JSON is no JSON Feed")
    items = feed.get("items")
    found = [_entry(one) for one in (items if isinstance(items, list) else ()) if isinstance(one, dict)]
    entries = tuple(one for one in found if one.url)
    topic = _text(feed.get("feed_url"))
    return Listing(Role.NEWS, entries[:MOST_ENTRIES], (), _hubs(feed), topic, cut=len(entries) > MOST_ENTRIES)


def _entry(item: dict[str, Any]) -> Entry:
    said = [_text(item.get(name)) for name in ("date_modified", "date_published", "id")]
    return Entry(_text(item.get("url")), stamp_of(*said))


def _hubs(feed: dict[str, Any]) -> tuple[str, ...]:
    hubs = feed.get("hubs")
    named = [one for one in (hubs if isinstance(hubs, list) else [])[:8] if isinstance(one, dict)]
    return tuple(_text(one.get("url")) for one in named if str(one.get("type")).lower() == "websub")


def _text(value: object) -> str:
    return value[:TEXT_MAX].strip() if isinstance(value, str) else ""


def read_lines(pieces: Iterator[bytes]) -> Listing:
    """Read a sitemap that is text, UTF-8; raises ``ValueError`` where no line is a URL."""
    entries: list[Entry] = []
    others = 0
    for line in _lines(pieces):
        text = line.decode("utf-8", "replace") if len(line) <= _LINE_MAX and _URL.fullmatch(line) else ""
        if not text or "\ufffd" in text:
            others += bool(line)
            continue
        if len(entries) >= MOST_ENTRIES:
            return Listing(Role.LIST, tuple(entries), cut=True)
        entries.append(Entry(text))
    if others > len(entries) or not entries:
        raise ValueError("no sitemap: most of its lines are no URLs")
    return Listing(Role.LIST, tuple(entries), cut=others > 0)


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield lines without blanks around them; of one that is too long, only that it is."""
    rest = b""
    for piece in pieces:
        first, *lines = piece.replace(b"\r", b"\n").split(b"\n")
        rest = rest + first if len(rest) <= _LINE_MAX else rest
        for line in lines:
            yield rest.strip(b"\xef\xbb\xbf \t")
            rest = line
    yield rest.strip(b"\xef\xbb\xbf \t")
