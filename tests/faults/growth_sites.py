"""What reads the answers of sites, and the ways in which these can grow."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import cast

import brotli
from scrapy.http import Headers
from scrapy.responsetypes import responsetypes

from lcc_scrapy.content.charsets import decoded, encoding_of, query_in
from lcc_scrapy.content.declared_charset import encoding_of_text
from lcc_scrapy.content.decoding import BadCoding, decoder, zstd
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.content.sink import Sink
from lcc_scrapy.domain.entries import served_mimetype
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.http_dates import epoch_of_date, retry_after_seconds
from lcc_scrapy.domain.references import redirect
from lcc_scrapy.domain.roots import URL_MAX, HttpUrl, Root, fetch_url
from lcc_scrapy.feed.plain_text import MOST, text_of_html
from lcc_scrapy.fetch.outcomes import answer_of
from lcc_scrapy.http.answer import FIELDS_MAX, HEAD_MAX, Answer, HttpError
from lcc_scrapy.http.cookies import Cookies
from lcc_scrapy.links import robots_meta
from lcc_scrapy.links.canonical import canonical
from lcc_scrapy.links.links import read_page
from lcc_scrapy.links.rules import IgnoreList, LinkRules
from tests.faults.growth import Dimension, Parser, grown

CONTENT = cast("ContentFiles", None)
"""Nothing here is as large as to go to a file."""

READ = 256 * 1024
"""Bytes that the event loop hands over at a time."""

LOOP, READERS, INDEXERS = "event loop", "thread of its own (spiders)", "process of an indexer"


# --- HTTP ----------------------------------------------------------------------------------------


def read_answer(stream: bytes) -> int:
    """Read an answer as a connection does."""
    answer, length = Answer(), 0
    try:
        for at in range(0, len(stream), READ):
            answer.feed(stream[at : at + READ])
            length += sum(map(len, answer.take()))
    except HttpError:
        pass
    return length


def read_answer_to_its_taker(stream: bytes) -> list[bytes]:
    """Read an answer whose body is stored, as ``getting`` does with what waits for it."""
    answer, sink = Answer(), Sink(CONTENT, 1 << 30, 1 << 30)
    with suppress(HttpError):
        answer.feed(stream)
    work = decoder("")
    for chunk in answer.take():
        sink.come(len(chunk))
        for piece in work.feed(chunk):
            sink.write(piece)
    return [sink.finish().data or b""]


_OK = "HTTP/1.1 200 OK\r\n"
_CHUNKED = _OK + "Transfer-Encoding: chunked\r\n\r\n"


def _body(n: int) -> bytes:
    head = f"{_OK}Content-Length: {n}\r\n\r\n".encode()
    return head + b"x" * n


def _fields(n: int) -> bytes:
    fields = b"".join(b"X-Field-%d: %s\r\n" % (number, b"v" * (n // 16)) for number in range(16))
    return _OK.encode() + fields + b"Content-Length: 0\r\n\r\n"


def _many_fields(n: int) -> bytes:
    return _OK.encode() + b"".join(b"X%d: v\r\n" % number for number in range(n // 10)) + b"\r\n"


def _lengths(n: int) -> bytes:
    members = max(1, int(n**0.5) // 2)
    return _OK.encode() + (b"Content-Length: " + b"0," * members + b"0\r\n") * members + b"\r\n"


def by_bytes(stream: bytes) -> int:
    """Read an answer that comes byte by byte."""
    answer, length = Answer(), 0
    with suppress(HttpError):
        for at in range(len(stream)):
            answer.feed(stream[at : at + 1])
        length = answer.arrived
    return length


HTTP_HEAD = Parser(
    "http_head", LOOP, HEAD_MAX, read_answer, _fields,
    (
        grown("length of a value", "v", _OK + "X: ", "\r\n\r\n"),
        grown("length of a name", "n", _OK, ": v\r\n\r\n"),
        grown("length of the reason", "r", "HTTP/1.1 200 ", "\r\n\r\n"),
        grown("lines of one value", " v\r\n", _OK + "X: v\r\n", "\r\n"),
        grown("fields of one name", "Content-Encoding: gzip\r\n", _OK, "\r\n"),
        grown("lengths", "Content-Length: 0\r\n", _OK, "\r\n"),
        grown("transfer codings", "Transfer-Encoding: identity\r\n", _OK, "\r\n"),
        grown("informational answers", "HTTP/1.1 102 P\r\n\r\n", "", _OK + "\r\n"),
        grown("fields of informational answers", "HTTP/1.1 102 P\r\nA: b\r\n\r\n", "", _OK + "\r\n"),
        Dimension("fields", _many_fields),
        grown("trailers", "X: y\r\n", _CHUNKED + "0\r\n", "\r\n"),
        grown("blank lines before it", "\r\n", "", _OK + "\r\n"),
        grown("odd lines", "odd\r\n", _OK, "\r\n"),
        grown("folds of an odd line", " v\r\n", _OK + "odd\r\n", "\r\n"),
        grown("length of an odd line", "content-", _OK, "\r\n\r\n"),
        grown("blanks before a colon", " ", _OK + "X", ": v\r\n\r\n"),
        grown("blanks before a status", " ", "HTTP/1.1 ", "200 OK\r\n\r\n"),
        grown("carriage returns", "\r", _OK + "X: v", "\n\r\n"),
        grown("members of a length", "0,", _OK + "Content-Length: ", "0\r\n\r\n"),
        grown("digits of a length", "0", _OK + "Content-Length: 0,", "x\r\n\r\n"),
        grown("members of a transfer coding", "chunked,", _OK + "Transfer-Encoding: ", "chunked\r\n\r\n0\r\n\r\n"),
        Dimension("lengths and their members", _lengths),
    ),
)  # fmt: skip

HTTP_BODY = Parser(
    "http_body", LOOP, READ, read_answer_to_its_taker, _body,
    (
        grown("chunks of one byte", "1\r\nx\r\n", _CHUNKED),
        grown("chunks of two bytes", "2\r\nxy\r\n", _CHUNKED),
        grown("chunks of sixteen bytes", "10\r\n0123456789abcdef\r\n", _CHUNKED),
        grown("chunk extensions", "4;a=b;c=d\r\nbody\r\n", _CHUNKED),
        grown("length of an extension", "e", _CHUNKED + "4;a=", "\r\nbody\r\n"),
        grown("digits of a chunk's size", "0", _CHUNKED, "4\r\nbody\r\n0\r\n\r\n"),
        grown("digits of a size behind much data", "0", _CHUNKED + "10000\r\n" + "x" * 65536 + "\r\n", "g\r\n"),
        grown("chunks with bare LF", "1\nx\n", _CHUNKED),
        grown("blanks behind a size", "4" + " " * 9000 + "\r\nbody\r\n", _CHUNKED),
        grown("empty extensions", "1;\r\nx\r\n", _CHUNKED),
        grown("odd trailers", "odd\r\n", _CHUNKED + "0\r\n"),
        grown("bytes behind the length", "x", _OK + "Content-Length: 1\r\n\r\n"),
    ),
    start=64_000,
    fair_cpu=30e-9,  # a chunk of one byte is some calls for each four bytes
)  # fmt: skip

HTTP_BY_BYTES = Parser(
    "http_by_bytes", LOOP, HEAD_MAX, by_bytes, lambda n: (_OK + "X: ").encode() + b"x" * n,
    (
        grown("odd lines", "odd\r\n", _OK, "\r\n"), grown("carriage returns", "\n\r\r", _OK),
        grown("blank lines before it", "\r\n", "", _OK + "\r\n"),
        grown("chunks of one byte", "1\r\nx\r\n", _CHUNKED), grown("one chunk line", "0", _CHUNKED),
        grown("extensions", "1;" + "x" * 9000 + "\nx\n", _CHUNKED), grown("trailers", "X: y\r\n", _CHUNKED + "0\r\n"),
    ),
)  # fmt: skip


_HERE = HttpUrl.parse("http://h.example/x")


def read_fields(fields: list[tuple[bytes, bytes]]) -> object:
    """Read what fields of an answer say, on both ways of a crawl."""
    answer = answer_of(200, "http://h/", fields, "HTTP/1.1 200 OK", "192.0.2.1")
    headers = Headers(fields)
    values = [value.decode("latin-1") for _, value in fields]
    for value in values:
        served_mimetype(value)
        retry_after_seconds(value, "Sat, 21 Nov 2026 12:00:00 GMT", 0)
        retry_after_seconds("Sat, 21 Nov 2026 12:00:00 GMT", value, 0)
        epoch_of_date(value)
        encoding_of(value)
        with suppress(UrlRefused):
            redirect(value.encode("latin-1"), _HERE)
    Cookies().take(_HERE, fields, 0)
    robots_meta.of_headers(
        [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields], "lcc"
    )
    responsetypes.from_args(headers=headers, url="http://h/", body=b"")
    return answer


def one_field(name: str, field: str, unit: str, head: str = "", tail: str = "") -> Dimension:
    """Return a dimension in which the value of one field grows."""
    made = grown(name, unit, head, tail)
    return Dimension(f"{field}: {name}", lambda n: [(field.encode(), made.make(n))])


def lines_of(field: str, value: str) -> Dimension:
    """Return a dimension in which one field comes in more and more lines."""
    return Dimension(
        f"{field}: lines",
        lambda n: [(field.encode(), value.encode())] * max(1, min(FIELDS_MAX, n // (len(field + value) + 4))),
    )


FIELDS = Parser(
    "http_fields", LOOP, HEAD_MAX, read_fields,
    lambda n: [(b"X-Field-%d" % number, b"value " * max(1, n // 96)) for number in range(16)],
    (
        one_field("parameters", "Content-Type", "; a=b", "text/html"),
        one_field("charsets", "Content-Type", "; charset=x", "text/html"),
        one_field("charset's length", "Content-Type", "x", "text/html; charset="),
        one_field("length", "Content-Type", "t"),
        one_field("blanks", "Content-Type", " ", "text/html", ";"),
        one_field("types", "Content-Type", "text/html, "),
        one_field("quotes", "Content-Type", '";"', "text/html; charset="),
        one_field("backslashes", "Content-Type", "\\", 'text/html; charset="'),
        one_field("parameters", "Content-Disposition", "; filename=x", "attachment"),
        one_field("length of a name", "Content-Disposition", "x.", "attachment; filename="),
        one_field("digits", "Retry-After", "9"),
        one_field("words", "Retry-After", "Sat, "),
        one_field("signs", "Retry-After", "+", "Sat, 21 Nov 2026 12:00:00 "),
        one_field("digits of a zone", "Last-Modified", "1", "Sat, 21 Nov 2026 12:00:00 +"),
        one_field("colons", "Last-Modified", "1:", "Sat, 21 Nov 2026 "),
        one_field("hyphens", "Last-Modified", "1-"),
        one_field("parentheses", "Last-Modified", "("),
        one_field("dot segments", "Location", "a/../"),
        one_field("backslashes", "Location", "\\"),
        one_field("blanks", "Location", "\t", "a"),
        one_field("signs", "Location", "@", "http://"),
        one_field("octets", "Location", "%C3", "http://h/?"),
        one_field("octets of a host", "Location", "%C3%9F", "http://"),
        one_field("labels", "Location", "%C3%9F.", "http://"),
        one_field("blanks", "Set-Cookie", " ", "a= ", "\xe9"),
        one_field("octets", "Set-Cookie", "a", 'a="', "\xe9"),
        one_field("attributes", "Set-Cookie", "; path=/", "a=b"),
        one_field("slashes", "Set-Cookie", "/", "a=b; path=/"),
        one_field("words of a date", "Set-Cookie", "Sat, ", "a=b; expires="),
        one_field("words", "X-Robots-Tag", "noindex, "),
        one_field("names", "X-Robots-Tag", "a: b, "),
        lines_of("X-Robots-Tag", "noindex"),
        lines_of("Content-Type", "text/html"),
        lines_of("Set-Cookie", "a=b; path=/"),
    ),
)  # fmt: skip


# --- contents ------------------------------------------------------------------------------------


def reading(coding: str) -> Callable[[bytes], int]:
    """Return what decodes a body as it arrives."""

    def read(body: bytes) -> int:
        work, length = decoder(coding), 0
        try:
            for at in range(0, len(body), READ):
                length += sum(map(len, work.feed(body[at : at + READ])))
        except BadCoding:
            pass
        return length

    return read


_TEXT = b"".join(b"%d bottles of beer on the wall, " % (number * 7919 % 9973) for number in range(4000))


def _text(n: int) -> bytes:
    return (_TEXT * (n // len(_TEXT) + 1))[:n]


def _flushed(n: int, mode: int) -> bytes:
    work = zlib.compressobj(wbits=31)
    return b"".join((work.compress(b"x"), *(work.flush(mode) for _ in range(n // 5)), work.flush()))


def _dynamic_blocks(n: int) -> bytes:
    """Return deflated blocks that each bring tables of their own for a few bytes."""
    work, made, number = zlib.compressobj(9, wbits=31), bytearray(), 0
    while len(made) < n:
        made += work.compress(bytes(range(97, 123)) + b"%d" % number + b"etaoin shrdlu" * 3)
        made += work.flush(zlib.Z_FULL_FLUSH)
        number += 1
    return bytes(made + work.flush())


def _brotli_blocks(n: int) -> bytes:
    work, made = brotli.Compressor(quality=1), bytearray()
    while len(made) < n // 2:
        made += work.process(b"abcdefgh" * 2)
        made += work.flush()
    return bytes(made + work.finish())


def coded(name: str, harmless: Callable[[int], bytes], *dimensions: Dimension, start: int = 64_000) -> Parser:
    """Return the parser of one content coding; sizes are those of coded and decoded bytes together."""
    return Parser(f"coding_{name}", LOOP, 1 << 62, reading(name), harmless, dimensions, start=start)


def members(name: str, member: bytes, decoded: int) -> Dimension:
    """Return a dimension in which a body has more and more parts."""
    return Dimension(name, lambda n: member * max(1, n // (len(member) + decoded)))


_KILO, _SMALL = b"\0" * 1025, b"x" * 16
_ZSTD_WINDOW = {zstd.CompressionParameter.window_log: 23, zstd.CompressionParameter.content_size_flag: 0}
CODINGS = (
    coded(
        "gzip", lambda n: gzip.compress(_text(n * 3 // 4)),
        members("members of nothing", gzip.compress(b""), 0),
        members("members of a kilobyte", gzip.compress(_KILO), len(_KILO)),
        members("members of sixteen bytes", gzip.compress(_SMALL), len(_SMALL)),
        Dimension("ratio", lambda n: gzip.compress(b"\0" * n)),
        Dimension("empty blocks", lambda n: _flushed(n, zlib.Z_SYNC_FLUSH)),
        Dimension("tables", _dynamic_blocks),
        grown("length of a name", "n", b"\x1f\x8b\x08\x08\0\0\0\0\0\xff", b"\0\x03\0" + b"\0" * 8),
        start=1_000_000,
    ),
    coded(
        "deflate", lambda n: zlib.compress(_text(n * 3 // 4)),
        Dimension("ratio", lambda n: zlib.compress(b"\0" * n)),
        Dimension("what stands behind the end", lambda n: zlib.compress(b"x") + b"y" * n),
        start=1_000_000,
    ),
    coded(
        "br", lambda n: brotli.compress(_text(n * 3 // 4), quality=5),
        Dimension("ratio", lambda n: brotli.compress(b"\0" * n, quality=5)),
        Dimension("what stands behind the end", lambda n: brotli.compress(b"x") + b"y" * n),
        Dimension("flushed blocks", _brotli_blocks),
        start=1_000_000,
    ),
    coded(
        "zstd", lambda n: zstd.compress(_text(n * 3 // 4)),
        members("frames of nothing", zstd.compress(b""), 0),
        members("frames to be skipped", b"\x50\x2a\x4d\x18\0\0\0\0", 0),
        members("frames of a kilobyte", zstd.compress(_KILO), len(_KILO)),
        members("frames with a large window", zstd.compress(_KILO, options=_ZSTD_WINDOW), len(_KILO)),
        Dimension("ratio", lambda n: zstd.compress(b"\0" * n)),
        start=1_000_000,
    ),
)  # fmt: skip


# --- pages ---------------------------------------------------------------------------------------

RULES = LinkRules(
    ignore=IgnoreList.parse([".mp4", ".zip", "ads.example.org", "/*a*b*c*d*e$"]), strip=frozenset({"sid"})
)
ROOTS = (Root.parse("http://www.example.org/"), Root.parse("http://h/a/b/"))
_PAGE_URL = "http://www.example.org/dir/a.html"


def read_links(page: bytes) -> object:
    """Read the links of a page, as a spider does."""
    found = read_page(page, _PAGE_URL, "text/html", "utf-8", (), RULES)
    return [fetch_url(link.url, ROOTS) for link in found.links]


def _article(n: int) -> bytes:
    unit = (
        "<p>Some words of an article with <a href='page%d.html?a=b'>a link</a> and <b>more</b> words.</p>\n"
    )
    text = "".join(unit % number for number in range(max(1, n // 98)))
    return f"<html><body>{text}</body></html>".encode()


def _pairs(n: int) -> bytes:
    half = n // 2
    return b"<b>" * (half // 3) + b"</i>" * (half // 4)


def _invented(n: int, form: str) -> bytes:
    return "".join(form % number for number in range(n // (len(form) + 3))).encode()


def _wrapped_names(n: int) -> bytes:
    return b"<a " + _invented(n - 20, "a%d ") + b">x</a>"


def _depth_times_attributes(n: int) -> bytes:
    return "".join(f"<div id='{'x' * 200}' a{number}=b>" for number in range(n // 220)).encode()


HTML = Parser(
    "html_links", READERS, RULES.longest, read_links, _article,
    (
        grown("one text", "word ", "<p>"),
        grown("opened tags", "<b>"),
        grown("opened blocks", "<div>"),
        grown("opened paragraphs", "<p>"),
        grown("opened lists", "<ul><li>"),
        grown("opened tables", "<table><tr><td>"),
        grown("closed tags that were never opened", "</b>"),
        Dimension("opened tags times others closed", _pairs),
        grown("formatting times blocks", "<b><p>"),
        grown("less-than signs", "<"),
        grown("ampersands", "&"),
        grown("references", "&amp;"),
        grown("references without an end", "&#x41"),
        grown("unknown references", "&nosuch;"),
        grown("comments", "<!---->"),
        grown("one comment", "-", "<!--"),
        grown("declarations", "<!x>"),
        grown("processing instructions", "<?x>"),
        grown("zero bytes", b"\0"),
        grown("line ends", "\n"),
        grown("bytes that are no UTF-8", b"\xff"),
        grown("attributes of one name", "a ", "<a ", ">"),
        Dimension("attributes of one tag", _wrapped_names),
        Dimension("names of attributes", lambda n: _invented(n, "<a b%d=c>")),
        Dimension("names of elements", lambda n: _invented(n, "<x%d>")),
        Dimension("depth times attributes", _depth_times_attributes),
        grown("length of an attribute", "x", "<a href='", "'>x</a>"),
        grown("length of a name", "x", "<", ">"),
        grown("blanks in a tag", " ", "<a ", "href=x>x</a>"),
        grown("references in an attribute", "&amp;", "<a href='", "'>x</a>"),
        grown("length of a script", "x<y;", "<script>", "</script>"),
        grown("scripts", "<script></script>"),
        grown("half-ended scripts", "</scrip", "<script>"),
        grown("bases", "<base href='x/'>"),
        grown("length of a base, with links", "<a href='x'>x</a>", "<base href='" + "x/" * 900 + "'>"),
        grown("equal links", "<a href='x'>x</a>"),
        grown("length of links", "<a href='" + "x/" * 1000 + "'>x</a>"),
        grown("dot segments", "<a href='" + "../x/" * 400 + "'>x</a>"),
        Dimension("encoded links", lambda n: _invented(n, "<a href='" + "%%41%%e4" * 300 + "/%d'>x</a>")),
        Dimension("dots in names", lambda n: _invented(n, "<a href='/" + ".a" * 900 + "%d'>x</a>")),
        Dimension("parameters", lambda n: _invented(n, "<a href='?" + "a&" * 900 + "%d'>x</a>")),
        Dimension("hosts", lambda n: _invented(n, "<a href='http://" + "a." * 900 + "%d/'>x</a>")),
        Dimension("hosts not in ASCII", lambda n: _invented(n, "<a href='http://" + "\xe4" * 500 + "%d/'>x</a>")),
        Dimension("labels not in ASCII", lambda n: _invented(n, "<a href='http://" + "\xe4." * 300 + "%d/'>x</a>")),
        Dimension("links not in ASCII", lambda n: _invented(n, "<a href='" + "\u4e2d" * 300 + "%d'>x</a>")),
        Dimension("backslashes", lambda n: _invented(n, "<a href='" + "\\\\" * 300 + "%d'>x</a>")),
        grown("candidates of images", "x 1x, ", "<img srcset='", "'>"),
        grown("commas of candidates", ",", "<img srcset='", "'>"),
        grown("words of a relation", "next ", "<link rel='", "' href=x>"),
        grown("words of robots", "none,", "<meta name=robots content='", "'>"),
        grown("robots", "<meta name=robots content=none>"),
        grown("length of a refresh", " ", "<meta http-equiv=refresh content='1", "x'>"),
        grown("refreshes", "<meta http-equiv=refresh content='1;url=x'>"),
        grown("charsets", "<meta charset=x>"),
        grown("plaintext", "<plaintext>"),
        grown("selects", "<select><option>"),
        grown("forms", "<form>"),
        grown("heads", "<head>"),
        grown("bodies", "<body a=b>"),
        grown("framesets", "<frameset>"),
    ),
    start=60_000, resident=True,
)  # fmt: skip


def read_urls(urls: list[str]) -> int:
    """Read links one by one, without the page around them."""
    kept = 0
    for url in urls:
        try:
            kept += bool(fetch_url(canonical(url, _PAGE_URL, "utf-8", RULES.strip), ROOTS))
            RULES.ignore.covers(url)
        except UrlRefused:
            pass
    return kept


def long_urls(name: str, head: str, unit: str, tail: str = "") -> Dimension:
    """Return a dimension in which one URL grows, up to the longest."""

    def make(n: int) -> list[str]:
        most = min(n, URL_MAX)
        text = head + unit * ((most - len(head) - len(tail) - 6) // len(unit)) + tail
        return [text + str(number) for number in range(max(1, n // most))]

    return Dimension(name, make)


_H = "http://www.example.org/"
URLS = Parser(
    "urls", LOOP, URL_MAX, read_urls,
    lambda n: [f"http://www.example.org/a/page-{number}.html?id={number}" for number in range(max(1, n // 48))],
    (
        long_urls("length of a path", _H, "x"),
        long_urls("segments", _H, "x/"),
        long_urls("dot segments", _H, "../"),
        long_urls("empty segments", _H, "/"),
        long_urls("dots", _H, "."),
        long_urls("endings", _H, ".a"),
        long_urls("percent signs", _H, "%"),
        long_urls("percent-encodings", _H, "%41"),
        long_urls("encoded dots", _H, "%2e/"),
        long_urls("parameters of a path", _H, ";a=b"),
        long_urls("parameters", _H + "?", "a=b&"),
        long_urls("stripped parameters", _H + "?", "sid=b&"),
        long_urls("question marks", _H, "?"),
        long_urls("fragments", _H, "#"),
        long_urls("not ASCII", _H, "\u4e2d"),
        long_urls("backslashes", _H, "\\"),
        long_urls("blanks", _H, " "),
        long_urls("line ends", _H, "\n"),
        long_urls("blanks before it", "", " ", _H),
        long_urls("host", "http://", "a", "/"),
        long_urls("labels", "http://", "a.", "b/"),
        long_urls("host not ASCII", "http://", "\xe4", "/"),
        long_urls("labels not ASCII", "http://", "\xe4.", "b/"),
        long_urls("host to be composed", "http://", "a\u0301\u0328", "/"),
        long_urls("user name", "http://", "a:", "@h/"),
        long_urls("digits of an address", "http://", "1.", "/"),
        long_urls("address in brackets", "http://[", "1:", "]/"),
        long_urls("digits of a port", "http://h:", "1", "/"),
        long_urls("scheme", "", "http:", "//h/"),
        long_urls("stars", _H, "*a*b*c"),
    ),
)  # fmt: skip


# --- texts ---------------------------------------------------------------------------------------


def read_text(page: bytes) -> object:
    """Read a page as an indexer does."""
    return text_of_html(page.decode("utf-8", "replace"))


TEXT = Parser(
    "plain_text", INDEXERS, MOST, read_text, _article,
    (
        grown("less-than signs", "<"), grown("opened tags", "<b>"), grown("tags without an end", "<a "),
        grown("comments without an end", "<!--"), grown("half ends of comments", "-->", "<!--"),
        grown("scripts without an end", "<script>"), grown("scripts closed wrongly", "</scriptx", "<script>"),
        grown("titles", "<title>x</title>"), grown("titles without an end", "<title>"),
        grown("quotes", "='", "<a "), grown("equals signs", "=", "<a "), grown("equals and blanks", "=  ", "<a "),
        grown("quotes closed", "=''", "<a ", ">"), grown("blanks in a tag", " ", "<a "),
        grown("declarations", "<!"), grown("instructions", "<?"), grown("closing", "</"),
        grown("ampersands", "&"), grown("long references", "&nosuchreferenceatallinanytableofthem"),
        grown("numbers", "&#9"), grown("one number", "9", "&#", ";"), grown("one hexadecimal number", "f", "&#x", ";"),
        grown("numbers of seven digits", "&#1234567;"), grown("references", "&amp;"),
        grown("controls", "\x01"), grown("blanks", " "),
    ),
)  # fmt: skip


def read_charsets(pages: list[tuple[str, bytes]]) -> int:
    """Decode pages, each in the charset that its site says."""
    read = 0
    for charset, page in pages:
        encoding = encoding_of_text(page, charset, "text/html")
        text = decoded(page, encoding)
        read += len(text) + len(query_in(encoding, text[: len(text) // 10]))
    return read


def _all_encodings() -> Iterator[str]:
    from encodings.aliases import aliases

    from webencodings.labels import LABELS

    names = {*aliases.values(), *aliases, *LABELS, "utf-8-sig", "unicode_internal", "utf-32"}
    return iter(sorted({encoding for name in names if (encoding := encoding_of(name))}))


def _in_each(what: str, unit: bytes) -> Dimension:
    """Return a dimension in which there is a page of equal parts in each charset."""
    names = tuple(_all_encodings())
    return Dimension(
        f"{what} in each charset",
        lambda n: [(name, unit * (n // len(unit) // len(names))) for name in names],
    )


_CONTENT_TYPE = b"<meta http-equiv=content-type content='"

CHARSETS = Parser(
    "charsets", READERS, RULES.longest, read_charsets, lambda n: [("utf-8", "caf\xe9 ".encode() * (n // 6))],
    (
        _in_each("bytes ff", b"\xff"),
        _in_each("bytes 80", b"\x80"),
        _in_each("escapes", b"\x1b"),
        _in_each("escapes of a set", b"\x1b$B\x80"),
        _in_each("zeros", b"\0"),
        _in_each("tildes", b"~{\x81"),
        _in_each("half characters", b"\x81\x30"), _in_each("what Python has none for", b"\xad\xa1\xa3\xc0 "),
        Dimension("bytes ff in GB18030", lambda n: [("gb18030", b"\xff" * n)]),
        Dimension("escapes in ISO-2022-JP", lambda n: [("iso-2022-jp", b"\x1b$B0" * (n // 4))]),
        *(
            Dimension(f"{unit!r}", lambda n, unit=unit: [("", unit * (n // len(unit)) + b"charset")])
            for unit in (b"<!--", b"<script>", b"<", b"<meta a=' ", b"<meta a ", b"<title x='></title")
        ),
        Dimension("words of a declaration", lambda n: [("", _CONTENT_TYPE + b"charset " * (n // 8))]),
        Dimension("declarations", lambda n: [("", b"<meta charset=" * (n // 14))]),
        Dimension("blanks of a declaration", lambda n: [("", b"<meta " + b" " * n)]),
        Dimension("declarations in XML", lambda n: [("", b"<?xml encoding='" * (n // 16))]),
        Dimension("length of a name", lambda n: [("x" * n, b"text")]),
        Dimension("hyphens of a name", lambda n: [("-_ " * (n // 3), b"text")]),
    ),
    start=250_000,
)  # fmt: skip

PARSERS = (HTTP_HEAD, HTTP_BODY, HTTP_BY_BYTES, FIELDS, *CODINGS, HTML, URLS, TEXT, CHARSETS)
