"""Every way in which a fetch can end, by two real crawls against a server that does as it is told.

One runs in a project with middlewares and pipelines of its own that break what can be broken; the other without any.
``docs/outcomes.md`` is written from what is seen here: ``LCC_WRITE_DOCS=1`` renews it.
"""

import gzip
import hashlib
import json
import os
import re
import socket
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import brotli
import pytest
from backports import zstd

from lcc_scrapy.domain.errors import text_of
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.push.client import Address, Conversation, connect
from lcc_scrapy.wire.messages import Init, InitAccepted, InitRejected, SetAccepted, SetStart
from tests.harness import PASSWORD, Lcc, lccs, wait_for
from tests.integration.project import make_project
from tests.integration.site import Answer, Site, overlaps, page, raw, unknown_certificate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

DOCUMENT = Path(__file__).parents[2] / "docs" / "outcomes.md"
FIRST = b"<p>the first edition</p>"
BODY = b"<p>the body</p>" * 7
LARGE = bytes(range(256)) * 200
ROBOTS = "User-agent: *\nDisallow: /robots-denied/page.html\n"
SETTINGS = {
    "LCC_RETRY_DELAYS": "1s,1s",
    "LCC_HOST_BACKOFF": "1s",
    "LCC_FETCH_TIMEOUT": "15s",
    "LCC_FETCH_MAX_BYTES": "60k",
    "LCC_MEMORY_BODY": "8k",
}
PROJECT = {
    "settings.py": """
        BOT_NAME = "shop"
        LOG_LEVEL = "DEBUG"
        SPIDER_MODULES = ["shop.spiders"]
        ADDONS = {"lcc_scrapy.addon.LccAddon": 100}
        DOWNLOADER_MIDDLEWARES = {"shop.parts.Trouble": 500}
        ITEM_PIPELINES = {"shop.parts.Quality": 300}
    """,
    "parts.py": """
        from urllib.parse import urlsplit

        from scrapy.exceptions import DropItem, IgnoreRequest
        from scrapy.http import HtmlResponse, Response

        from lcc_scrapy.domain.errors import NotDurable
        from lcc_scrapy.items import LccDocument


        def place(url):
            return urlsplit(url).path


        class Trouble:
            disk_is_full = True

            def process_request(self, request):
                match place(request.url):
                    case "/middleware-raises/page.html":
                        raise ValueError("trouble")
                    case "/middleware-drops/page.html":
                        raise IgnoreRequest("not today")
                    case "/middleware-answers/page.html":
                        return HtmlResponse(request.url, body=b"made up")
                    case "/middleware-asks-again/page.html":
                        return request.replace(url=request.url + "?again")
                    case "/private-redirect/page.html":
                        return Response(request.url, status=302, headers={"Location": request.url.replace("page", "inner")})

            def process_response(self, request, response):
                if place(request.url) == "/middleware-raises-late/page.html":
                    raise ValueError("trouble with the answer")
                if place(request.url) == "/disk-full/page.html" and self.disk_is_full:
                    self.disk_is_full = False
                    raise NotDurable("no space left on device")
                return response


        class Quality:
            seen = set()

            def process_item(self, item):
                where = place(item.url) if isinstance(item, LccDocument) else ""
                if where == "/pipeline-drops/page.html":
                    raise DropItem("not good enough")
                if where == "/pipeline-raises/page.html":
                    raise ValueError("broken")
                if where == "/pipeline-recovers/page.html" and where not in self.seen:
                    self.seen.add(where)
                    raise ValueError("broken once")
                return item
    """,
    "spiders/push.py": """
        from scrapy import Request

        from lcc_scrapy.spiders.lcc_push import LccPushSpider
        from shop.parts import place


        class ShopPush(LccPushSpider):
            name = "shop_push"

            def parse_document(self, response):
                if place(response.url) == "/callback-raises/page.html":
                    raise ValueError("cannot read this")
                if place(response.url) == "/callback-asks/page.html":
                    yield Request(response.urljoin("extra.html"), callback=self.parse_document)
    """,
}


@dataclass(frozen=True)
class Case:
    """One outcome. Its provider pushes ``page.html`` and then ``next.html``.

    ``copy``: ``page.html`` was in the cache before. ``further`` are more paths of the site. ``waits``: the
    host fails for so long that only patience ends it. ``charged`` says which bytes are paid for where that
    is not simply all that the site sent. The other fields are what must be seen afterwards.
    """

    name: str
    title: str
    answers: tuple[Answer, ...]
    row: str
    code: int = 0
    requests: str = "page.html"
    when: str = ""
    copy: Answer | None = None
    declared: dict[str, object] = field(default_factory=dict)
    provider: dict[str, Any] = field(default_factory=dict)
    further: dict[str, Answer] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    place: str = "site"
    body: bytes = BODY
    waits: bool = False
    charged: str = ""


STORED, REPLACED, CONFIRMED, KEPT, REMOVED, NONE = (
    "stored",
    "replaced",
    "confirmed: time, file and place in the feed unchanged",
    "kept as it was",
    "removed",
    "none",
)
DIFFERS = "kept as it was, and told as not what was declared"
AT_ONCE = "at once"
RETRIED = "at once; the URL itself again at the end of its set, after each of `LCC_RETRY_DELAYS`"
RESTS = "when there is room, and nobody's for some seconds; the URL keeps its place"
WAITS = "when the wait is over (`LCC_HOST_BACKOFF`, growing; `Retry-After`); the URL keeps its place until `LCC_HOST_PATIENCE` is used up"
BUSY = (
    "when the wait is over (`LCC_HOST_BACKOFF`, growing; `Retry-After`), another URL of the host first; if that one is"
    " answered, the URL itself again at the end of its set, after each of `LCC_RETRY_DELAYS`"
)
THREE_TIMES = "3x page.html"
UNREADABLE = "3x page.html; each at once a second time if it came over a kept connection"
EACH_TIME = "what arrived, each time"
CUT_OFF = "what arrived until then"
COPY = page(FIRST)
VALIDATED = page(FIRST, etag='"one"', last_modified="Tue, 01 Jan 2030 00:00:00 GMT")
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"


def status(line: str, **headers: str) -> Answer:
    return page("a word about it", line, **headers)


def moved(line: str, to: str) -> Answer:
    return page("", line, location=to)


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def encoded(name: str, data: bytes) -> Answer:
    return page(data, content_encoding=name)


CASES = (
    Case("ok", "200, new", (page(BODY),), STORED),
    Case("changed", "200, other bytes than before", (page(BODY),), REPLACED, copy=COPY),
    Case("same", "200, the same bytes", (page(FIRST),), CONFIRMED, copy=COPY, declared={"mtime": 2}),
    Case(
        "not-modified",
        "304",
        (page("", "304 Not Modified", content_length="", content_type=""),),
        CONFIRMED,
        requests="page.html (If-None-Match)",
        copy=VALIDATED,
        declared={"mtime": 2},
    ),
    Case("declared-changed", "200 after another md5 was declared", (page(BODY),), REPLACED, copy=VALIDATED,
         declared={"md5": hashlib.md5(BODY).hexdigest()}),
    Case("unasked-304", "304 though nothing was cached", (page("", "304 Not Modified", content_length=""),), NONE, 613),
    Case("large", "200, larger than `LCC_MEMORY_BODY`", (page(LARGE),), STORED, body=LARGE),
    Case("empty", "200, empty body", (page(b""),), STORED, body=b""),
    Case("gzip", "200, gzip", (encoded("gzip", gzip.compress(BODY)),), STORED),
    Case("deflate", "200, deflate", (encoded("deflate", zlib.compress(BODY)),), STORED),
    Case("br", "200, br", (encoded("br", brotli.compress(BODY)),), STORED),
    Case("zstd", "200, zstd", (encoded("zstd", zstd.compress(BODY)),), STORED),
    Case("chunked", "200, chunked", (raw(CHUNKED, chunk(BODY), b"0\r\n\r\n"),), STORED),
    Case("no-content", "204", (page("", "204 No Content", content_length=""),), NONE, 614, THREE_TIMES, RETRIED),
    Case("partial", "206, unasked", (status("206 Partial Content"),), NONE, 614, THREE_TIMES, RETRIED),
    Case("gone-451", "451", (status("451 Gone"),), REMOVED, 451, copy=COPY),
    *(
        Case(f"gone-{code}", f"{code}", (status(f"{code} No"),), REMOVED, code, THREE_TIMES, RETRIED, COPY)
        for code in (404, 410, 401, 403)
    ),
    Case("late-404", "404, then 200", (status("404 Not yet"), page(BODY)), REPLACED, 0, "2x page.html", RETRIED, COPY),
    Case("large-404", "404 with a large body", (page(LARGE, "404 Not Found"),), REMOVED, 404, THREE_TIMES, RETRIED, COPY),
    Case("error-500", "500", (status("500 Oh"),), KEPT, 500, THREE_TIMES, RETRIED, COPY),
    Case("error-602", "602, like all of 600 to 999", (status("602 Odd"),), KEPT, 500, THREE_TIMES, RETRIED, COPY),
    Case("error-recovers", "500, then 200", (status("500 Oh"), page(BODY)), REPLACED, 0, "2x page.html", RETRIED, COPY),
    Case("error-501", "501", (status("501 Never"),), KEPT, 501, copy=COPY),
    Case("busy-503", "503 with Retry-After, then 200", (status("503 Busy", retry_after="2"), page(BODY)), REPLACED, 0,
         "2x page.html", BUSY, COPY),
    Case("busy-429", "429, then 200", (status("429 Slow"), page(BODY)), REPLACED, 0, "2x page.html", BUSY, COPY),
    Case("busy-always", "503, for ever, while the host answers others", (status("503 Busy"),), KEPT, 503, THREE_TIMES, BUSY,
         COPY),
    Case(
        "redirects",
        "301, 302, 303, 307, 308 inside the roots, then 200",
        (moved("301 M", "/redirects/a"),),
        STORED,
        requests="page.html, a, b, c, d, e",
        further={
            "a": moved("302 M", "b"), "b": moved("303 M", "./c"), "c": moved("307 M", "/redirects/d"),
            "d": moved("308 M", "e"), "e": page(BODY),
        },
    ),
    Case("redirect-outside", "redirect outside the roots", (moved("302 M", "/ok/secret.html"),), KEPT, 605, copy=COPY),
    Case("redirect-loop", "redirect loop", (moved("302 M", "a"),), KEPT, 606, "page.html, a, b, a, b, a, b, a, b, a, b",
         copy=COPY, further={"a": moved("302 M", "b"), "b": moved("302 M", "a")}),
    Case("redirects-too-many", "more than `LCC_REDIRECTS` redirects", (moved("302 M", "1"),), KEPT, 606,
         "page.html, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10", copy=COPY,
         further={str(number): moved("302 M", str(number + 1)) for number in range(1, 12)}),
    Case("redirect-bodies", "redirect with a body, then 200", (page("moved", "301 M", location="a"),), STORED,
         requests="page.html, a", further={"a": page(BODY)}),
    Case("redirect-nowhere", "3xx without Location", (status("302 Found"),), KEPT, 613, copy=COPY),
    Case("redirect-scheme", "redirect to another scheme", (moved("302 M", "ftp://127.0.0.1/x"),), KEPT, 613, copy=COPY),
    Case("choices", "300", (status("300 Choices"),), KEPT, 613, copy=COPY),
    Case("silent", "no answer within `LCC_FETCH_TIMEOUT`", (Answer((b"HTTP/1.1 200 OK\r\n\r\n",), wait=3600),), KEPT, 603,
         THREE_TIMES, RETRIED, COPY),
    Case("stalled", "body that stalls", (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", b"-done", gap=3600),), KEPT,
         603, THREE_TIMES, RETRIED, COPY),
    Case("refused", "connection refused", (), NONE, 602, "", WAITS, waits=True, place="closed"),
    Case("deaf", "no connection within `LCC_FETCH_TIMEOUT`", (), NONE, 602, "", WAITS, waits=True, place="deaf"),
    Case("robots-first", "200 from a host whose robots.txt was not known yet", (page(BODY),), STORED, place="robots-first",
         charged=str(len(ROBOTS) + len(BODY))),
    Case("robots-down", "robots.txt answers 5xx", (page(BODY),), NONE, 602, "", WAITS, waits=True, place="robots-down",
         charged="the answer's body, each time"),
    Case("unknown-host", "host name not found", (), NONE, 601, "", WAITS, waits=True, place="unknown"),
    Case("unknown-certificate", "certificate that does not verify", (), NONE, 612, "", WAITS, waits=True,
         place="unknown-certificate"),
    Case("too-large", "larger than `LCC_FETCH_MAX_BYTES`", (page(b"x" * 70_000),), KEPT, 604, copy=COPY, charged=CUT_OFF),
    Case("too-large-chunked", "the same, of unknown length", (raw(CHUNKED, *[chunk(b"x" * 10_000)] * 7, b"0\r\n\r\n"),), KEPT,
         604, copy=COPY, charged=CUT_OFF),
    Case("too-large-packed", "the same, once decoded", (encoded("gzip", gzip.compress(b"x" * 70_000)),), KEPT, 604, copy=COPY),
    Case("cut", "body shorter than Content-Length", (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf"),), KEPT, 614,
         UNREADABLE, RETRIED, COPY, charged=EACH_TIME),
    Case("cut-chunked", "chunked body without end", (raw(CHUNKED, chunk(BODY)),), KEPT, 614, UNREADABLE, RETRIED, COPY, charged=EACH_TIME),
    Case("bad-gzip", "body that is not gzip", (encoded("gzip", b"this is no gzip"),), KEPT, 614, UNREADABLE, RETRIED, COPY, charged=EACH_TIME),
    Case("cut-gzip", "gzip body without end", (encoded("gzip", gzip.compress(BODY)[:-9]),), KEPT, 614, UNREADABLE, RETRIED, COPY, charged=EACH_TIME),
    Case("garbage", "not HTTP", (raw(b"\x00\x01\x02 hello\r\n\r\n"),), KEPT, 614, UNREADABLE, RETRIED, COPY),
    Case("bad-header", "`Content-Length` without colon", (raw(b"HTTP/1.1 200 OK\r\nContent-Length 1\r\n\r\n"),), KEPT, 614,
         UNREADABLE, RETRIED, COPY),
    Case("nothing", "connection closed without an answer (asked once more at once)", (raw(b""),), KEPT, 614, "6x page.html",
         RETRIED, COPY),
    Case("robots-denied", "forbidden by robots.txt", (page(BODY),), NONE, 611, ""),
    Case("wrong-md5", "other md5 than declared, `record`", (page(BODY),), STORED, 608, THREE_TIMES, RETRIED, declared={"md5": "0" * 32}),
    Case("wrong-len", "other len than declared, `record`", (page(BODY),), STORED, 608, THREE_TIMES, RETRIED, declared={"len": 3}),
    Case("strict-md5", "other md5 than declared, `strict`", (page(BODY),), DIFFERS, 608, THREE_TIMES, RETRIED, COPY,
         declared={"md5": "0" * 32}, provider={"declared": "strict"}),
    Case("late-md5", "the former page, then the one that was declared", (page(FIRST), page(BODY)), REPLACED, 0, "2x page.html", RETRIED,
         COPY, declared={"md5": hashlib.md5(BODY).hexdigest()}),
    Case("empty-page", "200, empty body where bytes were declared", (page(b""),), DIFFERS, 608, THREE_TIMES, RETRIED, COPY,
         declared={"len": 5}),
    Case("other-type", "other mimetype than declared, `record`", (page(BODY, content_type="image/png"),), STORED, 607, THREE_TIMES,
         RETRIED),
    Case("strict-type", "other mimetype than declared, `strict`", (page(BODY, content_type="image/png"),), DIFFERS, 607, THREE_TIMES,
         RETRIED, COPY, provider={"declared": "strict"}, declared={"mtime": 2}),
    Case("quota-files", "files quota used up", (page(BODY),), NONE, 609, provider={"filesmax": 1}, before=("other.html",)),
    Case("quota-space", "space quota used up", (page(BODY),), NONE, 610, provider={"spacemax": 50}),
    Case("private", "private address", (), NONE, 615, "", provider={"allowprivate": False}, place="private"),
    Case("private-redirect", "redirect to a private address", (), NONE, 615, "", provider={"allowprivate": False},
         place="private"),
    Case("middleware-raises", "a team's middleware fails on the request", (page(BODY),), NONE, 616, "", RETRIED),
    Case("middleware-drops", "a team's middleware ignores the request", (page(BODY),), NONE, 616, "", RETRIED),
    Case("middleware-answers", "a team's middleware answers itself", (page(BODY),), NONE, 616, "", RETRIED),
    Case("middleware-asks-again", "a team's middleware puts another request in its place", (page(BODY),), NONE, 616, "", RETRIED),
    Case("middleware-raises-late", "a team's middleware fails on the answer", (page(BODY),), NONE, 616, THREE_TIMES, RETRIED),
    Case("callback-raises", "`parse_document` fails", (page(BODY),), STORED),
    Case("callback-asks", "`parse_document` yields a request (it is not fetched)", (page(BODY),), STORED),
    Case("disk-full", "disk full while the document arrives, then room again", (page(BODY),), STORED, 0, "2x page.html", RESTS),
    Case("pipeline-drops", "a team's pipeline drops the document", (page(BODY),), NONE, 616),
    Case("pipeline-raises", "a team's pipeline fails", (page(BODY),), NONE, 616, THREE_TIMES, RETRIED),
    Case("pipeline-recovers", "a team's pipeline fails once", (page(BODY),), STORED, 0, "2x page.html", RETRIED),
)  # fmt: skip
BY_NAME = {case.name: case for case in CASES}
TEAM, PLAIN = "with a team's components", "without"
OF_A_TEAM = ("middleware-", "callback-", "pipeline-", "disk-full")
WAYS = [
    (way, name) for way in (TEAM, PLAIN) for name in BY_NAME if way == TEAM or not name.startswith(OF_A_TEAM)
]


@dataclass
class Seen:
    """What became of a case."""

    requests: str
    row: str
    codes: list[int]
    when: str
    charged: str


class World:
    """A site, a project, an LCC in it, and all cases done once."""

    def __init__(self, lcc: Lcc, site: Site, way: str) -> None:
        self.lcc = lcc
        self.site = site
        self.spider = "shop_push" if way == TEAM else "lcc_push"
        self.cases = [BY_NAME[name] for which, name in WAYS if which == way]
        self.pids = {case.name: pid for pid, case in enumerate(self.cases, 1)}
        self.port, self.private = site.listen(), site.listen()
        self.tls = site.listen(unknown_certificate(lcc.folder))
        self.robots_first, self.robots_down = site.listen(), site.listen()
        self._closed, self._deaf, self._caller = socket.socket(), socket.socket(), socket.socket()
        self._closed.bind(("127.0.0.1", 0))
        self._deaf.bind(("127.0.0.1", 0))
        self._deaf.listen(0)
        self._caller.connect(self._deaf.getsockname())  # and there is no room for another one
        self._hosts = {
            "site": f"http://127.0.0.1:{self.port}",
            "private": f"http://127.0.0.1:{self.private}",
            "closed": f"http://127.0.0.1:{self._closed.getsockname()[1]}",
            "deaf": f"http://127.0.0.1:{self._deaf.getsockname()[1]}",
            "robots-first": f"http://127.0.0.1:{self.robots_first}",
            "robots-down": f"http://127.0.0.1:{self.robots_down}",
            "unknown": "http://nowhere.invalid",
            "unknown-certificate": f"https://127.0.0.1:{self.tls}",
        }
        self.told: dict[str, list[int]] = {}
        self.first: dict[str, tuple[Any, ...]] = {}

    def close(self) -> None:
        for one in (self._closed, self._caller, self._deaf):
            one.close()

    def url(self, case: Case, name: str = "page.html") -> str:
        host = self._hosts["site" if name == "next.html" and case.place != "private" else case.place]
        return f"{host}/{case.name}/{name}"

    # --- the story -------------------------------------------------------------------------------

    def run(self) -> None:
        self._register()
        self.site.put("/robots.txt", page(ROBOTS))
        self.site.put(f"{self.robots_down}/robots.txt", status("503 Down"))
        self.lcc.start(spider=self.spider)
        self._first_edition()
        self._second_edition()
        self.waiting = sorted(set(self._queued()))
        assert self.lcc.stop() == 0
        self.lcc.settings["LCC_HOST_PATIENCE"] = "0s"
        self.lcc.start(spider=self.spider)
        self.lcc.wait_until_fetched(60)
        for case in self.cases:
            self.told[case.name] = self._codes(case)
        assert self.lcc.stop() == 0

    def _register(self) -> None:
        providers = [
            Provider(self.pids[case.name], "", **{"allowprivate": True, **case.provider})
            for case in self.cases
        ]
        roots = [
            list(dict.fromkeys(self.url(case, name)[: -len(name)] for name in ("page.html", "next.html")))
            for case in self.cases
        ]
        self.lcc.register(*providers, roots=roots)

    def _first_edition(self) -> None:
        pushed = False
        for case in self.cases:
            names = [*(["page.html"] if case.copy else []), *case.before]
            for name in names:
                self.site.put(f"/{case.name}/{name}", case.copy or page("x"))
            if names:
                pushed = True
                self._push(case, *[{"curl": self.url(case, name), "mtime": 1} for name in names])
        assert pushed
        self.lcc.wait_until_fetched(60)
        self.first = {case.name: self._row(case) for case in self.cases}
        newest = max(row[1] for row in self.first.values() if row)
        wait_for(lambda: int(time.time()) > newest, 5, "the next second")
        self.site.visits.clear()
        self._log_before = len(self.lcc.log_text())

    def _second_edition(self) -> None:
        for case in self.cases:
            self.site.put(f"/{case.name}/page.html", *(case.answers or (page("must not be seen"),)))
            self.site.put(f"/{case.name}/next.html", page("next"))
            for name, answer in case.further.items():
                self.site.put(f"/{case.name}/{name}", answer)
        for case in self.cases:
            self._push(
                case,
                {"curl": self.url(case), "mtime": 2, **case.declared},
                {"curl": self.url(case, "next.html")},
            )
        patient = {self.pids[case.name] for case in self.cases if case.waits}
        wait_for(
            lambda: not self.lcc.is_spooled() and set(self._queued()) == patient, 40, "all but the patient"
        )

    @contextmanager
    def _provider(self, case: Case) -> Iterator[tuple[Conversation, InitAccepted | InitRejected]]:
        conversation = connect(Address("127.0.0.1", self.lcc.port), 60)
        try:
            yield conversation, conversation.login(Init(str(self.pids[case.name]), PASSWORD))
        finally:
            conversation.close()

    def _push(self, case: Case, *urls: dict[str, object]) -> None:
        given = [
            f"<url {' '.join(f'{name}={quoteattr(str(value))}' for name, value in url.items())}/>".encode()
            for url in ({"mimetype": "text/html", **url} for url in urls)
        ]

        def is_let_in() -> bool:
            with self._provider(case) as (conversation, login):
                if isinstance(login, InitRejected):
                    return False
                verdict = conversation.submit(SetStart(full=False), given, lambda _error: None)
                return isinstance(verdict, SetAccepted)

        wait_for(is_let_in, 20, f"{case.name} to be let in: while the disk is full, nobody is")

    # --- what became of it -----------------------------------------------------------------------

    def answered(self, case: Case) -> list[Answer]:
        """Return what the site sent to the second edition's visits of a case, but for ``next.html``."""
        seen: Counter[str] = Counter()
        answers = []
        for visit in self.site.asked(f"/{case.name}/"):
            if not visit.path.endswith("/next.html"):
                answers.append(
                    self.site.pages[visit.path][min(seen[visit.path], len(self.site.pages[visit.path]) - 1)]
                )
                seen[visit.path] += 1
        return answers

    def _queued(self) -> list[int]:
        return [int(str(pid)) for (pid,) in self.lcc.sql("select pid from qdb")]

    def _row(self, case: Case) -> tuple[Any, ...] | None:
        found = self.lcc.sql(
            "select fetched_time, confirmed_time, fetched_machineid, fetched_fileid, seq, fetched_len, fetched_md5, sha256"
            f" from lccurl where curl = '{self.url(case)}'"
        )
        return found[0] if found else None

    def _codes(self, case: Case) -> list[int]:
        with self._provider(case) as (_, login):
            assert isinstance(login, InitAccepted)
            return [error.code for error in login.errors if error.url == self.url(case)]

    def seen(self, case: Case) -> Seen:
        return Seen(
            self._requests(case),
            self._what_became_of(case),
            self.told[case.name],
            self._when(case),
            self._charged(case),
        )

    def charges(self, case: Case) -> list[int]:
        """Return the bytes charged for each turn of the second edition."""
        found = re.findall(
            rf"charged (\d+) bytes for {re.escape(self.url(case))}$",
            self.lcc.log_text()[self._log_before :],
            re.MULTILINE,
        )
        return [int(size) for size in found]

    def _charged(self, case: Case) -> str:
        runs = [(size, len(list(run))) for size, run in groupby(self.charges(case))]
        return case.charged or ", ".join(
            str(size) if count == 1 or not size else f"{count}x {size}" for size, count in runs
        )

    def _requests(self, case: Case) -> str:
        names = [
            visit.path.rpartition("/")[2] + _conditions(visit.headers)
            for visit in self.site.asked(f"/{case.name}/")
            if not visit.path.endswith("/next.html")
        ]
        if case.requests == UNREADABLE and 3 <= len(names) <= 6:
            return UNREADABLE
        runs = [(name, len(list(run))) for name, run in groupby(names)]
        return ", ".join(name if count == 1 else f"{count}x {name}" for name, count in runs)

    def _what_became_of(self, case: Case) -> str:
        before, now = self.first[case.name], self._row(case)
        if now is None:
            gone = self.lcc.sql(f"select reason from tombstones where curl = '{self.url(case)}'")
            return REMOVED if before and gone else NONE
        data = self.lcc.path_of(now[2], now[3]).read_bytes()
        assert now[5:] == (len(data), hashlib.md5(data).hexdigest(), hashlib.sha256(data).hexdigest())
        if before and now[1:5] == before[1:5]:
            assert data == FIRST
            return KEPT
        if before and (now[0], *now[2:5]) == (before[0], *before[2:5]) and now[1] > before[1]:
            assert data == FIRST
            return DIFFERS if case.code in {607, 608} else CONFIRMED
        assert data == case.body
        return REPLACED if before else STORED

    def _when(self, case: Case) -> str:
        if case.place == "private":
            return AT_ONCE
        names = [visit.path.rpartition("/")[2] for visit in self.site.asked(f"/{case.name}/")]
        assert names.count("next.html") == 1, f"{case.name}: {names}"
        if case.waits:
            return WAITS
        after = names[names.index("next.html") :]
        tries = self.lcc.log_text().count(f"not stored, because this program failed: {self.url(case)} ")
        if "page.html" in after[1:] or tries > 1:
            return BUSY if case.when == BUSY else RETRIED
        if names.count("page.html") > 1:
            return RESTS if case.name == "disk-full" else WAITS
        return AT_ONCE


def body_size(answer: Answer) -> int:
    """Return how many bytes of body an answer has on the wire, without the frames of its chunks."""
    head, _, body = b"".join(answer.pieces).partition(b"\r\n\r\n")
    if answer.wait or b"HTTP/1.1 " not in head:
        return 0
    if b"chunked" in head:
        return len(BODY)
    return len(body.removesuffix(b"-done") if answer.gap else body)


def _conditions(headers: dict[str, str]) -> str:
    asked = [name for name in ("If-Modified-Since", "If-None-Match") if name.lower() in headers]
    return f" ({', '.join(asked)})" if asked else ""


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, World]]:
    folder = tmp_path_factory.mktemp("outcomes")
    project = make_project(folder / "project", PROJECT)
    with Site() as one, Site() as other, lccs(folder) as make:
        made = {
            TEAM: World(make(project=project, **SETTINGS), one, TEAM),
            PLAIN: World(make(**SETTINGS), other, PLAIN),
        }
        try:
            with ThreadPoolExecutor(2) as both:
                for running in [both.submit(world.run) for world in made.values()]:
                    running.result()
            yield made
        finally:
            for world in made.values():
                world.close()


@pytest.fixture
def world(worlds: dict[str, World]) -> World:
    return worlds[TEAM]


def test_all_documents_pass_the_engine_and_the_pipelines(worlds: dict[str, World]) -> None:
    for way, world in worlds.items():
        text = world.lcc.log_text()
        count = {
            name: sum(map(int, re.findall(rf"'{re.escape(name)}': (\d+)", text)))
            for name in ("item_scraped_count", "lcc/stored", "lcc/confirmed", "response_received_count")
        }
        assert count["lcc/stored"] > 50, way
        assert count["lcc/stored"] <= count["item_scraped_count"] < count["response_received_count"], way
        assert count["item_scraped_count"] >= len(stored_in(world)), way


def stored_in(world: World) -> list[Any]:
    return world.lcc.sql("select curl from lccurl")


def test_sites_are_asked_alike_with_and_without_components(worlds: dict[str, World]) -> None:
    def asked(way: str, path: str) -> dict[str, str]:
        headers = worlds[way].site.asked(path)[0].headers
        return {name: value for name, value in headers.items() if name != "host"}

    for path in ("/ok/page.html", "/not-modified/page.html", "/redirects/e", "/robots.txt"):
        assert asked(PLAIN, path) == asked(TEAM, path)
    assert asked(PLAIN, "/ok/page.html").keys() >= {
        "accept",
        "accept-language",
        "accept-encoding",
        "user-agent",
    }


@pytest.mark.parametrize(("way", "name"), WAYS)
def test_every_outcome_leaves_what_it_must(worlds: dict[str, World], way: str, name: str) -> None:
    case = BY_NAME[name]
    seen = worlds[way].seen(case)
    assert seen.row == case.row
    assert seen.codes == ([case.code] if case.code else [])
    if not case.waits:
        assert seen.requests == case.requests
        assert seen.when == (case.when or AT_ONCE)


@pytest.mark.parametrize("name", BY_NAME)
def test_the_bytes_charged_are_those_of_the_bodies_that_were_sent(world: World, name: str) -> None:
    case, charged = BY_NAME[name], world.charges(BY_NAME[name])
    if case.charged == CUT_OFF:
        assert 0 < charged[0] <= 70_000
    elif case.charged.isdigit():
        assert charged == [int(case.charged)]
    elif case.waits:
        body = "a word about it" if name == "robots-down" else ""
        assert set(charged) <= {len(body), len(body + ROBOTS)}, (
            "robots.txt is looked up after the restart, once"
        )
        assert charged.count(len(body)) > 1
    else:
        assert sum(charged) == sum(map(body_size, world.answered(case)))


def test_the_stats_count_what_was_charged(world: World) -> None:
    text = world.lcc.log_text()
    counted = re.findall(r"'lcc/bytes_charged': (\d+)", text)
    assert sum(map(int, counted)) == sum(map(int, re.findall(r"charged (\d+) bytes for ", text)))
    assert len(counted) == 2


@pytest.mark.parametrize("way", [TEAM, PLAIN])
def test_a_retry_asks_caches_on_the_way_to_look_at_the_site(worlds: dict[str, World], way: str) -> None:
    for name in ("late-md5", "late-404", "error-recovers"):
        pages = [visit for visit in worlds[way].site.asked(f"/{name}/") if visit.path.endswith("page.html")]
        assert [visit.headers.get("cache-control") for visit in pages] == [None, "no-cache"]


@pytest.mark.parametrize("way", [TEAM, PLAIN])
def test_no_provider_ever_has_two_requests_in_flight(worlds: dict[str, World], way: str) -> None:
    world = worlds[way]
    assert {name for name in world.pids if overlaps(world.site.asked(f"/{name}/"))} == set()
    assert any(visit.together > 1 for visit in world.site.visits), "different providers do overlap"


@pytest.mark.parametrize("way", [TEAM, PLAIN])
def test_every_provider_s_next_url_is_fetched_once_whatever_became_of_the_first(
    worlds: dict[str, World], way: str
) -> None:
    world = worlds[way]
    counts = {
        name: len(world.site.asked(f"/{name}/next.html"))
        for name, case in ((one.name, one) for one in world.cases)
        if case.place != "private"
    }
    assert set(counts.values()) == {1}, counts


@pytest.mark.parametrize("way", [TEAM, PLAIN])
def test_nothing_connects_to_a_private_address_that_was_not_approved(
    worlds: dict[str, World], way: str
) -> None:
    world = worlds[way]
    assert world.site.connections[world.private] == 0


@pytest.mark.parametrize("way", [TEAM, PLAIN])
def test_a_failing_host_keeps_its_urls_in_place_until_patience_ends(
    worlds: dict[str, World], way: str
) -> None:
    world = worlds[way]
    assert world.waiting == sorted(world.pids[case.name] for case in world.cases if case.waits)


def test_a_request_that_parse_document_yields_is_not_fetched_and_logged(world: World) -> None:
    assert not world.site.asked("/callback-asks/extra.html")
    assert "not fetched, because only the queue brings URLs here" in world.lcc.log_text()


def test_a_failing_parse_document_is_logged(world: World) -> None:
    assert "parse_document failed for" in world.lcc.log_text()


@pytest.mark.parametrize("way", [TEAM, PLAIN])
def test_a_wait_that_the_site_asked_for_is_kept(worlds: dict[str, World], way: str) -> None:
    world = worlds[way]
    first, second = world.site.asked("/busy-503/page.html")
    assert second.start - first.start > 1.9


@pytest.mark.parametrize("way", [TEAM, PLAIN])
def test_no_unfinished_body_is_left_behind(worlds: dict[str, World], way: str) -> None:
    world = worlds[way]
    unfinished = (world.lcc.folder / "lcc-data" / "content").rglob("tmp/*/*")
    assert list(unfinished) == []
    assert world.lcc.lcc("verify").returncode == 0


def test_the_fetch_log_tells_the_same_with_and_without_components(worlds: dict[str, World]) -> None:
    told = {way: last_lines(world) for way, world in worlds.items()}
    names = {case.name for case in worlds[PLAIN].cases if not case.waits and case.requests != "nothing"}
    common = names & {case.name for case in worlds[TEAM].cases}
    assert len(common) > 30
    for name in sorted(common):
        case, line = BY_NAME[name], told[PLAIN].get(f"{name}/page.html", {})
        assert line == told[TEAM].get(f"{name}/page.html", {}), name
        assert not line or (line["code"] == case.code if case.code else line["code"] in {200, 304}), name
        assert told[PLAIN].get(f"{name}/next.html") == told[TEAM].get(f"{name}/next.html"), name


def last_lines(world: World) -> dict[str, dict[str, Any]]:
    """Return what `lcc log` says of the last fetch of each URL, by place, but for times and hosts."""
    lines = map(json.loads, world.lcc.lcc("log", "--json").stdout.splitlines())
    names = ("result", "code", "type", "digest", "hops")
    return {
        line["url"].split("/", 3)[3]: {name: line[name] for name in names}
        for line in lines
        if line["result"] not in {"lost", "discarded"}
    }


def test_the_document_about_outcomes_is_current(world: World) -> None:
    text = document([(case, world.seen(case)) for case in CASES])
    if os.environ.get("LCC_WRITE_DOCS"):
        DOCUMENT.write_text(text, encoding="utf-8")
    assert DOCUMENT.read_text(encoding="utf-8") == text, "LCC_WRITE_DOCS=1 renews it"


HEAD = """\
# How a fetch can end

This table lists every way in which the fetch of a URL can end. The columns tell what the web server sees, what is in
the cache afterwards, what the provider reads at its next login, and when its next fetch may start. In every case the
provider has at most one request in flight, and its URLs keep their order.

The test `tests/integration/test_outcomes.py` writes this table from a real crawl (`LCC_WRITE_DOCS=1`) with two
`LCC_RETRY_DELAYS`. *Bytes charged* count against the bandwidth of the provider and of the whole LCC. They are the bytes
of all bodies in the turn as they were transferred: compressed, without the frames of chunks. Here a page has 105 bytes,
and the body of an error 15. Why 404, 410, 607 and 608 are tried again: [what was declared ends as declared](convergence.md).
[What real sites send](real-web.md) has another table.

| outcome | requests | bytes charged | row afterwards | told to the provider | the provider's next fetch |
|---|---|---|---|---|---|
"""


def document(rows: list[tuple[Case, Seen]]) -> str:
    return HEAD + "".join(
        f"| {case.title} | {(seen.requests if not case.waits else 'again after each wait') or 'none'} |"
        f" {seen.charged if not case.waits or case.charged else '0'} | {seen.row} |"
        f" {', '.join(f'{code} {text_of(code)}' for code in seen.codes) or 'nothing'} | {seen.when} |\n"
        for case, seen in rows
    )
