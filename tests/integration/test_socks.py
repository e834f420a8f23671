"""SOCKS proxies: the real microsocks, and proxies that do what none should."""

import contextlib
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lcc_scrapy.domain.errors import ConfigurationError, MissingExtra
from lcc_scrapy.http import outgoing, socks
from lcc_scrapy.http.credentials import Credentials
from lcc_scrapy.ops import doctor
from tests.certificates import NOW, Authority
from tests.faults.handling import LOOPS
from tests.harness import missing, wait_for
from tests.integration.site import Site, page
from tests.integration.test_site_access import (
    BROKEN,
    EIGHT,
    REFUSED,
    SEVEN,
    UNREACHED,
    Scene,
    logged_in,
    ours,
    said,
    serving,
    site,
    tls_of,
    written,
)
from tests.ports import free_port

__all__ = ["ours", "site"]

PASSWORD = "s3cr3t-0f-n0b0dy"
NO_LOGIN = b"\x05\x00"
GRANTED = b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"


@contextlib.contextmanager
def microsocks(*options: str) -> Iterator[int]:
    program = shutil.which("microsocks")
    if program is None:
        missing("microsocks", "apt-get install microsocks")
    port = free_port()
    with subprocess.Popen([str(program), "-i", "127.0.0.1", "-p", str(port), *options], stderr=-3) as process:
        try:
            wait_for(lambda: listens(port), 60, "microsocks")
            yield port
        finally:
            process.kill()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def by(port: int, scheme: str = "socks5", login: str = "", pid: int = SEVEN) -> str:
    return f'[provider.{pid}]\nproxy = "{scheme}://{login}127.0.0.1:{port}"\nplain_text = true\n'


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names that are looked up here, each of which has the address of this machine."""
    asked: list[str] = []

    def look_up(host: str, port: int, *_: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(outgoing.socket, "getaddrinfo", look_up)
    return asked


# --- the real one --------------------------------------------------------------------------------


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_site_is_reached_by_a_proxy_that_knows_the_password(
    site: Site, ours: Authority, tmp_path: Path, loop: str, scheme: str
) -> None:
    """A wrong password, and none, are told as those at an HTTP proxy are."""
    port = site.listen(tls_of(tmp_path / "tls", ours) if scheme == "https" else None)
    site.put("/x", page("through"))
    url = f"{scheme}://127.0.0.1:{port}"
    with microsocks("-u", "lcc", "-P", PASSWORD) as proxy:
        text = by(proxy, login=f"lcc:{PASSWORD}@") + logged_in(url)
        text += by(proxy, login="lcc:wrong@", pid=EIGHT) + by(proxy, pid=9)
        good, again, wrong, none = Scene(tmp_path, text, loop).fetch(
            *((pid, f"{url}/x") for pid in (SEVEN, SEVEN, EIGHT, 9))
        )
    assert (good.code, good.text, good.peer) == (200, "through", "")
    assert again == good
    assert (wrong.code, none.code) == (UNREACHED, UNREACHED)
    assert wrong.text == f"{url}/x: the proxy: Username and password authentication failure"
    assert none.text == f"{url}/x: the proxy: No acceptable authentication methods were offered"
    assert [visit.headers.get("authorization") for visit in site.visits] == [said("lcc")] * 2
    assert [visit.path for visit in site.visits] == ["/x"] * 2
    assert "proxy-authorization" not in site.visits[0].headers
    assert site.connections[port] == 1


def test_socks5h_has_names_looked_up_by_the_proxy(site: Site, tmp_path: Path, names: list[str]) -> None:
    port = site.listen()
    site.put("/x", page("x"))
    url = f"http://localhost:{port}/x"
    with microsocks() as proxy:
        text = by(proxy) + by(proxy, "socks5h", pid=EIGHT)
        there, here = Scene(tmp_path, text).fetch((EIGHT, url), (SEVEN, url))
    assert (there.code, here.code) == (200, 200)
    assert names == ["localhost"]  # of socks5


def test_tls_by_a_proxy_verifies_the_site(site: Site, ours: Authority, tmp_path: Path) -> None:
    port = site.listen(tls_of(tmp_path / "tls", ours))  # for 127.0.0.1
    with microsocks() as proxy:
        (got,) = Scene(tmp_path, by(proxy, "socks5h")).fetch((SEVEN, f"https://localhost:{port}/x"))
    assert got.code == 612
    assert site.visits == []


def test_a_site_that_the_proxy_does_not_reach_is_no_connection(tmp_path: Path) -> None:
    with microsocks() as proxy:
        (got,) = Scene(tmp_path, by(proxy)).fetch((SEVEN, url := f"http://127.0.0.1:{free_port()}/x"))
    assert (got.code, got.text) == (UNREACHED, f"{url}: the proxy: Connection refused by destination host")


def test_addresses_of_ipv6_are_told_as_such(tmp_path: Path) -> None:
    told: list[bytes] = []
    with serving(proxying(told)) as port:
        scene = Scene(tmp_path, by(port), approved=frozenset({"::1:81"}))
        assert scene.fetch((SEVEN, "http://[::1]:81/x"))[0].code == 200
    assert told == [b"\x05\x01\x00\x04" + bytes(15) + b"\x01\x00\x51"]


# --- names and addresses -------------------------------------------------------------------------


def proxying(told: list[bytes], body: bytes = b"one") -> Callable[[socket.socket], None]:
    """Return a proxy that is the site as well; ``told``: where it was to connect to."""

    def act(peer: socket.socket) -> None:
        peer.recv(300)
        peer.sendall(NO_LOGIN)
        told.append(peer.recv(300))
        peer.sendall(GRANTED)
        while peer.recv(65536):
            peer.sendall(ANSWER.replace(b"one", body))

    return act


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
@pytest.mark.parametrize("host", ["127.0.0.1", "10.1.2.3", "[::1]", "[::ffff:a00:1]", "169.254.169.254"])
def test_a_proxy_is_not_told_a_private_address(tmp_path: Path, host: str, scheme: str) -> None:
    told: list[bytes] = []
    with serving(proxying(told)) as port:
        scene = Scene(tmp_path, by(port, scheme), approved=frozenset({"www.example.org:80"}))
        found = scene.fetch((SEVEN, f"http://{host}/x"), (SEVEN, f"https://{host}/x"))
    assert [got.code for got in found] == [REFUSED, REFUSED]
    assert told == []


def test_a_name_with_a_private_address_is_refused_by_socks5_alone(tmp_path: Path, names: list[str]) -> None:
    """By socks5h nobody here knows the address: the proxy has to refuse it."""
    told: list[bytes] = []
    with serving(proxying(told)) as port:
        text, nobody = by(port) + by(port, "socks5h", pid=EIGHT), frozenset({"nobody:80"})
        scene = Scene(tmp_path, text, approved=nobody)
        here, there = scene.fetch((SEVEN, "http://inner.test/x"), (EIGHT, "http://inner.test/x"))
    assert (here.code, there.code) == (REFUSED, 200)
    assert names == ["inner.test"]
    assert told == [b"\x05\x01\x00\x03\x0ainner.test\x00\x50"]


def test_where_one_family_leads_nowhere_the_other_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", 80, 0, 0)),
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::2", 80, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80)),
    ]
    monkeypatch.setattr(outgoing.socket, "getaddrinfo", lambda *_: found)
    told: list[bytes] = []

    def act(peer: socket.socket) -> None:
        peer.recv(300)
        peer.sendall(NO_LOGIN)
        told.append(peer.recv(300)[3:4])
        peer.sendall(GRANTED if told[-1] == b"\x01" else b"\x05\x03\x00\x01" + bytes(6))
        if peer.recv(65536):
            peer.sendall(ANSWER)

    with serving(act) as port:
        assert Scene(tmp_path, by(port)).fetch((SEVEN, "http://both.test:81/x"))[0].code == 200
    assert told == [b"\x04", b"\x01"]


def test_a_connection_serves_who_comes_by_the_same_proxy_and_login(tmp_path: Path) -> None:
    told: list[bytes] = []
    with serving(proxying(told, b"one")) as one, serving(proxying(told, b"two")) as two:
        text = by(one) + by(two, pid=EIGHT) + by(one, login="u:p@", pid=9) + by(one, "socks5h", pid=10)
        pids = [SEVEN, EIGHT, 9, 10, SEVEN, EIGHT, 9, 10]
        found = Scene(tmp_path, text).fetch(*((pid, "http://127.0.0.1:81/x") for pid in pids))
    assert [got.text for got in found] == ["one", "two", "one", "one"] * 2
    assert len(told) == 4


# --- proxies that do what none should ------------------------------------------------------------

BAD = {
    "another protocol": [b"SSH-2.0-OpenSSH_9.2\r\n"],
    "http": [b"HTTP/1.1 400 Bad Request\r\n\r\n"],
    "nothing": [b""],
    "half": [b"\x05"],
    "a method that was not offered": [b"\x05\x01"],
    "no method": [b"\x05\xff"],
    "a password that nobody has": [b"\x05\x02"],
    "no answer": [NO_LOGIN, b""],
    "half an answer": [NO_LOGIN, GRANTED[:5]],
    "another version": [NO_LOGIN, b"\x04" + GRANTED[1:]],
    "an unknown code": [NO_LOGIN, b"\x05\x63\x00\x01" + bytes(6)],
    "an unknown family": [NO_LOGIN, b"\x05\x00\x00\x09" + bytes(6)],
    "a name of no characters": [NO_LOGIN, b"\x05\x00\x00\x03\x02\xff\xfe\x00\x50"],
    "not allowed": [NO_LOGIN, b"\x05\x02\x00\x01" + bytes(6)],
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_answer_of_a_proxy_is_told_as_one(tmp_path: Path, name: str) -> None:
    def act(peer: socket.socket) -> None:
        for answer in BAD[name]:
            peer.recv(300)
            peer.sendall(answer)

    with serving(act) as port:
        scene = Scene(tmp_path, by(port, login="" if "password" in name else f"lcc:{PASSWORD}@"))
        found = scene.fetch((SEVEN, "http://127.0.0.1:81/x"), (SEVEN, "https://127.0.0.1:444/x"))
    for got in found:
        assert got.code == UNREACHED
        assert "/x: the proxy: " in got.text
        assert "\n" not in got.text
        assert str(port) not in got.text
        assert PASSWORD not in got.text


@pytest.mark.parametrize("bit", [b"", b"\x05"])
def test_a_silent_or_slow_proxy_is_given_up(tmp_path: Path, bit: bytes) -> None:
    released = threading.Event()

    def act(peer: socket.socket) -> None:
        peer.sendall(bit)
        released.wait(300)

    with serving(act) as port:
        (got,) = Scene(tmp_path, by(port), patience=1.0).fetch((SEVEN, "http://127.0.0.1:81/x"))
        released.set()
    assert (got.code, got.text) == (UNREACHED, "http://127.0.0.1:81/x by its proxy: no connection in time")


def test_an_answer_that_comes_byte_by_byte_is_understood(tmp_path: Path) -> None:
    def act(peer: socket.socket) -> None:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for answer in (NO_LOGIN, GRANTED):
            peer.recv(300)
            for byte in answer:
                peer.sendall(bytes([byte]))
        peer.recv(65536)
        peer.sendall(ANSWER)

    with serving(act) as port:
        assert Scene(tmp_path, by(port)).fetch((SEVEN, "http://127.0.0.1:81/x"))[0].text == "one"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_garbage_behind_the_answer_is_no_answer_of_the_site(tmp_path: Path, scheme: str) -> None:
    def act(peer: socket.socket) -> None:
        peer.recv(300)
        peer.sendall(NO_LOGIN)
        peer.recv(300)
        peer.sendall(GRANTED + b"SSH-2.0-x\r\n" * 10_000)
        peer.recv(300)

    with serving(act) as port:
        (got,) = Scene(tmp_path, by(port)).fetch((SEVEN, f"{scheme}://127.0.0.1:81/x"))
    assert got.code in {UNREACHED, 612, BROKEN}
    assert "by its proxy: " in got.text


def test_a_407_of_a_site_is_not_of_the_proxy(tmp_path: Path) -> None:
    def act(peer: socket.socket) -> None:
        for answer in (NO_LOGIN, GRANTED, b"HTTP/1.1 407 x\r\nContent-Length: 0\r\n\r\n"):
            peer.recv(300)
            peer.sendall(answer)

    with serving(act) as port:
        assert Scene(tmp_path, by(port)).fetch((SEVEN, "http://127.0.0.1:81/x"))[0].code == 407


# --- the operator's file -------------------------------------------------------------------------


def test_without_the_extra_the_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, by(1080))
    Credentials(file)
    monkeypatch.setattr(socks, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"python-socks is missing: install lcc-scrapy\[socks\]"):
        Credentials(file)
    assert issubclass(MissingExtra, ConfigurationError)


def test_doctor_shows_the_proxy_without_its_password(tmp_path: Path) -> None:
    file = written(tmp_path, by(1080, "socks5h", f"lcc:{PASSWORD}@"))
    (found,) = doctor.credentials(file, NOW)
    assert (found.state, found.text) == (doctor.State.OK, "provider 7: by socks5h://127.0.0.1:1080")
