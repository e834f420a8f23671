"""Proxies, passwords and client certificates: the real Squid and nginx, and proxies that do what none should."""

import contextlib
import gzip
import itertools
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
from scrapy import Request

from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.fetch.download_handler import PRIVATE_HOSTS, TURN
from lcc_scrapy.fetch.turn import code_of
from lcc_scrapy.http.credentials import Credentials
from lcc_scrapy.queue.held_turn import TurnPass
from tests.certificates import DAY, NOW, Authority
from tests.faults.handling import LOOPS, Handling, run
from tests.faults.test_secrets import Search, canary
from tests.harness import Lcc, missing, wait_for
from tests.integration.site import Site, page
from tests.ports import free_port
from tests.squid import Squid, squid

SEVEN, EIGHT = 7, 8


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """Return an authority that this machine trusts."""
    authority = Authority()
    (tmp_path / "ours.pem").write_bytes(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ours.pem"))
    return authority


def tls_of(folder: Path, authority: Authority, *, client: bool = False) -> ssl.SSLContext:
    """Return the TLS of a server, which may demand a certificate of its ``client``."""
    authority.issue("127.0.0.1").write(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    if client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority.pem.decode())
    return context


def written(folder: Path, text: str) -> str:
    path = folder / "credentials.toml"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


@contextlib.contextmanager
def serving(act: Callable[[socket.socket], object]) -> Iterator[int]:
    """Do something with each connection; gives the port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=one, args=listening.accept()[:1], daemon=True).start()

        def one(peer: socket.socket) -> None:
            with peer, contextlib.suppress(OSError):
                act(peer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listening.getsockname()[1])
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(300)


# --- one fetch at a time, by the real handler ----------------------------------------------------


@dataclass
class Got:
    """What became of a fetch: status or wire code, the text of a failure, the address it came from."""

    code: int
    text: str = ""
    peer: str = ""


@dataclass
class Scene:
    """A handler with an operator's file."""

    folder: Path
    text: str
    loop: str = "asyncio"
    patience: float = 120.0
    approved: frozenset[str] = frozenset()
    headers: dict[str, str] = field(default_factory=dict)

    def fetch(self, *asked: tuple[int, str]) -> list[Got]:
        """Fetch URLs of providers, one after the other with one handler."""
        credentials = Credentials(written(self.folder, self.text))
        handling = Handling(self.folder, credentials, fetch_timeout=self.patience)

        async def scenario() -> list[Got]:
            handler = handling.handler()
            try:
                return [await self._one(handler, pid, url) for pid, url in asked]
            finally:
                await handler.close()

        return list(run(scenario, self.loop))

    async def _one(self, handler: Any, pid: int, url: str) -> Got:
        host = url.split("/")[2]
        meta = {PRIVATE_HOSTS: self.approved or {host}, TURN: TurnPass(str(pid), 1, b"k", pid)}
        request = Request(url, meta=meta, headers=self.headers)
        try:
            response = await handler.download_request(request)
        except Exception as error:
            return Got(code_of(error), str(error))
        finally:
            assert request.headers.to_unicode_dict() == self.headers, "a component would see more"
        return Got(response.status, response.text, str(response.ip_address or ""))


def proxy_for(port: int, scheme: str = "http", pid: int = SEVEN) -> str:
    return f'[provider.{pid}]\nproxy = "{scheme}://127.0.0.1:{port}"\n'


def logged_in(origin: str, user: str = "lcc", pid: int = SEVEN) -> str:
    return f'[provider.{pid}."{origin}"]\nuser = "{user}"\npassword = "pw"\nplain_text = true\n'


def said(user: str) -> str:
    return "Basic " + b64encode(f"{user}:pw".encode()).decode()


def answering(told: list[bytes], answer: bytes) -> Callable[[socket.socket], None]:
    def act(peer: socket.socket) -> None:
        told.append(peer.recv(65536))
        peer.sendall(answer)

    return act


def test_a_site_that_refuses_the_password_says_nothing_of_its_pages(tmp_path: Path) -> None:
    """Who asks without one is told what the site says."""
    with serving(answering([], b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n")) as port:
        url = f"http://127.0.0.1:{port}"
        refused, stranger = Scene(tmp_path, logged_in(url)).fetch((SEVEN, f"{url}/x"), (EIGHT, f"{url}/x"))
    assert refused == Got(616, "the site refuses the password of LCC_CREDENTIALS_FILE")
    assert stranger.code == 401


UNREACHED, SLOW, BROKEN, REFUSED = 602, 603, 614, 615
BAD_PROXIES = {
    "407": (b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n", UNREACHED, UNREACHED, "the proxy: 407 Who are you"),
    "502": (b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\nno", 502, UNREACHED, "the proxy: 502 Bad Gateway"),
    "403": (b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", 403, UNREACHED, "the proxy: 403 No"),
    "another protocol": (b"SSH-2.0-OpenSSH_9.2\r\n", BROKEN, UNREACHED, ": the proxy: "),
    "nothing": (b"", BROKEN, UNREACHED, ": the proxy: "),
    "half a head": (b"HTTP/1.1 200 OK\r\nX:", BROKEN, UNREACHED, ": the proxy: "),
    "garbage behind the head": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nSSH-2.0-x\r\n", 200, UNREACHED, "by its proxy: "),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_PROXIES)
def test_a_bad_answer_of_a_proxy_is_told_as_one(tmp_path: Path, name: str) -> None:
    answer, plain, tunnelled, text = BAD_PROXIES[name]
    told: list[bytes] = []
    with serving(answering(told, answer)) as port:
        scene = Scene(tmp_path, proxy_for(port))
        got, secure = scene.fetch((SEVEN, "http://www.example.org/x"), (SEVEN, "https://www.example.org/x"))
    assert (got.code, secure.code) == (plain, tunnelled)
    assert text in secure.text
    assert got.code < 600 or text in got.text or "by its proxy: " in got.text
    assert str(port) not in got.text + secure.text
    assert told[0].startswith(b"GET http://www.example.org/x HTTP/1.1\r\n")
    assert told[-1].startswith(b"CONNECT www.example.org:443 HTTP/1.1\r\n")


def test_a_tunnel_that_ends_at_once_or_speaks_no_tls_is_no_connection(tmp_path: Path) -> None:
    for behind in (b"", b"SSH-2.0-OpenSSH_9.2\r\n"):

        def act(peer: socket.socket, behind: bytes = behind) -> None:
            peer.recv(65536)
            peer.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            if behind:
                peer.recv(65536)
                peer.sendall(behind)

        with serving(act) as port:
            (got,) = Scene(tmp_path, proxy_for(port)).fetch((SEVEN, "https://www.example.org/x"))
        assert got.code in {UNREACHED, 612}
        assert "by its proxy: " in got.text


def test_a_407_through_a_tunnel_is_of_the_site(tmp_path: Path, ours: Authority) -> None:
    tls = tls_of(tmp_path / "tls", ours)

    def act(peer: socket.socket) -> None:
        peer.recv(65536)
        peer.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        with tls.wrap_socket(peer, server_side=True) as inner:
            inner.recv(65536)
            inner.sendall(b"HTTP/1.1 407 x\r\nContent-Length: 0\r\n\r\n")

    with serving(act) as port:
        (got,) = Scene(tmp_path, proxy_for(port)).fetch((SEVEN, "https://127.0.0.1:81/x"))
    assert got.code == 407


def test_a_silent_proxy_is_given_up(tmp_path: Path) -> None:
    released = threading.Event()
    with serving(lambda peer: peer.recv(65536) and released.wait(300)) as port:
        scene = Scene(tmp_path, proxy_for(port), patience=1.0)
        got, secure = scene.fetch((SEVEN, "http://www.example.org/x"), (SEVEN, "https://www.example.org/x"))
        released.set()
    assert (got.code, secure.code) == (SLOW, UNREACHED)
    assert secure.text == "https://www.example.org/x by its proxy: no connection in time"


def test_a_proxy_that_is_not_there_is_no_connection(tmp_path: Path) -> None:
    nowhere = f'[provider.{EIGHT}]\nproxy = "http://proxy.invalid:3128"\n'
    scene = Scene(tmp_path, proxy_for(free_port()) + nowhere)
    got, unknown = scene.fetch((SEVEN, "http://www.example.org/x"), (EIGHT, "http://www.example.org/x"))
    assert (got.code, unknown.code) == (UNREACHED, UNREACHED)
    assert got.text == "http://www.example.org/x: the proxy: Connection refused"
    assert unknown.text.endswith("the proxy: its name is not found")


@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "[::1]", "[::ffff:a00:1]", "169.254.169.254"])
def test_a_proxy_is_not_told_to_connect_to_a_private_address(tmp_path: Path, host: str) -> None:
    told: list[bytes] = []
    with serving(answering(told, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) as port:
        scene = Scene(tmp_path, proxy_for(port), approved=frozenset({"www.example.org:80"}))
        found = scene.fetch((SEVEN, f"http://{host}/x"), (SEVEN, f"https://{host}/x"))
        assert [got.code for got in found] == [REFUSED, REFUSED]
        assert told == []
        assert scene.fetch((SEVEN, "http://www.example.org/x"))[0].code == 200  # at a private address itself


@pytest.mark.parametrize("loop", LOOPS)
def test_credentials_go_to_their_origin_and_provider_only(site: Site, tmp_path: Path, loop: str) -> None:
    here, there = site.listen(), site.listen()
    site.put("/x", page("x"))
    text = logged_in(f"http://127.0.0.1:{here}") + logged_in(f"http://127.0.0.1:{here}", "eight", EIGHT)
    one, other = f"http://127.0.0.1:{here}/x", f"http://127.0.0.1:{there}/x"
    scene = Scene(tmp_path, text, loop, approved=frozenset({f"127.0.0.1:{here}", f"127.0.0.1:{there}"}))
    asked = [(SEVEN, one), (SEVEN, other), (EIGHT, one), (EIGHT, other), (9, one), (0, one)]
    assert [got.code for got in scene.fetch(*asked)] == [200] * 6
    sent = [visit.headers.get("authorization", "") for visit in site.visits]
    assert sent == [said("lcc"), "", said("eight"), "", "", ""]
    scene.headers = {"Authorization": "Bearer of a component"}
    scene.fetch((SEVEN, one))
    assert site.visits[-1].headers["authorization"] == "Bearer of a component"


@pytest.mark.parametrize("loop", LOOPS)
def test_connections_are_not_shared_by_who_comes_another_way(
    site: Site, ours: Authority, tmp_path: Path, loop: str
) -> None:
    """A connection that a certificate or a proxy has made is nobody else's: not even of the same host."""
    port = site.listen(tls_of(tmp_path / "tls", ours, client=True))
    for name in ("seven", "eight"):
        ours.issue(name).write(tmp_path / name)
    site.put("/x", page("x"))
    url = f"https://127.0.0.1:{port}"
    text = "".join(
        f'[provider.{pid}."{url}"]\nclient_certificate = "{name}/cert.pem"\nclient_key = "{name}/key.pem"\n'
        for pid, name in ((SEVEN, "seven"), (EIGHT, "eight"))
    )
    asked = [(SEVEN, f"{url}/x"), (9, f"{url}/x"), (SEVEN, f"{url}/x"), (EIGHT, f"{url}/x")]
    codes = [got.code for got in Scene(tmp_path, text, loop).fetch(*asked)]
    assert codes[0] == codes[2] == codes[3] == 200
    assert codes[1] in {UNREACHED, 612, BROKEN}  # of TLS 1.3, a client learns it when it reads
    assert site.connections[port] == 2  # those of which the handshake ended


def test_a_connection_to_a_proxy_serves_who_comes_by_it(site: Site, tmp_path: Path) -> None:
    """Two proxies, and none: each gets what its own way brings, from the same host, whatever is kept open."""
    kept = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n"
    port = site.listen()
    site.put("/x", page("own"))

    def proxying(body: bytes) -> Callable[[socket.socket], None]:
        def act(peer: socket.socket) -> None:
            while peer.recv(65536):
                peer.sendall(kept + body)

        return act

    with serving(proxying(b"one")) as one, serving(proxying(b"two")) as two:
        scene = Scene(tmp_path, proxy_for(one) + proxy_for(two, pid=EIGHT))
        pids = [SEVEN, 9, EIGHT, SEVEN, EIGHT, 9]
        found = scene.fetch(*((pid, f"http://127.0.0.1:{port}/x") for pid in pids))
    assert [got.text for got in found] == ["one", "own", "two", "one", "two", "own"]
    assert site.connections[port] == 1


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_may_speak_tls(site: Site, ours: Authority, tmp_path: Path, loop: str, scheme: str) -> None:
    """TLS within TLS: the site's within that of the proxy, which never sees the certificate for the site."""
    target = site.listen(tls_of(tmp_path / "tls", ours, client=True) if scheme == "https" else None)
    site.put("/x", page("through"))
    ours.issue("lcc").write(tmp_path / "lcc")
    url, seen = f"{scheme}://127.0.0.1:{target}", []
    tls = tls_of(tmp_path / "proxy", ours)
    tls.verify_mode = ssl.CERT_OPTIONAL
    tls.load_verify_locations(cadata=ours.pem.decode())

    def act(peer: socket.socket) -> None:
        with tls.wrap_socket(peer, server_side=True) as inner:
            head = inner.recv(65536)
            seen.append((head, inner.getpeercert()))
            with socket.create_connection(("127.0.0.1", target)) as onward:
                if head.startswith(b"CONNECT"):
                    inner.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                else:
                    onward.sendall(head.replace(url.encode(), b"", 1))
                pass_on(inner, onward)

    with serving(act) as port:
        text = proxy_for(port, "https") + f'proxy_user = "p"\nproxy_password = "pw"\n{logged_in(url)}'
        if scheme == "https":
            text += 'client_certificate = "lcc/cert.pem"\nclient_key = "lcc/key.pem"\n'
        (got,) = Scene(tmp_path, text, loop).fetch((SEVEN, f"{url}/x"))
    assert (got.code, got.text, got.peer) == (200, "through", "")
    head, certificate = seen[0]
    assert not certificate
    assert f"Proxy-Authorization: {said('p')}".encode() in head
    assert site.visits[0].headers["authorization"] == said("lcc")
    if scheme == "https":
        assert b"\r\nAuthorization" not in head
        assert "proxy-authorization" not in site.visits[0].headers


def pass_on(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until either side ends; a TLS socket is not read by two threads."""
    one.settimeout(0.02)
    other.settimeout(0.02)
    with contextlib.suppress(OSError):
        for source, sink in itertools.cycle(((one, other), (other, one))):
            with contextlib.suppress(TimeoutError):
                if not (data := source.recv(65536)):
                    return
                sink.sendall(data)


# --- a whole crawl, by the real Squid from the real nginx ----------------------------------------

CHECKS = """
import sys
for line in sys.stdin:
    print("OK" if line.split() == ["lcc", "{password}"] else "ERR", flush=True)
"""
KNOWN_ONLY = """
auth_param basic program {python} -S {script}
auth_param basic children 1
acl known proxy_auth REQUIRED
http_access allow manager
http_access deny !known
http_access allow all
"""
SQUID_LOG = "logformat seen %rm %ru %>Hs %un\naccess_log stdio:{folder}/seen.log logformat=seen\n"


class Nginx:
    """nginx with one server for each way to demand something; ``port`` by its name."""

    def __init__(self, folder: Path, authority: Authority, password: str) -> None:
        folder.mkdir()
        self.folder = folder
        self.port = {name: free_port() for name in ("open", "tls", "basic", "client")}
        authority.issue("127.0.0.1").write(folder / "tls")
        (folder / "ca.pem").write_bytes(authority.pem)
        (folder / "users").write_text(f"lcc:{{PLAIN}}{password}\n")
        (folder / "site").mkdir()
        (folder / "site/page.html").write_text("<p>a page</p>")
        (folder / "site/robots.txt").write_text("User-agent: *\nDisallow: /secret\n")
        tls = f"ssl_certificate {folder}/tls/cert.pem; ssl_certificate_key {folder}/tls/key.pem;"
        demands = {
            "open": "",
            "tls": tls,
            "basic": f"{tls} auth_basic x; auth_basic_user_file {folder}/users;"
            f" location = /away.html {{ return 302 https://127.0.0.1:{self.port['tls']}/page.html; }}",
            "client": f"{tls} ssl_verify_client on; ssl_client_certificate {folder}/ca.pem;",
        }
        servers = "".join(
            f"server {{ listen 127.0.0.1:{self.port[name]}{' ssl' if demand else ''}; root {folder}/site;"
            f" access_log {folder}/{name}.log seen; {demand} }}\n"
            for name, demand in demands.items()
        )
        temporary = " ".join(
            f"{name}_temp_path {folder};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (folder / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
            "events {} http { types { text/html html; text/plain txt; } "
            "log_format seen '$request_uri $status auth=$http_authorization proxy=$http_proxy_authorization"
            " user=$remote_user client=$ssl_client_s_dn via=$http_via';\n"
            f"{temporary}\n{servers}}}\n"
        )

    def url(self, name: str) -> str:
        return f"{'http' if name == 'open' else 'https'}://127.0.0.1:{self.port[name]}"

    def seen(self, name: str) -> list[str]:
        return (self.folder / f"{name}.log").read_text().splitlines()

    def __enter__(self) -> Self:
        program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if program is None:
            missing("nginx", "apt-get install nginx-light")
        command = [str(program), "-c", str(self.folder / "nginx.conf"), "-p", str(self.folder)]
        self._process = subprocess.Popen(command)
        for port in self.port.values():
            wait_for(lambda port=port: _answers(port), 60, "nginx")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(300)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


PLAIN, TUNNEL, BASIC, CLIENT, WRONG, DOWN = range(1, 7)
ROOTS = {
    PLAIN: ["open"],
    TUNNEL: ["tls"],
    BASIC: ["basic", "tls"],
    CLIENT: ["client"],
    WRONG: ["tls"],
    DOWN: ["open"],
}


def operators_file(nginx: Nginx, proxies: tuple[int, int, int], password: str, token: str) -> str:
    """Return what each provider needs; the ports are of a proxy, of one with a password, and of none."""
    open_squid, closed_squid, down = proxies
    return f"""
[provider.{PLAIN}]
proxy = "http://127.0.0.1:{open_squid}"

[provider.{TUNNEL}]
proxy = "http://127.0.0.1:{closed_squid}"
proxy_user = "lcc"
proxy_password = "{password}"
plain_text = true

[provider.{BASIC}."{nginx.url("basic")}"]
user = "lcc"
password = "{token}"

[provider.{CLIENT}."{nginx.url("client")}"]
client_certificate = "lcc/cert.pem"
client_key = "lcc/key.pem"

[provider.{WRONG}]
proxy = "http://127.0.0.1:{closed_squid}"
proxy_user = "lcc"
proxy_password = "wrong-{password}"
plain_text = true

[provider.{DOWN}]
proxy = "http://127.0.0.1:{down}"
"""


@dataclass
class Crawl:
    """A crawl of providers that reach their sites in different ways; ``secrets`` are to be found nowhere."""

    lcc: Lcc
    nginx: Nginx
    secrets: tuple[str, ...]

    def begin(self) -> None:
        self.lcc.register(
            *(Provider(pid, "", allowprivate=True) for pid in ROOTS),
            roots=[[f"{self.nginx.url(name)}/" for name in names] for names in ROOTS.values()],
        )
        self.lcc.start()
        for pid, names in ROOTS.items():
            self._push(pid, f"{self.nginx.url(names[0])}/page.html")
        self._push(BASIC, f"{self.nginx.url('basic')}/away.html")

    def _push(self, pid: int, url: str) -> None:
        assert self.lcc.push_urls(pid, [{"curl": url, "mimetype": "text/html"}]).returncode == 0

    def explained(self, pid: int, page: str = "page.html") -> str:
        """Wait until something is known of a provider's page; returns what ``lcc explain`` says."""
        url = f"{self.nginx.url(ROOTS[pid][0])}/{page}"

        def told() -> str:
            return self.lcc.lcc("explain", url, "--provider", str(pid)).stdout

        wait_for(lambda: "fetched " in told() or "has failed since" in told(), 120, f"{pid}: {page}")
        return told()

    def search(self) -> None:
        """Look for secrets in what commands say, in exports, logs, files and rows."""
        search = Search(*self.secrets)
        assert search.run(self.lcc, "lcc", "doctor") == 0
        for name in self.nginx.port:
            search.run(self.lcc, "lcc", "explain", f"{self.nginx.url(name)}/page.html", "--json")
        for name in ("all.warc.gz", "all.jsonl"):
            kind = name.split(".")[1]
            assert search.run(self.lcc, "lcc", "export", "--format", kind, "-o", name) == 0
        search.text("export", gzip.decompress((self.lcc.cwd / "all.warc.gz").read_bytes()))
        assert self.lcc.stop() == 0
        search.folder(self.lcc.folder)
        search.sqlite(self.lcc.folder / "lcc-data/lcc.sqlite")
        search.report()


@pytest.fixture
def crawl(
    make_lcc: Callable[..., Lcc], ours: Authority, tmp_path: Path
) -> Iterator[tuple[Crawl, Squid, Squid]]:
    """Give a crawl, a Squid that serves everybody, and one that demands a password."""
    password, token = canary("password"), canary("token")
    secrets = [
        text for word in (password, token) for text in (word, b64encode(f"lcc:{word}".encode()).decode())
    ]
    script = tmp_path / "checks.py"
    script.write_text(CHECKS.replace("{password}", password))
    closed = KNOWN_ONLY.format(python=sys.executable, script=script)
    key = ours.issue("the LCC").write(tmp_path / "lcc") / "key.pem"
    key.chmod(0o600)
    folders = [tmp_path / "open", tmp_path / "closed"]
    for folder in folders:
        folder.mkdir()
    with (
        Nginx(tmp_path / "nginx", ours, token) as nginx,
        squid(folders[0], SQUID_LOG.format(folder=folders[0])) as one,
        squid(folders[1], SQUID_LOG.format(folder=folders[1]), closed) as other,
    ):
        text = operators_file(nginx, (one.port, other.port, free_port()), password, token)
        lcc = make_lcc(
            LCC_CREDENTIALS_FILE=written(tmp_path, text), LCC_RETRY_DELAYS="", LCC_HOST_BACKOFF="1h"
        )
        lcc.settings |= {"SSL_CERT_FILE": str(tmp_path / "ours.pem"), "LOG_LEVEL": "DEBUG"}
        yield Crawl(lcc, nginx, (*secrets, *key.read_text().splitlines()[1:-1])), one, other


@pytest.mark.slow
def test_a_crawl_reaches_what_demands_more(crawl: tuple[Crawl, Squid, Squid]) -> None:
    scene, one, other = crawl
    scene.begin()
    for pid in (PLAIN, TUNNEL, BASIC, CLIENT):
        assert "fetched " in scene.explained(pid)
    assert "fetched " in scene.explained(BASIC, "away.html")
    refused, down = scene.explained(WRONG), scene.explained(DOWN)
    assert "602 No connection to the host" in refused
    assert "the proxy: 407 Proxy Authentication Required" in refused
    assert "602 No connection to the host" in down
    assert "the proxy: Connection refused" in down
    check_nginx(scene.nginx, scene.secrets[3])
    peers = "select u.pid, m.peer from lccmeta m join lccurl u on u.urlkey = m.urlkey where u.pid < 5"
    assert set(scene.lcc.sql(peers)) == {
        (PLAIN, ""),
        (TUNNEL, ""),
        (BASIC, "127.0.0.1"),
        (CLIENT, "127.0.0.1"),
    }
    scene.search()
    check_squids(scene.nginx, one.folder, other)


def check_squids(nginx: Nginx, open_squid: Path, closed: Squid) -> None:
    """All fetches of a provider came by its proxy, robots.txt included, and nobody else's did."""
    plain = (open_squid / "seen.log").read_text().split("\n")
    asked = [line for line in plain if "squid-internal-mgr" not in line]
    assert asked[:2] == [f"GET {nginx.url('open')}/{name} 200 -" for name in ("robots.txt", "page.html")]
    assert len(asked) == 3  # the last line is empty
    made = f"CONNECT 127.0.0.1:{nginx.port['tls']} 200 lcc"  # which is logged when the tunnel has ended
    wait_for(lambda: made in closed.log("seen.log"), 60, made)
    tunnels = [line for line in closed.log("seen.log").splitlines() if "squid-internal-mgr" not in line]
    assert sorted(tunnels) == [made, made.replace("200", "407")]


def check_nginx(nginx: Nginx, basic: str) -> None:
    """Each site saw what is its own, and nothing else."""
    own = f"auth=Basic {basic} proxy=- user=lcc client=- via=-"
    assert sorted(nginx.seen("basic")) == sorted(
        [f"/robots.txt 200 {own}", f"/page.html 200 {own}", f"/away.html 302 {own}"]
    )
    nothing = "auth=- proxy=- user=- client=- via=-"
    assert sorted(nginx.seen("tls")) == sorted(
        [f"/robots.txt 200 {nothing}", f"/page.html 200 {nothing}"] * 2
    )  # of the tunnel, and of the redirect
    dn = "auth=- proxy=- user=- client=CN=the LCC via=-"
    assert nginx.seen("client") == [f"/robots.txt 200 {dn}", f"/page.html 200 {dn}"]
    assert all("auth=- proxy=- user=- client=- via=1.1 squid.test" in line for line in nginx.seen("open"))


# --- the operator's file -------------------------------------------------------------------------


@pytest.mark.slow
def test_a_file_with_a_mistake_keeps_a_crawl_from_starting(
    make_lcc: Callable[..., Lcc], tmp_path: Path
) -> None:
    file = written(tmp_path, '[provider.7]\nproxy = "socks4://127.0.0.1:1080"\n')
    lcc = make_lcc(LCC_CREDENTIALS_FILE=file)
    said = f"LCC_CREDENTIALS_FILE: {file}: provider.7: proxy: expected http://HOST:PORT or https://HOST:PORT"
    assert said in lcc.refused()
    assert said in lcc.lcc("doctor", check=False).stdout
    assert "cannot read" in lcc.lcc("-s", "LCC_CREDENTIALS_FILE=/nowhere", "doctor", check=False).stdout


def test_doctor_says_how_sites_are_reached_and_what_is_wrong(
    make_lcc: Callable[..., Lcc], ours: Authority, tmp_path: Path
) -> None:
    ours.issue("lcc", ends=NOW - DAY / 2).write(tmp_path / "lcc")
    certificate = 'client_certificate = "lcc/cert.pem"\nclient_key = "lcc/key.pem"\n'
    text = proxy_for(3128) + logged_in("https://www.example.com") + certificate
    file = written(tmp_path, text)
    said = make_lcc(LCC_CREDENTIALS_FILE=file).lcc("doctor", check=False).stdout
    assert "ok       credentials: provider 7: by http://127.0.0.1:3128; https://www.example.com with" in said
    assert "problem  rights: the client key for https://www.example.com: other users may read" in said
    assert "problem  certificate: of provider 7 for https://www.example.com: it expired " in said
    assert f"ok       rights: LCC_CREDENTIALS_FILE: {file}" in said
    (tmp_path / "lcc/key.pem").write_text("no key")
    said = make_lcc(LCC_CREDENTIALS_FILE=file).lcc("doctor", check=False).stdout
    assert f"{tmp_path}/lcc/cert.pem and {tmp_path}/lcc/key.pem cannot be used" in said


def test_a_key_with_a_password_is_refused_and_nobody_asked_for_it(tmp_path: Path, ours: Authority) -> None:
    lcc = ours.issue("lcc")
    lcc.write(tmp_path / "lcc")
    (tmp_path / "lcc/key.pem").write_bytes(lcc.key_pem(b"secret"))
    text = '[provider.7."https://h"]\nclient_certificate = "lcc/cert.pem"\nclient_key = "lcc/key.pem"\n'
    with pytest.raises(ConfigurationError, match="cannot be used"):
        Credentials(written(tmp_path, text))


@pytest.mark.slow
def test_a_password_is_changed_while_a_crawl_runs(
    make_lcc: Callable[..., Lcc], site: Site, tmp_path: Path
) -> None:
    origin = f"http://127.0.0.1:{site.listen()}"
    for path in ("/1", "/2", "/3"):
        site.put(path, page(path))
    lcc = make_lcc(LCC_CREDENTIALS_FILE=written(tmp_path, logged_in(origin, "first")))
    lcc.register(Provider(SEVEN, "", allowprivate=True), roots=[[f"{origin}/"]])
    lcc.start()
    for path, text, told in (
        ("/1", "", ""),
        ("/2", logged_in(origin, "second"), "SIGHUP: credentials read again"),
        ("/3", "no TOML", "SIGHUP: the old credentials stay in use: LCC_CREDENTIALS_FILE: "),
    ):
        if told:
            written(tmp_path, text)
            lcc.crawl.send_signal(signal.SIGHUP)
            wait_for(lambda told=told: told in lcc.log_text(), 60, told)
        assert lcc.push_urls(SEVEN, [{"curl": origin + path, "mimetype": "text/html"}]).returncode == 0
        wait_for(lambda path=path: site.asked(path), 60, path)
    assert [site.asked(path)[0].headers["authorization"] for path in ("/1", "/2", "/3")] == [
        said("first"),
        said("second"),
        said("second"),
    ]
    assert lcc.stop() == 0


@pytest.mark.slow
def test_sources_are_read_with_the_same_credentials(
    make_lcc: Callable[..., Lcc], site: Site, tmp_path: Path
) -> None:
    origin = f"http://127.0.0.1:{site.listen()}"
    body = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{}/a</loc></url></urlset>'
    site.put("/sitemap.xml", page(body.format(origin), content_type="application/xml"))
    lcc = make_lcc(LCC_CREDENTIALS_FILE=written(tmp_path, logged_in(origin)))
    lcc.register(Provider(SEVEN, "", allowprivate=True), roots=[[f"{origin}/"]])
    lcc.lcc("source", "add", str(SEVEN), "--sitemap", f"{origin}/sitemap.xml")
    lcc.lcc("source", "run", str(SEVEN))
    assert [visit.headers.get("authorization") for visit in site.visits] == [said("lcc")] * 2
    Path(lcc.settings["LCC_CREDENTIALS_FILE"]).write_text(proxy_for(free_port()))
    assert "the proxy: Connection refused" in lcc.lcc("source", "run", str(SEVEN), check=False).stderr
