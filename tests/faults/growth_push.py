"""What reads the answers of web servers in ``lcc-push``, and the ways in which these can grow."""

import gzip

from lcc_scrapy.push.http_reader import HttpReader, NotHttp
from lcc_scrapy.push.sitemap import DOCUMENT_MAX, NotASitemap, SitemapReader
from tests.faults.growth import Dimension, Parser, grown

COMMAND = "process of a command"
PIECE = 65_536


def reading_answer(size: int):
    """Return what reads an HTTP answer in pieces of some bytes."""

    def read(data: bytes) -> int:
        reader, count = HttpReader(), 0
        try:
            for at in range(0, len(data), size):
                count += len(reader.feed(data[at : at + size]))
        except NotHttp:
            pass
        return count

    return read


def read_sitemap(data: bytes) -> int:
    """Read a sitemap as it comes."""
    reader, count = SitemapReader(), 0
    try:
        for at in range(0, len(data), PIECE):
            count += len(reader.feed(data[at : at + PIECE]))
    except NotASitemap:
        pass
    return count


_OK = "HTTP/1.1 200 OK\r\n"
_CHUNKED = _OK + "Transfer-Encoding: chunked\r\n\r\n"
_HEADERS = (
    grown("chunks of a byte", "1\r\nx\r\n", _CHUNKED), grown("blanks of a size", " ", _CHUNKED),
    grown("extensions", "1;" + "x" * 9000 + "\r\nx\r\n", _CHUNKED), grown("headers", "a: b\r\n", _OK),
    grown("one header", "x", _OK + "a: "), grown("interim answers", "HTTP/1.1 100 Continue\r\n\r\n"),
    grown("trailers", "a: b\r\n", _CHUNKED + "0\r\n"), grown("digits of a length", "1", _OK + "Content-Length: "),
)  # fmt: skip
ANSWER = Parser(
    "http_answer", COMMAND, 1 << 62, reading_answer(PIECE), lambda n: (_OK + "\r\n").encode() + b"x" * n, _HEADERS,
    start=64_000,
)  # fmt: skip
ANSWER_BY_BYTES = Parser(
    "http_answer_by_bytes", COMMAND, 1 << 62, reading_answer(1), lambda n: (_OK + "\r\n").encode() + b"x" * n, _HEADERS,
    start=16_000,
)  # fmt: skip

_SET = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
_ENTRY = "<url><loc>http://h/page.html</loc><lastmod>2024-05-01T00:00:00Z</lastmod></url>"
SITEMAP = Parser(
    "sitemap", COMMAND, DOCUMENT_MAX, read_sitemap, lambda n: (_SET + _ENTRY * max(1, n // len(_ENTRY))).encode(),
    (
        grown("comments", "<!---->", _SET), grown("one comment", "x", _SET + "<!--"), grown("nesting", "<x>", _SET),
        grown("text", "x", f"{_SET}<url><loc>"), grown("references", "&amp;", f"{_SET}<url><loc>"),
        grown("ampersands", "&", f"{_SET}<url><loc>"), grown("ampersands in CDATA", "&", f"{_SET}<url><loc><![CDATA["),
        grown("beginnings of CDATA", "<![", f"{_SET}<!--"), grown("entities of HTML", "&eacute;", f"{_SET}<url><loc>"),
        grown("a declaration", " ", "<?xml version='1.0'"), grown("a label", "x", "<?xml version='1.0' encoding='"),
        Dimension("another encoding", lambda n: f"<?xml version='1.0' encoding='gbk'?>{_SET}<!--{'文' * (n // 2)}".encode("gbk")),
        grown("empty entries", "<url/>", _SET), grown("locs of one entry", "<loc>http://h/</loc>", _SET + "<url>"),
        grown("digits of a date", f"<url><lastmod>{'1' * 7000}</lastmod></url>", _SET),
        grown("blanks of a loc", f"<url><loc>{' ' * 7000}</loc></url>", _SET),
        grown("attributes", "<url " + " ".join(f"a{n}='b'" for n in range(5000)) + "/>", _SET),
        Dimension("names", lambda n: (_SET + "".join(f"<x{number}/>" for number in range(n // 9))).encode()),
        Dimension("packed", lambda n: gzip.compress(b"<urlset>" + b"<url/>" * (n // 6))),
    ),
    start=64_000,
)  # fmt: skip

PARSERS = (ANSWER, ANSWER_BY_BYTES, SITEMAP)
