"""What reads sitemaps and feeds of sites that do not push, and the ways in which these can grow."""

import gzip

from lcc_scrapy.apps.sources.links import HEADER_MAX, link_headers
from lcc_scrapy.apps.sources.pages import LOOKED_AT, head_links
from lcc_scrapy.apps.sources.plain import JSON_MAX
from lcc_scrapy.apps.sources.reading import PIECE, Unreadable, read
from lcc_scrapy.apps.sources.rules import Entry, Report, compare
from lcc_scrapy.apps.sources.submitting import checked
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.kit.fetching import MOST_BYTES
from tests.faults.growth import Dimension, Parser, grown


def _read(body: bytes, size: int = PIECE) -> object:
    try:
        return read(body[begin : begin + size] for begin in range(0, len(body), size))
    except Unreadable as error:
        return error


def _in_single_bytes(body: bytes) -> object:
    return _read(body, 1)


def _numbered(form: str, head: str = "<urlset>", tail: str = "</urlset>") -> Dimension:
    def make(n: int) -> bytes:
        return (
            head + "".join(form % number for number in range(max(1, n // (len(form) + 3)))) + tail
        ).encode()

    return Dimension(f"{head[:20]} {form[:40]}", make)


def _packed(n: int) -> bytes:
    return gzip.compress(b"<urlset>" + b"<url><loc>http://x/</loc></url>" * (n * 20 // 31) + b"</urlset>")


_HARMLESS = _numbered("<url><loc>http://x/%d</loc><lastmod>2024-01-01</lastmod></url>")
_SHAPES = (
    _numbered("<url><loc>http://x/%d</loc></url>"), _numbered("<a%d/>"), _numbered(" a%d='x'", "<urlset", "/>"),
    _numbered("<x:a%d xmlns:x='u'/>"), _numbered(" xmlns:a%d='u%d'".replace("%d'", "'"), "<urlset", "/>"),
    grown("depth", "<a>", "<urlset>"), grown("text of a URL", "a", "<urlset><url><loc>", "</loc></url></urlset>"),
    grown("references in a URL", "&amp;", "<urlset><url><loc>", "</loc></url></urlset>"),
    grown("texts of one URL", "<loc>a</loc>", "<urlset><url>", "</url></urlset>"),
    grown("a comment", "a", "<urlset><!--", "--></urlset>"), grown("a comment without end", "-", "<urlset><!--"),
    grown("a tag", "a", "<urlset><", "/></urlset>"), grown("an attribute", "a", "<urlset><a b='", "'/></urlset>"),
    grown("blanks", " "), grown("blanks in a tag", " ", "<urlset", "/>"), grown("sections", "<![CDATA[a]]>", "<urlset><url><loc>", "</loc></url></urlset>"),
    grown("hubs", "<link rel='hub' href='h'/>", "<feed>", "</feed>"), grown("entries", "<entry><link href='a'/><id>a</id></entry>", "<feed xml:base='http://x/y/'>", "</feed>"),
    grown("lines", "http://x/a\n"), grown("line ends", "\n", "http://x/"), grown("a line", "a", "http://x/"), grown("returns", "\r", "http://x/"),
    grown("zero bytes", b"\0"), grown("open brackets", "<"), Dimension("packed", _packed), grown("members of gzip", gzip.compress(b""), gzip.compress(b"<urlset>")),
)  # fmt: skip
SOURCES = Parser("sources", "a thread", MOST_BYTES, _read, _HARMLESS.make, _SHAPES)
CUT_SOURCES = Parser(
    "sources in single bytes", "a thread", MOST_BYTES, _in_single_bytes, _HARMLESS.make, _SHAPES[:14]
)
JSON_FEEDS = Parser(
    "JSON feeds", "a thread", JSON_MAX, _read,
    _numbered('{"id":"%d","url":"http://x/"},', '{"version":"https://jsonfeed.org/version/1","items":[', "{}]}").make,
    (
        grown("brackets", "[", "{"), grown("strings", '"a",', '{"version":"https://jsonfeed.org/","items":[', "1]}"),
        grown("a number", "1", '{"a":', "}"), grown("a string", "a", '{"a":"', '"}'), grown("escapes", "\\\\u0041", '{"a":"', '"}'), grown("a key many times", '"a":1,', "{", '"b":1}'),
    ),
)  # fmt: skip
LINKS = Parser(
    "Link headers", "event loop", HEADER_MAX, lambda body: link_headers([body.decode("latin-1")]), grown("links", "<a>;rel=b,").make,
    (grown("links", "<a>;rel=b,"), grown("open", "<"), grown("closed", ">", "<a"), grown("parameters", "; rel", "<a>"), grown("blanks", " ", "<a>;", "rel=b"), grown("quotes", '"', "<a>;rel=")),
)  # fmt: skip
HEADS = Parser(
    "heads of pages", "a thread", LOOKED_AT, lambda body: head_links([body]), grown("links", "<link rel=a href=b>").make,
    (grown("depth", "<b>"), grown("relations", "a ", "<link href=b rel='", "'>"), grown("open", "<"), grown("a comment", "-", "<!--"), grown("text", "a"), grown("attributes", " a=b", "<link")),
    resident=True,
)  # fmt: skip
ROOTS = tuple(Root.parse(f"http://h/{number}%41" + "%41" * 200 + "/") for number in range(100))


def _listed(name: str, form: str, length: int, host: str = "http://h/") -> Dimension:
    """Return entries of which each has as many of a ``form`` as make its ``length``."""
    url = host + "%d/" + form * (length // len(form))

    def make(n: int) -> list[Entry]:
        return [Entry(url % number) for number in range(max(1, n // len(url)))]

    return Dimension(name, make)


ENTRIES = Parser(
    "entries of a source", "a thread", MOST_BYTES,
    lambda entries: compare({}, checked(7, entries, "http://h/f", ROOTS, Report())), _listed("of another host", "a", 2000, "http://x/").make,
    (
        _listed("short ones", "a", 120), _listed("letters beyond ASCII", "\u00e9", 150), _listed("dot segments", "a/../", 2000),
        _listed("too long ones", "a", 8000), _listed("encoded ones", "%%41", 900),
    ),
)  # fmt: skip
PARSERS = (SOURCES, CUT_SOURCES, JSON_FEEDS, LINKS, HEADS, ENTRIES)
