"""The documents of ResourceSync, as pieces of XML: sitemaps with ``rs:md`` and ``rs:ln`` in them.

A resource is a document of the LCC; its ``loc`` is where the LCC gives its content, its canonical link the
URL that it was fetched from.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from lcc_scrapy.apps.resourcesync.parts import ChangesPart, Keys
from lcc_scrapy.apps.resourcesync.publications import Span
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.selection import Change
from lcc_scrapy.feed.names import name_of

MEDIA_TYPE = "application/xml"
PACKAGE_TYPE = "application/zip"
CAPABILITIES = ("resourcelist", "resourcedump", "changelist", "changedump")

_NAMESPACES = (
    'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/"'
)


@dataclass(frozen=True, slots=True)
class Site:
    """Where the documents and contents of an LCC are; ``url`` has no slash at its end."""

    url: str

    @property
    def description(self) -> str:
        """Return the URL of the source description."""
        return f"{self.url}/.well-known/resourcesync"

    def page(self, name: str) -> str:
        """Return the URL of another document."""
        return f"{self.url}/resourcesync/{name}.xml"

    def package(self, name: str) -> str:
        """Return the URL of a package of a dump."""
        return f"{self.url}/resourcesync/{name}.zip"

    def content(self, docid: str) -> str:
        """Return the URL of a document's content."""
        return f"{self.url}/v1/documents/{docid}/content"


def source_description(site: Site) -> Iterator[str]:
    """Name the one set of resources that there is."""
    entry = _entry(site.page("capabilitylist"), {"capability": "capabilitylist"})
    yield from _document("urlset", {"capability": "description"}, {}, [entry])


def capability_list(site: Site) -> Iterator[str]:
    """Name what is offered for it."""
    entries = [_entry(site.page(name), {"capability": name}) for name in CAPABILITIES]
    yield from _document("urlset", {"capability": "capabilitylist"}, {"up": site.description}, entries)


def index(
    site: Site, capability: str, facts: Mapping[str, int], parts: Mapping[str, Mapping[str, int]]
) -> Iterator[str]:
    """Name the parts of a list that is too long for one document, with the moments of each."""
    entries = (_entry(site.page(name), _moments(at), tag="sitemap") for name, at in parts.items())
    yield from _document("sitemapindex", {"capability": capability, **_moments(facts)}, _up(site), entries)


def resource_list(site: Site, at: int, pages: Iterable[Sequence[CachedUrl]], part: str = "") -> Iterator[str]:
    """List documents as they are; ``at`` is when reading them began, ``part`` = this is one of an index."""
    links = {**_up(site), **({"index": site.page("resourcelist")} if part else {})}
    facts = {"capability": "resourcelist", **_moments({"at": at})}
    entries = ("".join(_resource(site, row, at) for row in page) for page in pages)
    yield from _document("urlset", facts, links, entries)


def resource_dump(site: Site, at: int, packages: Iterable[Keys]) -> Iterator[str]:
    """List packages of documents as they are; this is one of an index."""
    links = {**_up(site), "index": site.page("resourcedump")}
    facts = {"capability": "resourcedump", **_moments({"at": at})}
    entries = (
        _package(site, package.name("resourcedump"), package.name("resourcemanifest"), {})
        for package in packages
    )
    yield from _document("urlset", facts, links, entries)


def resource_dump_manifest(site: Site, at: int, pages: Iterable[Sequence[CachedUrl]]) -> Iterator[str]:
    """List the documents of a package like a resource list, with the paths of their contents in it."""
    facts = {"capability": "resourcedump-manifest", **_moments({"at": at})}
    entries = ("".join(_resource(site, row, at, packed=True) for row in page) for page in pages)
    yield from _document("urlset", facts, _up(site), entries)


def change_list(site: Site, span: Span, pages: Iterable[Sequence[Change]], part: str = "") -> Iterator[str]:
    """List changes by rising seq, with the times of their publications."""
    links = {**_up(site), **({"index": site.page("changelist")} if part else {})}
    facts = {"capability": "changelist", **_moments(span.moments)}
    entries = ("".join(_change(site, one, span) for one in page) for page in pages)
    yield from _document("urlset", facts, links, entries)


def change_dump(site: Site, span: Span, packages: Iterable[ChangesPart], part: str = "") -> Iterator[str]:
    """List packages of changes, oldest first."""
    links = {**_up(site), **({"index": site.page("changedump")} if part else {})}
    facts = {"capability": "changedump", **_moments(span.moments)}
    entries = (
        _package(
            site,
            package.name("changedump"),
            package.name("changemanifest"),
            span.within(package.after, package.upto),
        )
        for package in packages
    )
    yield from _document("urlset", facts, links, entries)


def change_dump_manifest(
    site: Site, span: Span, package: ChangesPart, pages: Iterable[Sequence[Change]]
) -> Iterator[str]:
    """List the changes of a package like a change list, with the paths of their contents in it."""
    moments = span.within(package.after, package.upto)
    facts = {"capability": "changedump-manifest", **_moments(moments)}
    entries = ("".join(_change(site, one, span, packed=True) for one in page) for page in pages)
    yield from _document("urlset", facts, _up(site), entries)


def _document(
    root: str, facts: Mapping[str, str], links: Mapping[str, str], entries: Iterable[str]
) -> Iterator[str]:
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} {_NAMESPACES}>\n'
    yield "".join(f"  {_link(rel, href)}\n" for rel, href in links.items())
    yield f"  {_facts(facts)}\n"
    yield from entries
    yield f"</{root}>\n"


def _resource(site: Site, row: CachedUrl, now: int, *, packed: bool = False) -> str:
    changed = _w3c(min(row.fetched_time, now))
    return _entry(
        site.content(row.docid), _of_content(row, packed=packed), lastmod=changed, link=_canonical(row.furl)
    )


def _package(site: Site, name: str, manifest: str, at: Mapping[str, int]) -> str:
    contents = _link("contents", site.page(manifest), type=MEDIA_TYPE)
    return _entry(site.package(name), {"type": PACKAGE_TYPE, **_moments(at)}, link=contents)


def _change(site: Site, one: Change, span: Span, *, packed: bool = False) -> str:
    facts = {"datetime": _w3c(span.moment(one.seq))}
    if isinstance(one, CachedUrl):
        facts |= {"change": "updated", **_of_content(one, packed=packed)}
    else:
        facts["change"] = "deleted"
    return _entry(site.content(one.docid), facts, link=_canonical(one.furl))


def _of_content(row: CachedUrl, *, packed: bool) -> dict[str, str]:
    return {
        "hash": f"md5:{row.fetched_md5} sha-256:{row.sha256}",
        "length": str(row.fetched_len),
        "type": row.mimetype,
        **({"path": f"/{name_of(row)}"} if packed else {}),
    }


def _entry(loc: str, facts: Mapping[str, str], *, lastmod: str = "", link: str = "", tag: str = "url") -> str:
    inside = [f"<loc>{escape(loc)}</loc>"]
    if lastmod:
        inside.append(f"<lastmod>{lastmod}</lastmod>")
    if facts:
        inside.append(_facts(facts))
    return f"  <{tag}>{''.join(inside)}{link}</{tag}>\n"


def _facts(facts: Mapping[str, str]) -> str:
    return f"<rs:md {_attributes(facts)}/>"


def _canonical(furl: str) -> str:
    return _link("canonical", quote(furl, safe="!#$%&'()*+,/:;=?@[]~", errors="replace"))


def _link(rel: str, href: str, **more: str) -> str:
    return f"<rs:ln {_attributes({'rel': rel, 'href': href, **more})}/>"


def _attributes(values: Mapping[str, str]) -> str:
    return " ".join(f"{name}={quoteattr(value)}" for name, value in values.items())


def _up(site: Site) -> dict[str, str]:
    return {"up": site.page("capabilitylist")}


def _moments(facts: Mapping[str, int]) -> dict[str, str]:
    return {name: _w3c(at) for name, at in facts.items()}


def _w3c(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
