"""Links in HTML, as the parser meets them: nothing is built, so that no page costs more than its length.

What counts is told by the HTML standard (4.2.5 and 4.8 for the elements, 4.2.5.3 for ``refresh``).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lxml import etree

from lcc_scrapy.content.charsets import decoded
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.links.effort import Effort
from lcc_scrapy.links.parsing import PIECE, show
from lcc_scrapy.links.robots_meta import Directives, words_of

ATTRIBUTE = 100_000
"""Characters of a ``srcset`` or ``refresh`` that are looked at."""

STEPS_MAX = 200_000_000
"""Open elements that libxml2 may look at for end tags, all of them for each: half a second."""

FEEDS = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})

_RELS = {
    "canonical": "canonical",
    "alternate": "alternate",
    "stylesheet": "stylesheet",
    "icon": "icon",
    "apple-touch-icon": "icon",
    "next": "next",
    "prev": "prev",
    "previous": "prev",
    **dict.fromkeys(
        ("first", "last", "start", "up", "top", "home", "contents", "toc", "index", "chapter"), "link"
    ),
    **dict.fromkeys(("section", "subsection", "appendix", "glossary", "copyright", "help", "author"), "link"),
    **dict.fromkeys(("bookmark", "license", "archives", "sitemap"), "link"),
}
"""Which ``rel`` of a link element makes it what kind of link; others lead to no page."""

_NOFOLLOW = frozenset({"nofollow", "ugc", "sponsored"})
_REFRESH = re.compile(
    r"""[\s\d.]*[\s;,]\s*(?:url\s*=\s*)?(?:"(?P<double>[^"]*)|'(?P<single>[^']*)|(?P<bare>.*))""",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Found:
    """A link as it stands in the page."""

    href: str
    relation: str
    nofollow: bool = False


Attributes = Mapping[str, str]
_Reader = Callable[[Attributes], Iterator[Found]]


def _anchor(relation: str) -> _Reader:
    def read(attributes: Attributes) -> Iterator[Found]:
        href = attributes.get("href", attributes.get("xlink:href"))
        if href is not None:
            yield Found(href, relation, _is_nofollow(attributes))

    return read


def _target(relation: str, *names: str) -> _Reader:
    def read(attributes: Attributes) -> Iterator[Found]:
        for name in names:
            if name in attributes:
                yield Found(attributes[name], relation)

    return read


def _link(attributes: Attributes) -> Iterator[Found]:
    tokens = attributes.get("rel", "").lower().split()
    relation = (
        "stylesheet" if "stylesheet" in tokens else next((_RELS[one] for one in tokens if one in _RELS), "")
    )
    if relation == "alternate" and _kind(attributes) in FEEDS:
        relation = "feed"
    if relation and "href" in attributes:
        yield Found(attributes["href"], relation, _is_nofollow(attributes))


def _image(attributes: Attributes) -> Iterator[Found]:
    yield from _target("img", "src")(attributes)
    yield from (Found(url, "img") for url in candidates(attributes.get("srcset", "")))


def _source(attributes: Attributes) -> Iterator[Found]:
    yield from _target("source", "src")(attributes)
    yield from (Found(url, "source") for url in candidates(attributes.get("srcset", "")))


def _video(attributes: Attributes) -> Iterator[Found]:
    yield from _target("video", "src")(attributes)
    yield from _target("img", "poster")(attributes)


def _input(attributes: Attributes) -> Iterator[Found]:
    if attributes.get("type", "").lower() == "image":
        yield from _target("img", "src")(attributes)


_READERS: dict[str, _Reader] = {
    "a": _anchor("a"),
    "area": _anchor("area"),
    "frame": _target("frame", "src"),
    "iframe": _target("iframe", "src"),
    "link": _link,
    "img": _image,
    "input": _input,
    "body": _target("img", "background"),
    "source": _source,
    "video": _video,
    "audio": _target("audio", "src"),
    "track": _target("track", "src"),
    "embed": _target("embed", "src"),
    "object": _target("object", "data"),
    "script": _target("script", "src"),
}


def _kind(attributes: Attributes) -> str:
    return attributes.get("type", "").partition(";")[0].strip().lower()


def _is_nofollow(attributes: Attributes) -> bool:
    return not _NOFOLLOW.isdisjoint(attributes.get("rel", "").lower().split())


def candidates(srcset: str) -> Iterator[str]:
    """Yield the URLs of a ``srcset``: each ends at a blank, and its descriptors at the next comma."""
    wanted = True
    for token in srcset[:ATTRIBUTE].split():
        text = token
        if not wanted:
            _, comma, text = token.partition(",")
            wanted = bool(comma)
        url = text.strip(",")
        if wanted and url:
            yield url
            wanted = text.endswith(",")


def refresh_target(content: str) -> str | None:
    """Return where a ``refresh`` leads (``5; url=next.html``), or None when it reloads the page itself."""
    found = _REFRESH.match(content[:ATTRIBUTE])
    if found is None:
        return None
    return (found["double"] or found["single"] or found["bare"] or "").strip() or None


class Collector:
    """What the parser tells of a page: ``found`` by (href, relation), ``base`` ("" = none), directives.

    ``nofollow`` of a link stays only when all links to that place have it. ``most``: links at most; ``open``:
    elements that have not ended.
    """

    def __init__(self, relations: frozenset[str], agent: str, most: int) -> None:
        self._relations = relations
        self._agents = {"robots", agent}
        self._most = most
        self.open = 0
        self.found: dict[tuple[str, str], bool] = {}
        self.base = ""
        self.directives = Directives()

    def start(self, tag: str, attributes: Attributes) -> None:
        """Take note of an element."""
        self.open += 1
        if tag == "meta":
            self._meta(attributes)
        elif tag == "base":
            self.base = self.base or attributes.get("href", "")
        elif (read := _READERS.get(tag)) is not None:
            for found in read(attributes):
                self._take(found)

    def end(self, _tag: str) -> None:
        """An element ends."""
        self.open -= 1

    def close(self) -> None:
        """The page has ended."""

    def is_full(self) -> bool:
        """Tell whether there are as many links as are wanted."""
        return len(self.found) >= self._most

    def _take(self, found: Found) -> None:
        key = found.href.partition("#")[0], found.relation
        if len(key[0]) > URL_MAX:
            return
        if found.relation in self._relations and (key in self.found or not self.is_full()):
            self.found[key] = self.found.get(key, True) and found.nofollow

    def _meta(self, attributes: Attributes) -> None:
        content = attributes.get("content", "")
        if attributes.get("name", "").strip().lower() in self._agents:
            self.directives = self.directives.and_(words_of(content))
        elif attributes.get("http-equiv", "").strip().lower() == "refresh":
            target = refresh_target(content)
            if target is not None:
                self._take(Found(target, "refresh"))


def collect(body: bytes, encoding: str, collector: Collector, effort: Effort) -> None:
    """Show a page to ``collector`` until it ends or there is enough of it."""
    text = decoded(body, encoding, whole=False).replace("\0", "\ufffd").encode("utf-8", "replace")
    target: Any = collector
    enough = _Enough(text, collector)
    show(text, lambda: etree.HTMLParser(target=target, encoding="utf-8"), enough.is_reached, effort)


class _Enough:
    """Tells after each piece of a page whether to stop: there is enough, or the next takes too long."""

    def __init__(self, text: bytes, collector: Collector) -> None:
        self._text = text
        self._collector = collector
        self._at = 0
        self._steps = 0

    def is_reached(self) -> bool:
        """Tell it before the next piece is parsed."""
        self._at += PIECE
        self._steps += self._collector.open * self._text.count(b"</", self._at, self._at + PIECE)
        return self._collector.is_full() or self._steps > STEPS_MAX
