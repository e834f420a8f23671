"""SIGHUP to real processes: what changes while everything goes on, and what a broken file does not do."""

import os
import pty
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509

from tests.certificates import Authority
from tests.harness import BIN, Lcc, Nginx, free_port, lccs, wait_for
from tests.integration.project import make_project

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]
INIT = '<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="7" passwd="{}"/></lococa:init>'
SITE = "http://www.example.org/"
SIGHUPS = int(os.environ.get("LCC_SIGHUPS", "4"))


class Project:
    """An LCC in a project of its own, whose settings file is changed under it."""

    def __init__(self, folder: Path, make: Callable[..., Lcc], **settings: str) -> None:
        self.file = make_project(folder, {"settings.py": ""}) / "shop/settings.py"
        self.write()
        self.lcc = make(project=folder, **settings)
        self.tls_port = 0
        del self.lcc.settings["LCC_MIMETYPES"]  # it would win over the file

    def write(self, text: str = "", **settings: object) -> None:
        lines = [f"{name} = {value!r}" for name, value in {"LCC_MIMETYPES": "text/*", **settings}.items()]
        base = ["from lcc_scrapy.settings import *  # noqa: F403", *lines, text]
        self.file.write_text("\n".join(base) + "\n")

    def hang_up(self, process: subprocess.Popen[bytes], log: Path, expected: str) -> str:
        """Send SIGHUP; returns the lines of it in the log, once they hold ``expected`` and all is said."""
        said = len(log.read_text())
        process.send_signal(signal.SIGHUP)

        def is_told() -> bool:
            new = log.read_text()[said:]
            return expected in new and (not self.tls_port or " certificates " in new)  # the last line

        try:
            wait_for(lambda: process.poll() is not None or is_told(), 60, repr(expected))
        finally:
            new = log.read_text()[said:]
            print(f"{log.name} since SIGHUP: {new}")
        assert process.poll() is None, f"ended with {process.returncode}: {log.read_text()[-2000:]}"
        return "".join(line for line in new.splitlines(keepends=True) if " SIGHUP: " in line)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, Authority, Path]]:
    """Run one ``lcc uns`` with TLS beside plain TCP, for all tests of it."""
    folder = tmp_path_factory.mktemp("uns")
    authority = Authority()
    place = authority.issue("localhost").write(folder / "certificate")
    (folder / "project").mkdir()
    with lccs(folder) as make:
        project = Project(folder / "project", make)
        lcc = project.lcc
        port = free_port()
        lcc.settings["LCC_UNS_ENDPOINTS"] += (
            f" ssl:{port}:interface=127.0.0.1:privateKey={place}/key.pem:certKey={place}/cert.pem"
        )
        lcc.add_provider(7, SITE)
        lcc.start_uns()
        project.tls_port = port
        yield project, authority, place
        assert lcc.stop_uns() == 0
        assert "Traceback" not in lcc.uns_log.read_text()


@pytest.fixture
def uns(running: tuple[Project, Authority, Path]) -> tuple[Project, Authority, Path]:
    """Give each test the settings that the process began with, whatever the one before left."""
    project = running[0]
    project.write()
    project.hang_up(project.lcc.uns, project.lcc.uns_log, "certificates read again")
    return running


def refusal(lcc: Lcc, *urls: str, mimetype: str = "text/html") -> str:
    done = lcc.push_urls(7, [{"curl": SITE + url, "mimetype": mimetype} for url in urls])
    return done.stderr


def presented(project: Project, authority: Authority) -> int:
    context = ssl.create_default_context(cadata=authority.pem.decode())
    with (
        socket.create_connection(("127.0.0.1", project.tls_port), timeout=300) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as wire,
    ):
        return x509.load_der_x509_certificate(wire.getpeercert(binary_form=True)).serial_number


def test_limits_of_conversations_logins_and_the_spool_change_for_those_who_come_next(uns) -> None:
    project, _, _ = uns
    lcc = project.lcc
    assert "703" in refusal(lcc, "a", "b", mimetype="image/png")
    changed = {
        "LCC_MIMETYPES": "image/*, text/*",
        "LCC_SET_MAX_URLS": 2,
        "LCC_CONNECTIONS_PER_ADDRESS": 1,
        "LCC_FETCHES": 3,
    }
    project.write(**changed)
    said = project.hang_up(lcc.uns, lcc.uns_log, "settings read again")
    assert (
        "LCC_MIMETYPES, LCC_CONNECTIONS_PER_ADDRESS, LCC_SET_MAX_URLS changed; "
        "LCC_FETCHES changed, too, but not before a restart"
    ) in said
    assert "703" not in refusal(lcc, "a", "b", mimetype="image/png")
    assert "204" in refusal(lcc, "a", "b", "c")
    with socket.create_connection(("127.0.0.1", lcc.port)) as first:
        first.sendall(INIT[:20].encode())
        wait_for(lambda: "104" in lcc.lcccp(7, "--check").stderr, 20, "the second to be turned away")
    project.write(LCC_SPOOL_MAX_BYTES="1k")
    project.hang_up(lcc.uns, lcc.uns_log, "settings read again")
    wait_for(lambda: lcc.lcccp(7, "--check").returncode == 75, 20, "the spool to be full")
    project.write()
    project.hang_up(lcc.uns, lcc.uns_log, "LCC_SPOOL_MAX_BYTES changed")
    assert refusal(lcc, "a", "b", "c").count("refused") == 0


def test_a_renewed_certificate_is_shown_and_a_running_conversation_goes_on(uns) -> None:
    project, authority, place = uns
    lcc = project.lcc
    before = presented(project, authority)
    context = ssl.create_default_context(cadata=authority.pem.decode())
    plain = socket.create_connection(("127.0.0.1", project.tls_port), timeout=300)
    with context.wrap_socket(plain, server_hostname="localhost") as running:
        running.sendall(INIT.format("wachtwoord").encode())
        assert b"init_accepted" in running.recv(65536)
        authority.issue("localhost").write(place)
        project.hang_up(lcc.uns, lcc.uns_log, "certificates read again: 1")
        assert presented(project, authority) != before
        running.sendall(
            f'<lococa:set set="partial"><url c="{SITE}a" mimetype="text/html"/></lococa:set>'.encode()
        )
        assert b'received="1"' in running.recv(65536)


def test_broken_files_are_a_line_each_and_change_nothing(uns) -> None:
    project, authority, place = uns
    lcc, before = project.lcc, presented(project, authority)
    certificate = (place / "cert.pem").read_bytes()
    (place / "cert.pem").write_text("oops")
    try:
        project.write("LCC_SET_MAX_URLS = (")
        said = project.hang_up(lcc.uns, lcc.uns_log, "the old certificates stay in use")
        assert "ERROR: SIGHUP: the old settings stay in use: the settings file cannot be read: " in said
        assert len(said.splitlines()) == 2
        project.write(LCC_BANDWIDTH="fast")
        project.hang_up(lcc.uns, lcc.uns_log, "LCC_BANDWIDTH: 'fast'")
    finally:  # those who come next begin with what was there
        (place / "cert.pem").write_bytes(certificate)
    project.write()
    project.hang_up(lcc.uns, lcc.uns_log, "nothing changed")
    assert presented(project, authority) == before
    assert lcc.lcccp(7, "--check").returncode == 0


def test_no_push_notices_how_often_everything_is_read_again(uns) -> None:
    """The settings change, too, each time."""
    project, _, _ = uns
    lcc, ended = project.lcc, threading.Event()

    def hang_up_again_and_again() -> None:
        for number in range(SIGHUPS):
            project.write(LCC_ERRORS_KEPT=number + 1)
            project.hang_up(lcc.uns, lcc.uns_log, "certificates read again")
        ended.set()

    pushed = []
    with ThreadPoolExecutor(1) as pool:
        hanging_up = pool.submit(hang_up_again_and_again)
        while not ended.is_set() and not hanging_up.done():
            pushed.append(lcc.push_urls(7, [{"curl": f"{SITE}{len(pushed)}", "mimetype": "text/html"}]))
        hanging_up.result()
    print(f"{len(pushed)} pushes during {SIGHUPS} SIGHUPs, all accepted")
    assert pushed
    assert {push.returncode for push in pushed} == {0}, pushed[-1].stderr


def test_a_crawl_takes_over_its_bandwidth_and_the_size_of_its_queue(make_lcc, nginx: Nginx, tmp_path) -> None:
    site, pages, size = tmp_path / "site", 12, 200_000
    site.mkdir()
    for number in range(pages):
        (site / f"{number}.html").write_text("x" * size)
    nginx.start({"site": site})
    root = f"http://127.0.0.1:{nginx.ports['site']}/"
    (tmp_path / "project").mkdir()
    project = Project(tmp_path / "project", make_lcc)
    lcc = project.lcc
    lcc.add_provider(7, root, "--ignore-robots")
    project.write(LCC_BANDWIDTH=5_000, LCC_QUEUE_MAX=1)
    lcc.start()
    pushed = lcc.push_urls(7, [{"curl": f"{root}{n}.html", "mimetype": "text/html"} for n in range(pages)])
    assert pushed.returncode == 0, pushed.stderr
    wait_for(lambda: not lcc.is_spooled() or nginx.log("site"), 20, "the beginning")
    time.sleep(3)
    slow = len(nginx.log("site"))
    assert slow < pages // 2, "200 kB at 5 kB/s take 40 s each"
    project.write(LCC_BANDWIDTH=0, LCC_QUEUE_MAX=1000)
    began = time.monotonic()
    project.hang_up(lcc.crawl, lcc.folder / "crawl.log", "LCC_QUEUE_MAX, LCC_BANDWIDTH changed")
    lcc.wait_until_fetched(40)
    took = time.monotonic() - began
    print(f"{slow} of {pages} pages within 3 s at 5 kB/s; the rest within {took:.1f} s without a limit")
    assert took < (pages - slow) * size / 5_000 / 2
    assert lcc.stop() == 0


def test_a_crew_passes_it_on_and_all_go_on(make_lcc, tmp_path) -> None:
    (tmp_path / "project").mkdir()
    project = Project(tmp_path / "project", make_lcc)
    lcc = project.lcc
    log = lcc.folder / "crawl.log"
    with log.open("ab") as out:
        command = [str(BIN / "lcc"), "crawl", "--workers", "2"]
        lcc.crawl = subprocess.Popen(command, env=lcc.environment, cwd=lcc.cwd, stdout=out, stderr=out)
    try:
        wait_for(lambda: len(lcc.status()["workers"]) == 2, 60, "both workers")  # type: ignore[arg-type]
        begun = {"Spider opened": 2, "listening on": 1}
        wait_for(
            lambda: all(log.read_text().count(one) == n for one, n in begun.items()), what="the UNS, too"
        )
        before = [one["process"] for one in lcc.status()["workers"]]  # type: ignore[attr-defined]
        project.write(LCC_BANDWIDTH="300k")
        lcc.crawl.send_signal(signal.SIGHUP)
        wait_for(lambda: log.read_text().count("LCC_BANDWIDTH changed") == 3, 60, "all to take it over")
        assert [one["process"] for one in lcc.status()["workers"]] == before  # type: ignore[attr-defined]
        assert lcc.stop() == 0
    finally:
        with suppress(ProcessLookupError):
            lcc.crawl.kill()
    assert "Traceback" not in log.read_text()


def test_when_its_terminal_is_closed_a_process_stops_as_it_did_before(make_lcc) -> None:
    """SIGHUP is then the terminal's own doing; settings are not what it is about."""
    lcc = make_lcc()
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(lcc.cwd)
        os.execve(BIN / "lcc", ["lcc", "uns"], lcc.environment)
    said = b""
    while b"listening on" not in said:
        said += os.read(terminal, 4096)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    # 120: Python could not write its last line to the terminal that was gone
    assert os.waitstatus_to_exitcode(status) in {0, 120}
