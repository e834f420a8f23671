"""The page of one URL: where it is and why, what its site answered, its links, its earlier contents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from lcc_scrapy.apps.dashboard import links_in
from lcc_scrapy.apps.dashboard.layout import Name, facts, link, link_to_url, shown, table
from lcc_scrapy.db.records import DocumentLink
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.shown import moment, number
from lcc_scrapy.domain.users import User
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.meta_information import MetaInfo
from lcc_scrapy.queue.explained import as_dict, lines
from lcc_scrapy.queue.explanation import Known, Surroundings, explain, in_roots_of

KEYS = 10
"""Documents of one URL: of several providers, or types."""

LINKS, VERSIONS, HEADER = 30, 20, 4000
"""Of one document: links, earlier contents, characters of headers."""

_NOTHING = Markup("")


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of one document. ``links``: how many there are; ``first`` are the first ones.

    ``linked``: which pages link to it, None = nobody looked.
    """

    known: Known
    header: str
    links: int
    first: Sequence[DocumentLink]
    versions: Sequence[Version]
    linked: links_in.Found | None = None


def read(store: Store, url: str, around: Surroundings, user: User) -> list[Told]:
    """Return what is known of a URL or docid to a user; one more than ``KEYS`` says that there are more."""
    found = explain(store, url, around, user.pids, KEYS + 1)
    with store.read() as tx:
        told = [_told(tx, one) for one in found]
        if told:
            linked = links_in.read(tx, _asked(told[0]), links_in.LOOKED_AT_FIRST)
            told[0] = replace(told[0], linked=linked)
    return told


def _asked(one: Told) -> links_in.Asked:
    known = one.known
    at = known.cached or known.queued
    return links_in.Asked(at.furl if at else known.curl, known.pid)


def _told(tx: Tx, known: Known) -> Told:
    key, row = known.urlkey, known.cached
    links = tx.links_of(key) if row else []
    header = MetaInfo(row, tx.metas([key]).get(key)).header if row else []
    return Told(known, "\n".join(header), len(links), links[:LINKS], tx.versions([key]).get(key, []))


def where(store: Store, url: str, user: User) -> str:
    """Say of a URL of which nothing is known in whose roots it lies, as far as a user sees these."""
    pids = [pid for pid in in_roots_of(store, url) if user.sees(pid)]
    said = f"; it lies in the roots of provider {', '.join(map(str, pids))}" if pids else ""
    return f"nothing is known of it: it was not submitted, or long ago{said}"


def body(told: Sequence[Told], now: int) -> Markup:
    """Return the page."""
    parts = [_document(one, now) for one in told[:KEYS]]
    if len(told) > KEYS:
        parts.append(Markup("<p>There are more: look for one of them by its docid.</p>"))
    return Markup("").join(parts)


def _document(one: Told, now: int) -> Markup:
    return Markup("<h2>{}</h2>").format(shown(f"Provider {one.known.pid}, {one.known.mimetype}")) + Markup(
        ""
    ).join([facts(_facts(one, now)), _contents(one), _header(one.header), _links(one), _links_in(one)])


def _facts(one: Told, now: int) -> Iterator[tuple[str, object]]:
    for name, value in lines(as_dict(one.known, lambda *_: "", now)):
        yield name, link(f"/dashboard/providers/{value}", value) if name == "provider" else value


def _contents(one: Told) -> Markup:
    path = f"/dashboard/urls/{one.known.urlkey.hex()}"
    now = (
        Markup("<h3>Content</h3><p>{}{}</p>").format(
            link(f"{path}/text", "Text"), link(f"{path}/content", "Show the content")
        )
        if one.known.cached
        else _NOTHING
    )
    if not one.versions:
        return now
    rows = [
        [
            Name(version.seq), moment(version.fetched_time), moment(version.replaced_time),
            version.fetched_len,
            version.served_type,
            Markup("{}{}").format(
                link(f"{path}/text?version={version.seq}", "Text"),
                link(f"{path}/content?version={version.seq}", "Content"),
            ),
            link(f"{path}/changes?version={version.seq}", "What the next one changed"),
        ]
        for version in one.versions[:VERSIONS]
    ]  # fmt: skip
    more = len(one.versions) - len(rows)
    left = Markup("<p>And {} earlier ones.</p>").format(number(more)) if more else _NOTHING
    columns = ["Change", "Fetched", "Replaced", "Bytes", "Served as", "Show", "Compare"]
    return now + Markup("<h3>Earlier contents</h3>") + table(columns, rows) + left


def _header(header: str) -> Markup:
    if not header:
        return _NOTHING
    lines_shown = "\n".join(map(shown, header[:HEADER].split("\n")))
    return Markup("<h3>What its site answered</h3><pre>{}</pre>").format(lines_shown)


def _links_in(one: Told) -> Markup:
    asked = _asked(one)
    found = (
        Markup("<p>{}</p>").format(links_in.to_page(asked, "Look for them"))
        if one.linked is None
        else links_in.listed(asked, one.linked)
    )
    return Markup("<h3>Pages that link to it</h3>") + found


def _links(one: Told) -> Markup:
    if not one.links:
        return _NOTHING
    rows = [[link_to_url(each.url), each.relation, "nofollow" if each.nofollow else ""] for each in one.first]
    more = one.links - len(rows)
    left = Markup("<p>And {} more.</p>").format(number(more)) if more else _NOTHING
    return Markup("<h3>Links</h3>") + table(["URL", "As", "For robots"], rows) + left
