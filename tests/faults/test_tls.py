"""TLS as users have it: ``lcc uns`` with real certificates, ``lcccp --tls`` at the other end."""

import datetime as dt
import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.certificates import NOW, Authority
from tests.harness import BIN, PASSWORD, Lcc, free_port, lccs

pytestmark = pytest.mark.acceptance
PUSHES = int(os.environ.get("LCC_TLS_PUSHES", "6"))
URL = '<url curl="http://www.example.org/{}" mimetype="text/html"/>\n'


@dataclass
class World:
    """A UNS with one port for each kind of certificate, and one without."""

    lcc: Lcc
    ca: Path
    ports: dict[str, int]

    def lcccp(
        self, port: str, *options: str, stdin: str = "", host: str = "127.0.0.1", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BIN / "lcccp"), f"--uns={host}:{self.ports[port]}", "--pid=7", "--timeout=200", *options],
            env={**self.lcc.environment, "LCC_PWD": PASSWORD, **environment},
            capture_output=True,
            text=True,
            input=stdin,
            timeout=300,
            check=False,
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("tls")
    ours, theirs = Authority("Ours"), Authority("Theirs")
    long_ago = NOW - dt.timedelta(days=90)
    certificates = {
        "good": Authority("Intermediate", above=ours).issue("127.0.0.1", "localhost"),
        "expired": ours.issue("127.0.0.1", begins=long_ago, ends=long_ago + dt.timedelta(days=60)),
        "unknown": theirs.issue("127.0.0.1"),
        "misnamed": ours.issue("uns.example.org"),
    }
    (folder / "ca.pem").write_bytes(ours.pem)
    ports = {name: free_port() for name in certificates}
    endpoints = [
        f"ssl:{ports[name]}:interface=127.0.0.1:privateKey={place}/key.pem:certKey={place}/cert.pem"
        for name, made in certificates.items()
        if (place := made.write(folder / name))
    ]
    with lccs(folder) as make:
        lcc = make(LCC_CONNECTIONS_PER_ADDRESS="100")
        ports["plain"] = lcc.port
        lcc.settings["LCC_UNS_ENDPOINTS"] += " " + " ".join(endpoints)
        lcc.add_provider(7, "http://www.example.org/", "--fullsets", "0")
        lcc.start_uns()
        yield World(lcc, folder / "ca.pem", ports)
        assert lcc.stop_uns() == 0
        assert "Traceback" not in lcc.uns_log.read_text()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_set_goes_in_over_tls(world: World, host: str) -> None:
    done = world.lcccp("good", "--tls", f"--ca={world.ca}", stdin=URL.format("a") * 2, host=host)
    assert done.returncode == 0, done.stderr


def test_the_systems_authorities_are_trusted_when_none_are_given(world: World) -> None:
    """OpenSSL takes the system's from SSL_CERT_FILE where that is set."""
    assert world.lcccp("good", "--tls", "--check", SSL_CERT_FILE=str(world.ca)).returncode == 0
    assert world.lcccp("good", "--tls", "--check").returncode == 69


@pytest.mark.parametrize(
    ("port", "options", "said"),
    [
        ("expired", ["--tls"], "certificate not trusted: certificate has expired"),
        ("unknown", ["--tls"], "certificate not trusted: unable to get local issuer certificate"),
        ("misnamed", ["--tls"], "certificate not trusted: IP address mismatch"),
        ("plain", ["--tls"], "no TLS: "),
    ],
)
def test_whom_one_cannot_trust_one_tells_nothing(
    world: World, port: str, options: list[str], said: str
) -> None:
    done = world.lcccp(port, *options, *([f"--ca={world.ca}"] if options else []), "--check")
    assert done.returncode == 69
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_who_forgot_tls_gets_a_hint(world: World) -> None:
    done = world.lcccp("good", "--check")
    assert done.returncode == 75
    assert done.stderr == "lcccp: the UNS closed the connection without an answer (does it expect --tls?)\n"


def test_who_insists_is_let_do_so(world: World) -> None:
    assert world.lcccp("expired", "--tls", "--insecure", "--check").returncode == 0


def test_an_early_rejection_arrives_before_all_has_been_sent(world: World) -> None:
    """No full set is left to this provider, which has some already: it is told so at the first line of 50,000."""
    assert world.lcccp("good", "--tls", f"--ca={world.ca}", stdin=URL.format("first")).returncode == 0
    urls = "".join(URL.format(number) for number in range(50_000))
    lines = f'{urls}<end count="50000"/>\n'
    began = time.monotonic()
    done = world.lcccp("good", "--tls", f"--ca={world.ca}", "--full", stdin=lines)
    print(f"refused after {time.monotonic() - began:.1f} s")
    assert done.returncode == 3, done.stderr
    assert "202" in done.stderr


def test_providers_that_come_all_at_once_are_all_served(world: World) -> None:
    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        pushes = [
            pool.submit(world.lcccp, "good", "--tls", f"--ca={world.ca}", stdin=URL.format(number) * 50)
            for number in range(PUSHES)
        ]
        done = [push.result() for push in pushes]
    print(f"{len(done)} pushes over TLS: {time.monotonic() - began:.1f} s")
    assert [one.returncode for one in done] == [0] * len(done), done[-1].stderr
