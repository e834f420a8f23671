"""Answers that HTTP does not permit: those that are clear are read, the others are errors, in any cutting alike."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lcc_scrapy
from lcc_scrapy.content.decoding import decoder
from lcc_scrapy.http.answer import HEAD_MAX, Answer, HttpError
from lcc_scrapy.http.head import Malformed, read_head
from tests.odd_answers import AMBIGUOUS, CHUNKED, CLOSED, ODD, OK, chunks

BODY = b"User-agent: *\nDisallow: /x\n"
LARGE = 5000
"""Bytes of a stream from which on not all places for a cut are tried."""


def read(*pieces: bytes) -> tuple[object, ...]:
    """Return what is made of a stream that ends; of an error, which one it is."""
    answer, body = Answer(), b""
    try:
        for piece in pieces:
            answer.feed(piece)
            body += b"".join(answer.take())
        answer.end()
    except HttpError as error:
        return (type(error),)
    work = decoder(answer.field(b"content-encoding"))
    body = b"".join(work.feed(body))
    work.end()
    return answer.status, tuple(answer.headers), body, answer.keep


def every_cutting(wire: bytes) -> set[tuple[object, ...]]:
    found = {read(wire), read(*(wire[at : at + 1] for at in range(len(wire))))}
    step = 1 if len(wire) < LARGE else len(wire) // 50
    return found | {read(wire[:at], wire[at:]) for at in range(1, len(wire), step)}


@pytest.mark.parametrize("name", ODD)
def test_an_answer_that_is_clear_is_read_in_any_cutting(name: str) -> None:
    (found,) = every_cutting(ODD[name].wire(BODY))
    assert (found[0], found[2], found[3]) == (200, BODY, name not in CLOSED)


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_an_answer_that_is_ambiguous_is_an_error_in_any_cutting(name: str) -> None:
    (found,) = every_cutting(AMBIGUOUS[name])
    assert len(found) == 1


CHANGES = st.lists(
    st.tuples(st.integers(0, 400), st.sampled_from([b"", b"\r", b"\n", b" ", b"\0", b":", b"5", b"\xff"]), st.integers(0, 3)),
    max_size=3,
)  # fmt: skip
SHORT = sorted(name for name in CLOSED if len(ODD[name].wire(BODY)) < 400)


@given(st.sampled_from(SHORT), CHANGES, st.lists(st.integers(0, 400), max_size=6))
def test_whatever_else_is_wrong_any_cutting_gives_the_same(
    name: str, changes: list[tuple[int, bytes, int]], places: list[int]
) -> None:
    wire = ODD[name].wire(BODY)
    for place, put, taken in changes:
        at = place % len(wire)
        wire = wire[:at] + put + wire[at + taken :]
    bounds = sorted(place % len(wire) for place in places)
    pieces = [wire[begin:end] for begin, end in zip([0, *bounds], [*bounds, len(wire)], strict=True)]
    found = read(wire)
    assert found == read(*filter(None, pieces))
    assert found == read(*(wire[at : at + 1] for at in range(len(wire))))
    if len(found) > 1:
        assert not any(octet in part for field in found[1] for part in field for octet in b"\r\n\0")  # type: ignore[attr-defined]


@pytest.mark.parametrize("status", range(1000))
def test_each_status_of_three_digits_is_itself_or_an_error(status: int) -> None:
    wire = b"HTTP/1.1 %03d Any\r\nContent-Length: 0\r\n\r\n" % status
    found = read(wire)
    assert found[0] == status if status >= 200 else len(found) == 1


@pytest.mark.parametrize("status", range(100, 200))
def test_each_informational_status_but_101_is_passed_over(status: int) -> None:
    found = read(b"HTTP/1.1 %d Any\r\n\r\n" % status + OK + b"Content-Length: 0\r\n\r\n")
    assert len(found) == 1 if status == 101 else found[0] == 200


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_a_body_has_none_whatever_its_fields_say(status: int) -> None:
    start = b"HTTP/1.1 %d Any\r\n" % status
    for fields in (b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n" * 2):
        for behind in (b"", b"hello"):
            (found,) = every_cutting(start + fields + b"\r\n" + behind)
            assert (found[0], found[2]) == (status, b"")
            assert not (behind and found[3])


def test_what_is_in_order_leaves_the_connection_open() -> None:
    for wire in (
        OK + b"Content-Length: 5\r\n\r\nhello",
        CHUNKED + chunks(b"hello", extension=b";a=b", trailers=b"X: y\r\n"),
        CHUNKED + chunks(b"hello", extension=b" "),
        b"HTTP/1.1 103 Hint\r\nLink: </a>\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nhello",
    ):
        (found,) = every_cutting(wire)
        assert found[2:] == (b"hello", True)


def test_a_connection_is_not_kept_that_the_site_closes() -> None:
    for line in (b"Connection: close", b"Connection: keep-alive, close"):
        for body in (b"", b"hello"):
            assert read(OK + line + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)[3] is False
    assert read(OK.replace(b"1.1", b"1.0") + b"Content-Length: 0\r\n\r\n")[3] is False


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("coding", [b"chunked", b"Chunked"])
def test_an_answer_of_http_1_0_with_a_transfer_coding_is_read_and_its_connection_not_kept(
    version: bytes, coding: bytes
) -> None:
    head = CHUNKED.replace(b"1.1", version).replace(b"chunked", coding)
    (found,) = every_cutting(head[:-2] + b"Connection: keep-alive\r\n\r\n" + chunks(b"hello"))
    assert found[2:] == (b"hello", version == b"1.1")


def test_the_chunks_of_one_read_come_as_one_piece() -> None:
    answer, body = Answer(), bytes(600)
    answer.feed(CHUNKED + b"258\r\n%b\r\n" % body * 2 + b"300\r\n" + body)
    assert answer.take() == [3 * body]
    answer.feed(bytes(168) + b"\r\n" + b"258\r\n%b\r\n" % body + b"0\r\n\r\n")
    assert (answer.take(), answer.complete, answer.keep) == ([bytes(768)], True, True)


def test_nothing_is_waited_for_that_cannot_become_an_answer() -> None:
    for wire in (b"S", b"HTML", b"\r\n\r\nx", b"GET / HTTP/1.1\r\n"):
        with pytest.raises(HttpError):
            Answer().feed(wire)


def test_a_malformed_trailer_ends_the_answer_at_once() -> None:
    answer = Answer()
    answer.feed(CHUNKED + b"1\r\nx\r\n0\r\nnonsense\r\n")
    assert (answer.complete, answer.keep) == (True, False)


def test_a_head_may_have_as_many_bytes_as_browsers_read() -> None:
    fill = OK + b"X: %b\r\nContent-Length: 0\r\n\r\n"
    longest = HEAD_MAX - len(fill % b"")
    for length, status in ((longest, 200), (longest + 1, None)):
        wire = fill % (b"y" * length)
        for found in (
            read(wire),
            read(wire[:9], wire[9:]),
            read(*(wire[at : at + 999] for at in range(0, len(wire), 999))),
        ):
            assert (found[0] if len(found) > 1 else None) == status  # fmt: skip


def test_the_length_that_counts_is_known() -> None:
    for fields, length in (
        (b"Content-Length: 5, 5\r\n", "5"),
        (b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n", ""),
        (b"Content-Length: five\r\n", ""),
        (b"Content-Length: 007\r\n", "7"),
    ):
        answer = Answer()
        answer.feed(OK + fields + b"\r\n")
        assert answer.field(b"content-length") == length


def test_only_answers_are_read_leniently() -> None:
    for request in (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"GET /  HTTP/1.1\r\nContent-Length : 5\r\n\r\n"):
        with pytest.raises(Malformed):
            read_head(request)
    package = Path(lcc_scrapy.__file__).parent
    sources = {path.relative_to(package).as_posix(): path.read_text() for path in package.rglob("*.py")}
    lenient = {name for name, text in sources.items() if "set_dangerous_leniencies" in text}
    users = {name for name, text in sources.items() if "lcc_scrapy.http.head" in text}
    assert (lenient, users) == ({"http/head.py"}, {"http/answer.py", "http/chunks.py"})
