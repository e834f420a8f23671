"""Web servers whose index pages mean harm: what each got is asserted."""

import gzip
import json
import threading
from dataclasses import replace

import pytest

from lcc_scrapy.apps.tracker import entries as bounds
from lcc_scrapy.apps.tracker import http_index
from lcc_scrapy.apps.tracker.entries import Unlisted
from lcc_scrapy.apps.tracker.rules.tracked import VALIDATOR_MAX
from lcc_scrapy.apps.tracker.settings import ScanLimits
from tests.faults.canary import Canary
from tests.integration.site import Answer, Endless, Site, page, raw
from tests.scans import identities, scanned

QUICK = replace(ScanLimits(), most_bytes=300_000, most_entries=1000, requests=200, patience=20.0)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
LISTED = "-rw-r--r-- 1 ftp ftp 5 Jan  1 2020 a\n"
TITLE = "<title>Index of /</title>"


@pytest.fixture
def scene(tmp_path):
    with Site() as site:
        port = site.listen()
        yield (
            site,
            lambda limits=QUICK, **given: scanned(f"http://127.0.0.1:{port}/", tmp_path, limits, **given),
        )


def entries(*some: dict) -> Answer:
    return page(json.dumps(some), content_type="application/json")


def file(name: str, size: object = 5) -> dict:
    return {"name": name, "type": "file", "size": size}


def folder(name: str) -> dict:
    return {"name": name, "type": "directory"}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(Endless(HEAD + b"\r\n" + TITLE.encode(), b"<a href='x'>" * 1000)), "."),
        (
            raw(
                HEAD + b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n",
                gzip.compress(TITLE.encode() + bytes(60_000_000)),
            ),
            ".",
        ),
        (page("x" * 400_000), "300000 bytes"),
        (page("hello"), "is no index page"),
        (page("hello", "403 Forbidden"), "answers 403"),
        (page("hello", "503 Busy", retry_after="77"), "answers 503"),
        (page("", "302 Found", location="http://169.254.169.254/"), "leads to another host"),
        (page("", "302 Found", location="/"), "more than"),
        (page("", "302 Found", location="file:///etc/passwd"), "."),
        (raw(b"SSH-2.0-OpenSSH\r\n"), "."),
        (entries(*(file(str(number)) for number in range(1001))), "1000 entries"),
        (page("[" * 100_000, content_type="application/json"), "is no index page"),
    ],
    ids=("endless", "bomb", "long", "none", "forbidden", "busy", "elsewhere", "circle", "scheme", "ssh", "many",
         "deep"),
)  # fmt: skip
def test_what_is_no_index_is_refused_in_one_line(answer, why, scene):
    site, scan = scene
    site.put("/", answer)
    with pytest.raises(Unlisted, match=why) as raised:
        scan()
    assert "\n" not in str(raised.value)
    assert len(site.visits) < 30


def test_a_wall_that_sets_a_cookie_and_redirects_to_itself_is_passed(scene):
    site, scan = scene
    site.put("/", page("", "302 Found", location="/", set_cookie="passed=yes"), entries(file("a")))
    scan()
    told = [(one.path, one.headers.get("cookie")) for one in site.visits if one.path in {"/", "/robots.txt"}]
    assert told == [("/robots.txt", None), ("/", None), ("/", "passed=yes")]


def test_a_redirect_to_another_host_gets_no_connection(scene):
    site, scan = scene
    with Canary() as canary:
        site.put("/", page("", "302 Found", location=f"http://127.0.0.1:{canary.port}/"))
        with pytest.raises(Unlisted):
            scan()
        site.put("/", page("", "302 Found", location=f"http://127.0.0.2:{canary.port}/"))
        with pytest.raises(Unlisted, match="leads to another host"):
            scan()
        assert "127.0.0.2" not in canary.visitors


@pytest.mark.parametrize("asked", ["/robots.txt", "/ls-lR.gz", "/"])
def test_a_server_that_hangs_is_left(asked, scene):
    site, scan = scene
    site.put(asked, Answer((b"HTTP/1.1 200 OK\r\n",), last=False, wait=30.0))
    with pytest.raises(Unlisted) as raised:
        scan(replace(QUICK, patience=0.5, deadline=5.0))
    assert "\n" not in str(raised.value)
    assert site.visits[-1].path == asked


def test_a_tree_without_end_ends_at_a_bound(scene):
    """Each page looks like none above it, so that it is no loop."""
    site, scan = scene
    path = "/"
    for depth in range(70):
        site.put(path, entries(folder("d"), file(f"f{depth}")))
        path += "d/"
    with pytest.raises(Unlisted, match="64 deep"):
        scan()


def test_a_loop_is_a_link(scene):
    site, scan = scene
    top = (folder("d"), file("f"))
    site.put("/", entries(*top))
    site.put("/d/", entries(folder("up"), file("g")))
    site.put("/d/up/", entries(*top))
    found = list(scan())
    assert [(one.path, one.dirs, one.links) for one in found] == [
        ((), [b"d"], []),
        ((b"d",), [], [(b"up", b"..")]),
    ]


@pytest.mark.parametrize(
    ("its", "is_sound"),
    [
        (file("new\nline"), True),
        (file("\x01\x1b[2J\udcff"), True),
        (file("big", 2**64 - 1), True),
        (file("big", 2**64), False),
        (file("big", -1), False),
        (file("big", "5"), False),
        (file("a/../../b"), False),
        (file("x" * 256), False),
        (file("a\0b"), False),
        (folder("a/b"), False),
        (folder("x" * 256), False),
    ],
    ids=range(11),
)
def test_names_are_bytes_and_what_cannot_be_one_makes_its_directory_unsound(its, is_sound, scene):
    site, scan = scene
    text = json.dumps([file("good"), its], ensure_ascii=False).encode("utf-8", "surrogateescape")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text)
    site.put("/", Answer((head + text,), last=False))
    made = identities(scan())
    assert (made[()] is not None) == is_sound
    assert {one.path for one in site.visits} <= {"/", "/robots.txt", "/ls-lR.gz", "/big"}


def test_directories_that_wait_to_be_listed_take_a_bounded_memory(scene, monkeypatch):
    """Each page lists as many again, so that more wait with each level."""
    site, scan = scene
    path = "/"
    for depth in range(20):
        site.put(path, entries(*(folder(f"{depth}-{number}") for number in range(100))))
        path += f"{depth}-0/"
    monkeypatch.setattr(bounds, "HELD_MAX", 100_000)
    with pytest.raises(Unlisted, match="more than 100000 bytes of memory"):
        scan(replace(QUICK, most_entries=1_000_000))


def test_a_large_page_is_read_beside_the_event_loop(scene, monkeypatch):
    site, scan = scene
    site.put("/", entries(folder("d"), file("SHA256SUMS")))
    site.put("/SHA256SUMS", page("0" * 64 + "  f\n"))
    threads = []
    for name in ("_mark", "_unsized", "of_entries", "_copy"):
        real = getattr(http_index, name)

        def seen(*args, real=real):
            threads.append(threading.current_thread().name)
            return real(*args)

        monkeypatch.setattr(http_index, name, seen)
    scan()
    assert len(threads) == 4
    assert all(name.startswith("asyncio_") for name in threads)


def test_a_validator_that_no_column_holds_is_none(scene):
    site, scan = scene
    modified = "Sat, 28 Nov 2026 15:30:34 GMT"
    for blanks, is_kept in ((0, True), (VALIDATOR_MAX, False)):
        now = 1_795_879_834.0
        site.put("/ls-lR.gz", page(LISTED, last_modified=modified + "x" * blanks))
        assert bool(scan(now=now).listed.validator) == is_kept
