"""What reads what providers send, and what their commands read, and the ways in which these can grow."""

import io
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from lcc_scrapy.domain.entries import EntryRules, UrlEntry, read_entry
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.domain.runs import RunRules, read_run
from lcc_scrapy.domain.timeslots import parse_mask
from lcc_scrapy.domain.uns_limits import DEFAULT_LIMITS
from lcc_scrapy.listeners.proxy_header import LONGEST, NotIntroduced, read_header
from lcc_scrapy.machine.disk import FolderSync
from lcc_scrapy.push import pipe
from lcc_scrapy.push.answers import AnswerReader, NotAnAnswer
from lcc_scrapy.push.command import Stop
from lcc_scrapy.push.state import Damaged, Reader
from lcc_scrapy.uns.codec import Codec
from lcc_scrapy.uns.spool_file import SpoolHeader, SpoolReader
from lcc_scrapy.uns.spool_writer import SpoolWriter
from lcc_scrapy.wire.directives import READERS, Unreadable
from lcc_scrapy.wire.messages import NAMESPACE, Url, UrlRun
from tests.faults.growth import Dimension, Parser, grown

LOOP, STORE, COMMAND = "event loop", "store's thread", "process of a command"
ELEMENT = DEFAULT_LIMITS.element_bytes
RULES = EntryRules(
    ("text/*",), (Root.parse("http://www.example.org/dir/"), Root.parse("http://h/")), "http://h/"
)
RUN_RULES = RunRules.of(RULES)


# --- the stream ----------------------------------------------------------------------------------


def take(message: object) -> object:
    """Do with a message what a session does."""
    if isinstance(message, UrlRun):
        run = read_run(message.columns, RUN_RULES)
        return run if run is not None else [take(url) for url in message]
    if isinstance(message, Url):
        try:
            return read_entry(message.attributes, RULES)
        except UrlRefused:
            pass
    return None


def reading_stream(size: int) -> Callable[[bytes], int]:
    """Return what reads a provider's stream in pieces of some bytes."""

    def read(stream: bytes) -> int:
        codec, count = Codec(), 0
        for at in range(0, len(stream), size):
            for message in codec.feed(stream[at : at + size]):
                take(message)
                count += 1
        return count

    return read


_LOGIN = f'<lococa:init xmlns:lococa="{NAMESPACE}"><provider id="7" password="x"/></lococa:init>'
_SET = _LOGIN + '<lococa:set set="partial">'
_URL = '<url curl="a" mimetype="text/html"'


def of_set(name: str, unit: str | bytes, tail: str = "") -> Dimension:
    """Return a dimension of what stands in a set."""
    return grown(name, unit, _SET, tail)


def _numbered(form: str) -> Callable[[int], bytes]:
    return lambda n: (
        _SET + "".join(form % number for number in range(max(1, n // (len(form) + 3))))
    ).encode()


def _set_of_plain_urls(n: int) -> bytes:
    unit = '<url curl="page-%d.html" mimetype="text/html"/>\n'
    return (_SET + "".join(unit % number for number in range(max(1, n // 48)))).encode()


def _set_of_any_urls(n: int) -> bytes:
    unit = '<url curl="page-%d.html" mimetype="text/html" subtype="lang: n&amp;l"></url>\n'
    return (_SET + "".join(unit % number for number in range(max(1, n // 78)))).encode()


_STREAM = (
    Dimension("URLs one by one", _set_of_any_urls),
    of_set("runs that are broken off", f"{_URL}/>" * 9 + "<x/>"),
    of_set("spellings", "".join(f"<url curl='a' mimetype='text/html' a{n}='b'/>" for n in range(9))),
    of_set("elements", "<x/>"),
    of_set("elements within", "<x>"),
    of_set("comments", "<!---->"),
    of_set("one comment", ">", "-->"),
    of_set("length of a comment", "x"),
    of_set("texts", "text > "),
    of_set("sections", "<![CDATA[>]]>"),
    of_set("instructions", "<?x ?>"),
    of_set("declarations", "<?xml ?>"),
    of_set("declarations of encodings", '<?xml encoding="iso-8859-1"?><?xml encoding="utf-8"?>'),
    of_set("declarations without an end", "<?xml >"),
    of_set("ampersands", f'{_URL} subtype="{"&" * 500}"/>'),
    of_set("references", f'{_URL} subtype="{"&amp;" * 99}"/>'),
    of_set("references without an end", f'{_URL} subtype="{"&#1" * 300}"/>'),
    of_set("bytes that are no UTF-8", f'{_URL} subtype="'.encode() + b"\xff" * 500 + b'"/>'),
    of_set("length of a value", "x" * 30_000, '"/>'),
    of_set("values of 60,000 bytes", f'{_URL} subtype="{"x" * 60_000}"/>'),
    of_set("values of 60,000 less-than signs", f'{_URL} subtype="{"&lt;" * 15_000}"/>'),
    Dimension("names", _numbered("<url x%d='y'/>")),
    Dimension("names times their length", _numbered("<" + "x" * 6000 + "%d/>")),
    Dimension("prefixes times their length", _numbered("<a xmlns:p%d='" + "y" * 6000 + "'/>")),
    of_set("attributes", "<url " + " ".join(f"a{n}='b'" for n in range(16)) + "/>"),
    of_set("attributes, too many", "<url " + " ".join(f"a{n}='b'" for n in range(5000)) + "/>"),
    of_set("hours", f'{_URL} timeofday="{"0-24," * 9999}0-24"/>'),
    of_set("days", f'{_URL} timeofday="{"!mon-sun 0-24," * 4000}0-24"/>'),
    of_set("bits", f'{_URL} timeofday="{"01" * 30_000}"/>'),
    of_set("blanks of hours", f'{_URL} timeofday="mon{" " * 60_000}x"/>'),
    of_set("letters of a day", f'{_URL} timeofday="{"a" * 60_000}"/>'),
    of_set("digits of a time", f'{_URL} mtime="{"1" * 60_000}"/>'),
    of_set("words of a time", f'{_URL} mtime="Sat, {"1 " * 30_000}"/>'),
    of_set("colons of a time", f'{_URL} mtime="Sat, 21 Nov 2026 {"1:" * 30_000}"/>'),
    of_set("parameters of a type", f'<url curl="a" mimetype="text/html{";a=b" * 15_000}"/>'),
    of_set("letters of a type", f'<url curl="a" mimetype="{"t" * 60_000}"/>'),
    of_set("digits of a sum", f'{_URL} md5="{"0" * 60_000}"/>'),
    of_set("digits of a length", f'{_URL} len="{"0" * 60_000}"/>'),
    of_set("colons of a subtype", f'{_URL} subtype="{":" * 60_000}"/>'),
    of_set("encoded URLs", f'<url curl="{"%41" * 600}" mimetype="text/html" burl="{"%e4" * 600}"/>'),
    of_set("URLs of letters beyond ASCII", f'<url curl="{"ä" * 300}" mimetype="text/html"/>'),
    of_set("hosts beyond ASCII", f'<url curl="http://{"ä." * 900}/" mimetype="text/html"/>'),
)  # fmt: skip

UNS = Parser(
    "uns", LOOP, 1 << 62, reading_stream(4096), _set_of_plain_urls, _STREAM, start=125_000, fair_cpu=30e-9
)
UNS_LOGIN = Parser(
    "uns_login", LOOP, DEFAULT_LIMITS.login_bytes, reading_stream(4096), lambda n: _LOGIN.encode() + b" " * n,
    (
        grown("blanks before it", " "), grown("comments", "<!-- -->"), grown("one comment", ">", "<!--"),
        grown("declarations", "<?xml version='1.0'?>"), grown("prefixes", "<lococa:init/>"),
        grown("providers", "<provider/>", f'<lococa:init xmlns:lococa="{NAMESPACE}">'),
        grown("length of a password", "x", '<lococa:init><provider id="7" password="', '"/></lococa:init>'),
        Dimension("UTF-16", lambda n: ("<a>" * (n // 6)).encode("utf-16")),
        Dimension("half characters", lambda n: b"\xff\xfe" + b"\0\xd8" * (n // 2)),
    ),
)  # fmt: skip


# --- other things of providers -------------------------------------------------------------------


def read_introduction(data: bytes) -> object:
    """Read what a proxy says, byte for byte as it may come."""
    try:
        for size in range(1, len(data), 64):
            read_header(data[:size])
    except NotIntroduced:
        pass
    return None


PROXY = Parser(
    "proxy_header", LOOP, LONGEST, read_introduction,
    lambda n: b"\r\n\r\n\0\r\nQUIT\n\x20\x11" + (n - 16).to_bytes(2) + b"\0" * (n - 16),
    (grown("a line", "x", "PROXY TCP4 "), grown("words", " ", "PROXY TCP4 "), grown("extensions", b"\0", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x0f\xf0")),
)  # fmt: skip


def read_hours(text: str) -> object:
    """Read hours as ``lcc provider`` and the UNS do."""
    try:
        return parse_mask(text)
    except UrlRefused:
        return None


HOURS = Parser(
    "hours", LOOP, ELEMENT, read_hours, lambda n: "mon-fri 20-06, sat, sun" + " " * n,
    (
        Dimension("parts", lambda n: "0-24," * (n // 5) + "0-1"),
        Dimension("days", lambda n: "mon-sun 0-24," * (n // 13) + "0-1"),
        Dimension("prohibitions", lambda n: "!0-24," * (n // 6) + "!0-1"),
        Dimension("commas", lambda n: "," * n),
        Dimension("hyphens", lambda n: "a-" * (n // 2)),
        Dimension("blanks", lambda n: "mon" + " " * n + "x"),
        Dimension("digits", lambda n: "1" * n),
    ),
)  # fmt: skip


def spooled(entries: list[UrlEntry]) -> bytes:
    """Return the spool file of some entries."""
    with TemporaryDirectory() as folder:
        writer = SpoolWriter(
            Path(folder) / "x.set", SpoolHeader(7, 3, 1), lambda _: None, 1 << 40, FolderSync(Path(folder))
        )
        for entry in entries:
            writer.add(entry)
        return writer.commit().read_bytes()


def read_spooled(data: bytes) -> int:
    """Read a spool file as intake does."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.set"
        path.write_bytes(data)
        with SpoolReader(path) as reader:
            reader.verify()
            at, count = 0, 0
            while at < reader.end:
                found, at = reader.records(at, 500)
                count += len(found)
            return count


def _entries(form: UrlEntry, size: int) -> Callable[[int], bytes]:
    return lambda n: spooled([form] * max(1, n // size))


SPOOL = Parser(
    "spool_file", STORE, 1 << 62, read_spooled, _entries(UrlEntry("http://h/page.html", "text/html"), 80),
    (
        Dimension("long URLs", _entries(UrlEntry("http://h/" + "x" * 2000, "text/html", furl="http://h/" + "x" * 2000), 4100)),
        Dimension("characters to be escaped", _entries(UrlEntry("http://h/" + '\\"' * 900, "text/html"), 3700)),
        Dimension("characters beyond ASCII", _entries(UrlEntry("http://h/" + "\u4e2d" * 900, "text/html"), 2800)),
        Dimension("lone surrogates", _entries(UrlEntry("http://h/" + "\u4e2d" * 900, "text/html", subtype="a: " + "b" * 200), 3000)),
    ),
    start=250_000,
)  # fmt: skip


def reading_directives(form: str) -> Callable[[bytes], int]:
    """Return what reads a file of directives."""

    def read(data: bytes) -> int:
        try:
            return sum(1 for _ in READERS[form](io.BytesIO(data)))
        except Unreadable:
            return 0

    return read


_XML = f'<lococa:directives xmlns:lococa="{NAMESPACE}">'
_DIRECTIVE = "<directive link='http://h/a'>"
DIRECTIVES = (
    Parser(
        "directives_text", COMMAND, 1 << 62, reading_directives("text"),
        lambda n: b"[http://h/page.html, http://h/, 2, {anna, bert}]\n" * max(1, n // 49),
        (
            grown("length of a line", "x"), grown("commas", ", ", "[http://h/", "]"), grown("owners", "a,", "[http://h/, , 1, {", "}]\n"),
            grown("many owners", "[http://h/, , 1, {" + "a,b," * 3000 + "}]\n"), grown("blanks", "," + " " * 8000 + "\n", "["),
            grown("lines", "\n"), grown("wrong lines", "x\n"), grown("long links", "[http://h/" + "%e4" * 600 + ", , 1, {}]\n"),
            grown("bytes that are no UTF-8", b"\xff\n"),
        ),
        start=64_000,
    ),
    Parser(
        "directives_jsonl", COMMAND, 1 << 62, reading_directives("jsonl"),
        lambda n: b'{"link": "http://h/page.html", "depth": 2, "owners": ["anna"]}\n' * max(1, n // 62),
        (
            grown("nesting", "[" * 16_000 + "\n"), grown("nested objects", '{"a":' * 3000 + "\n"), grown("digits", '{"depth":' + "1" * 16_000 + "}\n"),
            grown("owners", '{"link":"http://h/","owners":[' + '"a",' * 3900 + '"a"]}\n'), grown("keys", "{" + '"a":1,' * 2600 + '"a":1}\n'),
            grown("escapes", '{"link":"' + "\\u0041" * 2600 + '"}\n'), grown("exponents", '{"depth":1e' + "9" * 400 + "}\n"),
        ),
        start=64_000,
    ),
    Parser(
        "directives_xml", COMMAND, 1 << 62, reading_directives("xml"),
        lambda n: (_XML + f"{_DIRECTIVE}<owner>anna</owner></directive>\n" * max(1, n // 62)).encode(),
        (
            grown("owners", "<owner>a</owner>", _XML + _DIRECTIVE), grown("references in an owner", "&amp;", f"{_XML}{_DIRECTIVE}<owner>"),
            grown("owners of references", f"{_DIRECTIVE}<owner>{'&amp;' * 3000}</owner></directive>", _XML),
            grown("lines in an owner", f"{_DIRECTIVE}<owner>{chr(10) * 16_000}</owner></directive>", _XML),
            grown("comments", "<!---->", _XML), grown("one comment", "x", _XML + "<!--"), grown("instructions", "<?x?>", _XML),
            grown("attributes", "a='b' ", _XML + "<directive "), grown("blanks", " \n", _XML),
            grown("length of a link", f"<directive link='{'x' * 60_000}'/>", _XML),
            Dimension("names", lambda n: (_XML + "".join(f"<?x{number} ?>" for number in range(n // 9))).encode()),
        ),
        start=64_000,
    ),
)  # fmt: skip


def read_pipe(data: bytes) -> int:
    """Read what ``file2url`` hands to ``lcccpstate``."""
    try:
        return sum(1 for _ in pipe.Reading(io.BytesIO(data)))
    except Stop:
        return 0


def read_state(data: bytes) -> int:
    """Read the state file of ``lcccpstate``."""
    try:
        return sum(1 for _ in Reader(io.BytesIO(data)).lines())
    except Damaged:
        return 0


_LINES = lambda n: b'<url curl="page.html" mimetype="text/html" len="12"/>\n' * max(1, n // 54)  # noqa: E731
PIPE = Parser(
    "pipe", COMMAND, 1 << 62, read_pipe, _LINES,
    (
        grown("attributes", "<url curl='a' mimetype='a/b' " + " ".join(f"a{n}='b'" for n in range(5000)) + "/>\n"),
        grown("values", f"<url curl='{'&amp;' * 12_000}'/>\n"), grown("comments", f"<!--{'>' * 60_000}--><url/>\n"),
        grown("blank lines", "\n"), grown("one line", "x"), grown("kept", "<keep curl='a'/>\n"),
        grown("lines of one element", "\n", "<url"),
        Dimension("names", lambda n: "".join(f"<url a{number}='b'/>\n" for number in range(n // 16)).encode()),
    ),
    start=64_000,
)  # fmt: skip
_STATE = '<state version="1" id="a" base="" set="" lcc="" pid="" urlprefix="" seq="1"/>\n'
STATE = Parser(
    "state_file", COMMAND, 1 << 62, read_state, lambda n: _STATE.encode() + _LINES(n),
    (grown("one line", "x", _STATE), grown("empty lines", "\n", _STATE), grown("length of its header", "x", '<state version="1" id="')),
    start=64_000,
)  # fmt: skip


def read_verdict(data: bytes) -> int:
    """Read the answer of a UNS, as ``lcccp`` does."""
    reader, count = AnswerReader(), 0
    reader.is_sent(b"\n" * len(data))
    try:
        for at in range(0, len(data), 16_384):
            count += len(reader.feed(data[at : at + 16_384]))
    except NotAnAnswer:
        pass
    return count


_RESULT = "<lococa:set_result><errors>"
ANSWERS = Parser(
    "uns_answer", COMMAND, 1 << 62, read_verdict,
    lambda n: (_RESULT + '<url code="703" url="http://h/page.html" curl="page.html">no such type</url>\n' * max(1, n // 78)).encode(),
    (
        grown("one comment", ">", _RESULT + "<!--"), grown("comments", "<!-- -->", _RESULT), grown("text", "x>", _RESULT),
        grown("length of a text", "x", _RESULT), grown("answers", "<lococa:set_result></lococa:set_result>"),
        grown("digits", f'<url code="{"1" * 4000}"/>', _RESULT), grown("nesting", "<x>", _RESULT),
        grown("types", "<mime>a/b</mime>", "<lococa:init_accepted>"),
        Dimension("names", lambda n: (_RESULT + "".join(f"<x{number}/>" for number in range(n // 9))).encode()),
    ),
    start=64_000,
)  # fmt: skip

PARSERS = (UNS, UNS_LOGIN, PROXY, HOURS, SPOOL, *DIRECTIVES, PIPE, STATE, ANSWERS)
