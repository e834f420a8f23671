"""Discovery: which sources a site offers.

Its robots.txt may name sitemaps, the head of its page feeds, /.well-known/resourcesync a description.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from lcc_scrapy.apps.sources.pages import head_links
from lcc_scrapy.apps.sources.reading import Unreadable, read
from lcc_scrapy.apps.sources.rules import Kind
from lcc_scrapy.apps.sources.running import whose_is
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import LccError, UrlRefused
from lcc_scrapy.domain.references import http_url
from lcc_scrapy.domain.roots import HttpUrl, Root, hosts, inside
from lcc_scrapy.kit.fetching import CannotFetch, Fetched, Fetcher, Whose

_FEEDS = frozenset({"application/rss+xml", "application/atom+xml", "application/feed+json"})
_USUAL_SITEMAP = "/sitemap.xml"
_RESOURCESYNC = "/.well-known/resourcesync"


@dataclass(frozen=True, slots=True)
class Offer:
    """A source that a site offers; ``found`` says where it is named."""

    kind: Kind
    url: str
    found: str


@dataclass(frozen=True, slots=True)
class Subject:
    """Of whom a site is: ``pid`` 0 = of no provider, whose private addresses are good for nobody."""

    pid: int
    whose: Whose


def subject_of(store: Store, url: HttpUrl) -> Subject:
    """Return the provider with a root on the URL's host: the one that covers the URL, if any does."""
    with store.read() as tx:
        named = [(pid, Root.parse(root)) for pid, root in tx.rooted_at(url.host)]
        there = [(pid, root) for pid, root in named if url.netloc in hosts((root,))]
        there.sort(key=lambda one: not inside(url, (one[1],)))
        provider = tx.provider(there[0][0]) if there else None
        if provider is None:
            return Subject(0, Whose((url.netloc,), anywhere=True))
        return Subject(provider.pid, whose_is(provider, tuple(map(Root.parse, tx.roots(provider.pid)))))


async def discover(fetcher: Fetcher, url: HttpUrl, its: Whose) -> list[Offer]:
    """Return what a site offers; raises ``CannotFetch`` where its robots.txt or page cannot be had."""
    rules = await fetcher.robots(url, its)
    found = [Offer(Kind.SITEMAP, one, "robots.txt") for one in _absolute(rules.sitemaps, str(url))]
    with await fetcher.get(str(url), its) as page:
        found += _on_page(page)
    if not any(one.kind is Kind.SITEMAP for one in found):
        found += await _well_known(fetcher, url, its, _USUAL_SITEMAP, Kind.SITEMAP)
    found += await _well_known(fetcher, url, its, _RESOURCESYNC, Kind.RESOURCESYNC)
    return list({(one.kind, one.url): one for one in found}.values())


async def _well_known(fetcher: Fetcher, site: HttpUrl, its: Whose, path: str, kind: Kind) -> list[Offer]:
    """Return a file at its usual place, if it is there and can be read."""
    place = str(HttpUrl(site.scheme, site.host, site.port, path, ""))
    try:
        with await fetcher.get(place, its) as fetched:
            read(fetched.pieces())
    except (CannotFetch, Unreadable):
        return []
    return [Offer(kind, place, path)]


def _on_page(page: Fetched) -> Iterator[Offer]:
    base = str(page.url)
    with suppress(LccError):
        read(page.pieces())
        yield Offer(Kind.FEED, base, "the URL itself")
    for link in head_links(page.pieces()):
        if link.relation == "alternate" and link.type in _FEEDS:
            for url in _absolute((link.href,), base):
                yield Offer(Kind.FEED, url, "<link> of the page")


def _absolute(written: tuple[str, ...], base: str) -> Iterator[str]:
    for one in written:
        with suppress(UrlRefused):
            yield str(http_url(one, base))
