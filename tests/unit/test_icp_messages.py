"""ICP messages: what is written is read, and nothing else is (RFC 2186)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.apps.tracker.rules.icp import HIT, LONGEST, BadMessage, Query, Reply

NUMBERS = st.integers(0, 2**32 - 1)
URLS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=300)
SQUIDS = bytes.fromhex("01020025000000070000000000000000000000007f000001") + b"http://a.b/x\0"
"""A query of 37 bytes, as Squid 5.7 sends it."""


def test_a_query_of_squid_is_read():
    assert Query.parse(SQUIDS) == Query(7, "http://a.b/x")


def test_a_reply_has_the_number_and_the_url_of_the_query():
    told = bytes(Reply(HIT, 7, "http://a.b/x"))
    assert told == bytes.fromhex("0202002100000007000000000000000000000000") + b"http://a.b/x\0"


@given(NUMBERS, URLS)
def test_what_is_written_is_read(number, url):
    assert Query.parse(bytes(Query(number, url))) == Query(number, url)


@given(st.binary(max_size=100))
def test_any_bytes_are_a_query_or_a_bad_message(data):
    try:
        query = Query.parse(data)
    except BadMessage:
        return
    assert (data[0], data[1], len(data)) == (1, 2, int.from_bytes(data[2:4]))
    assert query.url.isascii()


@given(st.integers(0, len(SQUIDS) - 1), st.integers(0, 255))
def test_a_query_with_a_changed_byte_is_read_or_refused(place, byte):
    changed = SQUIDS[:place] + bytes([byte]) + SQUIDS[place + 1 :]
    try:
        Query.parse(changed)
    except BadMessage:
        assert place < 4 or (place == len(SQUIDS) - 1 and byte)


@pytest.mark.parametrize("length", range(len(SQUIDS)))
def test_a_query_that_is_cut_is_refused(length):
    with pytest.raises(BadMessage):
        Query.parse(SQUIDS[:length])


def test_a_query_longer_than_any_is_refused():
    assert Query.parse(bytes(Query(1, "x" * (LONGEST - 25))))
    with pytest.raises(BadMessage):
        Query.parse(bytes(Query(1, "x" * (LONGEST - 24))))


@pytest.mark.parametrize("opcode", [0, 2, 3, 4, 10, 11, 21, 22, 255])
def test_what_is_no_query_is_refused_so_that_answers_get_no_answer(opcode):
    with pytest.raises(BadMessage):
        Query.parse(bytes([opcode]) + SQUIDS[1:])


def test_a_url_that_is_no_text_is_empty():
    assert Query.parse(SQUIDS[:24] + b"http://\xff \n/x"[:12] + b"\0").url == ""
