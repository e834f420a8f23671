"""HTTP Digest authentication: the real lighttpd, and sites that ask as none should."""

import hashlib
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lcc_scrapy.domain.providers import Provider
from tests.faults.handling import LOOPS, Handling
from tests.harness import Lcc, missing, wait_for
from tests.integration.test_site_access import EIGHT, SEVEN, Scene, serving, written
from tests.ports import free_port

PASSWORD = "s3cr3t-0f-n0b0dy"
REFUSED = 616
NONCE = re.compile(rb'nonce="([^"]*)", nc=([0-9a-f]{8})')


class Lighttpd:
    """A site of pages for one user; ``seen`` gives path, status and the count of the nonce."""

    def __init__(self, folder: Path, algorithm: str, port: int) -> None:
        self.port, self._log = port, folder / "seen.log"
        self.url = f"http://127.0.0.1:{port}"

    def seen(self) -> list[tuple[str, str, str]]:
        lines = [line.split(" ", 2) for line in self._log.read_text().splitlines()]
        counts = (re.search(r"nc=([0-9a-f]{8})", line[2]) for line in lines)
        return [
            (line[0], line[1], found[1] if found else "") for line, found in zip(lines, counts, strict=True)
        ]


@contextmanager
def lighttpd(folder: Path, algorithm: str = "SHA-256") -> Iterator[Lighttpd]:
    program = shutil.which("lighttpd") or shutil.which("lighttpd", path="/usr/sbin")
    if program is None:
        missing("lighttpd", "apt-get install lighttpd")
    pages, port = folder / "pages", free_port()
    pages.mkdir(parents=True)
    (pages / "robots.txt").write_text("User-agent: *\nDisallow: /secret\n")
    for name in ("page.html", "other.html"):
        (pages / name).write_text(f"<p>{name}</p>")
    kind = hashlib.sha256 if algorithm == "SHA-256" else hashlib.md5
    (folder / "users").write_text(f"lcc:here:{kind(f'lcc:here:{PASSWORD}'.encode()).hexdigest()}\n")
    (folder / "conf").write_text(
        f'server.document-root = "{pages}"\nserver.port = {port}\nserver.bind = "127.0.0.1"\n'
        f'server.errorlog = "{folder}/error.log"\nserver.modules = ("mod_auth", "mod_authn_file",'
        f' "mod_accesslog", "mod_redirect")\nmimetype.assign = (".html" => "text/html", ".txt" => "text/plain")\n'
        'url.redirect = ("^/away$" => "/other.html")\n'
        f'accesslog.filename = "{folder}/seen.log"\naccesslog.format = "%U %s %{{Authorization}}i"\n'
        f'auth.backend = "htdigest"\nauth.backend.htdigest.userfile = "{folder}/users"\n'
        f'auth.require = ("/" => ("method" => "digest", "algorithm" => "{algorithm}", "realm" => "here",'
        ' "require" => "valid-user"))\n'
    )
    with subprocess.Popen([str(program), "-D", "-f", str(folder / "conf")]) as process:
        try:
            wait_for(lambda: listens(port), 60, "lighttpd")
            yield Lighttpd(folder, algorithm, port)
        finally:
            process.terminate()
            process.wait(60)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def by_digest(origin: str, password: str = PASSWORD, pid: int = SEVEN) -> str:
    text = f'user = "lcc"\npassword = "{password}"\ndigest = true\nplain_text = true\n'
    return f'[provider.{pid}."{origin}"]\n{text}'


@pytest.mark.parametrize(("loop", "algorithm"), [*zip(LOOPS, ("SHA-256", "MD5"), strict=True)])
def test_one_challenge_is_answered_and_further_requests_answer_in_advance(
    tmp_path: Path, loop: str, algorithm: str
) -> None:
    with lighttpd(tmp_path / "site", algorithm) as site:
        text = by_digest(site.url) + by_digest(site.url, "wrong", EIGHT)
        asked = [
            (SEVEN, f"{site.url}/page.html"),
            (SEVEN, f"{site.url}/other.html?a=b"),
            (EIGHT, f"{site.url}/page.html"),
        ]
        first, second, wrong = Scene(tmp_path, text, loop).fetch(*asked)
        assert (first.code, first.text, second.code) == (200, "<p>page.html</p>", 200)
        assert (wrong.code, wrong.text) == (REFUSED, "the site refuses the password of LCC_CREDENTIALS_FILE")
    assert site.seen() == [
        ("/page.html", "401", ""),
        ("/page.html", "200", "00000001"),
        ("/other.html", "200", "00000002"),
        ("/page.html", "401", ""),
        ("/page.html", "401", "00000001"),
    ]


def challenging(told: list[bytes], *answers: bytes) -> Callable[[socket.socket], None]:
    """Return a site that gives one answer after the other, and the last one for ever."""

    def act(peer: socket.socket) -> None:
        while head := peer.recv(65536):
            told.append(head)
            peer.sendall(answers[min(len(told), len(answers)) - 1])

    return act


def asks(nonce: str = "n", body: bytes = b"", more: str = "") -> bytes:
    head = f'HTTP/1.1 401 No\r\nWWW-Authenticate: Digest realm="r", nonce="{nonce}", qop="auth"{more}\r\n'
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def test_a_stale_nonce_is_replaced_and_counted_anew(tmp_path: Path) -> None:
    told: list[bytes] = []
    with serving(challenging(told, asks("a"), OK, OK, asks("b", more=", stale=true"), OK)) as port:
        url = f"http://127.0.0.1:{port}"
        found = Scene(tmp_path, by_digest(url)).fetch(*[(SEVEN, f"{url}/x")] * 3)
    assert [got.text for got in found] == ["ok"] * 3
    used = [match.groups() if (match := NONCE.search(head)) else None for head in told]
    assert used == [None, (b"a", b"00000001"), (b"a", b"00000002"), (b"a", b"00000003"), (b"b", b"00000001")]


def test_a_site_that_asks_for_ever_is_asked_twice(tmp_path: Path) -> None:
    told: list[bytes] = []
    with serving(challenging(told, asks(body=b"x" * 1000))) as port:
        url = f"http://127.0.0.1:{port}"
        (got,) = Scene(tmp_path, by_digest(url)).fetch((SEVEN, f"{url}/x"))
    assert (got.code, got.text) == (REFUSED, "the site refuses the password of LCC_CREDENTIALS_FILE")
    assert len(told) == 2
    assert PASSWORD.encode() not in b"".join(told)


def test_the_turn_pays_for_both_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paid: list[int] = []
    monkeypatch.setattr(Handling, "_charge", lambda _, __, size: paid.append(size) or 0.0)
    with serving(challenging([], asks(body=b"x" * 1000), OK)) as port:
        url = f"http://127.0.0.1:{port}"
        assert Scene(tmp_path, by_digest(url)).fetch((SEVEN, f"{url}/x"))[0].text == "ok"
    assert sum(paid) == 1002


def test_a_large_body_of_a_challenge_is_not_read(tmp_path: Path) -> None:
    told: list[bytes] = []
    with serving(challenging(told, asks(body=b"x" * 1_000_000), OK)) as port:
        url = f"http://127.0.0.1:{port}"
        assert Scene(tmp_path, by_digest(url)).fetch((SEVEN, f"{url}/x"))[0].text == "ok"
    assert len(told) == 2


@pytest.mark.parametrize(
    "scheme", ['Basic realm="r"', 'Digest realm="r", nonce="n", algorithm=SHA-512-256, qop="auth"']
)
def test_a_site_that_asks_in_another_way_is_told_nothing(tmp_path: Path, scheme: str) -> None:
    told: list[bytes] = []
    answer = f"HTTP/1.1 401 No\r\nWWW-Authenticate: {scheme}\r\nContent-Length: 0\r\n\r\n".encode()
    with serving(challenging(told, answer)) as port:
        url = f"http://127.0.0.1:{port}"
        (got,) = Scene(tmp_path, by_digest(url)).fetch((SEVEN, f"{url}/x"))
    assert got.code == REFUSED
    assert "does not ask for the password by HTTP Digest" in got.text
    assert len(told) == 1
    assert b"uthorization" not in told[0]


def test_another_origin_provider_or_component_answers_nothing(tmp_path: Path) -> None:
    told: list[bytes] = []
    with serving(challenging(told, asks())) as port, serving(challenging(told, asks())) as elsewhere:
        scene = Scene(tmp_path, by_digest(f"http://127.0.0.1:{port}"))
        found = scene.fetch((SEVEN, f"http://127.0.0.1:{elsewhere}/x"), (EIGHT, f"http://127.0.0.1:{port}/x"))
        scene.headers = {"Authorization": "Bearer of a component"}
        found += scene.fetch((SEVEN, f"http://127.0.0.1:{port}/x"))
    assert [got.code for got in found] == [401] * 3
    assert len(told) == 3
    assert b"Digest" not in b"".join(told)


@pytest.mark.slow
def test_a_crawl_and_sources_answer_for_robots_txt_and_redirects(
    make_lcc: Callable[..., Lcc], tmp_path: Path
) -> None:
    with lighttpd(tmp_path / "site") as site:
        lcc = make_lcc(LCC_CREDENTIALS_FILE=written(tmp_path, by_digest(site.url)))
        lcc.register(Provider(SEVEN, "", allowprivate=True), roots=[[f"{site.url}/"]])
        lcc.lcc("source", "add", str(SEVEN), "--sitemap", f"{site.url}/page.html")
        lcc.lcc("source", "run", str(SEVEN), check=False)
        lcc.start()
        urls = [{"curl": f"{site.url}/{name}", "mimetype": "text/html"} for name in ("away", "page.html")]
        assert lcc.push_urls(SEVEN, urls).returncode == 0
        wait_for(lambda: len(lcc.sql("select urlkey from lccmeta")) == 2, 60, "both")
        assert lcc.stop() == 0
        shown = lcc.log_text() + lcc.lcc("provider", "show", str(SEVEN)).stdout
    good = [line[0] for line in site.seen() if line[1] == "200"]
    assert sorted(good) == ["/other.html", "/page.html", "/page.html", "/robots.txt", "/robots.txt"]
    assert sum(line[1] == "401" for line in site.seen()) == 2  # one in each process
    assert PASSWORD not in shown
    assert f"{site.url}: password" in shown
