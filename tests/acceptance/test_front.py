"""Three sub-LCCs behind one front: providers see one UNS, whatever they speak and whatever happens behind it."""

import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from tests.acceptance.pushers import Conversation
from tests.certificates import Authority
from tests.forkserver import popen
from tests.harness import BIN, PASSWORD, Lcc, lccs, run, wait_for
from tests.ports import free_port

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

ROOT = "http://a.example"
SUBS = ("a", "b", "c")
MANY = int(os.environ.get("LCC_FRONT_URLS", "100000"))
INIT_A = '<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="{pid}" passwd="{password}"/></lococa:init>'
NOTIFY_B = (
    '<lococa:notify><init><provider id="{pid}" password="{password}"/></init>'
    '<set set="partial">{urls}</set></lococa:notify>'
)


@dataclass
class House:
    """The front with its sub-LCCs; provider n lives in sub-LCC n modulo 3."""

    folder: Path
    subs: dict[str, Lcc]
    through_proxy: dict[str, int]
    port: int
    front: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        own = {
            "LCC_DATA_DIR": str(self.folder / "front"),
            "LCC_UNS_ENDPOINTS": f"tcp:{self.port}:interface=127.0.0.1",
            "LCC_LOGIN_SECONDS": "300s",
        }
        return {**next(iter(self.subs.values())).environment, **own}

    def lcc(self, *words: str, status: int = 0) -> str:
        done = run([str(BIN / "lcc"), "front", *words], env=self.environment, cwd=self.folder)
        assert done.returncode == status, done.stdout + done.stderr
        return str(done.stdout + done.stderr)

    def start(self) -> None:
        with self.log.open("ab") as log:
            said = log.tell()
            command = [str(BIN / "lcc"), "front", "uns"]
            self.front = popen(command, env=self.environment, cwd=self.folder, log=log)
        wait_for(lambda: b"listening on" in self.log.read_bytes()[said:], 100, "the front")

    def kill(self) -> None:
        assert self.front is not None
        self.front.kill()
        self.front.wait(300)

    @property
    def log(self) -> Path:
        return self.folder / "front.log"

    def lcccp(self, pid: int, *options: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BIN / "lcccp"), f"--uns=127.0.0.1:{self.port}", f"--pid={pid}", *options],
            env={**self.environment, "LCC_PWD": PASSWORD}, cwd=self.folder, input=stdin,
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    def home_of(self, pid: int) -> Lcc:
        return self.subs[SUBS[pid % 3]]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("front")
    with lccs(folder) as make:
        subs, proxied = {}, {}
        for number, name in enumerate(SUBS):
            lcc = make(LCC_QUEUE_MAX="0")
            proxied[name] = free_port()
            lcc.settings["LCC_UNS_ENDPOINTS"] += f" haproxy:tcp:{proxied[name]}:interface=127.0.0.1"
            for pid in (number + 3, number + 6):
                lcc.add_provider(pid, f"{ROOT}/")
            lcc.start_uns()
            subs[name] = lcc
        made = House(folder, subs, proxied, free_port())
        made.lcc("init")
        for name, lcc in subs.items():
            made.lcc("add", name, "--uns", f"127.0.0.1:{proxied[name]}", "--database", lcc.shared_url)
        for pid in range(3, 9):
            made.lcc("assign", str(pid), "--to", SUBS[pid % 3])
        made.start()
        yield made
        made.kill()


def said(port: int, *pieces: bytes, half_close: bool = False) -> bytes:
    """Say something to a UNS, as the original clients do: all at once; return all that it answers."""
    with socket.create_connection(("127.0.0.1", port), 300) as wire:
        for piece in pieces:
            wire.sendall(piece)
        if half_close:
            wire.shutdown(socket.SHUT_WR)
        heard = b""
        while more := wire.recv(65536):
            heard += more
        return heard


def element(**attributes: object) -> str:
    return f"<url {' '.join(f'{name}={quoteattr(str(value))}' for name, value in attributes.items())}/>"


def without_counters(answer: bytes) -> bytes:
    """Leave out what differs between two logins: their number."""
    return re.sub(rb'seq="\d+"', b'seq=""', answer)


TRANSCRIPTS = {
    "a set in dialect A": (
        INIT_A + '<lococa:set set="partial" urlprefix="http://a.example/">' + element(c="x", mimetype="text/html")
        + "</lococa:set>",
        False,
    ),
    "a notify in dialect B, half-closed before it reads": (
        NOTIFY_B.replace("{urls}", element(curl="x y.html", furl=f"{ROOT}/x y.html", mimetype="text/html")),
        True,
    ),
    "URL errors while the set comes": (
        INIT_A + '<lococa:set set="partial">'
        + "".join(element(c=f"http://b.example/{n}", mimetype="text/html") for n in range(50)) + "</lococa:set>",
        False,
    ),
    "a login without a set": (INIT_A, True),
    "no XML at all": ("GET / HTTP/1.0\r\n\r\n", False),
    "a set that is refused early": (INIT_A + "<lococa:set set='some'>" + element(c="x") * 20_000, False),
}  # fmt: skip


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_a_provider_is_answered_byte_for_byte_as_by_its_sub_lcc(house: House, name: str) -> None:
    text, half_close = TRANSCRIPTS[name]
    told = text.replace("{pid}", "6").replace("{password}", PASSWORD).encode()
    said(house.home_of(6).port, told, half_close=half_close)  # what is different in a first login is over
    directly = said(house.home_of(6).port, told, half_close=half_close)
    through = said(house.port, told, half_close=half_close)
    assert without_counters(through) == without_counters(directly)
    assert through


@pytest.mark.parametrize(
    ("pid", "password"), [("77", PASSWORD), ("4", "wrong"), ("x", PASSWORD), ("", "y" * 300)]
)
def test_a_login_that_is_refused_gets_the_same_answer(house: House, pid: str, password: str) -> None:
    told = INIT_A.replace("{pid}", pid).replace("{password}", password).encode()
    through = said(house.port, told, half_close=True)
    assert b'code="101"' in through
    assert through == said(house.subs["a"].port, told, half_close=True)


def test_each_provider_reaches_its_own_sub_lcc_and_its_address_is_known_there(house: House) -> None:
    for pid in range(3, 6):
        done = house.lcccp(
            pid, stdin=f'{element(c=f"{ROOT}/{pid}", mimetype="text/html")}\n<end count="1"/>\n'
        )
        assert done.returncode == 0, done.stderr
        lcc = house.home_of(pid)
        wait_for(
            lambda lcc=lcc, pid=pid: (f"{ROOT}/{pid}",) in lcc.sql("select curl from qdb"),
            60,
            "the URL to be queued",
        )
        assert lcc.sql(f"select lastconnip from pidb where pid = {pid}") == [("127.0.0.1",)]


def test_answers_of_a_conversation_come_while_it_goes_on(house: House) -> None:
    conversation = Conversation(house.port, 7)
    assert "init_accepted" in conversation.login_answer()
    answer = conversation.push("partial", [{"c": f"{ROOT}/n", "mimetype": "text/html"}])
    assert '<set_accepted received="1"/>' in answer
    conversation.close()


def test_a_large_set_takes_no_memory_in_the_front(house: House) -> None:
    assert house.front is not None

    def peak() -> int:
        status = Path(f"/proc/{house.front.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])

    house.lcccp(8, "--check")
    before = peak()
    lines = "\n".join(element(c=f"{ROOT}/many/{n}/{'x' * 200}", mimetype="text/html") for n in range(MANY))
    done = house.lcccp(8, stdin=f'{lines}\n<end count="{MANY}"/>\n')
    assert done.returncode == 0, done.stderr
    assert peak() - before < 8_000  # kB; the set has some 26 MB


def test_a_provider_may_come_by_tls(house: House, tmp_path: Path) -> None:
    authority, port = Authority(), free_port()
    folder = authority.issue("127.0.0.1").write(tmp_path / "tls")
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    endpoint = f"ssl:{port}:privateKey={folder}/key.pem:certKey={folder}/cert.pem:interface=127.0.0.1"
    with (tmp_path / "log").open("ab") as log:
        environment = {**house.environment, "LCC_UNS_ENDPOINTS": endpoint}
        front = popen([str(BIN / "lcc"), "front", "uns"], env=environment, cwd=tmp_path, log=log)
    try:
        wait_for(lambda: b"listening on" in (tmp_path / "log").read_bytes(), 100, "the front")
        lines = "\n".join(element(c=f"{ROOT}/tls/{n}", mimetype="text/html") for n in range(5000))
        done = subprocess.run(
            [str(BIN / "lcccp"), f"--uns=127.0.0.1:{port}", "--pid=5", "--tls", f"--ca={tmp_path}/ca.pem"],
            env={**house.environment, "LCC_PWD": PASSWORD}, cwd=tmp_path, text=True, timeout=300, check=False,
            input=f'{lines}\n<end count="5000"/>\n', capture_output=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    finally:
        front.terminate()
        assert front.wait(300) == 0


def test_a_sub_lcc_that_is_down_is_103_for_its_providers_only(house: House) -> None:
    lcc = house.subs["b"]
    lcc.stop_uns()
    try:
        down, up = house.lcccp(4, "--check"), house.lcccp(5, "--check")
    finally:
        lcc.start_uns()
    assert (down.returncode, up.returncode) == (75, 0)
    assert "103" in down.stderr
    assert house.lcccp(4, "--check").returncode == 0


def test_a_set_is_whole_or_not_there_when_front_or_sub_lcc_is_killed_in_the_middle(house: House) -> None:
    begun = INIT_A.replace("{pid}", "3").replace("{password}", PASSWORD) + '<lococa:set set="partial">'
    half = begun + element(c=f"{ROOT}/half", mimetype="text/html") * 1000
    lcc = house.home_of(3)
    for kill, start in ((house.kill, house.start), (partial(lcc.stop_uns, signal.SIGKILL), lcc.start_uns)):
        with socket.create_connection(("127.0.0.1", house.port), 300) as wire:
            wire.sendall(half.encode())
            heard = b""
            while b"</lococa:init_accepted>" not in heard:
                heard += wire.recv(65536)
            kill()
            wire.settimeout(300)
            try:
                while wire.recv(65536):
                    pass
            except ConnectionResetError:
                pass
        start()
    done = house.lcccp(3, stdin=f'{element(c=f"{ROOT}/whole", mimetype="text/html")}\n<end count="1"/>\n')
    assert done.returncode == 0, done.stderr
    wait_for(lambda: (f"{ROOT}/whole",) in lcc.sql("select curl from qdb"), 60, "the URL to be queued")
    assert (f"{ROOT}/half",) not in lcc.sql("select curl from qdb")


def test_providers_that_come_at_the_same_moment_are_all_answered(house: House) -> None:
    answers: list[bytes] = []

    def log_in(pid: int) -> None:
        told = INIT_A.replace("{pid}", str(pid)).replace("{password}", PASSWORD).encode()
        answers.append(said(house.port, told, half_close=True))

    threads = [threading.Thread(target=log_in, args=(3 + n % 6,)) for n in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert [b"init_accepted" in one for one in answers] == [True] * 9


def test_what_the_front_says_of_a_provider_is_in_its_log_without_passwords(house: House) -> None:
    assert house.lcccp(4, "--check").returncode == 0
    log = house.log.read_text()
    assert "front passes on pid=4 sub=b peer=127.0.0.1" in log
    assert "Traceback" not in log
    assert PASSWORD not in log


def test_a_front_without_a_database_says_what_to_do(tmp_path: Path, make_lcc: Callable[..., Lcc]) -> None:
    lcc = make_lcc()
    done = run(
        [str(BIN / "lcc"), "-s", f"LCC_DATA_DIR={tmp_path}/none", "front", "uns"],
        env=lcc.environment,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "run `lcc front init`" in done.stderr
