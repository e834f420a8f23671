"""Memory does not grow with the size of a set or of a body (``LCC_MANY_URLS`` for the big run)."""

import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.harness import PASSWORD, Lcc, Nginx, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(900)]

URLS = int(os.environ.get("LCC_MANY_URLS", "60000"))
MB = 1_000_000


def memory(lcc: Lcc, what: str) -> int:
    assert lcc.crawl is not None
    status = Path(f"/proc/{lcc.crawl.pid}/status").read_text()
    return int(re.search(rf"{what}:\s+(\d+) kB", status)[1]) * 1024


def stream_of(urls: int, prefix: str) -> Iterator[bytes]:
    yield f'<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="1" passwd="{PASSWORD}"/></lococa:init>'.encode()
    yield f'<lococa:set set="partial" urlprefix="{prefix}">'.encode()
    for start in range(0, urls, 1000):
        numbers = range(start, min(urls, start + 1000))
        yield b"".join(
            b'<url c="dir%d/page%d.html" mimetype="text/html" len="%d" md5="%032x"/>\n'
            % (n % 97, n, 1000 + n % 5000, n)
            for n in numbers
        )
    yield b"</lococa:set>"


def converse(port: int, stream: Iterator[bytes]) -> bytes:
    received: list[bytes] = []
    with socket.create_connection(("127.0.0.1", port)) as connection:

        def read() -> None:
            while data := connection.recv(65536):
                received.append(data)

        reader = threading.Thread(target=read)
        reader.start()
        for data in stream:
            connection.sendall(data)
        reader.join(600)
    return b"".join(received)


def test_a_very_large_set_is_accepted_and_absorbed_in_bounded_memory(make_lcc: Callable[..., Lcc]) -> None:
    lcc = make_lcc()
    lcc.add_provider(1, "http://127.0.0.1:1/")
    lcc.lcc("provider", "pause", "1")
    lcc.start()
    before = memory(lcc, "VmRSS")
    begun = time.monotonic()
    answer = converse(lcc.port, stream_of(URLS, "http://127.0.0.1:1/"))
    accepted = time.monotonic()
    assert f'received="{URLS}"'.encode() in answer
    wait_for(lambda: lcc.sql("select coalesce(sum(nurls), 0) from qpsdb")[0][0] == URLS, 600, "absorption")
    absorbed = time.monotonic()
    grown = memory(lcc, "VmHWM") - before
    print(
        f"{URLS} URLs: accepted {URLS / (accepted - begun):,.0f}/s, absorbed {URLS / (absorbed - begun):,.0f}/s, "
        f"grown {grown / MB:.0f} MB"
    )
    assert grown < 100 * MB


def test_a_body_of_300_megabytes_is_fetched_in_bounded_memory(
    make_lcc: Callable[..., Lcc], nginx: Nginx, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "small.txt").write_text("small\n")
    with (site / "large.txt").open("wb") as file:
        for number in range(300):
            file.write(bytes([65 + number % 26]) * MB)
    nginx.start({"site": site})
    prefix = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc()
    lcc.add_provider(1, prefix)
    lcc.start()
    assert lcc.push(site, 1, prefix, "-name small.txt", state="s1").returncode == 0
    lcc.wait_until_fetched()
    before = memory(lcc, "VmHWM")
    assert lcc.push(site, 1, prefix, "-name large.txt", state="s2").returncode == 0
    lcc.wait_until_fetched(200)
    grown = memory(lcc, "VmHWM") - before
    print(f"300 MB body: grown {grown / MB:.1f} MB")
    ((machineid, fileid, length),) = lcc.sql(
        "select fetched_machineid, fetched_fileid, fetched_len from lccurl where furl like '%large.txt'"
    )
    assert length == 300 * MB
    with lcc.path_of(machineid, fileid).open("rb") as stored, (site / "large.txt").open("rb") as served:
        while block := served.read(MB):
            assert stored.read(MB) == block
    assert grown < 30 * MB
