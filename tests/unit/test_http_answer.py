"""The reading of answers: any cutting of the stream gives the same, and no stream gives anything but an answer or an error."""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.http.answer import (
    FIELDS_MAX,
    HEAD_MAX,
    INFORMATIONAL,
    Answer,
    BadBody,
    BadHead,
    HttpError,
    Unanswered,
)
from lcc_scrapy.http.request import Origin, Request


@dataclass(frozen=True)
class Read:
    """What was made of a stream that ended."""

    status: int
    reason: str
    headers: tuple[tuple[bytes, bytes], ...]
    version: str
    body: bytes
    keep: bool
    error: type[HttpError] | None


def read(*pieces: bytes, answer: Answer | None = None) -> Read:
    answer = answer or Answer()
    body, error = b"", None
    try:
        for piece in pieces:
            answer.feed(piece)
            body += b"".join(answer.take())
        answer.end()
    except HttpError as raised:
        error = type(raised)
        body += b"".join(answer.take())
    assert answer.arrived == len(body)
    if error is not None and not answer.headed:
        return Read(0, "", (), "", body, keep=False, error=error)  # nobody is told of half a head
    keep = answer.keep and error is None
    return Read(answer.status, answer.reason, tuple(answer.headers), answer.version, body, keep, error)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    pieces = [data[begin:end] for begin, end in pairwise(bounds)]
    return [piece for piece in pieces if piece]


TOKENS = st.text("abcXYZ-09", min_size=1, max_size=12).map(lambda text: f"x-{text}".encode())
VALUES = st.binary(max_size=30).map(
    lambda data: bytes(byte for byte in data if byte not in b"\r\n\0").strip(b" \t")
)
FIELDS = st.lists(st.tuples(TOKENS, VALUES), max_size=6)
PLACES = st.lists(st.integers(0, 5000), max_size=12)


def lines(fields: list[tuple[bytes, bytes]]) -> bytes:
    return b"".join(name + b": " + value + b"\r\n" for name, value in fields)


def chunked(body: bytes, sizes: list[int], trailers: list[tuple[bytes, bytes]]) -> bytes:
    wire, rest = b"", body
    for size in sizes:
        part, rest = rest[:size], rest[size:]
        wire += b"%x;e=1\r\n%b\r\n" % (len(part), part) if part else b""
    wire += b"%X\r\n%b\r\n" % (len(rest), rest) if rest else b""
    return wire + b"0\r\n" + lines(trailers) + b"\r\n"


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, bytes, list[tuple[bytes, bytes]]]:
    """Make a stream of one answer, with its body and those of its fields that have nothing to do with framing."""
    fields, body = draw(FIELDS), draw(st.binary(max_size=300))
    hints = b"".join(
        b"HTTP/1.1 103 Hint\r\n" + lines(draw(FIELDS)) + b"\r\n" for _ in range(draw(st.integers(0, 3)))
    )
    head = b"HTTP/1.%d 200 All right\r\n" % draw(st.integers(0, 1)) + lines(fields)
    framing = draw(st.sampled_from(["length", "chunks", "close"]))
    if framing == "length":
        return hints + head + b"Content-Length: %d\r\n\r\n" % len(body) + body, body, fields
    if framing == "close":
        return hints + head + b"\r\n" + body, body, fields
    sizes, trailers = draw(st.lists(st.integers(1, 100), max_size=5)), draw(FIELDS)
    wire = hints + head + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(body, sizes, trailers)
    return wire, body, fields


@given(answers(), PLACES)
def test_any_cutting_of_a_stream_gives_the_same_answer(
    made: tuple[bytes, bytes, list[tuple[bytes, bytes]]], places: list[int]
) -> None:
    wire, body, fields = made
    found = read(*cut(wire, places))
    assert (found.status, found.reason, found.body, found.error) == (200, "All right", body, None)
    assert [field for field in found.headers if field[0].startswith(b"x-")] == fields
    assert found == read(wire)


@given(
    answers(),
    st.lists(
        st.tuples(st.integers(0, 5000), st.binary(max_size=4), st.integers(0, 4)), min_size=1, max_size=5
    ),
    PLACES,
)
def test_a_broken_stream_is_an_error_or_an_answer_and_the_same_in_any_cutting(
    made: tuple[bytes, bytes, list[tuple[bytes, bytes]]],
    changes: list[tuple[int, bytes, int]],
    places: list[int],
) -> None:
    wire = made[0]
    for place, put, taken in changes:
        at = place % (len(wire) + 1)
        wire = wire[:at] + put + wire[at + taken :]
    found = read(wire)
    assert found == read(*cut(wire, places))
    assert found == read(*[wire[at : at + 1] for at in range(len(wire))])
    assert found.error is not None or found.status >= 200


@given(st.binary(max_size=200), PLACES)
def test_noise_is_an_error(noise: bytes, places: list[int]) -> None:
    found = read(*cut(noise, places))
    assert found.error is (BadHead if noise else Unanswered)


@given(answers(), st.integers(0, 5000))
def test_what_is_cut_short_is_never_complete_but_where_the_end_is_the_end(
    made: tuple[bytes, bytes, list[tuple[bytes, bytes]]], length: int
) -> None:
    wire, body, _ = made
    short = wire[: length % max(1, len(wire))]
    found = read(short)
    if found.error is None:
        assert found.body == body or b"\r\n\r\n" + found.body == short[-len(found.body) - 4 :]


def test_one_reader_reads_one_answer_after_the_other() -> None:
    answer = Answer()
    first = read(b"HTTP/1.1 404 No\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\nok", answer=answer)
    assert (first.status, first.keep, answer.field(b"content-encoding")) == (404, True, "br")
    answer.begin()
    assert (answer.status, answer.headers, answer.complete, answer.empty) == (0, [], False, True)
    second = read(b"HTTP/1.1 200 Yes\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", answer=answer)
    assert (second.body, second.keep, answer.field(b"content-encoding")) == (b"x", True, "")


def test_fields_that_matter_are_found_whatever_their_spelling() -> None:
    answer = Answer()
    answer.feed(
        b"HTTP/1.1 200 OK\r\nCONTENT-encoding: gzip\r\nContent-Type: a/b\r\ncontent-type: c/d\r\n"
        b"Content-Encoding: br\r\nContent-Length: 1\r\n\r\n"
    )
    assert (answer.field(b"content-encoding"), answer.field(b"content-type")) == ("gzip,br", "a/b,c/d")
    assert (answer.headed, answer.complete) == (True, False)


def test_values_are_without_the_blanks_around_them() -> None:
    answer = Answer()
    answer.feed(b"HTTP/1.1 200 OK\r\nX:\t a b \t\r\nEmpty:  \r\nFold: a\r\n  b\r\n\r\n")
    assert answer.headers == [(b"X", b"a b"), (b"Empty", b""), (b"Fold", b"a  b")]


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("stream", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n", BadHead),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", BadHead),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", BadHead),
        (b"HTTP/1.1 099 Low\r\n\r\n", BadHead),
        (CHUNKED + b"2\r\nokHTTP/1.1 200 OK\r\n\r\n", BadBody),
    ],
)
def test_what_nobody_asked_for_is_an_error(stream: bytes, kind: type[HttpError]) -> None:
    answer = Answer()
    with pytest.raises(kind) as raised:
        answer.feed(stream)
    assert type(raised.value) is kind


FLOODS = {
    "fields": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", BadHead),
    "one line": (b"HTTP/1.1 200 OK\r\nX: ", b"y" * 999, BadHead),
    "status": (b"HTTP/1.1 200 ", b"y" * 999, BadHead),
    "hints": (b"", b"HTTP/1.1 103 E\r\n\r\n", BadHead),
    "extension": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;", b"y" * 999, BadBody),
    "trailers": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n", BadBody),
    "one trailer": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"y" * 999, BadBody),
    "size of a chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0" * 999, BadBody),
    "empty lines": (b"", b"\r\n" * 99, BadHead),
}


@pytest.mark.parametrize("name", FLOODS)
def test_what_brings_nothing_ends_soon(name: str) -> None:
    first, again, kind = FLOODS[name]
    answer, fed = Answer(), 0
    with pytest.raises(kind):  # noqa: PT012 - who knows when
        if first:
            answer.feed(first)
        while fed < 10 * HEAD_MAX:
            fed += len(again)
            answer.feed(again)
    assert fed <= HEAD_MAX + len(again)
    assert len(answer.headers) <= FIELDS_MAX


def test_chunks_of_one_byte_are_no_flood() -> None:
    answer = Answer()
    answer.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(HEAD_MAX):
        answer.feed(b"1\r\nx\r\n")
    answer.feed(b"0\r\n\r\n")
    assert (answer.complete, answer.arrived) == (True, HEAD_MAX)


def test_as_many_informational_answers_as_may_be_are_passed_over() -> None:
    hint, last = b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n", b"HTTP/1.1 204 Done\r\n\r\n"
    assert read(hint * INFORMATIONAL, last).headers == ()
    assert read(hint * (INFORMATIONAL + 1), last).error is BadHead


def test_an_answer_to_head_ends_with_its_head() -> None:
    answer = Answer()
    answer.begin(bodiless=True)
    answer.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    assert (answer.complete, answer.keep, answer.take()) == (True, False, [])


# --- requests ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (Origin("h.example", 80), b"h.example"),
        (Origin("h.example", 443), b"h.example:443"),
        (Origin("h.example", 443, tls=True), b"h.example"),
        (Origin("h.example", 8443, tls=True), b"h.example:8443"),
        (Origin("::1", 80), b"[::1]"),
        (Origin("::1", 81), b"[::1]:81"),
    ],
)
def test_a_request_names_its_host(origin: Origin, host: bytes) -> None:
    sent = Request(origin, "/a?b", [(b"X-Y", b"z")]).encoded()
    assert sent == b"GET /a?b HTTP/1.1\r\nHost: " + host + b"\r\nX-Y: z\r\n\r\n"


def test_what_a_middleware_says_about_host_and_length_counts() -> None:
    here = Origin("h", 80)
    sent = Request(here, "/", [(b"HOST", b"other"), (b"content-length", b"1")], "POST", b"x").encoded()
    assert sent == b"POST / HTTP/1.1\r\nHOST: other\r\ncontent-length: 1\r\n\r\nx"
    assert Request(here, "/", [], "POST", b"xy").encoded().endswith(b"\r\nContent-Length: 2\r\n\r\nxy")
    assert Request(here, "/", [], "PUT").encoded().endswith(b"\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize("bad", [b"a\r\nb", b"a\nb", b"a\rb", b"a\0b"])
def test_nothing_in_a_request_begins_another_line(bad: bytes) -> None:
    for request in (
        Request(Origin("h", 80), "/", [(b"X", bad)]),
        Request(Origin("h", 80), "/", [(bad, b"x")]),
        Request(Origin("h", 80), "/" + bad.decode(), []),
        Request(Origin("h", 80), "/", [], bad.decode()),
    ):
        with pytest.raises(ValueError, match="line break"):
            request.encoded()
