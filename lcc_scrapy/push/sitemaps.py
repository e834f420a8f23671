"""The sitemap of a site, with those that it names, as a source of ``lcc-push``.

What came over the network is kept beside the state, one file a sitemap, with its ETag and Last-Modified: a
sitemap that did not change costs one conditional request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO
from urllib.parse import quote, urljoin

from lcc_scrapy.push import pipe, servers, web
from lcc_scrapy.push.command import Notes, Status, Stop
from lcc_scrapy.push.http_reader import HttpReader
from lcc_scrapy.push.link import Lost, Unreachable
from lcc_scrapy.push.options import Asked
from lcc_scrapy.push.sitemap import Entry, NotASitemap, SitemapReader
from lcc_scrapy.push.sitemap_cache import Cache, Kept, Writer
from lcc_scrapy.push.url_list import mimetype_of
from lcc_scrapy.wire.messages import Url

SITEMAPS_MAX = 1000
URLS_MAX = 5_000_000
DEPTH_MAX = 3
REDIRECTS_MAX = 5
SECONDS_MAX = 600.0
"""Seconds for one sitemap."""
_SAFE = "%:/?#[]@!$&'()*+,;=~"
_OK, _UNCHANGED, _MOVED = 200, 304, frozenset({301, 302, 303, 307, 308})
_LATER = frozenset({408, 425, 429})


def source_of(place: str, asked: Asked) -> SitemapSource:
    """Return the source of a sitemap: a URL, or a file."""
    timeout = asked.seconds("timeout", 300.0)
    dial = web.Dial(timeout, servers.context(asked.ca), SECONDS_MAX)
    return SitemapSource(place, Cache(asked.state.with_name(f"{asked.state.name}.sitemaps")), dial)


@dataclass
class SitemapSource:
    """All URLs that a sitemap names, and those that it names in turn."""

    place: str
    cache: Cache
    dial: web.Dial
    _seen: set[str] = field(default_factory=set)
    _count: int = 0
    _dropped: int = 0

    name = "sitemap"
    is_whole = True
    undated_is_same = True

    def write(self, out: BinaryIO, notes: Notes) -> None:
        """Write the lines of all URLs with their end mark; raises `Stop` (65, 66, 69, 75)."""
        self._seen, self._count, self._dropped = set(), 0, 0
        progress = notes.progress()
        for entry in self._urls(self.place, 0):
            self._count += 1
            if self._count > URLS_MAX:
                raise Stop(Status.BAD_INPUT, f"{self.place}: more than {URLS_MAX:,} URLs; nothing sent")
            out.write(_line(entry))
            progress.show(f"{self._count:,} URLs in {len(self._seen):,} sitemaps")
        progress.clear()
        out.write(pipe.write(pipe.End(self._count)))
        self.cache.forget_others(self._seen)
        if self._dropped:
            notes.warn(f"{self._dropped:,} entries of the sitemap have no usable URL; they are left out")

    def _urls(self, place: str, depth: int) -> Iterator[Entry]:
        if place in self._seen:
            return
        self._seen.add(place)
        if len(self._seen) > SITEMAPS_MAX or depth > DEPTH_MAX:
            raise Stop(
                Status.BAD_INPUT, f"{self.place}: too many sitemaps, or nested too deeply; nothing sent"
            )
        kept = self._fetched(place) if _is_url(place) else self._read(place)
        self._dropped += kept.dropped
        for entry in kept.entries():
            if not kept.is_index:
                yield entry
                continue
            self._check_host(place, entry.loc)
            yield from self._urls(entry.loc, depth + 1)

    def _check_host(self, place: str, named: str) -> None:
        """A sitemap on the network names sitemaps of its own host only (sitemaps.org, "location")."""
        if _is_url(place) and _host(place) != _host(named):
            raise Stop(Status.BAD_INPUT, f"{place} names a sitemap of another host, {named}; nothing sent")

    def _read(self, place: str) -> Kept:
        reader = SitemapReader()
        try:
            with open(place, "rb") as file, self.cache.writing(place) as writer:  # noqa: PTH123 - as given
                while block := file.read(1 << 16):
                    writer.add(reader.feed(block))
                writer.add(reader.finish())
                return writer.done(reader)
        except NotASitemap as error:
            raise _unusable(place, str(error)) from None
        except OSError as error:
            raise Stop(Status.NO_INPUT, f"{place}: {error.strerror}") from None

    def _fetched(self, place: str) -> Kept:
        kept, url = self.cache.of(place), place
        for _ in range(REDIRECTS_MAX + 1):
            found, location = self._asked(place, url, kept)
            if found is not None:
                return found
            moved = urljoin(url, location)
            if not _is_url(moved) or _host(moved) != _host(url):
                raise Stop(Status.BAD_INPUT, f"{url} redirects to another host, {moved}; nothing sent")
            url = moved
        raise Stop(Status.BAD_INPUT, f"{place} redirects again and again; nothing sent")

    def _asked(self, place: str, url: str, kept: Kept | None) -> tuple[Kept | None, str]:
        """Return the sitemap, or None and where it moved to."""
        reader = SitemapReader()
        with self.cache.writing(place) as writer:

            def take(answer: HttpReader, body: bytes) -> None:
                if answer.status == _OK:
                    writer.add(reader.feed(body))

            try:
                request = web.Request(_parsed(url), headers=kept.conditions if kept else {})
                answer = web.exchange(request, self.dial, take, lambda answer: answer.decides)
                if answer.status == _OK:
                    writer.add(reader.finish())
                    return writer.done(reader, answer.headers), ""
            except NotASitemap as error:
                raise _unusable(url, str(error)) from None
            except Unreachable as error:
                raise Stop(Status.UNAVAILABLE, f"{url}: {error}") from None
            except web.Cut as cut:
                return _whole(writer, reader, cut, url), ""
            except Lost as error:
                raise Stop(Status.TRY_LATER, f"{url}: {error}") from None
        if answer.status == _UNCHANGED and kept is not None:
            return kept, ""
        if answer.status in _MOVED and answer.headers.get("location"):
            return None, answer.headers["location"]
        later = answer.status in _LATER or answer.is_passing
        raise Stop(
            Status.TRY_LATER if later else Status.BAD_INPUT, f"{url}: HTTP {answer.said}; nothing sent"
        )


def _whole(writer: Writer, reader: SitemapReader, cut: web.Cut, url: str) -> Kept:
    """Keep a sitemap whose connection was cut behind its end: many servers end so."""
    try:
        writer.add(reader.finish())
    except NotASitemap:
        raise Stop(Status.TRY_LATER, f"{url}: {cut}") from None
    return writer.done(reader, cut.reader.headers)


def _unusable(place: str, why: str) -> Stop:
    return Stop(Status.BAD_INPUT, f"{place} is no usable sitemap: {why}; nothing sent")


def _line(entry: Entry) -> bytes:
    url = quote(entry.loc, safe=_SAFE)
    attributes = {"curl": url, "mimetype": mimetype_of(url)}
    if entry.modified is not None:
        attributes["mtime"] = str(entry.modified)
    return pipe.write(Url(attributes))


def _is_url(place: str) -> bool:
    return bool(re.match(r"https?://", place, re.IGNORECASE))


def _host(url: str) -> str:
    return _parsed(url).host.lower()


def _parsed(url: str) -> web.HttpUrl:
    try:
        return web.HttpUrl.parse(quote(url.partition("#")[0], safe=_SAFE))
    except ValueError:
        raise Stop(Status.BAD_INPUT, f"{url[:200]} is no URL of a sitemap; nothing sent") from None
