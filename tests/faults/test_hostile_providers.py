"""Providers and strangers that are slow, deaf, or guess at passwords, beside one that is honest.

The long version (``make soak``): ``LCC_SLOW_CLIENTS=500 LCC_WRONG_LOGINS=1000``.
"""

import os
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lcc_scrapy.domain.providers import Provider
from tests.faults.attackers import Guessers, Siege, answer_to, init, push
from tests.harness import Lcc, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(1200)]

CLIENTS = int(os.environ.get("LCC_SLOW_CLIENTS", "45"))
LOGINS = int(os.environ.get("LCC_WRONG_LOGINS", "100"))
LONG = CLIENTS > 100
URLS, ROUNDS = (10_000, 7) if LONG else (2_000, 3)
HONEST = 1
HOME = "127.0.1.1"
ROOT = "http://www.example.org/"


def figure_of(lcc: Lcc, name: str) -> int:
    """Return VmHWM or VmRSS of the UNS, in kB."""
    status = Path(f"/proc/{lcc.uns.pid}/status").read_text()
    return int(re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)[1])


def a_uns(make_lcc: Callable[..., Lcc], providers: int, **settings: str) -> Lcc:
    lcc = make_lcc(LCC_MIMETYPES="text/*", **settings)
    pids = range(1, providers + 1)
    lcc.register(*(Provider(pid, "") for pid in pids), roots=[[ROOT] for _ in pids])
    lcc.start_uns()
    return lcc


def shown(seconds: list[float]) -> str:
    return " ".join(f"{one:.2f}" for one in seconds) + f" s (median {statistics.median(seconds):.2f})"


def absorbed(lcc: Lcc) -> None:
    wait_for(lambda: not lcc.is_spooled(), 120, "the set to be absorbed")


def test_slow_clients_do_not_delay_an_honest_provider(make_lcc: Callable[..., Lcc]) -> None:
    """A third never logs in, a third sends a set at a byte a second, a third never reads its errors.

    They besiege one of two UNSes; the honest provider pushes to both in turns.
    """
    hostile = range(2, 2 + max(3, CLIENTS // 8))
    quiet, lcc = (a_uns(make_lcc, hostile.stop - 1) for _ in range(2))
    for uns in (quiet, lcc):
        push(uns.port, HONEST, HOME, URLS)
        absorbed(uns)
    before = figure_of(lcc, "VmHWM")
    siege = Siege(lcc.port, hostile, CLIENTS)
    siege.start()
    onset = push(lcc.port, HONEST, HOME, URLS)
    wait_for(lambda: siege.settled.total() > 0.8 * CLIENTS, 300, "the slow clients to be in place")
    in_place, idle, besieged = dict(siege.settled), [], []
    for _ in range(ROUNDS):
        for uns, times in ((quiet, idle), (lcc, besieged)):
            absorbed(uns)
            times.append(push(uns.port, HONEST, HOME, URLS))
    still = siege.settled.total()
    siege.stop()
    after = figure_of(lcc, "VmHWM")
    ratio = statistics.median(besieged) / statistics.median(idle)
    print(f"{CLIENTS} slow clients {in_place}, a set of {URLS} URLs, n={ROUNDS}")
    print(f"idle {shown(idle)}, besieged {shown(besieged)}: ratio of medians {ratio:.2f}")
    print(f"while they came {onset:.2f} s; VmHWM {before // 1000} MB before, {after // 1000} MB after")
    assert still > CLIENTS // 2, "the honest sets were accepted while most slow clients were there"
    assert after - before < 200_000
    assert lcc.stop_uns() == 0


@pytest.mark.parametrize("addresses", [1, 250])
@pytest.mark.parametrize("guessed", ["one", "many"])
def test_wrong_logins_are_throttled_and_the_honest_provider_gets_in(
    make_lcc: Callable[..., Lcc], addresses: int, guessed: str
) -> None:
    lcc = a_uns(make_lcc, 1, LCC_CONNECTIONS_PER_ADDRESS="1000")
    alone = time_of_login(lcc)
    before = figure_of(lcc, "VmHWM")
    pid_of = (lambda _: HONEST) if guessed == "one" else (lambda number: 1 + number)
    guessers = Guessers(lcc.port, LOGINS, addresses, pid_of, at_once=min(LOGINS, 250))
    guessers.start()
    meanwhile = [time_of_login(lcc)]
    while guessers.busy:
        meanwhile.append(time_of_login(lcc))
    guessers.join()
    after = figure_of(lcc, "VmHWM")
    verified, minutes = guessers.answers["101"], guessers.seconds / 60
    lines = lcc.uns_log.read_text().count("login refused")
    print(
        f"{LOGINS} wrong logins for {guessed} id(s) from {addresses} address(es) in {guessers.seconds:.1f} s:"
    )
    print(f"  answers {dict(guessers.answers)}, {verified} passwords looked at, {lines} lines in the log")
    print(f"  honest login: alone {alone:.2f} s; meanwhile n={len(meanwhile)}", end=" ")
    print(f"median {statistics.median(meanwhile):.2f} s, longest {max(meanwhile):.2f} s")
    print(f"  VmHWM {before // 1000} MB before, {after // 1000} MB after")
    assert guessers.answers.keys() <= {"101", "103"}
    allowed = {("one", 1): 10, ("one", 250): 10, ("many", 1): 30, ("many", 250): LOGINS}[guessed, addresses]
    assert verified <= allowed * (1 + minutes) + 1
    assert lines <= 60 * (1 + minutes) + 1
    assert after - before < 100_000
    assert lcc.stop_uns() == 0


def time_of_login(lcc: Lcc) -> float:
    begun = time.monotonic()
    answer = answer_to(lcc.port, init(HONEST), HOME)
    assert "init_accepted" in answer, answer
    return time.monotonic() - begun
