"""Which pages of the cache link to a URL, as far as spiders read them.

Links are stored by the page that has them, without an index by where they lead. So some pages are looked at
for each page of the dashboard, and somebody who wants more looks further.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from markupsafe import Markup

from lcc_scrapy.apps.dashboard.access import PATH
from lcc_scrapy.apps.dashboard.layout import link, link_to_url, table
from lcc_scrapy.apps.dashboard.store import LinkingPages, rows_in
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.shown import number
from lcc_scrapy.links.canonical import canonical

LOOKED_AT, LOOKED_AT_FIRST = 1000, 250
"""Documents that are looked at for a page of this, and for the page of a URL."""

BYTES = 8_000_000
"""Of links, that are looked at."""

SHOWN = 50

_PAGE = f"{PATH}/urls/links-to"
_NONE_STORED = Markup(
    "<p>No links are stored of these pages: they are of pages that <code>lcc_spider</code> read.</p>"
)
_NOTHING = Markup("")


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose pages are asked for: of a provider (None = of all), behind a key."""

    url: str
    pid: int | None
    after: bytes = b""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found: the pages themselves, and how far was looked."""

    pages: Sequence[CachedUrl]
    looked: LinkingPages


def read(tx: Tx, asked: Asked, limit: int = LOOKED_AT) -> Found:
    """Look at some pages."""
    looked = rows_in(tx).linking_pages(_spellings(asked.url), asked.pid, asked.after, limit, BYTES)
    if len(looked.keys) > SHOWN:
        keys = looked.keys[:SHOWN]
        looked = LinkingPages(keys, keys[-1], looked.read)
    rows = tx.cached(looked.keys)
    return Found([rows[key] for key in looked.keys if key in rows], looked)


def _spellings(url: str) -> frozenset[str]:
    """Return a URL as links are stored, and as it is."""
    try:
        return frozenset({url, canonical(url)})
    except LccError:
        return frozenset({url})


def body(asked: Asked, found: Found, *, sees_all: bool) -> Markup:
    """Return the page."""
    begun = Markup("<p>To {}</p>").format(link_to_url(asked.url))
    others = sees_all and asked.pid is not None
    all_pages = Asked(asked.url, None)
    other = Markup("<p>{}</p>").format(to_page(all_pages, "Look at pages of all providers"))
    return begun + listed(asked, found) + (other if others else _NOTHING)


def listed(asked: Asked, found: Found) -> Markup:
    """Return what was found, and where to go on."""
    looked = found.looked
    if not (looked.read or looked.reached or asked.after):
        return _NONE_STORED
    rows = [[link_to_url(one.furl), link(f"{PATH}/providers/{one.pid}", one.pid)] for one in found.pages]
    shown = table(["Page", "Provider"], rows) if rows else Markup("<p>None of them links to it.</p>")
    whose = "all providers" if asked.pid is None else f"provider {asked.pid}"
    told = Markup("<p>Looked at the links of {} pages of {}.</p>").format(number(looked.read), whose)
    return told + shown + _on(asked, looked)


def _on(asked: Asked, looked: LinkingPages) -> Markup:
    if looked.reached is None:
        return _NOTHING
    further = Asked(asked.url, asked.pid, looked.reached)
    return Markup("<p>{}</p>").format(to_page(further, "Look further"))


def to_page(asked: Asked, called: str) -> Markup:
    """Return a link to the page."""
    query = {"url": asked.url, "pid": "" if asked.pid is None else asked.pid, "after": asked.after.hex()}
    return link(f"{_PAGE}?{urlencode({name: value for name, value in query.items() if value != ''})}", called)
