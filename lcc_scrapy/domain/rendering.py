"""Rules for pages that need a browser: which are rendered, and what a page may ask of sites meanwhile.

The rendition of a page is a document of its own: the page's curl with the mimetype ``RENDERED``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from lcc_scrapy.domain.cache import Answer, Body, CachedUrl
from lcc_scrapy.domain.entries import ANY_TYPE, RENDERED, Origin, urlkey
from lcc_scrapy.domain.queue import QueuedUrl, Served, Ticket
from lcc_scrapy.domain.render_rules import RenderRules
from lcc_scrapy.domain.roots import HttpUrl, Root

_PAGE = "text/html"
PAGES = frozenset({_PAGE, "application/xhtml+xml"})
"""Mimetypes of pages that a browser makes something of."""

NOT_RENDERED = "its page is not rendered any more"
"""The reason that tombstones of renditions give."""


def is_rendered(mimetype: str) -> bool:
    """Tell whether documents of a mimetype, as served, are pages for a browser."""
    return mimetype in PAGES


def may_be_page(mimetype: str) -> bool:
    """Tell whether a URL of a mimetype, as it waits, may bring a page: then its fetch has no conditions.

    What a page shows may change while its HTML does not.
    """
    return mimetype in PAGES or mimetype == ANY_TYPE


def rendition_key(pid: int, curl: str) -> bytes:
    """Return the key of the rendition of a page."""
    return urlkey(pid, curl, RENDERED)


def rendition_of(ticket: Ticket, page: Answer, body: Body) -> Served:
    """Return what a browser made of a page as if it had been served; ``body`` is HTML in UTF-8."""
    answer = replace(
        page,
        served_type=_PAGE,
        served_charset="utf-8",
        etag="",
        last_modified="",
        headers='[["Content-Type", "text/html; charset=utf-8"]]',
    )
    return Served(ticket, answer, body)


def rendition_row(page: QueuedUrl) -> QueuedUrl:
    """Return the row of a page's rendition, of which nothing was declared; ``page`` is its row as stored."""
    return replace(
        page,
        urlkey=rendition_key(page.pid, page.curl),
        mimetype=RENDERED,
        mtime=None,
        len=None,
        md5=None,
        origin=Origin.RENDERED,
        seen=0,
    )


def fetched_for(row: CachedUrl) -> CachedUrl:
    """Return the row of what has to be fetched for a document: of a rendition, that is its page."""
    if row.origin != Origin.RENDERED:
        return row
    key = urlkey(row.pid, row.curl, _PAGE)
    return replace(row, urlkey=key, mimetype=_PAGE, origin=Origin.REFETCH)


class NotPermitted(Exception):
    """A page may not make this request."""


@dataclass(slots=True)
class RequestBudget:
    """What one page may still ask of sites; ``roots`` are those of its provider."""

    rules: RenderRules
    roots: Sequence[Root]
    requests: int = 0
    transferred: int = 0

    def ask(self, method: str, kind: str, url: HttpUrl) -> None:
        """Count a request; raises ``NotPermitted``. ``kind`` is what Chromium wants it for."""
        if method != "GET" or kind in _NEEDLESS:
            raise NotPermitted(f"{method} {kind}")
        if not self._is_known(url):
            raise NotPermitted(f"{url.netloc} is no host of its roots, nor in LCC_RENDER_HOSTS")
        self.requests += 1
        if self.requests > self.rules.requests or self.transferred > self.rules.size:
            raise NotPermitted("it has asked for enough")

    def _is_known(self, url: HttpUrl) -> bool:
        return self.is_own(url) or any(fnmatchcase(url.host, pattern) for pattern in self.rules.hosts)

    def is_own(self, url: HttpUrl) -> bool:
        """Tell whether a URL is of a host of its provider's roots."""
        return any((root.url.scheme, root.url.netloc) == (url.scheme, url.netloc) for root in self.roots)

    @property
    def room(self) -> int:
        """The bytes that the next answer may have."""
        return max(1, self.rules.size - self.transferred)

    def take(self, size: int) -> None:
        """Count transferred bytes."""
        self.transferred += size


REPEATED = frozenset({"script", "stylesheet"})
"""Kinds of requests that many pages of a site make alike."""

USUAL_AGE, LONGEST_AGE = 300, 86_400
"""Seconds for which such an answer is used that says nothing, and at most."""


def fresh_for(cache_control: str) -> int:
    """Return for how many seconds an answer may be used again (RFC 9111); 0 = not at all."""
    said = dict(_directive(one) for one in cache_control.lower().split(","))
    if said.keys() & {"no-store", "no-cache", "private"}:
        return 0
    age = said.get("max-age", str(USUAL_AGE)).strip('"')
    return min(int(age), LONGEST_AGE) if age.isascii() and age.isdigit() and len(age) < _DIGITS else 0


_DIGITS = 12


def _directive(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip(), value.strip()


_NEEDLESS = frozenset({"image", "media", "font", "texttrack", "websocket", "eventsource", "ping", "manifest"})
"""Kinds of requests whose answers do not change what a page says, or never end."""
