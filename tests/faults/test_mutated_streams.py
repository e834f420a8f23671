"""Mutated conversations at the socket of a real ``lcc uns``: whatever comes, it answers or hangs up, and stays well.

``LCC_STREAMS`` says how many (default 400; ``make soak`` takes 10,000), ``LCC_SEED`` which ones.
"""

import base64
import os
import random
import re
import signal
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.providers.registration import add as add_provider
from lcc_scrapy.uns.codec import Codec
from lcc_scrapy.wire.messages import Init, SetEnd, Url
from tests.faults.streams import ROOT, End, Stream, stream, transcripts
from tests.forkserver import COUNTS, counted
from tests.harness import PASSWORD, Lcc, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(1800)]

STREAMS = int(os.environ.get("LCC_STREAMS", "400"))
SEED = int(os.environ.get("LCC_SEED", "0")) or random.randrange(1 << 32)
TOGETHER = 16
PROVIDERS = 20
HONEST = 99
LONGEST = 300.0
"""Seconds for one stream, to end what hangs; the server's own limit for a login is 10 s."""
SPOOL = 8_000_000 + 6_000 * STREAMS
"""Size of the spool: half of it is what an honest provider gets, if nothing of the others' is left in it."""
LONGEST_INTAKE = 60 + 0.1 * STREAMS
"""Seconds."""
RECORD = 1_900
"""Bytes that an honest URL takes there."""
GROWTH = 400_000_000
"""Bytes by which the process may grow: two password checks take 40 MB, SQLite's cache 32, the largest streams
that are there at the same time, and how memory is cut up by then, the rest."""
AGAIN = STREAMS // 2
"""How many of the streams come once more, from the same addresses, when all that can be remembered is."""
LEFT = 4
"""Blocks of memory that one of those may leave, if all of them leave some; a conversation has some hundred."""
NOISE = 2_000
"""Blocks more or less that have nothing to do with them."""
TROUBLE = re.compile(
    r".*(?:Traceback|Unhandled|\] CRITICAL|\] ERROR: (?!uns set not kept.*no room)).*(?:\n.*){0,20}"
)
MB = 1_000_000


@dataclass(frozen=True)
class Outcome:
    """What became of one stream: the answer, how long its end took, and what went wrong."""

    stream: Stream
    answer: bytes
    seconds: float
    trouble: str = ""


def send(port: int, one: Stream) -> Outcome:
    begun = time.monotonic()
    answer, trouble = b"", ""
    with socket.socket() as connection:
        connection.settimeout(LONGEST)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.bind((one.address, 0))
        try:
            connection.connect(("127.0.0.1", port))
            for piece in one.pieces:
                connection.sendall(piece)
            answer = _leave(connection, one)
        except (ConnectionResetError, BrokenPipeError):
            pass  # it sent more than is read and discarded, or the server was done with it
        except TimeoutError:
            trouble = f"neither answered nor closed within {LONGEST:g} s"
        except OSError as error:
            trouble = repr(error)
    return Outcome(one, answer, time.monotonic() - begun, trouble or _contradiction(one, answer))


def _leave(connection: socket.socket, one: Stream) -> bytes:
    if one.end is End.RESET:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return b""
    if one.end is End.CLOSE:
        return b""
    if one.end is End.HALF_CLOSE or _logs_in(one):
        connection.shutdown(socket.SHUT_WR)
    return b"".join(iter(lambda: connection.recv(65536), b""))


def _said(one: Stream) -> list[object]:
    return list(Codec(runs=False).feed(one.data))


def _logs_in(one: Stream) -> bool:
    return any(isinstance(message, Init) for message in _said(one))


def _contradiction(one: Stream, answer: bytes) -> str:
    """An accepted set was whole, and no more URLs are accepted than were sent; who says nothing is told nothing."""
    accepted = re.search(rb'<set_accepted received="(\d+)"', answer)
    if not accepted:
        return ""
    said = _said(one)
    if not any(isinstance(message, SetEnd) for message in said):
        return "a set without an end was accepted"
    urls = sum(isinstance(message, Url) for message in said)
    return f"{int(accepted[1])} of {urls} URLs accepted" if int(accepted[1]) > urls else ""


def memory(pid: int, what: str = "VmHWM") -> int:
    return int(re.search(rf"{what}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def blocks(uns: Lcc) -> int:
    """Return how many blocks of memory there are when nobody is there and nothing is left to absorb."""
    wait_for(
        lambda: (
            not list((uns.folder / "lcc-data" / "spool").glob("*.set"))
            and not uns.sql("select count(*) from logins")[0][0]
        ),
        LONGEST_INTAKE,
        "intake",
    )
    return counted(uns.uns, uns.folder / "counts")


def keep(outcome: Outcome, folder: Path) -> str:
    """Keep the bytes of a stream that went wrong; return what is needed to see it again."""
    path = folder / f"stream-{SEED}-{outcome.stream.number}"
    path.write_bytes(outcome.stream.data)
    head = base64.b64encode(outcome.stream.data[:3000]).decode()
    return f"LCC_SEED={SEED} stream {outcome.stream.number} ({outcome.stream.end}, {path}): {outcome.trouble}\n{head}"


@pytest.fixture
def uns(make_lcc: Callable[..., Lcc]) -> Iterator[Lcc]:
    lcc = make_lcc(
        LCC_CONNECTIONS_PER_ADDRESS="100",
        LCC_SPOOL_MAX_BYTES=str(SPOOL),
        LCC_LEASE="5s",
        LCC_LOGIN_SECONDS="10s",
    )
    lcc.settings[COUNTS] = str(lcc.folder / "counts")
    pids = [*range(1, PROVIDERS + 1), HONEST]
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    with closing(SqlStore(lcc.shared_url)) as store:
        for pid in pids:
            add_provider(store, Provider(pid, cheap), [ROOT])
    lcc.start_uns()
    yield lcc
    lcc.stop_uns(signal.SIGKILL)


def test_whatever_is_sent_the_uns_answers_or_hangs_up_and_nothing_is_left_of_it(
    uns: Lcc, tmp_path: Path
) -> None:
    valid = [text for pid in range(1, PROVIDERS + 1) for text in transcripts(pid, PASSWORD)]
    before = memory(uns.uns.pid)
    begun = time.monotonic()
    outcomes, peaks = [], []
    with ThreadPoolExecutor(TOGETHER) as clients:
        for start in range(0, STREAMS, STREAMS // 10 or 1):
            numbers = range(start, min(STREAMS, start + (STREAMS // 10 or 1)))
            outcomes += clients.map(lambda number: send(uns.port, stream(SEED, number, valid)), numbers)
            peaks.append(memory(uns.uns.pid) - before)
        first = blocks(uns)
        outcomes += clients.map(lambda number: send(uns.port, stream(SEED, number, valid)), range(AGAIN))
        wait_for(
            lambda: blocks(uns) - first < NOISE + LEFT * AGAIN, 60, "what is left of conversations to go"
        )
        left = blocks(uns) - first
    took = time.monotonic() - begun
    worst = max(outcomes, key=lambda outcome: outcome.seconds)
    verdicts = Counter(
        found[1].decode()
        if (found := re.search(rb'<(set_accepted|(?:reason|set_rejected) code="\d+")', one.answer))
        else one.stream.end.value
        for one in outcomes
    )
    print(
        f"\nLCC_SEED={SEED}: {STREAMS} streams, {sum(len(one.stream.data) for one in outcomes) / MB:.0f} MB in {took:.0f} s;"
        f" {left} blocks left by {AGAIN} more; memory grown by tenths {[round(peak / MB, 1) for peak in peaks]} MB;"
        f" longest {worst.seconds:.1f} s (stream {worst.stream.number}, {worst.stream.end})\n{dict(verdicts.most_common())}"
    )
    log = uns.uns_log.read_text(errors="replace")
    assert not [keep(one, tmp_path) for one in outcomes if one.trouble]
    assert not TROUBLE.findall(log)
    assert uns.uns.poll() is None
    assert peaks[-1] < GROWTH
    assert verdicts["set_accepted"] > STREAMS // 50, "hardly any stream was valid: the test shows little"

    spool = uns.folder / "lcc-data" / "spool"
    assert not list(spool.glob("*.part"))
    assert not list(spool.glob("quarantine/*"))
    urls = [
        {"c": f"{number:05d}-{'x' * 590}.html", "mimetype": "text/html"}
        for number in range(SPOOL * 9 // 20 // RECORD)
    ]
    done = uns.push_urls(HONEST, urls, f"--urlprefix={ROOT}")
    assert (done.returncode, done.stderr) == (0, f"lcccp: accepted: {len(urls):,} URLs\n")
    wait_for(lambda: not uns.is_spooled(), 60, "the honest set to be absorbed")
    assert uns.sql(f"select count(*) from qdb where pid = {HONEST}") == [(len(urls),)]
    assert uns.stop_uns() == 0
