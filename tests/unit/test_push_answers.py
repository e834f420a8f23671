"""What the UNS answers, however the network cuts it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.push import answers
from lcc_scrapy.push.answers import AnswerReader, NotAnAnswer
from lcc_scrapy.wire import writing
from lcc_scrapy.wire.messages import InitAccepted, InitRejected, Quota, SetAccepted, SetRejected, UrlError

ERROR = UrlError(404, "Not Found > & \u20ac", "http://x/a?b&c", {"curl": 'a"<', "mimetype": "text/html"})
LOGIN = InitAccepted(
    seq=7,
    last_conn_ip="192.0.2.1",
    mimetypes=("text/*", "application/pdf"),
    quota=Quota(1, 2, 3, 4, 5, fullset_wanted=True, fullset_reason="old files"),
    error_count=12,
    processing=3,
    errors=(ERROR, ERROR),
    lcc_id="lcc-one",
    revision='17-"&',
)
STREAM = (
    writing.init_accepted(LOGIN)
    + writing.set_result_start()
    + writing.url_error(ERROR)
    + writing.set_result_end(SetAccepted(5, 0))
)
MESSAGES = [LOGIN, ERROR, SetAccepted(5, 0)]


def reader_of_a_set(urls: int = 5) -> AnswerReader:
    """Return the reader of a conversation in which a set was sent."""
    made = AnswerReader()
    made.is_sent(b"<set>\n" + b'<url curl="a" mimetype="text/html"/>\n' * urls)
    return made


def test_every_byte_boundary_gives_the_same_messages():
    for cut in range(len(STREAM) + 1):
        reader = reader_of_a_set()
        assert reader.feed(STREAM[:cut]) + reader.feed(STREAM[cut:]) == MESSAGES


def test_single_bytes_give_the_same_messages():
    reader = reader_of_a_set()
    assert [found for byte in STREAM for found in reader.feed(bytes([byte]))] == MESSAGES


@given(st.lists(st.integers(0, len(STREAM))))
def test_any_cutting_gives_the_same_messages(cuts):
    reader = reader_of_a_set()
    places = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[a:b] for a, b in pairwise(places)]
    assert [found for piece in pieces for found in reader.feed(piece)] == MESSAGES


def test_a_message_comes_out_with_its_last_byte():
    reader = reader_of_a_set()
    rejected = writing.init_rejected(InitRejected(103, "later", 60)).partition(b"\n</lococa")[0]
    assert reader.feed(rejected[:-1]) == []
    assert reader.feed(rejected[-1:]) == [InitRejected(103, "later", 60)]


def test_url_errors_come_before_the_verdict():
    reader = reader_of_a_set()
    assert reader.feed(writing.set_result_start() + writing.url_error(ERROR)) == [ERROR]
    assert reader.feed(writing.set_result_end(SetRejected(203, "later", 9))) == [SetRejected(203, "later", 9)]


def test_the_samples_of_the_seed_are_read():
    reader = reader_of_a_set()
    sample = b"""<?xml version="1.0" encoding="ISO-8859-1"?>
<lococa:init_accepted>
  <connect_info seq="5" lastConnectIP="1.2.3.4"/>
  <mime>text/*</mime>
  <quota><files used="1" free="2"/><space used="3" free="4"/><fullset allowed="5" wanted="no"/></quota>
  <processing_status errors="1" processing="0"><errors>
    <url code="404" url="http://www.server.com/caf\xe9">Not Found</url>
  </errors></processing_status>
</lococa:init_accepted>
<?xml version="1.0"?>
<lococa:set_result><set_accepted received="8"/></lococa:set_result>
"""
    assert reader.feed(sample) == [
        InitAccepted(
            5,
            "1.2.3.4",
            ("text/*",),
            Quota(1, 2, 3, 4, 5),
            1,
            0,
            (UrlError(404, "Not Found", "http://www.server.com/caf\xe9"),),
        ),
        SetAccepted(8),
    ]


def test_missing_parts_mean_no_limit_and_nothing_known():
    assert AnswerReader().feed(b"<lococa:init_accepted/>") == [InitAccepted(0, "", (), Quota())]


def test_unknown_elements_and_attributes_are_ignored():
    stream = b'<lococa:init_rejected x="1"><hint>h</hint><reason code="101" y="2">no</reason></lococa:init_rejected>'
    assert AnswerReader().feed(stream) == [InitRejected(101, "no")]


@pytest.mark.parametrize(
    "stream",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n<html>",
        b"<html>",
        b"<lococa:init_accepted></nope>",
        b'<!DOCTYPE x [<!ENTITY e "x">]><lococa:init_accepted>',
        b'<lococa:set_result><set_accepted received="many"/>',
        b"<lococa:set_result>" + b"<a>" * 20,
        b"<" + b"x" * answers.TOKEN_MAX + b"x",
    ],
)
def test_anything_else_is_no_answer(stream):
    with pytest.raises(NotAnAnswer):
        AnswerReader().feed(stream)


def test_a_login_keeps_a_bounded_number_of_errors():
    reader = AnswerReader()
    reader.feed(b"<init_accepted><processing_status><errors>")
    for _ in range(11):
        reader.feed(b'<url code="404" url="u">Not Found</url>' * 1000)
    (login,) = reader.feed(b"</errors></processing_status></init_accepted>")
    assert len(login.errors) == answers.LIST_MAX
