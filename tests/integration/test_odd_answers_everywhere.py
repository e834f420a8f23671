"""Odd answers through everything that asks sites: robots.txt, sources, proofs of a registration, keys, webhooks."""

import asyncio
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request

from lcc_scrapy.annotation.webhooks import Call, Webhooks
from lcc_scrapy.apps.indexnow.checking import Checker
from lcc_scrapy.apps.indexnow.rules import GOOD, PENDING
from lcc_scrapy.apps.registration.proof import Prover
from lcc_scrapy.apps.registration.rules import FILE
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.fetch.download_handler import IN_MEMORY, PRIVATE_HOSTS, location_of
from lcc_scrapy.fetch.robots import MOST_READ, RobotsAnswer, _rules
from lcc_scrapy.http.outgoing import Outgoing, tls_context
from lcc_scrapy.kit.fetching import Fetcher, Whose
from tests.faults.handling import Handling
from tests.integration.site import Site, raw
from tests.odd_answers import AMBIGUOUS, CLOSED, LARGE_HEADS, ODD, OK

RULES = b"User-agent: *\nDisallow: /x\n"
SECRET = "0123456789" * 4
KEY = "0123456789abcdef"
UNPACKED = {**CLOSED, **LARGE_HEADS}
"""Answers without a coding: nobody asks for one where a short text is to be proved."""

SERVER_ERRORS = range(600, 1000, 57)


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


def run(scenario: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as thread:  # the loop of the tests is another one
        return thread.submit(lambda: asyncio.run(scenario())).result()


def status_answer(status: int) -> bytes:
    return b"HTTP/1.1 %d Odd\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno" % status


def test_robots_txt(site: Site, tmp_path: Path) -> None:
    port = site.listen()
    target = HttpUrl.parse(f"http://127.0.0.1:{port}/")

    async def scenario() -> None:
        handler = Handling(tmp_path).handler()

        async def ask(url: HttpUrl) -> RobotsAnswer:
            meta = {PRIVATE_HOSTS: frozenset({url.netloc}), IN_MEMORY: MOST_READ}
            response = await handler.download_request(Request(str(url), meta=meta))
            return RobotsAnswer(response.status, response.body, location_of(response))

        async def unread(wire: bytes) -> None:
            site.put("/robots.txt", raw(wire))
            with pytest.raises(Exception, match=re.escape(target.netloc)):
                await _rules(target, ask)

        for name, odd in ODD.items():
            site.put("/robots.txt", raw(odd.wire(RULES)))
            answer = await _rules(target, ask)
            assert answer is not None, name
            assert answer.body == RULES, name
        for wire in [*AMBIGUOUS.values(), *map(status_answer, SERVER_ERRORS)]:
            await unread(wire)
        await handler.close()

    run(scenario)


def test_a_source(site: Site) -> None:
    url = f"http://127.0.0.1:{site.listen()}/sitemap.xml"
    whose = Whose({HttpUrl.parse(url).netloc}, private=True, obeys=False)

    async def scenario() -> None:
        fetcher = Fetcher(Outgoing(4, tls_context()), "lcc")
        for name, odd in ODD.items():
            site.put("/sitemap.xml", raw(odd.wire(b"<urlset/>")))
            with await fetcher.get(url, whose) as answer:
                assert b"".join(answer.pieces()) == b"<urlset/>", name
        for wire in [*AMBIGUOUS.values(), *map(status_answer, SERVER_ERRORS)]:
            site.put("/sitemap.xml", raw(wire))
            with pytest.raises(Exception, match=re.escape(url)):
                await fetcher.get(url, whose)
        await fetcher.close()

    run(scenario)


def test_the_proof_of_a_registration(site: Site) -> None:
    port = site.listen()
    folder = HttpUrl.parse(f"http://127.0.0.1:{port}/")
    digest = sha256(SECRET.encode()).hexdigest()

    async def scenario() -> None:
        prover = Prover(RegistrationRules(private=True, ports=frozenset({port})))
        for odd in UNPACKED.values():
            site.put(f"/{FILE}", raw(odd.wire(SECRET.encode())))
            assert await prover.root(digest, folder)
        for wire in [*AMBIGUOUS.values(), *map(status_answer, SERVER_ERRORS)]:
            site.put(f"/{FILE}", raw(wire))
            with pytest.raises(Exception, match=r"BadHead|BadBody|answers [6-9]"):
                await prover.root(digest, folder)

    run(scenario)


def test_a_key_of_indexnow(site: Site) -> None:
    url = f"http://127.0.0.1:{site.listen()}/{KEY}.txt"

    async def scenario() -> None:
        checker = Checker()
        for name, odd in UNPACKED.items():
            site.put(f"/{KEY}.txt", raw(odd.wire(KEY.encode())))
            assert (await checker.check(url, KEY, True)).state == GOOD, name
        for wire in [*AMBIGUOUS.values(), *map(status_answer, SERVER_ERRORS)]:
            site.put(f"/{KEY}.txt", raw(wire))
            assert (await checker.check(url, KEY, True)).state == PENDING, wire
        await checker.close()

    run(scenario)


def test_a_webhook(site: Site) -> None:
    port = site.listen()
    call = Call(f"http://127.0.0.1:{port}/hook", "", "name", "text/plain", b"")

    async def scenario() -> None:
        outgoing = Outgoing(4, tls_context())
        hooks = Webhooks(outgoing, "lcc")
        for odd in CLOSED.values():
            site.put("/hook", raw(odd.wire(b"ok")))
            await hooks.call(call, 0, seconds=60.0, private=True)
        for wire in map(status_answer, SERVER_ERRORS):
            site.put("/hook", raw(wire))
            with pytest.raises(Exception, match=r"it answers [6-9]"):
                await hooks.call(call, 0, seconds=60.0, private=True)
        await outgoing.close()

    run(scenario)


def test_odd_answers_are_odd() -> None:
    assert all(odd.wire(b"x") != OK + b"Content-Length: 1\r\n\r\nx" for odd in ODD.values())
