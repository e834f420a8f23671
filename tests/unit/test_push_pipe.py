"""The lines between the stages."""

import io
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.push import pipe
from lcc_scrapy.push.command import Stop
from lcc_scrapy.wire.messages import Url

XML_TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
)
VALUES = st.one_of(XML_TEXT, st.text("\t\n\r <>&'\"\x85\u2028"))
NAMES = st.sampled_from(["curl", "mimetype", "burl", "furl", "md5", "len", "mtime", "subtype", "x"])
URLS = st.builds(Url, st.dictionaries(NAMES, VALUES))
LINES = st.one_of(
    URLS,
    st.builds(pipe.Keep, VALUES.filter(bool), VALUES),
    st.builds(pipe.HandOver, VALUES.filter(bool), VALUES.filter(bool), st.booleans()),
    st.builds(pipe.End, st.integers(0, 10**12), st.booleans()),
)


def reading(text: bytes) -> pipe.Reading:
    return pipe.Reading(io.BytesIO(text))


@given(LINES)
def test_every_line_reads_back_as_it_was_written(line):
    raw = pipe.write(line)
    assert raw.endswith(b"\n")
    assert raw.count(b"\n") == 1
    assert pipe.parse(raw[:-1]) == line


@given(st.binary(max_size=200))
def test_any_other_bytes_are_a_bad_line_and_nothing_else(raw):
    with suppress(pipe.BadLine):
        pipe.parse(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"docroot/a.html",
        b'<url curl="a"',
        b'<url curl="a" curl="b"/>',
        b'<url c="a" curl="b"/>',
        b"<url>text</url>",
        b'<url curl="a"/><url curl="b"/>',
        b'<url curl="a"><url curl="b"/></url>',
        b'<!DOCTYPE url [<!ENTITY e "x">]><url curl="a"/>',
        b'<uri curl="a"/>',
        b"<keep/>",
        b'<handover state="/x"/>',
        b"<end/>",
        b'<end count="-1"/>',
        b'<url curl="\xff"/>',
        b'<url curl="' + b"x" * pipe.LINE_MAX + b'"/>',
    ],
)
def test_a_malformed_line_is_refused(raw):
    with pytest.raises(pipe.BadLine):
        pipe.parse(raw)


U = '<url curl="{}" mimetype="x/y"/>'


@pytest.mark.parametrize(
    "text",
    [
        f"{U}{U}\n{U}<end count='3'/>\n",
        f"  {U} <!-- > -->{U}{U}\t<end count='3'/>",
        f"{U}\n<url\n  curl='{{}}'\n  mimetype='x/y'\n/>\n{U}<end\r\ncount='3'/>",
        f"{U}<url curl='{{}}' mimetype='x/y'>\n</url>\n\n{U}\n<end count='3'></end>",
    ],
)
def test_elements_are_read_however_they_stand_on_lines(text):
    lines = reading(text.format(*"a>c").encode())
    assert [url.attributes["curl"] for url in lines] == ["a", ">", "c"]
    assert lines.fault == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'<url curl="a"/>\n<url curl="b"\n\n<url curl="c"/>\n', "line 2: unclosed token; nothing sent"),
        (b'<url curl="a"/> x <url curl="b"/>', "line 1: junk after document element; nothing sent"),
        (
            b'<url curl="a"/><handover state="s" id="i"/>',
            "line 1: the hand-over is not the first line; nothing sent",
        ),
        (b"<url\n" + b'curl="x"\n' * 10_000, "line 1: longer than 65536 bytes; nothing sent"),
    ],
)
def test_what_is_cut_into_no_elements_stops_with_the_number_of_its_line(text, message):
    with pytest.raises(Stop) as stop:
        list(reading(text))
    assert str(stop.value) == message


@given(
    st.lists(URLS, max_size=5),
    st.sampled_from([b"", b" ", b"\n\n"]),
)
def test_what_stands_between_elements_makes_no_difference(lines, between):
    text = between.join(pipe.write(line)[:-1] for line in lines)
    assert list(reading(text)) == lines


def test_short_attribute_names_are_spelled_out():
    assert pipe.parse(b'<url c="a" b="x" f="y"/>') == Url({"curl": "a", "burl": "x", "furl": "y"})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"", "no end mark"),
        (b'<url curl="a"/>\n', "no end mark"),
        (b'<url curl="a"/>\n<end count="2"/>\n', "1 of 2 lines"),
        (b'<url curl="a"/>\n<end count="1" partial="yes"/>\n', "marked as partial"),
        (b'<url curl="a"/>\n\n<keep curl="b"/>\r\n<end count="2"/>', ""),
    ],
)
def test_the_end_mark_tells_whether_the_input_is_complete(text, fault):
    lines = reading(text)
    list(lines)
    assert lines.fault == fault


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'<url curl="a"/>\n<url\n', "line 2: unclosed token; nothing sent"),
        (b'<end count="0"/>\n<url curl="a"/>\n', "line 2: comes after the end mark; nothing sent"),
        (b'<end count="0"/>\n<end count="0"/>\n', "line 2: comes after the end mark; nothing sent"),
        (
            b'<url curl="a"/>\n<handover state="s" id="i"/>\n',
            "line 2: the hand-over is not the first line; nothing sent",
        ),
        (b"x" * 3 * pipe.LINE_MAX, f"line 1: longer than {pipe.LINE_MAX} bytes; nothing sent"),
    ],
)
def test_a_bad_line_stops_with_its_number(text, message):
    with pytest.raises(Stop) as stop:
        list(reading(text))
    assert (str(stop.value), stop.value.status) == (message, 65)
