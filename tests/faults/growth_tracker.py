"""What reads listings of servers and questions of strangers to the mirror tracker, and how these can grow."""

from contextlib import suppress
from io import BytesIO

from lcc_scrapy.apps.tracker import rsync
from lcc_scrapy.apps.tracker.entries import Unlisted
from lcc_scrapy.apps.tracker.ftp_listing import _lines, _read_facts
from lcc_scrapy.apps.tracker.listings import read
from lcc_scrapy.apps.tracker.manifests import Collected
from lcc_scrapy.apps.tracker.rsync import _unread
from lcc_scrapy.apps.tracker.rules.icp import LONGEST, BadMessage, Query
from lcc_scrapy.apps.tracker.rules.questions import QUERY_MAX, BadQuestion, Question, preferred
from lcc_scrapy.apps.tracker.rules.tracked import Place
from lcc_scrapy.apps.tracker.summing import summed
from lcc_scrapy.apps.tracker.waiting import Step
from lcc_scrapy.domain.errors import UrlRefused
from tests.faults.growth import Dimension, Parser, grown

MOST_BYTES = 2_000_000_000
PIECE = 1 << 16
ENTRY = "-rw-r--r-- 1 a b 5 Jan 25 19:43 f%07d\n"
DIR = "drwxr-xr-x 2 a b 4096 Jan 25 19:43 d%07d\n"


def _read(text: bytes) -> object:
    try:
        summary = summed(read(text[begin : begin + PIECE] for begin in range(0, len(text), PIECE)))
    except Unlisted as error:
        return error
    return sum(1 for _ in summary.rows())


def _numbered(form: str, head: str = ".:\n") -> Dimension:
    def make(n: int) -> bytes:
        return (head + "".join(form % number for number in range(max(1, n // len(form))))).encode()

    return Dimension(f"{form[:30]!r}", make)


def _flat(n: int) -> bytes:
    """Make directories, each with a block of one file."""
    count = max(1, n // 100)
    blocks = "".join(f"\n./d{number:07}:\n{ENTRY % 1}" for number in range(count))
    return f".:\n{''.join(DIR % number for number in range(count))}{blocks}".encode()


def _deep(n: int) -> bytes:
    """Make directories inside of each other, which end at the bound of levels."""
    text, path = "", "."
    while len(text) < n:
        text += f"{path}:\n{DIR % 1}\n"
        path += f"/d{1:07}"
        if len(path) > 4000:
            path = "."
    return text.encode()


LISTINGS = Parser(
    "listings of servers", "a thread", MOST_BYTES, _read, _numbered(ENTRY).make,
    (
        _numbered(DIR), Dimension("blocks", _flat), Dimension("nesting", _deep), _numbered("l" + ENTRY[1:-1] + " -> x\n"),
        _numbered("what is no entry %d\n"), _numbered(ENTRY + "what is no entry\n"), _numbered("\n./d%d:\n"),
        _numbered("-rw-r--r-- 1 a b 99999999999999999999999 Jan 25 19:43 f%07d\n"), _numbered("-rw-r--r-- 1 a %d\n"),
        grown("blank lines", "\n", ".:\n"), grown("returns", "\r\n", ".:\n"), grown("a line", "a"), grown("a head", "./a", "", ":\n"),
        grown("blanks", " ", "-rw-r--r--"), grown("lines of blanks", " " * 99 + "\n-rw-r--r-- 1" + " " * 99), grown("zero bytes", b"\0\n"),
        grown("digits", "9" * 99 + "\n-rw-r--r-- " + "1 " * 9), grown("the same head", "\n.:\n", ".:\n"), grown("dots", "\n./..:\n"),
    ),
)  # fmt: skip


def _asked(query: bytes) -> object:
    with suppress(BadQuestion, UrlRefused):
        return Place.parse(Question.parse(query).url)
    return None


QUESTIONS = Parser(
    "questions to the tracker", "a thread", QUERY_MAX, _asked, grown("", "a", "url=http://a.example/").make,
    (
        grown("ampersands", "&"), grown("domains", "&tld=de"), grown("URLs", "&url=a"), grown("parameters", "&x=y"),
        grown("slashes", "/", "url=http://a/"), grown("escapes", "%FF", "url=http://a/"), grown("blanks", "%20", "url="),
        grown("names", "/%20", "url=http://a"), grown("equals signs", "="), grown("per cent signs", "%", "url=http://a/"),
    ),
    fair_cpu=1e-7,
    slack=2 << 20,
)  # fmt: skip
TYPES = Parser(
    "types that clients like", "a thread", 1 << 14, lambda text: preferred(text.decode("latin-1"), ("a/b", "c/d", "e/f")),
    grown("", "text/html,").make,
    (grown("commas", ","), grown("semicolons", ";"), grown("qualities", ";q=0.1"), grown("types", "*/*,"), grown("one type", "a")),
    fair_cpu=1e-7,
)  # fmt: skip


def _facts(text: bytes) -> object:
    with suppress(Unlisted):
        return _read_facts(Step((b"a",), (b"u",)), _lines(BytesIO(text)))
    return None


FACTS = Parser(
    "listings of one FTP directory", "a thread", MOST_BYTES, _facts, grown("", "type=file;size=5; f\r\n").make,
    (
        grown("directories", "type=dir;unique=1; d\r\n"), grown("links", "type=OS.unix=slink:/a; l\r\n"), grown("lines", "\n"), grown("a line", "a"),
        grown("facts", "a=b;", "", " f\n"), grown("semicolons", ";"), grown("lines of facts", "a=b;" * 99 + " f\n"), grown("marks", "type=dir;unique=" + "u" * 999 + "; d\n"),
    ),
)  # fmt: skip


def _complained(said: bytes) -> object:
    with suppress(Unlisted):
        return _unread(23, said)
    return None


COMPLAINTS = Parser(
    "complaints of rsync", "the event loop", rsync.COMPLAINTS, _complained, grown("", 'rsync: opendir "/a" (in m) failed: no\n').make,
    (
        grown("modules", '" (in ', 'rsync: opendir "'), grown("ends", ") failed: ", 'rsync: opendir "/a" (in m'), grown("both", '" (in m) failed: ', 'rsync: opendir "'),
        grown("escapes", "\\#012", 'rsync: opendir "/', '" (in m) failed: no'), grown("slashes", "/", 'rsync: opendir "', '" (in m) failed: no'), grown("lines", "\n"),
    ),
    fair_cpu=1e-7,
)  # fmt: skip


def _summed(text: bytes) -> object:
    collected = Collected()
    collected.add(BytesIO(text), (b"a",))
    return collected


SUMS = Parser(
    "checksum files", "a thread", MOST_BYTES, _summed, _numbered("0" * 64 + "  f%07d\n", "").make,
    (
        _numbered("0" * 64 + "  d%07d/f\n", ""), _numbered("0" * 64 + "  " + "d/" * 99 + "%07d/f\n", ""), grown("names", "a/", "0" * 64 + "  ", "f"),
        grown("escapes", "\\n", "\\" + "0" * 64 + "  "), grown("lines", "\n"), grown("digits", "0"), grown("the same name", "0" * 64 + "  f\n"),
    ),
)  # fmt: skip


def _queried(data: bytes) -> object:
    with suppress(BadMessage):
        return Query.parse(data)
    return None


QUERIES = Parser(
    "ICP messages", "the event loop", LONGEST, _queried, lambda n: bytes(Query(1, "http://a/" + "a" * (n - 40))),
    (
        grown("zero bytes", b"\0"), Dimension("a URL", lambda n: bytes(Query(1, "a" * (n - 40)))), grown("bytes of no query", b"\x01"),
        Dimension("blanks", lambda n: bytes(Query(1, " " * (n - 40)))),
    ),
    start=2000,
    fair_cpu=2e-9,
)  # fmt: skip
PARSERS = (LISTINGS, QUESTIONS, TYPES, FACTS, COMPLAINTS, SUMS, QUERIES)
