"""Key files of hostile sites: what a check reads, where it goes, and what it believes."""

import asyncio
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest

from lcc_scrapy.apps.indexnow import checking
from lcc_scrapy.apps.indexnow.checking import Checker
from lcc_scrapy.apps.indexnow.rules import BAD, GOOD, PENDING
from tests.faults.canary import Canary
from tests.harness import wait_for
from tests.integration.site import Answer, Endless, Site, page, raw

KEY = "0123456789abcdef"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


@pytest.fixture
def site():
    with Site() as made:
        made.port = made.listen()
        yield made
        wait_for(lambda: not made.is_busy)  # an answer without end ends when it notices that nobody reads it


def checked(location, key=KEY, *, private=True):
    async def check():
        checker = Checker()
        try:
            return await checker.check(location, key, private)
        finally:
            await checker.close()

    with ThreadPoolExecutor(1) as thread:  # the loop of the tests is another one
        return thread.submit(asyncio.run, check()).result()


def at(site, path=f"/{KEY}.txt"):
    return f"http://127.0.0.1:{site.port}{path}"


@pytest.mark.parametrize("body", [KEY, f"{KEY}\n", f"\ufeff{KEY}\r\n", f" {KEY} \n\n"])
def test_a_file_with_the_key_alone_proves_it(site, body):
    site.put(f"/{KEY}.txt", page(body))
    assert checked(at(site)).state == GOOD


@pytest.mark.parametrize(
    "body",
    ["", "other-key-0123", f"<p>{KEY}</p>", f"{KEY} {KEY}", KEY.upper(), KEY[:-1], f"{KEY}\n" + " " * 2000],
)
def test_a_file_with_anything_else_does_not(site, body):
    site.put(f"/{KEY}.txt", page(body))
    assert checked(at(site)).state == BAD


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("404 Not Found", BAD),
        ("403 Forbidden", BAD),
        ("201 Created", BAD),
        ("500 Oh", PENDING),
        ("503 Oh", PENDING),
        ("429 Oh", PENDING),
    ],
)
def test_only_a_site_that_cannot_say_is_asked_again(site, status, state):
    site.put(f"/{KEY}.txt", page(KEY, status))
    assert checked(at(site)).state == state


def test_nobody_there_says_nothing(site):
    with Site() as gone:
        port = gone.listen()
    assert checked(f"http://127.0.0.1:{port}/{KEY}.txt").state == PENDING


@pytest.mark.parametrize("head", [b"Content-Length: 1000000000\r\n\r\n", b"\r\n"])
def test_of_a_key_file_of_a_gigabyte_a_kilobyte_is_read(site, head):
    site.put(f"/{KEY}.txt", Answer(Endless(HEAD + head, KEY.encode() * 4096)))
    tracemalloc.start()
    try:
        assert checked(at(site)).state == BAD
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


def test_a_key_file_that_comes_byte_by_byte_for_ever_is_given_up(site, monkeypatch):
    monkeypatch.setattr(checking, "DEADLINE", 1.0)
    site.put(f"/{KEY}.txt", Answer(Endless(HEAD + b"\r\n", b" "), gap=0.2))
    assert checked(at(site)).state == PENDING


def test_what_is_no_http_says_nothing(site):
    site.put(f"/{KEY}.txt", raw(b"220 mail ready\r\n"))
    assert checked(at(site)).state == PENDING


def test_a_redirect_within_the_scope_is_followed(site):
    site.put(f"/{KEY}.txt", page("", "301 Moved", location=f"/{KEY}.txt/"))
    site.put(f"/{KEY}.txt/", page(KEY))
    assert checked(at(site)).state == GOOD


@pytest.mark.parametrize(
    "target", ["http://localhost:{port}/{key}.txt", "http://127.0.0.1:{other}/{key}.txt", "//localhost:{port}/{key}.txt", "/elsewhere/k.txt", "/docs/../k.txt", "/docs/%2e%2e/k.txt", "file:///etc/passwd", "http://[::", ""]
)  # fmt: skip
def test_a_redirect_out_of_the_site_or_scope_proves_nothing(site, target):
    other = site.listen()
    where = target.format(port=site.port, other=other, key=KEY)
    for path in (f"/{KEY}.txt", "/elsewhere/k.txt", "/k.txt"):
        site.put(path, page(KEY))
    site.put("/docs/k.txt", page(KEY, "302 Found", location=where))
    assert checked(at(site, "/docs/k.txt")).state == BAD
    assert [visit.path for visit in site.visits] == ["/docs/k.txt"]


def test_a_wall_that_sets_a_cookie_and_redirects_to_itself_is_passed(site):
    wall = page("", "302 Found", location=f"/{KEY}.txt", set_cookie="passed=yes")
    site.put(f"/{KEY}.txt", wall, page(KEY))
    assert checked(at(site)).state == GOOD
    told = [one.headers.get("cookie") for one in site.visits]
    assert told == [None, "passed=yes", None], "what asks for another name is a fetch of its own"


def test_redirects_without_end_prove_nothing(site):
    site.put(f"/{KEY}.txt", page("", "302 Found", location=f"/{KEY}.txt"))
    assert checked(at(site)).state == BAD
    assert len(site.visits) == checking.REDIRECTS + 1


class Echo(Site):
    """Shows a part of the path of whatever is asked for."""

    def _next(self, port, path):
        return page(path.rpartition("/")[2].partition(".")[0].swapcase().swapcase())


@pytest.mark.parametrize("path", [f"/{KEY}.txt", f"/echo/{KEY}", f"/{KEY}/{KEY}"])
def test_a_site_that_shows_any_name_that_is_asked_for_proves_nothing(path):
    with Echo() as site:
        site.port = site.listen()
        verdict = checked(at(site, path))
    assert verdict.state == BAD
    assert "any file" in verdict.reason
    assert len(site.visits) == 2


def test_a_site_that_changes_the_case_of_what_it_shows_proves_nothing():
    class Lower(Site):
        def _next(self, port, path):
            return page(path.rpartition("/")[2].partition(".")[0].lower())

    with Lower() as site:
        site.port = site.listen()
        assert checked(at(site, f"/{KEY.upper()}.txt")).state == BAD


def test_a_key_is_no_part_of_its_location_where_it_need_not_be(site):
    site.put("/docs/our-key.txt", page(KEY))
    assert checked(at(site, "/docs/our-key.txt")).state == GOOD
    assert len(site.visits) == 1


def test_private_addresses_are_not_visited():
    with Canary() as canary:
        for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:7f00:1]", "0.0.0.0"):
            verdict = checked(f"http://{host}:{canary.port}/{KEY}.txt", private=False)
            assert verdict.state in {BAD, PENDING}, host
        assert canary.visitors == []


def test_a_redirect_to_a_private_address_is_not_followed(site):
    with Canary() as canary:
        site.put(f"/{KEY}.txt", page("", "302 Found", location=f"http://127.0.0.1:{canary.port}/"))
        assert checked(at(site)).state == BAD
        assert canary.visitors == []


def test_nothing_of_the_key_is_sent_but_its_location(site):
    site.put("/docs/k.txt", page(KEY))
    checked(at(site, "/docs/k.txt"), KEY)
    (visit,) = site.visits
    assert KEY not in str(visit.headers)
    assert "lcc-scrapy" in visit.headers["user-agent"]


def test_a_probe_has_a_name_that_nobody_can_know(site, monkeypatch):
    site.put(f"/{KEY}.txt", page(KEY))
    site.put("/a-known-name.txt", page("a-known-name"))
    assert checked(at(site)).state == GOOD
    other = site.visits[1].path
    assert len(other) == len(f"/{KEY}.txt")
    site.visits.clear()
    checked(at(site))
    assert site.visits[1].path != other
