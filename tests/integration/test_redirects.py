"""Redirects as a site uses them: the latest release, a wall that sets a cookie, odd references, other encodings."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from lcc_scrapy.domain.providers import Provider
from tests.harness import Lcc

SAME = '"of this release"'
"""The ETag of all documents: the site is of one mind about which of them somebody has."""

WALL = "/wall"


@dataclass
class Place:
    """What lies at a path: a document, or where it redirects to (in octets)."""

    body: bytes = b""
    location: bytes = b""


@dataclass
class Site:
    """A web server with one ETag for all that it has; ``asked`` are its paths, in order."""

    places: dict[str, Place] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    robots_cookies: list[str] = field(default_factory=list)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path
        if path == "/robots.txt":
            self.robots_cookies += handler.headers.get_all("Cookie", [])
            self._send(handler, 404)
            return
        self.asked.append(path)
        place = self.places.get(path)
        known = handler.headers.get("If-None-Match") == SAME or "If-Modified-Since" in handler.headers
        if path.startswith(WALL) and handler.headers.get("Cookie") != "old=1; passed=yes":
            fields = [("Set-Cookie", "old=1; Path=/wall"), ("Set-Cookie", "passed=yes"), ("Location", path)]
            self._send(handler, 302, fields)
        elif place is None:
            self._send(handler, 404)
        elif place.location:
            self._send(handler, 302, [("Location", place.location.decode("latin-1"))])
        elif known:
            self._send(handler, 304)
        else:
            kept = [("ETag", SAME), ("Content-Type", "text/html")]
            self._send(handler, 200, kept, place.body)

    def _send(
        self,
        handler: BaseHTTPRequestHandler,
        status: int,
        fields: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
    ) -> None:
        handler.send_response(status)
        for name, value in [*fields, ("Content-Length", str(len(body)))]:
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)


class Scene:
    """A provider of everything on a site."""

    def __init__(self, lcc: Lcc, site: Site, port: int) -> None:
        self.lcc = lcc
        self.site = site
        self.root = f"http://127.0.0.1:{port}"
        self._pushes = 0
        lcc.register(Provider(1, "", allowprivate=True), roots=[[f"{self.root}/"]])
        lcc.start()

    def push(self, *paths: str) -> list[str]:
        """Push paths, and return what the site was asked for."""
        self.site.asked.clear()
        self._pushes += 1
        urls = [{"curl": self.root + path, "mimetype": "text/html", "mtime": self._pushes} for path in paths]
        assert self.lcc.push_urls(1, urls).returncode == 0
        self.lcc.wait_until_fetched(60)
        return list(self.site.asked)

    def document(self, path: str) -> tuple[str, bytes] | None:
        """Return where a document came from and its content, if it is cached."""
        found: Any = self.lcc.sql(
            f"select final_url, fetched_machineid, fetched_fileid from lccurl where curl = '{self.root}{path}'"
        )
        if not found:
            return None
        final, machine, number = found[0]
        return final.removeprefix(self.root), self.lcc.path_of(machine, number).read_bytes()


@pytest.fixture
def scene(make_lcc: Callable[..., Lcc]) -> Iterator[Scene]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Scene(make_lcc(LCC_HOST_BACKOFF="1s"), site, server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_copy_follows_what_the_site_leads_to(scene: Scene) -> None:
    """The site answers 304 wherever the validators of another document come to."""
    places = scene.site.places
    places |= {"/r1": Place(b"one"), "/r2": Place(b"two"), "/latest": Place(location=b"/r1")}
    places |= {"/page": Place(b"the page")}
    scene.push("/latest", "/page")
    assert (scene.document("/latest"), scene.document("/page")) == (("/r1", b"one"), ("/page", b"the page"))

    assert scene.push("/latest", "/page") == ["/latest", "/r1", "/page"]
    assert "'lcc/confirmed': 2" in stats_after_stop(scene), "both were asked for conditionally"

    places["/latest"], places["/page"] = Place(location=b"/r2"), Place(location=b"/r2")
    scene.push("/latest", "/page")
    assert (scene.document("/latest"), scene.document("/page")) == (("/r2", b"two"), ("/r2", b"two"))

    places["/latest"] = Place(b"a page now")
    places["/page"] = Place(b"a page again")
    scene.push("/latest", "/page")
    assert scene.document("/latest") == ("/latest", b"a page now")
    assert scene.document("/page") == ("/page", b"a page again")


def stats_after_stop(scene: Scene) -> str:
    assert scene.lcc.stop() == 0
    text = scene.lcc.log_text()
    scene.lcc.start()
    return text


def test_a_wall_that_sets_cookies_and_redirects_to_itself_is_passed(scene: Scene) -> None:
    scene.site.places["/wall/a"] = Place(b"behind the wall")
    scene.site.places["/wall/b"] = Place(b"behind it, too")
    assert scene.push("/wall/a", "/wall/b") == ["/wall/a", "/wall/a", "/wall/b", "/wall/b"], "each fetch anew"
    assert scene.document("/wall/a") == ("/wall/a", b"behind the wall")
    assert scene.document("/wall/b") == ("/wall/b", b"behind it, too")
    assert scene.site.robots_cookies == []


LEADS = {
    b"z.html": "/x//y/z.html",
    b"//%(host)s/a/./b/../c": "/a/c",
    b"http:\\\\%(host)s\\back\\slashes": "/back/slashes",
    b"///%(host)s/three": "/three",
    b"http:relative": "/x//y/relative",
    b"/latin-\xe9?q=\xe9": "/latin-%E9?q=%E9",
    b"/utf-\xc3\xa9\xff": "/utf-%C3%A9%FF",
    b"/%e9": "/%e9",
    b"/b\tc\t": "/bc",
    b"/d e": "/d%20e",
}


def test_a_redirect_is_followed_to_where_browsers_go(scene: Scene) -> None:
    host = scene.root.removeprefix("http://").encode()
    for number, (said, path) in enumerate(LEADS.items()):
        scene.site.places[f"/x//y/{number}"] = Place(location=said.replace(b"%(host)s", host))
        scene.site.places[path] = Place(path.encode())
    scene.push(*(f"/x//y/{number}" for number in range(len(LEADS))))
    found = [scene.document(f"/x//y/{number}") for number in range(len(LEADS))]
    assert found == [(path, path.encode()) for path in LEADS.values()]
