"""What reads the sets that come over HTTP: JSON in two forms, in pieces of any size, and gzip."""

import gzip
import json
from collections.abc import Callable

from lcc_scrapy.apps.push_http.body_codings import Gzip, Undecodable
from lcc_scrapy.apps.push_http.credentials import HEADER_MAX, BadCredentials, init_of
from lcc_scrapy.apps.push_http.json_reader import JsonLines, JsonObject
from lcc_scrapy.domain.uns_limits import DEFAULT_LIMITS
from tests.faults.growth import Dimension, Parser, grown
from tests.faults.growth_providers import LOOP, take

_HEAD, _TAIL = '{"set":"partial","urls":[', '"a"]}'
_URL = {"c": "http://h/page.html", "mimetype": "text/html", "len": 12}


def reading(form: type[JsonObject | JsonLines], size: int) -> Callable[[bytes], int]:
    """Return what reads a set in pieces of some bytes."""

    def read(body: bytes) -> int:
        reader, count = form(DEFAULT_LIMITS), 0
        for at in range(0, len(body), size):
            for message in reader.feed(body[at : at + size]):
                take(message)
                count += 1
        return count + len(reader.finish())

    return read


def of_array(name: str, unit: str, tail: str = _TAIL) -> Dimension:
    """Return a dimension of what stands among the URLs."""
    return grown(name, unit, _HEAD, tail)


def _object(n: int) -> bytes:
    return (_HEAD + (json.dumps(_URL) + ",") * (n // 70) + _TAIL).encode()


def _lines(n: int) -> bytes:
    return b'{"set":"partial"}\n' + (json.dumps(_URL).encode() + b"\n") * (n // 70)


_OBJECT = (
    of_array("texts", '"a",'),
    of_array("empty objects", "{},"),
    of_array("numbers", "1,"),
    of_array("wrong elements", "x,"),
    of_array("nesting", "["),
    of_array("nesting of objects", '{"a":'),
    of_array("closing brackets", '"a"]' * 2),
    of_array("blanks", " "),
    of_array("blanks of elements", '"a"' + " " * 60_000 + ","),
    of_array("length of a text", "x", '"]}'),
    of_array("texts of 60,000 characters", f'"{"x" * 60_000}",'),
    of_array("texts of escapes", '"' + "\\\\" * 30_000 + '",'),
    of_array("texts of escaped quotes", '"' + '\\"' * 30_000 + '",'),
    of_array("texts of marks", '"' + ",:[]{}" * 10_000 + '",'),
    of_array("escaped characters", '"' + "\\u00e4" * 10_000 + '",'),
    of_array("digits", "1" * 60_000 + ","),
    of_array("digits of an exponent", "1e" + "9" * 60_000 + ","),
    of_array("attributes", json.dumps({f"a{n}": "b" for n in range(16)}) + ","),
    of_array("attributes, too many", json.dumps({f"a{n}": "b" for n in range(5000)}) + ","),
    of_array("the same attribute", "{" + ",".join(['"c":"a"'] * 7000) + "},"),
    of_array("length of a name", '{"' + "x" * 60_000 + '":"a"},'),
    of_array("quotes without an end", '"'),
    of_array("backslashes", "\\"),
    grown("blanks before it", " "),
    grown("fields", '"id":"x",', "{"),
    grown("behind it", " ", '{"set":"full"}'),
)

_LINED = (
    grown("texts", '"a"\n', '{"set":"partial"}\n'),
    grown("empty lines", "\n", '{"set":"partial"}\n'),
    grown("length of a line", "x", '{"set":"partial"}\n'),
    grown("nesting", "[" * 30_000 + "\n", '{"set":"partial"}\n'),
    grown("blank lines of 60,000", " " * 60_000 + "\n", '{"set":"partial"}\n'),
    grown("attributes", json.dumps({f"a{n}": "b" for n in range(16)}) + "\n", '{"set":"partial"}\n'),
)


def read_gzip(body: bytes) -> int:
    """Decode a body as it may come, and throw it away."""
    coding, count = Gzip(), 0
    try:
        for at in range(0, len(body), 16_384):
            for piece in coding.pieces(body[at : at + 16_384]):
                count += len(piece)
        coding.finish()
    except Undecodable:
        pass
    return count


def read_credentials(header: bytes) -> object:
    """Read an ``Authorization`` header."""
    try:
        return init_of(header)
    except BadCredentials:
        return None


_MEMBER = gzip.compress(b"")

PARSERS = (
    Parser("json_set", LOOP, 1 << 62, reading(JsonObject, 4096), _object, _OBJECT, start=25_000, fair_cpu=30e-9),
    Parser(
        "json_set_by_bytes", LOOP, 1 << 62, reading(JsonObject, 1), _object, _OBJECT, start=16_000, fair_cpu=1e-6
    ),
    Parser("json_lines", LOOP, 1 << 62, reading(JsonLines, 4096), _lines, _LINED, start=25_000, fair_cpu=30e-9),
    Parser(
        "json_lines_by_bytes", LOOP, 1 << 62, reading(JsonLines, 1), _lines, _LINED, start=16_000, fair_cpu=1e-6
    ),
    Parser(
        "gzip_body", LOOP, 1 << 62, read_gzip, lambda n: gzip.compress(_object(3 * n))[:n],
        (
            grown("members", _MEMBER), grown("zeros", gzip.compress(bytes(50_000))),
            Dimension("a bomb", lambda n: gzip.compress(bytes(1000 * n))[:n]), grown("no gzip", b"x"),
        ),
        start=64_000, fair_cpu=100e-9,
    ),
    Parser(
        "credentials", LOOP, HEADER_MAX, read_credentials, lambda n: b"Basic " + b"QUFB" * (n // 4),
        (grown("blanks", " ", "Basic "), grown("letters", "x"), grown("colons", "Ojo6", "Basic ")),
    ),
)  # fmt: skip
