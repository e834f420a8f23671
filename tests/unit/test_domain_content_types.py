"""The Content-Type of an answer as browsers read it (Fetch and MIME Sniffing)."""

import pytest

from lcc_scrapy.domain.content_types import content_type, type_of


@pytest.mark.parametrize(
    ("said", "mimetype", "charset"),
    [
        ("text/html", "text/html", ""),
        ("TEXT/HTML;CHARSET=utf-8", "text/html", "utf-8"),
        (" text/html ; charset=utf-8 ", "text/html", "utf-8"),
        ("text/html;charset=utf-8; charset=koi8-r", "text/html", "utf-8"),
        ("text/html;charset=", "text/html", ""),
        ("text/html;charset=;charset=koi8-r", "text/html", "koi8-r"),
        ('text/html;charset="utf-8"', "text/html", "utf-8"),
        ('text/html;charset="utf-8"x; a=b', "text/html", "utf-8"),
        ('text/html;charset="u\\tf-8"', "text/html", "utf-8"),
        ('text/html;charset="utf-8', "text/html", "utf-8"),
        ('text/html;charset="x\\', "text/html", "x\\"),
        ('text/html;charset="a\\"', "text/html", 'a"'),
        ("text/html;charset='utf-8'", "text/html", "'utf-8'"),
        ("text/html;charset =utf-8", "text/html", ""),
        ("text/html;charset= utf-8", "text/html", " utf-8"),
        ("text/html;;;;charset=utf-8", "text/html", "utf-8"),
        ("text/html;x;charset=utf-8", "text/html", "utf-8"),
        ("text/html;charset=\x01;charset=utf-8", "text/html", "utf-8"),
        ('text/html;a=";charset=koi8-r";charset=utf-8', "text/html", "utf-8"),
        ("text/plain, text/html", "text/html", ""),
        ("text/html;charset=koi8-r, text/html", "text/html", "koi8-r"),
        ("text/html;charset=koi8-r, text/html;charset=utf-8", "text/html", "utf-8"),
        ("text/html;charset=koi8-r, text/plain", "text/plain", ""),
        ("text/html;charset=koi8-r, text/plain, text/html", "text/html", ""),
        ("text/html, */*", "text/html", ""),
        ("text/html;charset=koi8-r, */*;charset=utf-8", "text/html", "koi8-r"),
        ("text/html, nonsense", "text/html", ""),
        ("text/html,", "text/html", ""),
        (",text/html", "text/html", ""),
        ('text/html;x=",text/plain", text/css', "text/css", ""),
        ('text/html;x=", text/css', "text/html", ""),
        ("application/octet-stream", "application/octet-stream", ""),
        ("x/y%", "x/y%", ""),
    ],
)
def test_a_type_is_read_as_by_browsers(said: str, mimetype: str, charset: str) -> None:
    assert content_type(said) == (mimetype, charset)
    assert content_type(f"{said};{'x' * 300}" if '"' not in said and "," not in said else said)[0] == mimetype


@pytest.mark.parametrize(
    "said",
    [
        *("", " ", ",", "*/*", "nonsense", "text", "text/", "/html", "text/html charset=utf-8", "html"),
        *(
            "text/html (comment); charset=utf-8",
            "(comment) text/html",
            "text /html",
            "text/ html",
            "text/ht ml",
        ),
        *('"text/html"', "text/html\x01", "text/html/x", "té/html", "unknown/unknown", "application/unknown"),
        *("text:html", "text/html=utf-8", "text/(html)", "text/html, unknown/unknown"),
    ],
)
def test_what_cannot_be_parsed_counts_as_none(said: str) -> None:
    assert content_type(said) == ("", "")


def test_several_fields_are_one_list() -> None:
    fields = [(b"Content-Type", b"text/plain"), (b"X", b"y"), (b"content-TYPE", b"text/html;charset=x")]
    assert type_of(fields) == ("text/html", "x")
    assert type_of([(b"X", b"text/html")]) == ("", "")
