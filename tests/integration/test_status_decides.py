"""Answers whose status says all, with bodies that are wrong in every way: by every client that there is."""

import gzip
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from scrapy import Request

from lcc_scrapy.apps.indexnow.checking import Checker
from lcc_scrapy.apps.registration.proof import Prover
from lcc_scrapy.apps.registration.rules import FILE
from lcc_scrapy.apps.registration.service import NotProved
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.apps.tracker.effort import CannotScan
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.fetch.download_handler import CUT, PRIVATE_HOSTS
from lcc_scrapy.http.outgoing import Outgoing, tls_context
from lcc_scrapy.kit.fetching import Fetcher, Whose
from tests.faults.handling import Handling, run
from tests.integration.site import Answer, Endless, Site, page
from tests.integration.test_http_answers import Scene
from tests.scans import scanned

BODY = b"<p>an error</p>" * 9
RETRY = b"Retry-After: 7\r\n"


def answered(status: int, fields: bytes, *pieces: bytes, last: bool = True, gap: float = 0.0) -> Answer:
    head = b"HTTP/1.1 %d Said\r\nContent-Type: text/html\r\nLocation: /b\r\n%b%b\r\n" % (
        status,
        RETRY,
        fields,
    )
    return Answer([head, *pieces] if gap else [head + b"".join(pieces)], last=last, gap=gap)


BODIES = {
    "cut": lambda status: answered(status, b"Content-Length: 999\r\n", BODY),
    "longer than its length": lambda status: answered(status, b"Content-Length: 3\r\n", BODY),
    "chunks that are cut": lambda status: answered(status, b"Transfer-Encoding: chunked\r\n", b"ff\r\nhalf"),
    "no chunks": lambda status: answered(status, b"Transfer-Encoding: chunked\r\n", b"zz\r\nhalf"),
    "no gzip": lambda status: answered(status, b"Content-Encoding: gzip\r\n", BODY),
    "half of gzip": lambda status: answered(status, b"Content-Encoding: gzip\r\n", gzip.compress(BODY)[:-9]),
    "no deflate": lambda status: answered(status, b"Content-Encoding: deflate\r\n", b"\xff\xff\xff"),
    "no br": lambda status: answered(status, b"Content-Encoding: br\r\n", b"\xff" * 99),
    "no zstd": lambda status: answered(status, b"Content-Encoding: zstd\r\n", BODY),
    "codings upon codings": lambda status: answered(status, b"Content-Encoding: gzip, br\r\n", BODY),
    "a bomb": lambda status: answered(status, b"Content-Encoding: gzip\r\n", zlib.compress(bytes(10**7), 9, 31)),
    "larger than may be": lambda status: answered(status, b"Content-Length: 99999999999\r\n", bytes(200_000)),
    "none": lambda status: answered(status, b"Content-Length: 0\r\n"),
}  # fmt: skip
STATUSES = [*range(201, 203), *range(204, 600)]
DECIDING = [302, 404, 429, 503]


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.fixture
def scene(site: Site, tmp_path: Path) -> Scene:
    limits = {"fetch_timeout": 120.0, "fetch_deadline": 180.0, "fetch_max_bytes": 1_000_000}
    return Scene(site, Handling(tmp_path, **limits), "asyncio", site.listen())


def slow(status: int) -> Answer:
    return answered(status, b"Content-Length: 999999\r\n", *[b"x"] * 9999, gap=0.2, last=False)


def endless(status: int) -> Answer:
    head = b"HTTP/1.1 %d Said\r\n%b\r\n" % (status, RETRY)
    return Answer(Endless(head, bytes(8192)), gap=0.0001)


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        *((name, STATUSES[number :: len(BODIES)]) for number, name in enumerate(BODIES)),
        *(pytest.param(name, STATUSES, marks=pytest.mark.soak) for name in BODIES),
    ],
)
def test_every_status_but_that_of_a_document_decides_whatever_its_body_does(
    scene: Scene, name: str, statuses: list[int]
) -> None:
    for status in statuses:
        scene.serve(BODIES[name](status), path=f"/{status}")
    got = scene.fetch(*(f"/{status}" for status in statuses))
    assert [one.code for one in got] == statuses
    assert all(one.headers and one.headers[b"Retry-After"] == b"7" for one in got)
    assert max(len(one.body) for one in got) <= 65536


@pytest.mark.parametrize("make", [slow, endless])
def test_a_body_that_never_ends_holds_nobody_up(scene: Scene, make) -> None:
    for status in (404, 503):
        scene.serve(make(status), path=f"/{status}")
    got = scene.fetch("/404", "/503")
    assert [one.code for one in got] == [404, 503]
    assert scene.connections == 2


@pytest.mark.parametrize(("size", "kept"), [(0, True), (65536, True), (65537, False), (200_000, False)])
def test_up_to_64_kb_are_read_to_keep_the_connection(scene: Scene, size: int, kept: bool) -> None:
    scene.serve(page(bytes(size), "404 Not Found"))
    got = scene.fetch("/x", "/x")
    assert [(one.code, len(one.body)) for one in got] == [(404, min(size, 65536))] * 2
    assert scene.connections == (1 if kept else 2)


@pytest.mark.parametrize("name", BODIES)
def test_a_document_stands_and_falls_with_its_body(scene: Scene, name: str) -> None:
    got = [scene.get(BODIES[name](status)).code for status in (200, 203)]
    code = 604 if name == "a bomb" else 614
    assert got == ([200, 203] if name in {"none", "longer than its length"} else [code, code])


def test_components_see_what_came_and_whether_it_is_all(scene: Scene) -> None:
    scene.serve(BODIES["cut"](403), page(BODY, "403 Forbidden"))

    async def scenario():
        handler = scene.handling.handler()
        meta = {PRIVATE_HOSTS: {f"127.0.0.1:{scene.port}"}}
        got = [await handler.download_request(Request(scene.url(), meta=meta)) for _ in range(2)]
        await handler.close()
        return [(one.body, one.flags) for one in got]

    assert run(scenario, "asyncio") == [(BODY, [CUT]), (BODY, [])]


# --- the other clients -------------------------------------------------------------------------------


def alone(scenario):
    return run(scenario, "asyncio")


def by_source(url: str) -> str:
    """Return what a source says of an answer, and how long it waits."""

    async def fetched() -> str:
        fetcher = Fetcher(Outgoing(2, tls_context()), "lcc-test", patience=60.0)
        target = HttpUrl.parse(url)
        try:
            with await fetcher.ask(target, Whose([target.netloc], private=True), []) as answer:
                return str(answer.status)
        except LccError as error:
            return str(error)
        finally:
            await fetcher.close()

    return alone(fetched)


def by_indexnow(url: str) -> str:
    async def checked() -> str:
        checker = Checker()
        try:
            verdict = await checker.check(url, "key", True)
            return verdict.reason.rpartition(" ")[2]
        finally:
            await checker.close()

    return alone(checked)


def by_registration(folder: str) -> str:
    async def proved() -> str:
        try:
            prover = Prover(RegistrationRules(private=True))
            return await prover.root(sha256(b"x").hexdigest(), HttpUrl.parse(folder))
        except NotProved as error:
            return str(error).rpartition(" ")[2]

    return alone(proved)


def by_tracker(url: str, folder: Path) -> str:
    with pytest.raises(CannotScan) as raised:
        scanned(url, folder)
    return f"{raised.value} {raised.value.retry_after:.0f}"


@pytest.mark.parametrize("name", BODIES)
def test_so_it_is_for_sources(scene: Scene, name: str) -> None:
    for status in DECIDING:
        scene.serve(BODIES[name](status), path=f"/{status}")
        assert by_source(scene.url(f"/{status}")) == str(status)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("status", [410, 503])
def test_and_for_keys_of_indexnow_and_proofs_of_registration(scene: Scene, name: str, status: int) -> None:
    scene.serve(BODIES[name](status))
    scene.serve(BODIES[name](status), path=f"/{FILE}")
    assert by_indexnow(scene.url()) == str(status)
    assert by_registration(scene.url("/")) == str(status)


@pytest.mark.parametrize("name", BODIES)
def test_a_robots_txt_that_is_not_there_is_no_rule_and_the_tracker_waits_as_it_is_told(
    scene: Scene, name: str, tmp_path: Path
) -> None:
    scene.serve(BODIES[name](404), path="/robots.txt")
    scene.serve(BODIES[name](503), path="/ls-lR.gz")
    scene.serve(BODIES[name](503), path="/")
    said = by_tracker(f"{scene.url('/')}", tmp_path)
    assert "answers 503" in said
    assert said.endswith(" 7")
