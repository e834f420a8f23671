"""Nobody makes the crawler connect to a private address: not by its spelling, a redirect, or a name server.

``LCC_SPELLINGS`` says how many spellings are tried (1000 in the long version).
"""

import http.client
import json
import os
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lcc_scrapy.domain import addresses
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.http import outgoing
from tests.acceptance.pushers import Conversation
from tests.faults.canary import Canary
from tests.faults.handling import LOOPS, Handling, Stopwatch, outcome, outcomes, run
from tests.faults.spellings import HONEST, spellings
from tests.harness import Lcc, free_port
from tests.integration.project import make_project
from tests.integration.site import Site, page
from tests.push_process import push_server

COUNT = int(os.environ.get("LCC_SPELLINGS", "300"))
STAND_IN = "127.9.9.9"
"""Stands for an address of the open Internet, so that nothing leaves this machine."""

PRIVATE = "127.0.0.1"
LOOKED_UP = socket.getaddrinfo
REFUSED = 615


@pytest.fixture
def canary() -> Iterator[Canary]:
    with Canary() as made:
        yield made


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def answer(port: int, *found: str) -> list[Any]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str], tuple[str, ...]]], None]:
    """Return what sets the name server: a function from names to addresses. Numbers stay what they are."""

    def serve(known: Callable[[str], tuple[str, ...]]) -> None:
        def look_up(host: str, port: int, *further: Any) -> list[Any]:
            try:
                return LOOKED_UP(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
            except socket.gaierror:
                return answer(port, *known(host))

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        monkeypatch.setattr(outgoing, "is_public", lambda text: text == STAND_IN or addresses.is_public(text))
        monkeypatch.setattr(outgoing, "_DNS_KEPT", 0)

    return serve


def test_the_canary_hears_every_spelling_that_the_system_understands(canary: Canary) -> None:
    for place in ("127.0.0.1", "127.255.255.254", "0.0.0.0", "2130706433", "0x7f.1", "localhost"):
        socket.create_connection((place, canary.port), 300).close()
    assert len(canary.visitors) == 6


def test_no_spelling_leads_the_handler_to_a_private_address(
    loop: str, canary: Canary, names: Callable[..., None], tmp_path: Path
) -> None:
    names(lambda _: (PRIVATE,))
    made, urls, watch = Handling(tmp_path), spellings(COUNT, canary.port), Stopwatch()

    async def scenario() -> list[int]:
        handler = made.handler()
        codes = await outcomes(handler, urls)
        await handler.close()
        return codes

    codes = Counter(run(scenario, loop))
    print(f"\n{COUNT} spellings given to the handler ({loop}): {dict(codes)}, {watch.seconds:.1f} s")
    assert canary.visitors == []
    assert codes.keys() <= {REFUSED, 705}
    assert codes[REFUSED] > COUNT // 8


def test_a_name_that_changes_its_address_leads_nowhere(
    loop: str, canary: Canary, site: Site, names: Callable[..., None], tmp_path: Path
) -> None:
    """The first answer is public and works; then the connection is closed and the name is asked again."""
    asked: Counter[str] = Counter()
    port = site.listen(address=STAND_IN)
    hosts = [f"rebind-{number}.example" for number in range(COUNT // 5)]

    def rebinding(host: str) -> tuple[str, ...]:
        asked[host] += 1
        return (STAND_IN,) if asked[host] == 1 else (PRIVATE,)

    names(rebinding)
    site.put("/x", page("public"))
    made = Handling(tmp_path)

    async def scenario() -> tuple[list[int], list[int]]:
        handler = made.handler()
        first = await outcomes(handler, [f"http://{host}:{port}/x" for host in hosts])
        second = await outcomes(handler, [f"http://{host}:{canary.port}/x" for host in hosts])
        await handler.close()
        return first, second

    first, second = run(scenario, loop)
    print(f"\n{len(hosts)} names that change: {dict(Counter(first))}, then {dict(Counter(second))}")
    assert set(first) == {200}
    assert set(second) == {REFUSED}
    assert min(asked.values()) == 2
    assert canary.visitors == []


@pytest.mark.parametrize(
    "order", [(PRIVATE, STAND_IN), (STAND_IN, PRIVATE), (PRIVATE, "127.0.0.2", STAND_IN, "10.0.0.1")]
)
def test_of_mixed_addresses_only_the_public_ones_are_tried(
    order: tuple[str, ...], site: Site, names: Callable[..., None], tmp_path: Path
) -> None:
    """A host that is down and has a private address, too, is a host that is down (602)."""
    names(lambda _: order)
    port, closed = site.listen(address=STAND_IN), free_port()
    site.put("/x", page("public"))

    async def scenario() -> list[int]:
        handler = Handling(tmp_path).handler()
        served = await outcomes(handler, [f"http://mixed-{number}.example:{port}/x" for number in range(9)])
        down = await outcomes(handler, [f"http://mixed-{number}.example:{closed}/x" for number in range(9)])
        await handler.close()
        return [*served, *down]

    assert run(scenario) == [200] * 9 + [602] * 9


def test_a_socket_refuses_whatever_it_was_made_for(canary: Canary) -> None:
    """Not even who has the socket in hand, after all look-ups, gets it to a private address."""
    with outgoing._PublicSocket(socket.AF_INET, socket.SOCK_STREAM) as made:
        with pytest.raises(outgoing.NotPublic):
            made.connect((PRIVATE, canary.port))
        with pytest.raises(outgoing.NotPublic):
            made.connect_ex((PRIVATE, canary.port))
        with pytest.raises(outgoing.NotPublic):
            made.connect(("localhost", canary.port))
    assert canary.visitors == []


def test_approval_is_for_the_hosts_of_the_roots_and_for_nobody_else(
    loop: str, canary: Canary, site: Site, names: Callable[..., None], tmp_path: Path
) -> None:
    """Neither connections nor addresses of an approved host serve anybody who has no approval."""
    names(lambda _: (PRIVATE,))
    port = site.listen()
    site.put("/x", page("private"))
    approved = f"intranet.example:{port}"

    async def scenario() -> list[int]:
        handler = Handling(tmp_path).handler()
        page_url, other = f"http://{approved}/x", f"http://intranet.example:{canary.port}/x"
        codes = [
            await outcome(handler, page_url, approved),
            await outcome(handler, page_url),
            await outcome(handler, page_url, "other.example:80"),
            await outcome(handler, other, approved),
            await outcome(handler, f"http://{PRIVATE}:{port}/x", approved),
            await outcome(handler, page_url, approved),
        ]
        await handler.close()
        return codes

    assert run(scenario, loop) == [200, REFUSED, REFUSED, REFUSED, REFUSED, 200]
    assert site.connections[port] == 1, "the one connection stays with the approved"
    assert canary.visitors == []


def test_name_servers_that_hang_keep_nobody_else_waiting(
    loop: str, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released, ended = threading.Event(), []
    port = site.listen(address=STAND_IN)
    site.put("/x", page("public"))

    def look_up(host: str, port: int, *further: Any) -> list[Any]:
        if host.startswith("slow"):
            ended.append(released.wait(300))
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return answer(port, STAND_IN)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(outgoing, "is_public", lambda text: text == STAND_IN)

    async def scenario() -> tuple[int, list[int], list[bool]]:
        import asyncio

        handler = Handling(tmp_path, fetch_timeout=200.0).handler()
        slow = asyncio.ensure_future(outcomes(handler, [f"http://slow-{n}.example/" for n in range(40)]))
        await asyncio.sleep(0.2)
        honest = await outcome(handler, f"http://quick.example:{port}/x")
        meanwhile = list(ended)
        released.set()
        codes = await slow
        await handler.close()
        return honest, codes, meanwhile

    honest, codes, meanwhile = run(scenario, loop)
    assert honest == 200
    assert set(codes) == {601}
    assert meanwhile == [], "all 40 hung when the honest page was there"


# --- a whole crawl -------------------------------------------------------------------------------

SETTINGS_PY = f"""
    import socket
    from lcc_scrapy.http import outgoing
    from lcc_scrapy.domain import addresses

    BOT_NAME = "shop"
    SPIDER_MODULES = ["lcc_scrapy.spiders"]
    ADDONS = {{"lcc_scrapy.addon.LccAddon": 100}}
    numeric = socket.getaddrinfo

    def look_up(host, port, *args, **options):
        try:
            return numeric(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except socket.gaierror:
            address = "{STAND_IN}" if host == "{HONEST}" else "{PRIVATE}"
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    socket.getaddrinfo = look_up
    outgoing.is_public = lambda text: text == "{STAND_IN}" or addresses.is_public(text)
"""
QUICK = {
    "LCC_HOST_PATIENCE": "0",
    "LCC_RETRY_DELAYS": "",
    "LCC_ERRORS_KEPT": "2000",
    "LCC_FETCH_TIMEOUT": "200s",
}
SHARDS = 8
"""So many providers do the same, because each is fetched from one by one."""


@pytest.fixture
def crawling(make_lcc: Callable[..., Lcc], tmp_path: Path) -> Lcc:
    project = make_project(tmp_path / "project", {"settings.py": SETTINGS_PY})
    return make_lcc(project=project, **QUICK)


def hosts_of(urls: list[str]) -> list[str]:
    found = set()
    for url in urls:
        try:
            parsed = HttpUrl.parse(url)
        except UrlRefused:
            continue
        found.add(str(HttpUrl(parsed.scheme, parsed.host, parsed.port, "/", "")))
    return sorted(found)


def failures(lcc: Lcc, pids: range) -> Counter[int]:
    """Count the codes of what was accepted and then not fetched."""
    rows = lcc.sql(f"select code from urlerrors where pid between {pids[0]} and {pids[-1]}")
    return Counter(int(str(code)) for (code,) in rows)


def test_no_spelling_leads_a_crawl_to_a_private_address(crawling: Lcc, canary: Canary, site: Site) -> None:
    """Pushed by a provider with one honest root; by providers whose roots all those hosts are; as redirects."""
    lcc, watch = crawling, Stopwatch()
    honest = f"http://{HONEST}:{site.listen(address=STAND_IN)}/"
    urls = spellings(COUNT, canary.port)
    places = hosts_of(urls)
    rooted, redirected = range(2, 2 + SHARDS), range(2 + SHARDS, 2 + 2 * SHARDS)
    pushers = [Provider(1, "")] + [
        Provider(pid, "", ignorerobots=pid % 2 == 0) for pid in (*rooted, *redirected)
    ]
    lcc.register(*pushers, roots=[[honest]] + [[honest, *places]] * (2 * SHARDS))
    lcc.start()
    pushed, approved, led = submit(lcc, 1, urls), Counter[int](), Counter[int]()
    for shard, (pusher, redirecting) in enumerate(zip(rooted, redirected, strict=True)):
        approved += submit(lcc, pusher, urls[shard::SHARDS])
        led += submit(lcc, redirecting, [honest + path for path in redirects(site, urls, shard)])
    lcc.wait_until_fetched(250)
    approved, led = approved + failures(lcc, rooted), led + failures(lcc, redirected)
    print(
        f"\n{COUNT} spellings, {len(places)} hosts of roots, {watch.seconds:.0f} s\n  pushed: {dict(pushed)}"
    )
    print(f"  pushed, with their hosts for roots: {dict(approved)}\n  as redirects: {dict(led)}")
    assert canary.visitors == []
    assert pushed.total() == COUNT
    assert pushed.keys() <= {704, 705, 707}
    assert approved.total() == COUNT
    assert approved[REFUSED] > COUNT // 8
    assert led.total() == COUNT
    assert led[REFUSED] > COUNT // 8
    assert approved.keys() <= {404, REFUSED, 704, 705, 707}
    assert led.keys() <= {404, 605, 613, REFUSED}
    assert lcc.stop() == 0


DOORS = (
    "127.0.0.1",
    "localhost",
    "[::1]",
    "[::ffff:7f00:1]",
    "127.1",
    "0x7f000001",
    "2130706433",
    "0.0.0.0",
    "[::]",
)


def test_no_proof_is_looked_for_at_a_private_address(make_lcc: Callable[..., Lcc], canary: Canary) -> None:
    """Asked of a real ``lcc web``: each is refused when it is named, or when the file is to be looked for."""
    got = Counter[int]()
    rates = {f"LCC_REGISTRATION_{name}": "1000/s" for name in ("RATE", "HOST_RATE", "PROOF_RATE")}
    with push_server(
        make_lcc(), LCC_REGISTRATION="open", LCC_REGISTRATION_PORTS=str(canary.port), **rates
    ) as web:
        for door in DOORS:
            status, told = _register(web.port, "", {"site": f"http://{door}:{canary.port}/"})
            if status == 201:
                status, _ = _register(web.port, f"/{told['pid']}/activate", {"password": told["password"]})
            got[status] += 1
        assert canary.visitors == []
    assert got.keys() <= {409, 422}
    assert got.total() == len(DOORS)
    assert got[409] >= 2


def _register(port: int, path: str, body: dict[str, str]) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    kind = {"Content-Type": "application/json"}
    connection.request("POST", f"/v1/registrations{path}", json.dumps(body), kind)
    told = connection.getresponse()
    found = told.status, json.loads(told.read())
    connection.close()
    return found


def submit(lcc: Lcc, pid: int, urls: list[str]) -> Counter[int]:
    """Push as somebody who writes what he likes (XML has no NUL); returns the codes told at once."""
    entries = [
        {"curl": f"http://key.example/{number}", "furl": url.replace("\0", "\x7f"), "mimetype": "text/html"}
        for number, url in enumerate(urls)
    ]
    conversation = Conversation(lcc.port, pid)
    assert "init_accepted" in conversation.login_answer()
    told = conversation.push("partial", entries)
    conversation.close()
    assert "set_accepted" in told, told[-500:]
    return Counter(int(code) for code in re.findall(r'<url code="(\d+)"', told))


def redirects(site: Site, urls: list[str], shard: int) -> list[str]:
    paths = []
    for number in range(shard, len(urls), SHARDS):
        clean = "".join(letter if letter not in "\r\n\0" else "\t" for letter in urls[number])
        site.put(f"/r{number}", page("", "302 Found", location=clean))
        paths.append(f"r{number}")
    return paths
