"""An owner's alerts as an Atom feed (RFC 4287), in pages (RFC 5005, section 3)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.sax.saxutils import escape, quoteattr

from lcc_scrapy.annotation.alert_texts import article, title_of
from lcc_scrapy.domain.acis import Aci
from lcc_scrapy.feed.row_formats import for_xml

MEDIA_TYPE = "application/atom+xml"
PAGE = 50
"""Entries of a page."""


@dataclass(frozen=True, slots=True)
class Links:
    """Where a page is, the first one, and the next (older) one, "" = there is none."""

    this: str
    first: str
    following: str


def feed(acis: Sequence[Aci], owner: str, lcc_id: str, links: Links) -> str:
    """Return a page of a feed, newest first. Its ids stay whatever becomes of the address."""
    return "".join(_feed(acis, owner, lcc_id, links))


def _feed(acis: Sequence[Aci], owner: str, lcc_id: str, links: Links) -> Iterator[str]:
    updated = acis[0].made if acis else 0
    yield '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
    yield f"  <id>{_id(lcc_id, 'owner', owner)}</id>\n  <title>{_text(f'Alerts of {owner}')}</title>\n"
    yield f"  <updated>{_time(updated)}</updated>\n  <author><name>Local Content Cache</name></author>\n"
    for relation, address in (("self", links.this), ("first", links.first), ("next", links.following)):
        if address:
            yield f'  <link rel="{relation}" type="{MEDIA_TYPE}" href={_quoted(address)}/>\n'
    for aci in acis:
        yield from _entry(aci, lcc_id)
    yield "</feed>\n"


def _entry(aci: Aci, lcc_id: str) -> Iterator[str]:
    yield f"  <entry>\n    <id>{_id(lcc_id, 'aci', str(aci.number))}</id>\n"
    yield f"    <title>{_text(title_of(aci))}</title>\n"
    yield f"    <updated>{_time(aci.made)}</updated>\n    <published>{_time(aci.updatetime)}</published>\n"
    if aci.uri.startswith(("https://", "http://")):
        yield f'    <link rel="alternate" href={_quoted(aci.uri)}/>\n'
    yield f'    <content type="html">{_text(str(article(aci)))}</content>\n  </entry>\n'


def _id(lcc_id: str, kind: str, name: str) -> str:
    return _text(f"tag:lcc.invalid,2026:{lcc_id}:{kind}:{name}")


def _time(at: int) -> str:
    return datetime.fromtimestamp(at // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _text(text: str) -> str:
    return escape(for_xml(text))


def _quoted(text: str) -> str:
    return quoteattr(for_xml(text))
