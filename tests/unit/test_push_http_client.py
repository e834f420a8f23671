"""HTTP answers and sitemaps, cut wherever they may be."""

import gzip
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.push.http_push import HttpServer
from lcc_scrapy.push.http_reader import HttpReader, NotHttp
from lcc_scrapy.push.logins import LoginRecord
from lcc_scrapy.push.sitemap import Entry, SitemapReader, modified
from lcc_scrapy.push.web import HttpUrl
from lcc_scrapy.wire.messages import InitAccepted, Quota

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\nX: y\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: u\r\n\r\n"
LENGTH = b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nabcde"
SITEMAP = (
    b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:i="http://i/">'
    b"<url><loc> http://h/a?b&amp;c </loc><lastmod>1970-01-02</lastmod><i:image><i:loc>http://h/i</i:loc></i:image></url>"
    b"<url><loc>ftp://h/</loc></url><url><loc>https://h/b</loc></url></urlset>"
)


def pieces(data, cuts):
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[begin:end] for begin, end in pairwise(places) if begin != end]


@given(st.lists(st.integers(0, 10_000)), st.sampled_from([CHUNKED, LENGTH]))
def test_an_answer_is_the_same_however_it_is_cut(cuts, data):
    reader = HttpReader()
    assert b"".join(reader.feed(piece) for piece in pieces(data, cuts)) == b"abcde"
    assert (reader.status, reader.complete) == (200, True)


def test_an_answer_without_a_length_ends_with_its_connection():
    reader = HttpReader()
    assert reader.feed(OK + b"\r\nabc") == b"abc"
    assert not reader.complete
    assert reader.feed(b"") == b""
    assert reader.complete


@pytest.mark.parametrize("data", [OK + b"Content-Length: 5\r\n\r\nabc", CHUNKED[:-9], OK])
def test_an_answer_that_is_cut_short_is_not_complete(data):
    reader = HttpReader()
    reader.feed(data)
    reader.feed(b"")
    assert not reader.complete


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 OK\r\n", b"x" * 20_000, OK + b"a: b\r\n" * 20_000,
        OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 16 + b"\r\n",
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused(data):
    with pytest.raises(NotHttp):
        HttpReader().feed(data)


@given(st.lists(st.integers(0, 10_000)), st.booleans())
def test_a_sitemap_is_the_same_however_it_is_cut(cuts, packed):
    reader = SitemapReader()
    data = gzip.compress(SITEMAP) if packed else SITEMAP
    found = [entry for piece in pieces(data, cuts) for entry in reader.feed(piece)]
    reader.finish()
    assert found == [Entry("http://h/a?b&c", 86_400), Entry("https://h/b")]
    assert (reader.dropped, reader.is_index) == (1, False)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970", 0), ("1970-02", 31 * 86_400), ("1970-01-01T01:00Z", 3600), ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00.5-00:30", 1800), ("1970-13-01", None), ("yesterday", None), ("", None),
        ("2024-02-30", None),
    ],
)  # fmt: skip
def test_dates_of_the_w3c_are_read(text, seconds):
    assert modified(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "https://h:0/",
        "https://h:99999/",
        "https://u:p@h/",
        "https://",
        "https:///x",
        "ftp://h/",
        "https://h/a b",
        "https://h\n/",
    ],
)
def test_no_other_urls_are_asked(text):
    with pytest.raises(ValueError):
        HttpUrl.parse(text)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://h/", "https://h/v1/push"),
        ("https://h", "https://h/v1/push"),
        ("https://h:8443/lcc/", "https://h:8443/lcc/v1/push"),
        ("https://[::1]/v1/push", "https://[::1]/v1/push"),
    ],
)
def test_the_push_endpoint_lies_below_the_server(text, url):
    assert str(HttpServer.parse(text)) == url


def accepted(seq, lcc="one"):
    return InitAccepted(seq, "", (), Quota(), lcc_id=lcc)


def test_logins_that_nobody_here_began_are_counted(tmp_path):
    record = LoginRecord(tmp_path / "login")
    record.begin()
    assert record.answered(accepted(5)) == 0
    record.begin()
    assert record.answered(accepted(6)) == 0
    record.begin(2)
    record.begin()
    assert record.answered(accepted(9)) == 0
    record.begin()
    assert record.answered(accepted(12)) == 2
    record.begin()
    assert record.answered(accepted(1, "two")) == 0
    (tmp_path / "login").write_text('{"seq": "x"')
    assert record.answered(accepted(9)) == 0
