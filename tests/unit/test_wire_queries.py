"""Queries and results: what is written is read again, however it is cut; what is hostile is refused, and bounded."""

import tracemalloc
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcc_scrapy.apps.query.wire import writing
from lcc_scrapy.apps.query.wire.messages import (
    Content,
    ContentEnds,
    Missing,
    Query,
    QueryRejected,
    Reached,
    ResultBegins,
    ResultEnds,
    Row,
    Wanted,
    What,
)
from lcc_scrapy.apps.query.wire.reading import NotUnderstood, QueryReader, ResultReader

MOST = 20_000
any_text = st.text(
    st.characters() | st.sampled_from("\\\0\x01\t\r\n\"'<>&\ud800\udfff\ufffe\uffff "), max_size=20
)
numbers = st.integers(0, 10**17)
docids = st.binary(min_size=16, max_size=16).map(bytes.hex)


def several(values):
    return st.lists(values, max_size=3).map(tuple)


queries = st.builds(
    Query,
    st.sampled_from([What.CHANGES, What.IDS]),
    any_text,
    st.none() | numbers,
    numbers,
    st.sampled_from(Wanted),
    numbers,
    any_text,
    several(numbers),
    several(any_text),
    several(any_text),
    several(any_text),
    anew=several(any_text),
) | st.builds(Query, st.just(What.ROWS), docids=st.lists(docids, min_size=1, max_size=5).map(tuple))
values = st.dictionaries(st.sampled_from(["docid", "curl", "furl", "subtype", "seq"]), any_text)
rows = st.builds(
    Row,
    st.sampled_from(["upsert", "remove", "leave"]),
    values,
    st.sampled_from(["", "gone", "lost", "elsewhere"]),
)
contents = st.binary(max_size=200) | st.integers(0, 3).map(lambda n: b"\0\xff<x>" * (n * 12_000))


def cut_at(data, cuts):
    """Yield the data in pieces of these sizes, and the rest."""
    for size in cuts:
        yield data[:size]
        data = data[size:]
    yield data


def heard(data, cuts=()):
    reader, said = ResultReader(), []
    for piece in cut_at(data, cuts):
        said += reader.feed(piece)
    return said


def written(row, content):
    """Return a row with content as the server writes it, and what is to be read of it."""
    blocks = [
        content[at : at + writing.CONTENT_BLOCK] for at in range(0, len(content), writing.CONTENT_BLOCK)
    ]
    inside = Row("upsert", row.values, Wanted.INSIDE)
    text = writing.row(inside) + b"".join(map(writing.content, blocks)) + writing.content_end()
    return text, [inside, *map(Content, blocks), ContentEnds()]


@given(queries, st.lists(st.integers(0, 50), max_size=10))
def test_a_query_is_read_as_it_was_written_in_any_pieces(query, cuts):
    reader = QueryReader(MOST)
    found = (reader.feed(piece) for piece in cut_at(writing.query(query) + b"<more>", cuts))
    assert next(filter(None, found)) == query


@settings(max_examples=60)
@given(
    st.lists(rows | st.tuples(rows, contents), max_size=4),
    any_text,
    st.lists(st.integers(0, 9000), max_size=9),
)
def test_a_result_is_read_as_it_was_written_in_any_pieces(told, position, cuts):
    begins, ends = ResultBegins("an-lcc", position), ResultEnds(position, 1, 2, 3)
    text, expected = writing.begin(begins), [begins]
    for one in told:
        more, said = written(*one) if isinstance(one, tuple) else (writing.row(one), [one])
        text, expected = text + more, expected + said
    text += writing.reached(Reached(position)) + writing.end(ends)
    expected += [Reached(position), ends]
    assert heard(text) == heard(text, cuts) == expected
    ET.fromstring(text)  # as any other parser of XML reads it


def test_every_byte_may_come_alone():
    text, expected = written(Row("upsert", {"curl": "é\x01\\"}), b"some content" * 99)
    text = writing.begin(ResultBegins("l", "p")) + text + writing.end(ResultEnds("p"))
    assert heard(text, [1] * len(text)) == heard(text)
    assert heard(text)[1:-1] == expected


def test_what_xml_cannot_carry_is_escaped_and_nothing_else():
    row = writing.row(Row("upsert", {"curl": "a\\b", "furl": "a\\b\x01", "burl": "\ud800"})).decode()
    assert row == r'<document curl="a\b" furl="a\\b\u0001" burl="\ud800" escaped="furl burl"/>' + "\n"


def test_a_rejection_is_read_before_a_result_and_in_the_middle_of_one():
    message = QueryRejected(803, "later <&>", 300)
    assert heard(writing.rejected(message)) == [message]
    begins = ResultBegins("l", "p")
    assert heard(writing.begin(begins) + writing.broken_off(message)) == [begins, message]


def test_only_a_result_with_its_end_is_complete():
    reader = ResultReader()
    text = writing.begin(ResultBegins("l", "p")) + writing.end(ResultEnds("p"))
    reader.feed(text[:-30])
    assert not reader.complete
    reader.feed(text[-30:])
    assert reader.complete


def test_a_token_is_in_no_representation_of_a_query():
    assert "secret" not in repr(Query(token="secret"))


@pytest.mark.parametrize(
    "text",
    [
        '<lococa:query xmlns:lococa="http://www.lococa.org/1.0"/>',
        "<lococa:query/>",
        "<lococa:query></lococa:query>",
        '<query xmlns="http://www.lococa.org/1.0"/>',
        '<x:query xmlns:x="http://www.lococa.org/1.0" version="9"/>',
        '\ufeff<?xml version="1.0" encoding="utf-8"?>\n<lococa:query/>',
        "<!-- hello --><lococa:query/> and what not",
    ],
)
def test_a_query_may_be_written_in_these_ways(text):
    assert QueryReader(MOST).feed(text.encode()) == Query()


def test_what_is_missing_of_a_front_is_told_before_the_end():
    missing = [Missing("b"), Missing('a "name"', start_over=True)]
    text = writing.begin(ResultBegins("", "p")) + b"".join(map(writing.missing, missing))
    assert heard(text + writing.end(ResultEnds("q"))) == [ResultBegins("", "p"), *missing, ResultEnds("q")]


BAD = {
    "<query/>": "instead of a query",
    '<lococa:query xmlns:lococa="urn:other"/>': "instead of a query",
    "<lococa:set/>": "instead of a query",
    "GET / HTTP/1.1\r\n>": "not well-formed",
    "<!DOCTYPE x [<!ENTITY a 'b'>]><lococa:query/>": "document type",
    "<lococa:query limit='&x;'/>": "not well-formed",
    "<lococa:query limit='-1'/>": "limit",
    "<lococa:query limit='\u0663'/>": "limit",
    f"<lococa:query wait='{'9' * 30}'/>": "wait",
    "<lococa:query what='all'/>": "what=",
    "<lococa:query content='yes'/>": "content=",
    "<lococa:query mimetype='text/html'/>": "unknown attribute 'mimetype'",
    "<lococa:query><mime value='text/html'/></lococa:query>": "<mime>",
    "<lococa:query><provider id='7'/></lococa:query>": "<provider>",
    "<lococa:query><provider value='seven'/></lococa:query>": "whole number",
    "<lococa:query><provider value='7'><provider value='8'/></provider></lococa:query>": "expected",
    "<lococa:query what='rows'/>": "docids",
    "<lococa:query><docid value='" + "0" * 32 + "'/></lococa:query>": "docids",
    "<lococa:query what='rows'><docid value='../../etc/passwd'/></lococa:query>": "32 hex digits",
    "<lococa:query x" + "y" * MOST: f"more than {MOST} bytes",
    "<lococa:query>" + "<a>" * MOST: "<a>",
    "<!-- " + "x" * MOST: f"more than {MOST} bytes",
    "<\ud800>": "not well-formed",
}


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_what_is_no_query_is_refused_with_a_reason(text, size):
    data = text.encode("utf-8", "surrogatepass")
    reader = QueryReader(MOST)
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    with pytest.raises(NotUnderstood, match=BAD[text]):
        any(map(reader.feed, pieces))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n<html>", "not well-formed"),
        (b"<html>", "instead of a result"),
        (b"<!DOCTYPE lococa:result>", "document type"),
        (b"<lococa:result>" + b"<a>" * 20, "nested"),
        (b"<lococa:result><document content='inside'>!!</document>", "base64"),
        (b"<lococa:result><end documents='x'/>", "whole number"),
    ],
)
def test_what_is_no_result_is_refused(text, why):
    with pytest.raises(NotUnderstood, match=why):
        ResultReader().feed(text)


@pytest.mark.parametrize("endless", [b"<a b='" + b"y" * 4096, b"<!--" + b"y" * 4096])
def test_an_endless_tag_costs_bounded_memory(endless):
    reader = ResultReader()
    reader.feed(b"<lococa:result>")
    tracemalloc.start()
    try:
        with pytest.raises(NotUnderstood):
            any(map(reader.feed, [endless, *[endless[-4000:]] * 10_000]))
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_elements_that_are_not_known_yet_are_passed_over_in_a_result():
    text = b"<lococa:result lcc='l' position='p' new='1'><hint>words</hint><end position='q' why='x'/></lococa:result>"
    assert heard(text) == [ResultBegins("l", "p", ""), ResultEnds("q")]
