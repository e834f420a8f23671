"""What must hold for any bytes: one function for each reader of hostile input, broken promises are assertions.

Hypothesis calls them in every run of the tests (``tests/unit/test_fuzz_targets.py``), a coverage-guided
fuzzer for as long as one likes (``make fuzz``). The first bytes choose what else is free: cuts, answers.
"""

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from posixpath import normpath
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET

import yarl
from scrapy import Request

from lcc_scrapy.apps.push_http.json_reader import JsonLines, JsonObject
from lcc_scrapy.apps.query.wire import writing
from lcc_scrapy.apps.query.wire.messages import Query, Said
from lcc_scrapy.apps.query.wire.reading import NotUnderstood, QueryReader, ResultReader
from lcc_scrapy.content.decoding import PIECE, BadCoding, decoder
from lcc_scrapy.domain.cursor import BadCursor, Position
from lcc_scrapy.domain.errors import Refusal, UrlRefused
from lcc_scrapy.domain.http_dates import retry_after_seconds
from lcc_scrapy.domain.references import resolve
from lcc_scrapy.domain.robots import Robots
from lcc_scrapy.domain.roots import HttpUrl, Root, inside
from lcc_scrapy.domain.timeslots import HOURS_PER_DAY, HOURS_PER_WEEK, parse_mask
from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.http.answer import Answer, HttpError
from lcc_scrapy.http.credentials import request_to
from lcc_scrapy.uns import effects
from lcc_scrapy.uns.codec import Codec, Malformed
from lcc_scrapy.uns.ports import Login
from lcc_scrapy.uns.session import Session
from lcc_scrapy.uns.spool_file import DamagedSpoolFile, SpoolReader
from lcc_scrapy.uns.states import (
    TABLE,
    Event,
    FullSetSpent,
    LoginGranted,
    LoginRefused,
    SetCounted,
    SetStored,
    SpoolFailed,
    State,
    Stopping,
    StreamEnded,
    TooSlow,
    Vanished,
)
from lcc_scrapy.wire.messages import InitAccepted, Quota, SetEnd
from tests.runs import one_by_one, plainly

ROOTS = tuple(
    Root.parse(text)
    for text in (
        "http://www.example.org/dir/",
        "https://sec.example.org/",
        "http://port.example.org:8080/a b/",
        "http://[2001:db8::1]/",
        "http://bücher.example/é",
    )
)
SMALL = Limits(
    login_bytes=4096, element_bytes=16_384, depth=4, attributes=6, names=8, set_urls=20, set_bytes=20_000
)
"""Limits that short inputs can reach; an element may be no smaller than what the codec takes in at a time."""


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


# --- a provider's stream -------------------------------------------------------------------------


def codec(data: bytes) -> None:
    """Any bytes give messages and at most one complaint, the same in any pieces and in runs, in bounded memory."""
    size, stream = 1 + (data[0] if data else 0), data[1:]
    for limits in (SMALL, Limits()):
        whole = Codec(limits, runs=False).feed(stream)
        assert not any(isinstance(message, Malformed) for message in whole[:-1])
        cut, found = Codec(limits), []
        for piece in pieces(stream, size):
            found += cut.feed(piece)
            assert len(cut._normaliser._held) <= limits.element_bytes + size
        assert one_by_one(found) == one_by_one(Codec(limits).feed(stream)) == whole, (size, found, whole)


def json_set(data: bytes) -> None:
    """Any bytes give the same messages in any pieces, and at most one complaint, in bounded memory."""
    size, body = 1 + (data[0] if data else 0), data[1:]
    for form, limits in product((JsonObject, JsonLines), (SMALL, Limits())):
        found = _read_json(form(limits), pieces(body, size), limits.element_bytes + size)
        assert found == _read_json(form(limits), pieces(body, 1), limits.element_bytes + 1), (size, found)
        assert not any(isinstance(message, Malformed | SetEnd) for message in found[:-1])


def _read_json(reader: JsonObject | JsonLines, body: Iterator[bytes], most: int) -> list[object]:
    found: list[object] = []
    for piece in body:
        found += reader.feed(piece)
        held = reader._held if isinstance(reader, JsonLines) else reader._cutter._held
        assert len(held) <= most
    return found + reader.finish()


_LOGIN = Login(7, InitAccepted(3, "10.0.0.9", ("text/*",), Quota()), ROOTS, fullsets_left=1)
_DESK: tuple[Event, ...] = (
    LoginGranted(_LOGIN), LoginGranted(_LOGIN), LoginGranted(_LOGIN), LoginGranted(replace(_LOGIN, fullsets_left=0)),
    LoginRefused(Refusal(101)), LoginRefused(Refusal(103, "", 5)),
)  # fmt: skip
_SPOOL: tuple[Event, ...] = (
    SetStored(),
    SetStored(),
    SetStored(),
    SpoolFailed(),
    SpoolFailed(too_large=True),
    FullSetSpent(),
)
_NEWS: tuple[Event, ...] = (
    TooSlow("late"),
    Stopping(),
    Vanished(),
    SpoolFailed(),
    StreamEnded(),
    SetStored(),
    LoginGranted(_LOGIN),
)


def conversation(data: bytes) -> None:
    """Whatever is said and whatever happens, the table is followed and the answers are well-formed."""
    choices, stream = list(data[:4]), data[4:]
    choices += [0] * (4 - len(choices))
    fast, plain = (_talk(choices, stream, runs=runs) for runs in (True, False))
    plain.check()
    assert plainly(fast.done) == plainly(plain.done)


def _talk(choices: list[int], stream: bytes, *, runs: bool) -> "_Talk":
    talk = _Talk(choices, runs=runs)
    for number, piece in enumerate(pieces(stream, 1 + 16 * choices[0])):
        for event in talk.codec.feed(piece):
            talk.hear(event)
        if choices[1] < len(_NEWS) and number == choices[2]:
            talk.hear(_NEWS[choices[1]])
    talk.hear(StreamEnded(talk.codec.unfinished))
    return talk


class _Talk:
    """A session with a set receiver that answers at once, as the choices say."""

    def __init__(self, choices: list[int], *, runs: bool) -> None:
        self.codec = Codec(SMALL, runs=runs)
        self._session = Session(SMALL)
        self._choices = choices
        self.done: list[effects.Effect] = []

    def hear(self, event: Event) -> None:
        before = self._session.state
        done = self._session.take(event)
        self.done += done
        after = self._session.state
        assert before is after or after in {to for (state, _), to in TABLE.items() if state is before}
        assert not done or before is not State.CLOSED
        for effect in done:
            if isinstance(effect, effects.TakeOneByOne):
                for url in effect.run:
                    self.hear(url)
            answer = self._answer(effect)
            if answer is not None:
                self.hear(answer)

    def _answer(self, effect: effects.Effect) -> Event | None:
        chosen = self._choices[3]
        match effect:
            case effects.Authenticate():
                return _DESK[chosen % len(_DESK)]
            case effects.CommitSet():
                return _SPOOL[chosen // 8 % len(_SPOOL)]
            case effects.CountSet():
                return SetCounted(chosen, chosen % 3)
        return None

    def check(self) -> None:
        done = self.done
        opened = _count(done, effects.OpenSet)
        ended = _count(done, effects.CommitSet, effects.CountSet, effects.DropSet)
        assert ended <= opened <= 1
        assert ended == opened or not self._session.over
        assert _count(done, effects.HalfClose) <= 1
        answer = b"".join(effect.data for effect in done if isinstance(effect, effects.Write))
        whole = ET.fromstring(
            b'<all xmlns:lococa="urn:x">' + answer.replace(b"\0", b"") + b"</all>"
            if self._session.over
            else b"<all/>"
        )
        records = [effect.entry for effect in done if isinstance(effect, effects.Record)]
        updates = [entry for entry in records if entry.operation == "update"]
        assert all(inside(HttpUrl.parse(entry.furl), ROOTS) for entry in updates)
        for accepted in whole.iter():
            if accepted.tag.endswith("set_accepted"):
                assert int(accepted.get("received", "")) == sum(
                    entry.operation != "present" for entry in records
                )


def _count(done: list[effects.Effect], *kinds: type) -> int:
    return sum(isinstance(effect, kinds) for effect in done)


# --- URLs ----------------------------------------------------------------------------------------


def url(data: bytes) -> None:
    """What counts as inside a root is connected to and asked for inside it, by the libraries that do it."""
    text = data.decode("utf-8", "surrogateescape" if data[:1] == b"\0" else "replace")
    _judge_url(text, text)
    for base in ("http://www.example.org/dir/a", "https://sec.example.org/x/y?z"):
        with suppress(UrlRefused):
            _judge_url(resolve(text, base), text)


def _judge_url(text: str, said: str) -> None:
    try:
        parsed = HttpUrl.parse(text)
    except UrlRefused as refused:
        assert refused.code in {705, 707}, said
        return
    plain = str(parsed)
    assert plain.isascii()
    assert HttpUrl.parse(plain) == parsed, (said, plain)
    root = next((root for root in ROOTS if root.covers(parsed)), None)
    if root is not None:
        _check_connection(root.url, parsed, plain, said)


def _check_connection(root: HttpUrl, parsed: HttpUrl, plain: str, said: str) -> None:
    """Ask urllib, Scrapy and yarl where it leads, and what our own request says."""
    asked = Request(plain).url
    real, split = yarl.URL(asked, encoded=True), urlsplit(asked)
    assert asked == plain, said
    assert (real.scheme, real.raw_host, real.port) == (parsed.scheme, parsed.host, parsed.port), (said, asked)
    assert (split.scheme, split.hostname, split.port or real.port) == (
        real.scheme,
        real.raw_host,
        real.port,
    ), said
    assert real.raw_host == root.host, (said, asked)
    assert (real.scheme, real.port) in {(root.scheme, root.port), ("https", 443)}, (said, asked)
    assert real.user is None, said
    assert real.password is None, said
    sent = request_to(parsed, [])
    line = sent.target
    assert (sent.origin.host, sent.origin.port) == (real.raw_host, real.port), said
    assert sent.origin.tls == (real.scheme == "https"), said
    assert sent.encoded().startswith(f"GET {line} HTTP/1.1\r\nHost: ".encode()), (said, line)
    assert line == real.raw_path_qs, (said, line)
    assert line.startswith("/"), (said, line)
    assert not set(line) & set(" \t\r\n\0"), (said, line)
    asked_path = unquote(real.raw_path, errors="surrogateescape").replace("\\", "/")
    wanted = unquote(root.path).rstrip("/")
    assert (normpath(asked_path).replace("//", "/") + "/").startswith(wanted + "/"), (said, line)


# --- files and bodies ----------------------------------------------------------------------------


def spool_file(data: bytes) -> None:
    """A file is whole or damaged, and nothing else; only the one that ``verify`` passes is read by anybody."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "000000000000001-7-3.set"
        path.write_bytes(data)
        try:
            with SpoolReader(path) as reader:
                for _, offset in reader.entries():
                    assert 0 < offset <= len(data)
                reader.verify()
        except DamagedSpoolFile:
            pass


_CODINGS = ("gzip", "deflate", "br", "zstd", "x-gzip", "identity", "")
_ENOUGH = 8 * PIECE


def content_coding(data: bytes) -> None:
    """A body is decoded in bounded pieces or is bad; in pieces it is the same, if it is good both times."""
    coding, size, body = (
        _CODINGS[data[0] % len(_CODINGS) if data else 0],
        1 + (data[1] if len(data) > 1 else 0),
        data[2:],
    )
    whole, parts = _decoded(coding, body, len(body) or 1), _decoded(coding, body, size)
    if whole is not None and parts is not None:
        assert whole == parts


def _decoded(coding: str, body: bytes, size: int) -> bytes | None:
    work, found = decoder(coding), bytearray()
    try:
        for part in pieces(body, size):
            for piece in work.feed(part):
                assert len(piece) <= max(2 * PIECE, size)
                found += piece
                if len(found) > _ENOUGH:
                    return None
        work.end()
    except BadCoding:
        return None
    return bytes(found)


# --- answers of sites ----------------------------------------------------------------------------


def http_answer(data: bytes) -> None:
    """Any bytes are an answer or an error, the same in any pieces; nothing stays behind for the next one."""
    size, stream = 1 + (data[0] if data else 0), data[1:]
    reader = Answer()
    whole = _http_answer(reader, stream, len(stream) or 1)
    assert whole == _http_answer(Answer(), stream, size)
    if reader.keep and not isinstance(whole[-1], type):
        reader.begin()
        assert _http_answer(reader, stream, size) == whole


def _http_answer(reader: Answer, stream: bytes, size: int) -> tuple[object, ...]:
    body = b""
    try:
        for piece in pieces(stream, size):
            reader.feed(piece)
            body += b"".join(reader.take())
        reader.end()
    except HttpError as error:
        return body + b"".join(reader.take()), type(error)
    return reader.status, reader.reason, tuple(reader.headers), reader.version, reader.keep, body


# --- queries and their answers --------------------------------------------------------------------


def query(data: bytes) -> None:
    """Any bytes are a query, a part of one, or refused, the same in any pieces; what was read can be written."""
    size, stream = 1 + (data[0] if data else 0), data[1:]
    whole = _query(stream, len(stream) or 1)
    assert whole == _query(stream, size)
    if isinstance(whole, Query):
        assert _query(writing.query(whole), size) == whole


def _query(stream: bytes, size: int) -> Query | str | None:
    reader = QueryReader(1 << 20)
    try:
        return next(filter(None, map(reader.feed, pieces(stream, size))), None)
    except NotUnderstood:
        return "refused"


def answer(data: bytes) -> None:
    """Any bytes are an answer, a part of one, or refused; what is said before is the same in any pieces."""
    size, stream = 1 + (data[0] if data else 0), data[1:]
    whole, parts = _answer(stream, len(stream) or 1), _answer(stream, size)
    assert parts[: len(whole)] == whole


def _answer(stream: bytes, size: int) -> list[Said]:
    reader, said = ResultReader(), []
    try:
        for piece in pieces(stream, size):
            said += reader.feed(piece)
    except NotUnderstood:
        pass
    return said


# --- notations -----------------------------------------------------------------------------------


def notations(data: bytes) -> None:
    """Hours, cursors, Retry-After and robots.txt: read or refused, whatever they say."""
    text = data.decode("utf-8", "replace")
    for slots in (HOURS_PER_DAY, HOURS_PER_WEEK):
        try:
            mask = parse_mask(text, slots)
        except UrlRefused as refused:
            assert refused.code == 706
        else:
            assert not mask or (len(mask) == slots and not mask.strip("01"))
            assert parse_mask(mask, slots) == mask
    try:
        position = Position.parse(text)
    except BadCursor:
        pass
    else:
        assert Position.parse(str(position)) == position
    first, _, second = text.partition("\n")
    for date in (second, "Sat, 21 Nov 2026 12:00:00 GMT"):
        assert 0 <= retry_after_seconds(first, date, 0.0) < math.inf
    rules = Robots.parse(data, "lcc-scrapy")
    assert rules.allowed("/robots.txt")
    assert rules.allowed("/dir/a?b=c") in {True, False}
    assert 0 <= rules.crawl_delay < math.inf


# --- what reading costs ---------------------------------------------------------------------------

CPU_FREE, CPU_PER_BYTE = 0.25, 20e-6
"""Seconds that reading any input may take, and for each byte of it: what is quadratic takes more at 20 kB."""


def cost(data: bytes) -> None:
    """No small parser takes more CPU than the length of what it reads; the first byte says which one reads."""
    number, text = (data[0] if data else 0), data[1:]
    name = _COSTED[number % len(_COSTED)]
    begun = time.thread_time()
    with suppress(AssertionError):  # of what is read, the reader's own target judges
        TARGETS[name](text)
    taken = time.thread_time() - begun
    assert taken < CPU_FREE + CPU_PER_BYTE * len(text), (name, len(text), taken)


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        codec,
        conversation,
        json_set,
        url,
        spool_file,
        content_coding,
        notations,
        query,
        answer,
        http_answer,
        cost,
    )
}
_COSTED = tuple(name for name in TARGETS if name != "cost")
