"""Sets of millions of URLs, and elements that never end: the UNS's memory does not follow their size.

``LCC_MANY_URLS`` says how many URLs (default 200,000, which are accepted only; given, they are absorbed too;
``make soak`` takes 5,000,000), ``LCC_ENDLESS_BYTES`` how much of what never ends is offered (default 80 MB;
the soak takes 500 MB).
"""

import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.harness import PASSWORD, Lcc, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(3600)]

MANY = os.environ.get("LCC_MANY_URLS", "")
URLS = int(MANY or "200000")
ENDLESS = int(os.environ.get("LCC_ENDLESS_BYTES", "80000000"))
MB = 1_000_000
GROWTH = 100 * MB
"""What a process may grow by, whatever the size of the set."""
EARLY = 4 * MB
"""Bytes after which whoever sends what never ends is refused, if he is not before."""

ROOT = "http://127.0.0.1:1/"
LOGIN = f'<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="1" passwd="{PASSWORD}"/></lococa:init>'.encode()
SET = f'<lococa:set set="partial" urlprefix="{ROOT}">'.encode()


def memory(pid: int, what: str) -> int:
    return int(re.search(rf"{what}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def urls(count: int) -> Iterator[bytes]:
    for start in range(0, count, 1000):
        yield b"".join(
            b'<url c="dir%d/page%d.html" mimetype="text/html" len="%d" md5="%032x"/>\n'
            % (n % 97, n, 1000 + n % 5000, n)
            for n in range(start, min(count, start + 1000))
        )


class Answer(threading.Thread):
    """Reads what the UNS says, and notes when it refused."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(daemon=True)
        self._connection = connection
        self.text = b""
        self.refused = threading.Event()

    def run(self) -> None:
        with suppress(OSError):
            while data := self._connection.recv(65536):
                self.text += data
                if b"_rejected" in self.text:
                    self.refused.set()


def converse(port: int, stream: Iterator[bytes], pause: int = 0) -> tuple[Answer, int]:
    """Say all of a stream; return the answer, and how many bytes were said.

    After ``pause`` bytes nothing is said until it is refused: no more is needed for that.
    """
    said = 0
    with socket.create_connection(("127.0.0.1", port), 600) as connection:
        answer = Answer(connection)
        answer.start()
        with suppress(OSError):
            for data in stream:
                connection.sendall(data)
                said += len(data)
                assert not 0 < pause <= said or answer.refused.wait(300), f"not refused after {said} bytes"
        answer.join(600)
    return answer, said


@pytest.fixture
def uns(make_lcc: Callable[..., Lcc]) -> Iterator[Lcc]:
    lcc = make_lcc()
    lcc.add_provider(1, ROOT)
    lcc.lcc("provider", "pause", "1")
    lcc.start_uns()
    assert lcc.lcccp(1, "--check").returncode == 0  # what a login needs is there before memory is looked at
    yield lcc
    lcc.stop_uns(signal.SIGKILL)


def test_memory_does_not_follow_the_number_of_urls(uns: Lcc) -> None:
    before, begun = memory(uns.uns.pid, "VmRSS"), time.monotonic()
    answer, _ = converse(uns.port, _whole(URLS))
    accepted, grown = time.monotonic(), memory(uns.uns.pid, "VmHWM") - before
    print(f"\n{URLS:,} URLs accepted, {URLS / (accepted - begun):,.0f}/s; grown {grown / MB:.1f} MB")
    assert f'<set_accepted received="{URLS}"/>'.encode() in answer.text
    assert grown < GROWTH
    if MANY:
        wait_for(lambda: not uns.is_spooled(), 1800, "absorption")
        grown = memory(uns.uns.pid, "VmHWM") - before
        print(f"absorbed, {URLS / (time.monotonic() - begun):,.0f}/s; grown {grown / MB:.1f} MB")
        assert uns.sql("select count(*) from qdb") == [(URLS,)]
        assert grown < GROWTH


def _whole(count: int) -> Iterator[bytes]:
    yield LOGIN + SET
    yield from urls(count)
    yield b"</lococa:set>"


ENDLESS_THINGS = {
    "a value": (LOGIN + SET + b'<url c="', b"x"),
    "a value of ends": (LOGIN + SET + b'<url c="', b">"),
    "a value of ampersands": (LOGIN + SET + b'<url c="', b"&"),
    "a name": (LOGIN + SET + b"<", b"n"),
    "blanks in an element": (LOGIN + SET + b"<url", b" "),
    "blanks between elements": (LOGIN + SET, b" "),
    "text": (LOGIN + SET, b"text "),
    "text of ends": (LOGIN + SET, b"x>"),
    "a comment": (LOGIN + SET + b"<!--", b"> "),
    "character data": (LOGIN + SET + b"<![CDATA[", b">"),
    "an instruction": (LOGIN + SET + b"<?x ", b">"),
    "a declaration": (LOGIN + SET + b"<?xml ", b">"),
    "attributes": (LOGIN + SET + b"<url ", b'a="" '),
    "depth": (LOGIN + SET, b"<x>"),
    "a value before the login": (b'<lococa:init a="', b"x"),
    "blanks before the login": (b"", b" "),
    "comments before the login": (b"<lococa:notify>", b"<!-- x -->"),
    "UTF-16": ((LOGIN + SET).decode().encode("utf-16-le") + b"<\0", b"n\0"),
}


def test_what_never_ends_is_refused_early_and_memory_stays_flat(uns: Lcc) -> None:
    print()
    before = memory(uns.uns.pid, "VmRSS")
    for name, (beginning, unit) in ENDLESS_THINGS.items():
        block = unit * (65536 // len(unit))
        answer, said = converse(uns.port, _endless(beginning, block), EARLY)
        grown = memory(uns.uns.pid, "VmHWM") - before
        print(f"{name:26} {said / MB:5.1f} MB said in all; grown {grown / MB:5.1f} MB so far")
        assert re.search(rb'<(?:set_rejected|reason) code="(?:201|105)"', answer.text), (name, answer.text)
    assert grown < GROWTH
    assert uns.lcccp(1, "--check").returncode == 0
    assert "Traceback" not in uns.uns_log.read_text()


def _endless(beginning: bytes, block: bytes) -> Iterator[bytes]:
    yield beginning
    for _ in range(ENDLESS // len(block)):
        yield block
