"""What reads what content users send, and the ways in which these can grow."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ipaddress import ip_network
from typing import Any
from urllib.parse import quote

from lcc_scrapy.annotation import profile_forms
from lcc_scrapy.apps.indexnow.body import BODY_MAX, read_body
from lcc_scrapy.apps.indexnow.rules import NotTaken, read_submission
from lcc_scrapy.apps.query.answering import FILTERS_MAX
from lcc_scrapy.apps.query.settings import DEFAULT_LIMITS
from lcc_scrapy.apps.query.wire import writing
from lcc_scrapy.apps.query.wire.messages import ResultBegins, Row, Wanted
from lcc_scrapy.apps.query.wire.reading import NotUnderstood, QueryReader, ResultReader
from lcc_scrapy.apps.registration import rules as registration
from lcc_scrapy.apps.registration.reading import BODY_BYTES, json_fields
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.cursor import BadCursor, Position
from lcc_scrapy.domain.errors import BadField
from lcc_scrapy.domain.front_cursor import FRONT_CURSOR_MAX, FrontPosition, Note, Part
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.domain.selection import Selection, is_pattern
from lcc_scrapy.domain.tokens import digest_of
from lcc_scrapy.front.feed import PAGE
from lcc_scrapy.front.rows import page_of
from lcc_scrapy.front.sub_http import ROW_MAX
from lcc_scrapy.web.cookies import cookie_of
from lcc_scrapy.web.forms import form_fields
from lcc_scrapy.web.ranges import Unsatisfiable, is_named, part
from lcc_scrapy.web.server import HEAD_BYTES
from lcc_scrapy.web.sharing import client_address
from tests.faults.growth import Dimension, Parser, grown
from tests.web_house import WebHouse

LOOP, THREADS, COMMAND, WEB = (
    "event loop",
    "threads of `lcc query`",
    "process of a command",
    "event loop of `lcc web`",
)
QUERY_MAX = DEFAULT_LIMITS.query_bytes
HEAD_MAX = 65_536
"""Bytes of a request's head that uvicorn reads."""


# --- queries and results -------------------------------------------------------------------------


def read_query(data: bytes) -> object:
    """Read a query as the query socket does."""
    try:
        return QueryReader(QUERY_MAX).feed(data)
    except NotUnderstood:
        return None


_ASKED = '<lococa:query xmlns:lococa="http://www.lococa.org/1.0">'
_END = "</lococa:query>"


def asked(name: str, unit: str, head: str = "", tail: str = "") -> Dimension:
    """Return a dimension of what stands in a query."""
    return grown(name, unit, _ASKED + head, tail + _END)


QUERIES = Parser(
    "query", LOOP, QUERY_MAX, read_query,
    lambda n: (_ASKED + '<urlprefix value="http://www.example.org/some/where/"/>\n' * (n // 57) + _END).encode(),
    (
        asked("one comment", ">", "<!--", "-->"), asked("comments", "<!-- -->"), asked("one section", ">", "<![CDATA[", "]]>"),
        asked("length of a comment", "x", "<!--", "-->"), asked("one instruction", ">", "<?x ", "?>"), asked("a value", ">", '<urlprefix value="', '"/>'),
        asked("types", '<mimetype value="a/b"/>'), asked("documents", f'<docid value="{"0" * 32}"/>'), asked("providers", '<provider value="7"/>'),
        asked("nesting", "<x>"), asked("escapes", r"\u0041", '<subtype escaped="value" value="', '"/>'), asked("names of escapes", "value ", '<subtype value="x" escaped="', '"/>'),
        asked("references", "&lt;", '<subtype value="', '"/>'), asked("attributes", "a='b' ", "<subtype ", "/>"), asked("blanks", " "),
        grown("blanks before it", " ", "", _ASKED + _END), grown("length of its own attributes", "x", '<lococa:query since="', '"/>'),
        Dimension("names", lambda n: (_ASKED[:-1] + " ".join(f"a{number}='b'" for number in range(n // 10)) + ">").encode()),
    ),
)  # fmt: skip


def read_result(data: bytes) -> int:
    """Read an answer as ``lcc query`` does."""
    reader, count = ResultReader(), 0
    try:
        for at in range(0, len(data), 65_536):
            count += len(reader.feed(data[at : at + 65_536]))
    except NotUnderstood:
        pass
    return count


_BEGUN = writing.begin(ResultBegins("an-lcc", "p"))
_INSIDE = _BEGUN + writing.row(Row("upsert", {"docid": "0" * 32}, Wanted.INSIDE))
RESULTS = Parser(
    "result", COMMAND, 1 << 62, read_result,
    lambda n: _BEGUN + writing.row(Row("upsert", {"docid": "0" * 32, "curl": "http://h/page.html"})) * (n // 90),
    (
        grown("content in lines", b"A" * 76 + b"\n", _INSIDE), grown("content in short lines", b"A\n", _INSIDE), grown("empty lines", b"\n", _INSIDE),
        grown("references in content", b"&#65;", _INSIDE), grown("comments in content", b"A<!---->", _INSIDE),
        grown("one comment", b">", _BEGUN + b"<!--"), grown("comments", b"<!---->", _BEGUN), grown("nesting", b"<x>", _BEGUN),
        grown("rows", b"<removed/>", _BEGUN), grown("escapes", b'<removed escaped="a" a="' + rb"\u0041" * 900 + b'"/>', _BEGUN),
    ),
    start=125_000,
)  # fmt: skip


def rows_of(selection: Selection, row: CachedUrl, count: int) -> int:
    """Hold rows of the feed against a selection."""
    return sum(selection.tell(row, 0) is not None for _ in range(count))


_SHELF = WebHouse()
_ROW = _SHELF.shelf.add("page", subtype="lang: nl", pid=999)
_FILTER = 26
"""Bytes of a filter in a query."""


def _filters(**kinds: Callable[[int], Any]) -> Callable[[int], tuple[Selection, int]]:
    """Make one filter for each ``_FILTER`` bytes, as many as a query may have."""

    def make(n: int) -> tuple[Selection, int]:
        count = min(n // _FILTER, FILTERS_MAX)
        given = {name: tuple(map(of, range(count))) for name, of in kinds.items()}
        return Selection(**given), 1000

    return make


SELECTIONS = Parser(
    "selection", THREADS, QUERY_MAX, lambda given: rows_of(given[0], _ROW, given[1]),
    lambda n: (Selection(mimetypes=("text/*",), subtypes=("lang:*",), url_prefixes=("http://www.example.org/",)), 1000),
    (
        Dimension("types times rows", _filters(mimetypes=lambda number: f"a/b{number}")),
        Dimension("subtypes times rows", _filters(subtypes=lambda number: f"a: {number}*")),
        Dimension("prefixes times rows", _filters(url_prefixes=lambda number: f"http://www.example.org/{number}")),
        Dimension("providers times rows", _filters(providers=int)),
    ),
)  # fmt: skip


# --- small notations -----------------------------------------------------------------------------


def read_cursor(text: str) -> object:
    """Read a cursor."""
    try:
        return Position.parse(text)
    except BadCursor:
        return None


def read_front_cursor(text: str) -> object:
    """Read a cursor of a front."""
    try:
        return FrontPosition.parse(text)
    except BadCursor:
        return None


def front_cursor(parts: int, notes: int = 0, told: int = 0) -> str:
    """Return a cursor with parts, and notes with places in them."""
    lccs = [f"{number}" for number in range(parts)]
    made = tuple(Part(Position(lcc, 1, 2, 3), 4) for lcc in lccs)
    each = tuple((lccs[number % parts], 5) for number in range(told))
    return str(FrontPosition(made, "", notes, tuple(Note(n, n, each) for n in range(1, notes + 1))))


FRONT_CURSORS = Parser(
    "cursor of a front", COMMAND, FRONT_CURSOR_MAX, read_front_cursor, lambda n: front_cursor(n // 20 + 1),
    (
        Dimension("letters", lambda n: "A" * n), Dimension("nesting", lambda n: "W1tb" * (n // 4)), Dimension("digits", lambda n: "MTEx" * (n // 4)),
        Dimension("notes", lambda n: front_cursor(1, n // 12)), Dimension("places of a note", lambda n: front_cursor(1, 1, n // 8)),
        Dimension("notes x places", lambda n: front_cursor(8, max(1, int(n**0.5) // 3), max(1, int(n**0.5) // 3))),
    ),
)  # fmt: skip


def read_front_page(text: str) -> object:
    """Read what a sub-LCC answers to a front."""
    try:
        return page_of(json.loads(text), PAGE)
    except (ValueError, BadCursor, RecursionError):
        return None


_TOLD = {
    "op": "remove", "docid": "0" * 32, "pid": 1, "curl": "http://h/", "mimetype": "a/b", "furl": "http://h/",
    "reason": "", "removed_time": 1, "owners": [],
}  # fmt: skip


def front_page(rows: int, owners: int = 0, came: int = 0, **values: object) -> str:
    """Return an answer of ``/v1/changes``."""
    told = [{**_TOLD, "seq": seq, "owners": ["o"] * owners, **values} for seq in range(1, rows + 1)]
    moved = {str(seq): [[1, 2]] * came for seq in range(1, rows + 1)}
    return json.dumps({"changes": told, "cursor": str(Position("x", 1, 1)), "more": False, "moved": moved})


FRONT_PAGES = Parser(
    "page of a sub-LCC", COMMAND, PAGE * ROW_MAX, read_front_page, lambda n: front_page(n // 200 + 1),
    (
        Dimension("nesting", lambda n: "[" * n), Dimension("rows", lambda n: front_page(n // 200 + 1)), Dimension("owners", lambda n: front_page(1, n // 5)),
        Dimension("moves of a row", lambda n: front_page(1, 0, min(PAGE, n // 8))), Dimension("digits", lambda n: front_page(1).replace('"pid": 1', '"pid": ' + "1" * n)),
        Dimension("URL", lambda n: front_page(1, curl="x" * n)), Dimension("rows x owners", lambda n: front_page(min(PAGE, int(n**0.5)), int(n**0.5) // 8)),
    ),
)  # fmt: skip


CURSORS = Parser(
    "cursor", LOOP, QUERY_MAX, read_cursor, lambda n: str(Position("x" * (n // 2), 1, 1)),
    (
        Dimension("letters", lambda n: "A" * n), Dimension("nesting", lambda n: "W1tb" * (n // 4)), Dimension("digits", lambda n: "MTEx" * (n // 4)),
        Dimension("blanks", lambda n: " " * n), Dimension("equals signs", lambda n: "=" * n),
    ),
)  # fmt: skip


def read_request(text: str) -> object:
    """Read what the fields of a request say."""
    with suppress(Unsatisfiable):
        part(text, 1 << 30)
    is_named(text, '"x"', weakly=True)
    is_pattern(text)
    return digest_of(text)


REQUEST_FIELDS = Parser(
    "request_fields", WEB, HEAD_MAX, read_request, lambda n: "x" * n,
    (
        Dimension("ranges", lambda n: "bytes=" + "0-1," * (n // 4)), Dimension("digits", lambda n: "bytes=" + "1" * n), Dimension("blanks of a range", lambda n: "bytes=" + " " * n),
        Dimension("hyphens", lambda n: "bytes=" + "-" * n), Dimension("quotes", lambda n: '"' * n), Dimension("tags", lambda n: 'W/"a",' * (n // 6)),
        Dimension("tags without an end", lambda n: '"a ' * (n // 3)), Dimension("weak signs", lambda n: "W/" * (n // 2)), Dimension("slashes", lambda n: "a/" * (n // 2)),
    ),
)  # fmt: skip

_TOKEN = _SHELF.token()


def request(given: tuple[str, str, list[tuple[bytes, bytes]], bytes]) -> int:
    """Ask the HTTP API, without a socket; returns the status."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _asked(*given)).result()


async def _asked(path: str, query: str, headers: list[tuple[bytes, bytes]], body: bytes) -> int:
    status = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "root_path": "",
        "method": "PUT" if body else "GET", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "headers": [(b"authorization", f"Bearer {_TOKEN}".encode()), (b"content-type", b"application/json"), *headers],
        "client": ("192.0.2.1", 1), "server": ("h", 80),
    }  # fmt: skip
    app: Any = _SHELF.app
    async with app.router.lifespan_context(app):
        await app(scope, receive, send)
    return status


def parameters(name: str, unit: str, head: str = "") -> Dimension:
    """Return a dimension of what stands behind the ``?``."""
    return Dimension(name, lambda n: ("/v1/changes", head + unit * (n // len(unit)), [], b""))


HTTP_API = Parser(
    "http_api", WEB, HEAD_MAX, request, lambda n: ("/v1/changes", "url_prefix=" + "x" * min(n, 2000), [], b""),
    (
        parameters("parameters", "mimetype=text/html&"), parameters("unknown parameters", "a=b&"), parameters("signs", "&"), parameters("equals signs", "="),
        parameters("percent signs", "%"), parameters("length of one", "x", "url_prefix="), parameters("length of a type", "a", "mimetype="), parameters("digits", "1", "provider="),
        parameters("length of a cursor", "A", "since="), parameters("plus signs", "+", "subtype="), parameters("numbers", "provider=1&"),
        Dimension("segments", lambda n: ("/v1" + "/a" * (n // 2), "", [], b"")), Dimension("length of a path", lambda n: ("/v1/documents/" + quote("x" * n), "", [], b"")),
        Dimension("fields", lambda n: ("/v1/changes", "", [(b"accept", b"a/b;q=1")] * (n // 16), b"")),
        Dimension("accepted codings", lambda n: ("/v1/changes", "", [(b"accept-encoding", b"gzip, " * (n // 6))], b"")),
        *(Dimension(name, lambda n, unit=unit: ("/healthz", "", [(b"cookie", b'a="' + unit * (n // len(unit)))], b"")) for name, unit in (
            ("escaped quotes of a cookie", b'\\"'), ("cookies", b"; a=b"), ("octal escapes of a cookie", b"\\101"),
        )),
        Dimension("nesting of a body", lambda n: ("/v1/cursors/a", "", [], b"[" * min(n, 16_000))),
        Dimension("digits of a body", lambda n: ("/v1/cursors/a", "", [], b"1" * min(n, 16_000))),
        Dimension("keys of a body", lambda n: ("/v1/cursors/a", "", [], b"{" + b'"a":1,' * (min(n, 15_000) // 6) + b'"a":1}')),
    ),
    slack=16 << 20,
)  # fmt: skip

# --- who asks ------------------------------------------------------------------------------------

_PROXIES = (ip_network("10.0.0.0/8"), ip_network("192.168.0.0/16"), ip_network("fd00::/8"))
_COOKIE = "lcc_owner="

COOKIES = Parser(
    "cookies", WEB, HEAD_BYTES, lambda text: cookie_of([text], "lcc_owner"), lambda n: _COOKIE + "x" * n,
    tuple(Dimension(name, lambda n, head=head, unit=unit: head + unit * (n // len(unit))) for name, head, unit in (
        ("cookies", "", "a=b; "), ("the same cookie", "", "lcc_owner=a;"), ("escaped quotes", _COOKIE + '"', '\\"'), ("octal", _COOKIE + '"', "\\101"),
        ("semicolons", "", ";"), ("equals signs", "", "="), ("blanks", _COOKIE, " "), ("quotes", _COOKIE, '"'),
    )),
)  # fmt: skip

FORWARDED = Parser(
    "forwarded", WEB, HEAD_BYTES, lambda text: client_address("10.0.0.1", text.split(","), _PROXIES), lambda n: "x" * n,
    tuple(Dimension(name, lambda n, unit=unit: unit * (n // len(unit))) for name, unit in (
        ("proxies", "10.0.0.2,"), ("short addresses", "fd00::,"), ("commas", ","), ("colons", ":"), ("digits", "1"), ("blanks", " "), ("brackets", "["),
    )),
)  # fmt: skip


def read_profile(data: bytes) -> None:
    """Read the form of an owner's profile, and what its fields say."""
    with suppress(BadField):
        profile_forms.urd_of(form_fields(data, profile_forms.FIELDS, profile_forms.SEVERAL), "alice")


_PROFILE = b"processtype=filter&threshold=1&urgency=1&timing=0&depth=0&keywords="

OWNER_FORMS = Parser(
    "owner_forms", "threads of `lcc web`", 1024 * 1024, read_profile, lambda n: _PROFILE + b"a" * n,
    tuple(grown(name, unit, _PROFILE) for name, unit in (
        ("percent signs", "%"), ("escapes", "%41"), ("escaped letters", "%C3%A9"), ("lines", "a%0a"), ("weights", "a%3d1%0a"), ("plus signs", "+"), ("ampersands", "&"),
        ("equals signs", "="), ("empty lines", "%0a"),
    )),
    slack=64 << 20,  # urllib cuts a text at each percent sign, Python's objects are some 70 times as large
)  # fmt: skip


# --- registration --------------------------------------------------------------------------------

_KNOWN = frozenset({"site", "email", "bandwidth", "hours", "timezone"})
_READERS: tuple[Callable[[str], object], ...] = (
    lambda text: registration.folder_of(text, frozenset({80})), registration.contact_of, lambda text: registration.bandwidth_of(text, 0),
    lambda text: registration.hours_of(text, 168), registration.zone_of, lambda text: registration.redirected(HttpUrl.parse("http://h/"), text.encode(), frozenset({80})),
    lambda text: registration.proves("0" * 64, text.encode()),
)  # fmt: skip


def read_registration(data: bytes) -> None:
    """Read a body as JSON and as a form, and all its texts as everything that may be written."""
    for fields in (json_fields, form_fields):
        with suppress(BadField):
            for text in fields(data, _KNOWN).values():
                for read in _READERS:
                    with suppress(BadField):
                        read(text)


def _site(unit: str) -> Callable[[int], bytes]:
    return lambda n: b'{"site": "' + (unit * n)[: min(n, 4000)].encode() + b'"}'


REGISTRATIONS = Parser(
    "registration", WEB, BODY_BYTES, read_registration, _site("http://www.example.org/a/"),
    (
        *(Dimension(name, _site(unit)) for name, unit in (
            ("dots", "."), ("slashes", "/"), ("at signs", "a@"), ("labels", "a."), ("file names", ".html"), ("percent signs", "%2e"), ("colons", ":"),
            ("hours", "0-8,"), ("days", "mon-fri,"), ("digits", "1"), ("segments", "../"), ("letters", "é"), ("hashes", "#"), ("brackets", "["),
        )),
        Dimension("nesting", lambda n: b"[" * n), Dimension("nested objects", lambda n: b'{"a":' * (n // 5)), Dimension("members", lambda n: b'{"site":"","site":""}'[:-1] + b',"site":""' * (n // 10) + b"}"),
        Dimension("unknown members", lambda n: b"{" + b",".join(b'"a%d":""' % k for k in range(n // 10)) + b"}"), Dimension("escapes", lambda n: b'{"site":"' + rb"\u0041" * (n // 6) + b'"}'),
        Dimension("a number", lambda n: b'{"bandwidth":' + b"1" * n + b"}"), Dimension("blanks", lambda n: b" " * n),
        Dimension("fields of a form", lambda n: b"site=&" * (n // 6)), Dimension("ampersands", lambda n: b"&" * n), Dimension("equals signs", lambda n: b"=" * n),
        Dimension("percent signs of a form", lambda n: b"site=" + b"%41" * (n // 3)), Dimension("plus signs", lambda n: b"site=" + b"+" * n),
    ),
    slack=2 << 20,  # urllib cuts a text at each percent sign
)  # fmt: skip


# --- IndexNow ------------------------------------------------------------------------------------


def submitted(data: bytes) -> object:
    """Read the body of a submission as the receiver does."""
    try:
        return read_submission(read_body(data))
    except NotTaken:
        return None


_SUBMITTED = '{"host": "h", "key": "01234567", "urlList": ['


def listed(name: str, unit: str) -> Dimension:
    """Return a dimension of the URLs of a submission."""
    return grown(name, f'"{unit}",', _SUBMITTED, '"http://h/"]}')


INDEXNOW = Parser(
    "indexnow", "threads of `lcc web`", BODY_MAX, submitted,
    lambda n: (_SUBMITTED + ",".join(f'"http://h/some/where/{number}"' for number in range(n // 40)) + "]}").encode(),
    (
        listed("URLs", "http://h/a"), listed("lists", "["), listed("empty texts", ""), listed("URLs to be encoded", "http://h/ü"),
        listed("other hosts", "http://other/"), listed("escapes", r"http://h/\u0061\u0062"), listed("folders", "http://h" + "/a" * 900),
        grown("nesting", "[", _SUBMITTED), grown("objects", '{"a":', "{"), grown("blanks", " ", "{"), grown("length of a text", "x", '{"host": "', '"}'),
        grown("backslashes", "\\\\", '{"host": "', '"}'), grown("quotes", '\\"', '{"host": "', '"}'), grown("digits", "1", '{"a": ', "}"), grown("commas", ",", _SUBMITTED, "]}"),
        grown("length of a host", "a.", '{"host": "', '", "key": "01234567", "urlList": ["http://h/"]}'),
        grown("length of a location", "/a", '{"host": "h", "key": "01234567", "keyLocation": "http://h', '/k", "urlList": ["http://h/"]}'),
        Dimension("names", lambda n: ("{" + ",".join(f'"a{number}": 1' for number in range(n // 12)) + "}").encode()),
    ),
)  # fmt: skip

PARSERS = (
    COOKIES,
    FORWARDED,
    OWNER_FORMS,
    QUERIES,
    RESULTS,
    SELECTIONS,
    CURSORS,
    FRONT_CURSORS,
    FRONT_PAGES,
    REQUEST_FIELDS,
    HTTP_API,
    REGISTRATIONS,
    INDEXNOW,
)
