"""Answers that browsers forgive are read, those that leave a doubt are not; a status decides without its body."""

import gzip
import socket
import ssl
import threading
from contextlib import suppress

import pytest

from lcc_scrapy.push import web
from lcc_scrapy.push.command import Notes, Stop
from lcc_scrapy.push.http_push import HttpServer
from lcc_scrapy.push.http_reader import HttpReader, NotHttp
from lcc_scrapy.push.link import Lost, Unreachable
from lcc_scrapy.push.sitemap_cache import Cache
from lcc_scrapy.push.sitemaps import SitemapSource
from lcc_scrapy.wire.messages import Init, InitRejected
from tests.certificates import Authority

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKS = b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
FORGIVEN = {
    "equal lengths": OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde",
    "equal lengths in a list": OK + b"Content-Length: 5, 5\r\n\r\nabcde",
    "a length beside chunks": OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    "two lengths beside chunks": OK + b"Content-Length: 3, 4\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    "chunked twice": OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    "chunked twice in a list": OK + b"Transfer-Encoding: chunked, Chunked\r\n\r\n" + CHUNKS,
    "identity beside a length": OK + b"Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nabcde",
    "identity before chunked": OK + b"Transfer-Encoding: identity, chunked\r\n\r\n" + CHUNKS,
    "bytes behind the length": OK + b"Content-Length: 5\r\n\r\nabcdeHTTP/1.1 200 OK\r\n\r\n",
    "bare line feeds": OK.replace(b"\r", b"")
    + b"Transfer-Encoding: chunked\n\n"
    + CHUNKS.replace(b"\r", b""),
    "blanks around a size": OK + b"Transfer-Encoding: chunked\r\n\r\n 5 \t\r\nabcde\r\n0 \r\n\r\n",
    "an empty extension": OK + b"Transfer-Encoding: chunked\r\n\r\n5;\r\nabcde\r\n0;\r\n\r\n",
    "malformed trailers": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n:\x00 not a trailer",
    "a malformed line": OK + b"Nonsense\r\n: x\r\nBad Name: y\r\nContent-Length: 5\r\n\r\nabcde",
    "a folded line": OK + b"X: a\r\n  b\r\nContent-Length: 5\r\n\r\nabcde",
    "blanks before a colon": OK + b"Content-Length : 5\r\n\r\nabcde",
    "300 headers": OK + b"X-Header: something or other\r\n" * 300 + b"Content-Length: 5\r\n\r\nabcde",
    "200 kB of headers": OK + b"X: " + b"y" * 200_000 + b"\r\nContent-Length: 5\r\n\r\nabcde",
    "two blanks": b"HTTP/1.1  200 OK\r\nContent-Length: 5\r\n\r\nabcde",
    "no blank": b"HTTP/1.1 200OK\r\nContent-Length: 5\r\n\r\nabcde",
    "no reason": b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nabcde",
    "small letters": b"http/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde",
    "an older version": b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nabcde",
    "an empty line before": b"\r\n" + OK + b"Content-Length: 5\r\n\r\nabcde",
    "100 with close": b"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n"
    + OK
    + b"Content-Length: 5\r\n\r\nabcde",
    "100 of 1.0": b"HTTP/1.0 100 Continue\r\nContent-Length: 9\r\n\r\n"
    + OK
    + b"Content-Length: 5\r\n\r\nabcde",
}
WITHOUT_LENGTH = {
    "none": OK,
    "empty": OK + b"Content-Length:\r\n",
    "a word": OK + b"Content-Length: many\r\n",
    "negative": OK + b"Content-Length: -5\r\n",
    "signed": OK + b"Content-Length: +5\r\n",
    "identity": OK + b"Transfer-Encoding: identity\r\n",
}
IN_DOUBT = {
    "two lengths": OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
    "two lengths in a list": OK + b"Content-Length: 5, 6\r\n\r\nabcde",
    "a length and a word": OK + b"Content-Length: 5\r\nContent-Length: many\r\n\r\nabcde",
    "05 and 5": OK + b"Content-Length: 05\r\nContent-Length: 5\r\n\r\nabcde",
    "a huge length": OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\nabcde",
    "a length that is folded": OK + b"Content-Length: 5\r\n 6\r\n\r\nabcde",
    "a length that cannot be read": OK + b"X Content-Length: 5\r\n\r\nabcde",
    "chunked that cannot be read": OK + b"Transfer-Encoding chunked\r\n\r\n" + CHUNKS,
    "a coding that cannot be read": OK + b"Content-Encoding\x00: gzip\r\n\r\nabcde",
    "another coding": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKS,
    "nearly chunked": OK + b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKS,
    "a size with a sign": OK + b"Transfer-Encoding: chunked\r\n\r\n+5\r\nabcde\r\n0\r\n\r\n",
    "a size with a prefix": OK + b"Transfer-Encoding: chunked\r\n\r\n0x5\r\nabcde\r\n0\r\n\r\n",
    "a size with an underline": OK + b"Transfer-Encoding: chunked\r\n\r\n0_5\r\nabcde\r\n0\r\n\r\n",
    "no size": OK + b"Transfer-Encoding: chunked\r\n\r\n\r\nabcde\r\n0\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    "a status of four digits": b"HTTP/1.1 2000 OK\r\n\r\n",
    "a status of two digits": b"HTTP/1.1 20 OK\r\n\r\n",
    "a status below 100": b"HTTP/1.1 099 OK\r\n\r\n",
}


def fed(data, size=1 << 20):
    reader = HttpReader()
    return reader, b"".join(reader.feed(data[at : at + size]) for at in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("data", FORGIVEN.values(), ids=FORGIVEN)
def test_what_browsers_forgive_is_read(data, size):
    reader, body = fed(data, size)
    assert (reader.status, reader.complete, body) == (200, True, b"abcde")


@pytest.mark.parametrize("head", WITHOUT_LENGTH.values(), ids=WITHOUT_LENGTH)
def test_a_body_whose_length_says_nothing_ends_with_its_connection(head):
    reader, body = fed(head + b"\r\nabcde")
    assert (reader.complete, body) == (False, b"abcde")
    reader.feed(b"")
    assert reader.complete


@pytest.mark.parametrize("data", IN_DOUBT.values(), ids=IN_DOUBT)
def test_what_leaves_a_doubt_is_refused(data):
    with pytest.raises(NotHttp):
        fed(data)


@pytest.mark.parametrize("status", range(600, 1000))
def test_a_status_that_http_does_not_have_is_a_server_error(status):
    reader, _ = fed(b"HTTP/1.1 %d Odd\r\nContent-Length: 0\r\n\r\n" % status)
    assert (reader.status, reader.said, reader.decides) == (500, str(status), True)


def test_only_statuses_from_300_on_say_all():
    for status in range(200, 1000):
        reader, _ = fed(b"HTTP/1.1 %d Status\r\n\r\n" % status)
        assert reader.decides == (status >= 300), status
    assert not fed(b"HTTP/1.1 404 Not Found\r\nX: y\r\n")[0].decides


class Answering:
    """A server that answers each connection with the same bytes and closes it, politely or not."""

    def __init__(self, answer, context=None, *, politely=True):
        self.answer, self._context, self._politely = answer, context, politely

    def __enter__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        scheme = "https" if self._context else "http"
        self.url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}/"
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(60)

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):  # who asked may leave at any time
                connection.settimeout(60.0)
                self._answer(connection)

    def _answer(self, plain):
        with self._context.wrap_socket(plain, server_side=True) if self._context else plain as connection:
            while b"\r\n\r\n" not in connection.recv(65_536):
                pass
            connection.sendall(self.answer)
            if self._context is not None and self._politely:
                connection.unwrap().close()
            else:
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)


def test_a_server_error_may_pass_unless_it_says_that_it_never_will():
    passing = [status for status in range(200, 1000) if fed(b"HTTP/1.1 %d S\r\n\r\n" % status)[0].is_passing]
    assert passing == [500, *range(502, 505), *range(506, 1000)]


CUT_BODIES = {
    "cut by length": b"Content-Length: 1000\r\n\r\nabc",
    "cut in a chunk": b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
    "no chunk": b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n",
    "two lengths": b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nabc",
    "another coding": b"Transfer-Encoding: gzip\r\n\r\nabc",
    "XML that is none": b"Content-Type: application/xml\r\nContent-Length: 9\r\n\r\n<nonsense",
}


def told(url, timeout=60.0):
    return HttpServer.parse(url).connect(timeout, None).login(Init("7", "secret"))


@pytest.mark.parametrize("body", CUT_BODIES.values(), ids=CUT_BODIES)
def test_a_status_of_the_push_endpoint_decides_whatever_its_body_does(body):
    for line, code in (
        (b"503 Busy\r\nRetry-After: 77", 103),
        (b"401 No", 101),
        (b"602 Odd", 103),
        (b"520 ?", 103),
    ):
        with Answering(b"HTTP/1.1 " + line + b"\r\n" + body) as server:
            said = told(server.url)
        assert isinstance(said, InitRejected)
        assert (said.code, said.retry_after) == (code, 77 if b"77" in line else 0), line


@pytest.mark.parametrize("name", [name for name in CUT_BODIES if "XML" not in name])
def test_a_body_that_is_cut_is_no_answer_where_it_is_the_answer(name):
    with Answering(OK + CUT_BODIES[name]) as server, pytest.raises((Lost, Unreachable)):
        web.read(web.Request(web.HttpUrl.parse(server.url)), web.Dial(60.0), 1 << 20)


SITEMAP = b"<urlset><url><loc>http://www.example.org/a</loc></url></urlset>"


def source(place, folder, tls=None):
    return SitemapSource(place, Cache(folder / "kept"), web.Dial(60.0, tls))


def asked(place, folder, tls=None):
    """Return the lines of a sitemap, or how the command ends."""
    with (folder / "lines").open("w+b") as out:
        try:
            source(place, folder, tls).write(out, Notes("x", quiet=True))
        except Stop as stop:
            return int(stop.status), str(stop)
        out.seek(0)
        return out.read().count(b"<url "), ""


@pytest.mark.parametrize("body", CUT_BODIES.values(), ids=CUT_BODIES)
@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"404 No", 65),
        (b"410 No", 65),
        (b"429 Slow", 75),
        (b"503 Busy", 75),
        (b"602 Odd", 75),
        (b"999 Odd", 75),
    ],
)
def test_a_status_of_a_sitemap_decides_whatever_its_body_does(tmp_path, line, status, body):
    with Answering(b"HTTP/1.1 " + line + b"\r\n" + body) as server:
        found, said = asked(server.url, tmp_path)
    assert (found, f"HTTP {line[:3].decode()}; nothing sent" in said) == (status, True), said


def test_a_redirect_counts_although_its_body_is_cut(tmp_path):
    with Answering(OK + b"Content-Length: %d\r\n\r\n%s" % (len(SITEMAP), SITEMAP)) as there:
        moved = b"HTTP/1.1 301 Moved\r\nLocation: %sb\r\nContent-Length: 99\r\n\r\nabc" % there.url.encode()
        with Answering(moved) as here:
            assert asked(here.url, tmp_path) == (1, "")


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """Return the contexts of a server and of its client."""
    authority = Authority()
    folder = authority.issue("127.0.0.1").write(tmp_path_factory.mktemp("tls"))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    asking = ssl.create_default_context(cadata=authority.pem.decode())
    return serving, asking


@pytest.mark.parametrize("politely", [True, False])
def test_a_body_without_a_length_is_whole_only_with_the_goodbye_of_tls(tls, politely):
    serving, asking = tls
    with Answering(OK + b"\r\nabc", serving, politely=politely) as server:
        request = web.Request(web.HttpUrl.parse(server.url))
        if politely:
            assert web.read(request, web.Dial(60.0, asking), 100)[1] == b"abc"
        else:
            with pytest.raises(web.Cut):
                web.read(request, web.Dial(60.0, asking), 100)


@pytest.mark.parametrize("head", [b"Content-Length: 63\r\n", b"Transfer-Encoding: chunked\r\n", b""])
def test_a_sitemap_that_is_whole_needs_no_goodbye(tls, tmp_path, head):
    serving, asking = tls
    body = b"3f\r\n" + SITEMAP + b"\r\n0\r\n\r\n" if b"chunked" in head else SITEMAP
    assert len(SITEMAP) == 63
    with Answering(OK + head + b"\r\n" + body, serving, politely=False) as server:
        assert asked(server.url, tmp_path, asking) == (1, "")


def test_a_sitemap_that_was_cut_is_asked_for_again_later(tls, tmp_path):
    serving, asking = tls
    with Answering(OK + b"\r\n" + SITEMAP[:-9], serving, politely=False) as server:
        status, said = asked(server.url, tmp_path, asking)
    assert (status, "before its answer was whole" in said) == (75, True)


def test_a_sitemap_without_the_last_bytes_of_its_gzip_is_read(tmp_path):
    packed = gzip.compress(SITEMAP)[:-8]
    with Answering(OK + b"Content-Length: %d\r\n\r\n" % len(packed) + packed) as server:
        assert asked(server.url, tmp_path) == (1, "")
