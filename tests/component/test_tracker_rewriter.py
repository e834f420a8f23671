"""The ``url_rewrite_program``: every line of Squid gets its answer, whatever the line and the database are."""

import asyncio
import io
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lcc_scrapy.apps.tracker.lookup_threads import LookupThreads
from lcc_scrapy.apps.tracker.redirection import Better
from lcc_scrapy.apps.tracker.rewriter import Rewriter
from lcc_scrapy.domain.errors import StoreUnavailable, UrlRefused

MIRROR = "http://m.example.de/x"


def apart(work):
    """Run a coroutine on a loop of its own: the tests' runs already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def answers(lines, find, *, most=100, seconds=60.0):
    out = io.BytesIO()
    threads = LookupThreads(2, most, seconds)
    apart(Rewriter(find, out, threads).serve(io.BytesIO(lines)))
    threads.close()
    return sorted(out.getvalue().decode().splitlines())


def always(url, address):
    return Better(MIRROR, redirects=address == "192.0.2.7")


def test_a_client_is_redirected_or_does_not_notice():
    lines = b"0 http://a/x 192.0.2.7/- - GET myip=1\n1 ftp://a/x 127.0.0.1/host - HEAD\n"
    assert answers(lines, always) == [f'0 OK status=302 url="{MIRROR}"', f'1 OK rewrite-url="{MIRROR}"']


@pytest.mark.parametrize(
    "line",
    [
        b"3",
        b"3 http://a/x",
        b"3 http://a/x 127.0.0.1/- - POST",
        b"3 a:443 127.0.0.1/- - CONNECT",
        b"3 \xff\xfe 127.0.0.1/- - GET",
        b"3 http://a/" + b"x" * 40_000 + b" 127.0.0.1/- - GET",
    ],
    ids=["number", "url", "post", "connect", "bytes", "long"],
)
def test_a_line_that_is_not_to_be_rewritten_is_answered_err(line):
    good = b"\n4 http://a/x 127.0.0.1/- - GET\n"
    assert answers(line + good, always) == ["3 ERR", f'4 OK rewrite-url="{MIRROR}"']


def test_a_line_without_a_channel_gets_no_answer_and_ends_nothing():
    broken = b"\n\0\nhttp://a/x 127.0.0.1/- - GET\n-1 http://a/x\n99999999999 x\n"
    assert answers(broken + b"5 http://a/x 127.0.0.1/- - GET", always) == [f'5 OK rewrite-url="{MIRROR}"']


@pytest.mark.parametrize(
    "error",
    [StoreUnavailable("away"), UrlRefused(705, "bad"), KeyError(7)],
    ids=["away", "bad", "unforeseen"],
)
def test_a_look_up_that_fails_is_answered_err(error):
    def fails(_url, _address):
        raise error

    assert answers(b"1 http://a/x 127.0.0.1/- - GET\n", fails) == ["1 ERR"]


@pytest.mark.parametrize(
    "error",
    [StoreUnavailable("away"), UrlRefused(705, "http://u:secret@a/secret"), KeyError("secret")],
    ids=["away", "bad", "unforeseen"],
)
def test_the_log_has_the_site_and_no_more_of_a_url(error, caplog):
    def fails(_url, _address):
        raise error

    caplog.set_level("DEBUG")
    answers(b"1 http://u:secret@a:81/secret?secret 127.0.0.1/- - GET\n", fails)
    (line,) = (one.getMessage() for one in caplog.records if one.name.startswith("lcc_scrapy"))
    assert line.startswith("http://a:81: ")
    assert "secret" not in line


def test_an_unknown_url_is_answered_err():
    assert answers(b"1 http://a/x 127.0.0.1/- - GET\n", lambda _url, _address: None) == ["1 ERR"]


def test_a_database_that_hangs_is_answered_err_and_no_more_is_begun_than_may_wait():
    released, begun = threading.Event(), []

    def hangs(url, _address):
        begun.append(url)
        released.wait()

    lines = b"".join(b"%d http://a/%d 127.0.0.1/- - GET\n" % (one, one) for one in range(9))
    try:
        assert answers(lines, hangs, most=3, seconds=0.2) == [f"{one} ERR" for one in range(9)]
    finally:
        released.set()
    assert len(begun) == 2  # threads; what waited was given up
