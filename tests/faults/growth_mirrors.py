"""What reads index pages of mirrors, and the ways in which these can grow."""

from lcc_scrapy.apps.tracker.http_index import PAGE_BYTES
from lcc_scrapy.apps.tracker.index_pages import NoIndex, read
from tests.faults.growth import Parser, grown

HEAD = "<title>Index of /</title>"
LINE = '<a href="a">a</a> 01-Jan-2020 00:00 5\n'


def _read(body: bytes, mimetype: str = "text/html") -> object:
    try:
        return read(body, mimetype)
    except NoIndex as error:
        return error


INDEX_PAGES = Parser(
    "index pages", "a thread", PAGE_BYTES, _read, grown("entries", LINE, HEAD).make,
    (
        grown("open links", "<a ", HEAD), grown("attributes", " href", HEAD + "<a", ">"), grown("blanks", " ", HEAD + "<a href", ">"),
        grown("a name", "a", HEAD + '<a href="', '">'), grown("references", "&amp;", HEAD + '<a href="', '">'), grown("escapes", "%41", HEAD + '<a href="', '">'),
        grown("text behind a link", "2020-01-01 00:00 ", HEAD + LINE), grown("tags behind a link", "<b", HEAD + LINE), grown("brackets", "<", HEAD + LINE),
        grown("digits", "1", HEAD + '<a href="a">a</a> 01-Jan-2020 00:00 '), grown("blanks behind a date", " ", HEAD + '<a href="a">a</a> 01-Jan-2020 00:00'),
        grown("a title without end", " ", "<title>"), grown("titles", "<title>", ""), grown("quotes", '"', HEAD + "<a href="),
    ),
)  # fmt: skip
INDEX_JSON = Parser(
    "index pages in JSON", "a thread", PAGE_BYTES, lambda body: _read(body, "application/json"),
    grown("entries", '{"name":"a","type":"file","mtime":"t","size":5},', "[", '{"name":"b","type":"other"}]').make,
    (grown("brackets", "["), grown("a number", "1", "[", "]"), grown("a key many times", '"name":"a",', "[{", '"type":"file","size":1}]')),
)  # fmt: skip
PARSERS = (INDEX_PAGES, INDEX_JSON)
