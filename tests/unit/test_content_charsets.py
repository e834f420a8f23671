"""Which codecs pages may be in."""

import pytest

from lcc_scrapy.content.charsets import codec_of


@pytest.mark.parametrize(
    ("name", "codec"), [("UTF8", "utf-8"), ("latin1", "cp1252"), ("Shift_JIS", "cp932"), ("koi8-r", "koi8-r")]
)
def test_a_charset_is_read_as_browsers_read_it(name, codec):
    assert codec_of(name) == codec


@pytest.mark.parametrize(
    "name",
    [
        *("", None, "martian", "zlib", "rot13", "idna", "punycode", "undefined", "utf-7"),
        *(
            "unicode_escape",
            "unicode-escape",
            "Raw-Unicode-Escape",
            "raw_unicode_escape",
            "x" * 10_000,
            "a\0b",
        ),
    ],
)
def test_what_no_page_is_in_is_no_charset(name):
    assert codec_of(name) == ""


def test_utf_16_without_a_byte_order_mark_is_little_endian() -> None:
    assert codec_of("utf-16") == "utf-16-le"
    assert codec_of("utf-32") == "utf-32-le"
