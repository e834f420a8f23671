"""Text out of pages: every word, whatever the charset, in a time that grows with the length alone."""

import html
import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.feed import plain_text
from lcc_scrapy.feed.plain_text import Text, as_ascii, html_of, text_of_html


def read(data, mimetype="text/html", charset=""):
    page = html_of(io.BytesIO(data), mimetype, charset)
    return None if page is None else text_of_html(page)


def test_title_and_text_of_a_page_without_markup_scripts_and_styles():
    page = b"""<!DOCTYPE html><html><head><TITLE lang=en>One &amp;
      two</TITLE><style>p > a {}</style><script>if (a < b) "</p>"</script></head>
      <body><!-- a <b>comment</b> --><h1>Head</h1>lin<b>k</b>ed<p title="a > b">x &eacute; y<br>z<a href='>'>w</a></body>"""
    assert read(page) == Text("One & two", "Head linked x é y zw")


@pytest.mark.parametrize(
    ("mimetype", "data", "text"),
    [
        ("application/xhtml+xml", b"<p>a</p>", "a"),
        ("text/plain", b"a <b> & c", "a <b> & c"),
        ("application/json", b'{"a": "<i>"}', '{"a": "<i>"}'),
        ("application/rss+xml", b"<item>one</item><item>two</item>", "one two"),
    ],
)
def test_other_texts_are_read_by_their_kind(mimetype, data, text):
    assert read(data, mimetype).text == text


@pytest.mark.parametrize("mimetype", ["image/png", "application/pdf", "", "*/*", "text"])
def test_what_is_no_text_has_none(mimetype):
    assert read(b"x", mimetype) is None


@pytest.mark.parametrize(
    ("data", "charset"),
    [
        ("é€".encode(), ""),
        ("é€".encode("cp1252"), ""),
        ("é€".encode("iso8859-15"), "ISO-8859-15"),
        ("\ufeffé€".encode(), "iso-8859-1"),
        ("\ufeffé€".encode("utf-16-le"), "utf-8"),
        (b"<meta charset=iso-8859-15>" + "é€".encode("iso8859-15"), ""),
        (b"<meta charset=iso-8859-15>" + "é€".encode(), "utf-8"),
        ("é€".encode(), "no-such-charset"),
        *[("é€".encode(), name) for name in ("zlib", "rot13", "punycode", "idna", "unicode_escape", "undefined")],
        ("é€".encode(), "x" * 10_000),
        ("é€".encode(), "utf-8\0"),
    ],
)  # fmt: skip
def test_a_charset_is_found_as_browsers_find_it(data, charset):
    assert read(data, charset=charset).text == "é€"


def test_a_cut_off_character_at_the_end_is_no_other_charset(monkeypatch):
    monkeypatch.setattr(plain_text, "MOST", 3)
    assert read("éé".encode()).text == "é"


def test_control_characters_and_references_to_them_become_blanks():
    assert read(b"a\0b\x1b[2Jc&#0;d&#x1b;e&#55296;f&#x110000;g").text.split()[0] == "a"
    assert not set(read(b"\0\x01\x0b\x0c\x1f\x7f&#1;&#127;&#xd800;&#xffff;x").text) - set("x �")


@given(st.text(max_size=200))
def test_ascii_with_references_is_the_same_page(page):
    clean = html_of(io.BytesIO(page.encode("utf-8", "replace")), "text/html", "utf-8")
    assert text_of_html(as_ascii(clean).decode("ascii")) == text_of_html(clean)


@given(st.text(max_size=200))
def test_words_of_a_plain_text_are_all_found(text):
    data = text.encode("utf-8", "replace")
    plain = html_of(io.BytesIO(data), "text/plain", "utf-8")
    assert text_of_html(plain).text == " ".join(html.unescape(plain[5:-6]).split())


@given(
    st.binary(max_size=500), st.sampled_from(["text/html", "text/plain", "text/xml"]), st.text(max_size=20)
)
def test_any_bytes_in_any_charset_have_a_text(data, mimetype, charset):
    found = read(data, mimetype, charset)
    assert found.text == " ".join(found.text.split())


HOSTILE = [
    "<p a=1 ", "<div>", "<!--", "<script", "<script>", "<title>", "<", "</", "<!", "&amp", '<p a="', "= ", "<a =' ",
    "&#9999999999", "</script><script>", "'>\"<p a=", "&#", "<a href=\"'\">", "<style>a", "-->", "<meta charset=",
]  # fmt: skip


@pytest.mark.parametrize("piece", [*HOSTILE, "&#" + "9" * 1_000_000])
def test_hostile_markup_takes_no_more_time_than_other_markup(piece):
    data = (piece * (1_000_000 // len(piece) + 1)).encode()
    start = time.process_time()
    read(data)
    assert time.process_time() - start < 5
