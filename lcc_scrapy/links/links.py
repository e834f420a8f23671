"""Links of a page, as a spider follows them (seed 002 section 4.2, "URL extractor and normalizer").

Nothing here fetches, and nothing that a page may contain raises an error: what cannot be read has no links.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lcc_scrapy.content.declared_charset import encoding_of_text
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.links import html, robots_meta
from lcc_scrapy.links.canonical import canonical
from lcc_scrapy.links.effort import Effort
from lcc_scrapy.links.rules import LinkRules

_log = logging.getLogger(__name__)

HTML = frozenset({"text/html", "application/xhtml+xml"})
"""Mimetypes of pages whose links are read."""


@dataclass(frozen=True, slots=True)
class Link:
    """Where a page points. ``url`` is absolute, canonical and without fragment; it is http or https.

    ``relation`` is one of ``DOCUMENTS`` or ``REQUISITES``; ``nofollow`` tells that the author asks not to
    follow this link (rel=nofollow, ugc or sponsored).
    """

    url: str
    relation: str
    nofollow: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says to a spider: its links, each URL once, in the order of the page.

    ``index``: the document may be kept; ``follow``: its links may be followed (meta robots, X-Robots-Tag).
    """

    links: tuple[Link, ...] = ()
    index: bool = True
    follow: bool = True


def read_page(  # noqa: PLR0917
    body: bytes,
    url: str,
    mimetype: str,
    charset: str,
    headers: Sequence[tuple[str, str]],
    rules: LinkRules,
    effort: Effort | None = None,
) -> Page:
    """Read a page that was served at ``url`` (the last one, after redirects).

    ``mimetype`` and ``charset`` are as served, "" = not said; no mimetype counts as HTML. Pages of other
    types have no links, but may have an X-Robots-Tag. Takes up to a second, and not much more than ``effort``
    allows: not for the event loop.
    """
    effort = effort or Effort()
    said = robots_meta.of_headers(headers, rules.agent)
    if mimetype and mimetype.lower() not in HTML:
        return Page((), said.index, said.follow)
    collector = html.Collector(rules.relations, rules.agent, rules.most)
    body = body[: rules.longest]
    encoding = encoding_of_text(body, charset, mimetype.lower(), whole=False)
    html.collect(body, encoding, collector, effort)
    base = _base(collector.base, url)
    links = _links(collector.found.items(), base, encoding, rules, effort)
    said = said.both(collector.directives)
    return Page(tuple(links), said.index, said.follow)


def _base(own: str, url: str) -> str:
    """Return what the links of a page are seen from; a ``base`` that is no http URL does not count."""
    try:
        return canonical(own, url) if own else url
    except UrlRefused:
        return url


def _links(
    found: Iterable[tuple[tuple[str, str], bool]], base: str, encoding: str, rules: LinkRules, effort: Effort
) -> Iterator[Link]:
    links: dict[str, Link] = {}
    with effort.working():
        for (href, relation), nofollow in found:
            url = _url(href, base, encoding, rules)
            if not effort.takes(url):
                break
            if url:
                before = links.get(url)
                links[url] = Link(
                    url,
                    before.relation if before else relation,
                    nofollow and (before is None or before.nofollow),
                )
    return iter(links.values())


def _url(href: str, base: str, encoding: str, rules: LinkRules) -> str:
    """Return the canonical URL of a link, "" when it leads nowhere that is to be fetched."""
    if not href.strip():
        return ""
    try:
        url = canonical(href, base, encoding, rules.strip)
    except UrlRefused as error:
        _log.debug("link on %s left out: %s", base, error)
        return ""
    return "" if rules.ignore.covers(url) else url
