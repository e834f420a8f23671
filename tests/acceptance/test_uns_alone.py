"""``lcc uns`` beside crawls that only fetch: each may stop, be killed and come back by itself."""

import contextlib
import random
import re
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from xml.sax.saxutils import quoteattr

import pytest
from sqlalchemy import make_url

from tests.database_servers import SERVERS
from tests.forkserver import run
from tests.harness import BIN, PASSWORD, Lcc, free_port, wait_for
from tests.integration.site import Answer, Site, page

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

PID = 7
NAMESPACE = 'xmlns:lococa="http://www.lococa.org/1.0"'
TRY_LATER = "Temporarily off-line, try again later"


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.fixture
def host(site: Site) -> str:
    return f"http://127.0.0.1:{site.listen()}"


def init(pid: int = PID) -> str:
    return f'<lococa:init {NAMESPACE}><provider id="{pid}" passwd="{PASSWORD}"/></lococa:init>'


def partial(*urls: str, gone: tuple[str, ...] = ()) -> str:
    elements = [f'<url c={quoteattr(url)} mimetype="text/html"/>' for url in urls]
    elements += [f'<url c={quoteattr(url)} mimetype="text/html" op="remove"/>' for url in gone]
    return f'<lococa:set set="partial">{"".join(elements)}</lococa:set>'


def talk(lcc: Lcc, text: str) -> str:
    """Say all, and return the whole answer."""
    with socket.create_connection(("127.0.0.1", lcc.port), 300) as connection:
        connection.settimeout(300)
        connection.sendall(text.encode())
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def push(lcc: Lcc, *urls: str, gone: tuple[str, ...] = (), pid: int = PID) -> str:
    """Push a set; return the verdict as it stands on the wire."""
    answer = talk(lcc, init(pid) + partial(*urls, gone=gone))
    found = re.search(r"<(?:set_accepted|set_rejected|reason)\b.*?(?:/>|</\w+>)", answer)
    assert found is not None, answer
    return found[0]


def push_until_accepted(lcc: Lcc, *urls: str, pid: int = PID) -> None:
    """Push where there is room, or will be once the files of absorbed sets are removed."""
    wait_for(lambda: push(lcc, *urls, pid=pid).startswith("<set_accepted"), what="room for a set")


def cached(lcc: Lcc) -> set[str]:
    return {str(row[0]) for row in lcc.sql("select furl from lccurl")}


def absorbed(lcc: Lcc, pid: int = PID) -> list[int]:
    """Return the logins of a provider in the order in which their sets were absorbed."""
    return [
        int(str(row[0])) for row in lcc.sql(f"select connseq from psets where pid = {pid} order by psetid")
    ]


def open_logins(lcc: Lcc) -> int:
    return int(str(lcc.sql("select count(*) from logins")[0][0]))


def spooled(lcc: Lcc) -> int:
    return len(list((lcc.folder / "lcc-data/spool").glob("*.set")))


def refusal_of(lcc: Lcc, *options: str, **settings: str) -> tuple[int, str]:
    done = run([str(BIN / "lcc"), *options, "uns"], env={**lcc.environment, **settings}, cwd=lcc.cwd)
    return done.returncode, done.stderr


# --- one machine, two processes ----------------------------------------------------------------------


@pytest.mark.soak_of("mariadb")
@pytest.mark.parametrize("database", ["sqlite", "mariadb"])
def test_pushes_go_on_while_the_crawl_is_stopped_and_are_fetched_in_order_when_it_is_back(
    database: str, make_lcc: Callable[..., Lcc], host: str, site: Site
) -> None:
    lcc = make_lcc(database)
    lcc.add_provider(PID, f"{host}/")
    for number in range(40):
        site.put(f"/{number:02}", page(f"page {number}"))
    lcc.start_uns()
    for number in range(0, 20, 2):
        assert push(lcc, f"{host}/{number:02}", f"{host}/{number + 1:02}") == '<set_accepted received="2"/>'
    wait_for(lambda: open_logins(lcc) == 0, 20, "the sets to be absorbed")
    assert absorbed(lcc) == list(range(1, 11))
    assert site.visits == []

    lcc.fetch_only()
    lcc.wait_until_fetched()
    assert [visit.path for visit in site.visits if visit.path != "/robots.txt"] == [
        f"/{number:02}" for number in range(20)
    ]
    assert lcc.stop() == 0
    assert push(lcc, f"{host}/20", gone=(f"{host}/00",)) == '<set_accepted received="2"/>'
    lcc.fetch_only()
    assert push(lcc, f"{host}/21") == '<set_accepted received="1"/>'
    lcc.wait_until_fetched()
    assert cached(lcc) == {f"{host}/{number:02}" for number in range(1, 22)}
    assert (lcc.stop(), lcc.stop_uns()) == (0, 0)
    assert lcc.lcc("verify").returncode == 0
    assert "Traceback" not in lcc.uns_log.read_text() + lcc.log_text()


def test_a_uns_may_be_restarted_while_the_crawl_runs(
    make_lcc: Callable[..., Lcc], host: str, site: Site
) -> None:
    lcc = make_lcc()
    lcc.add_provider(PID, f"{host}/")
    held = threading.Event()
    site.put("/slow", Answer(page("slow").pieces, held=held))
    site.put("/next", page("next"))
    lcc.start_uns()
    lcc.fetch_only()
    assert push(lcc, f"{host}/slow") == '<set_accepted received="1"/>'
    wait_for(lambda: site.asked("/slow"), 20, "the fetch")
    assert lcc.stop_uns() == 0
    lcc.start_uns()
    assert push(lcc, f"{host}/next") == '<set_accepted received="1"/>'
    held.set()
    lcc.wait_until_fetched()
    assert cached(lcc) == {f"{host}/slow", f"{host}/next"}
    assert len(site.asked("/slow")) == 1


def test_a_crawl_hears_of_a_set_though_its_provider_waits_for_something_else(
    make_lcc: Callable[..., Lcc], host: str, site: Site
) -> None:
    lcc = make_lcc(LCC_RETRY_DELAYS="1h")
    lcc.add_provider(PID, f"{host}/")
    site.put("/bad", page("out of order", "500 Oops"))
    site.put("/new", page("new"))
    lcc.start_uns()
    lcc.fetch_only()
    assert push(lcc, f"{host}/bad") == '<set_accepted received="1"/>'
    wait_for(lambda: lcc.sql("select tries from qdb") == [(1,)], 20, "the first try")
    time.sleep(1)
    assert push(lcc, f"{host}/new") == '<set_accepted received="1"/>'
    wait_for(lambda: site.asked("/new"), 10, "the new URL to be fetched")


def test_a_crawl_that_only_fetches_leaves_the_spool_alone(
    make_lcc: Callable[..., Lcc], host: str, site: Site
) -> None:
    lcc = make_lcc(LCC_QUEUE_MAX="1")
    lcc.add_provider(PID, f"{host}/")
    site.put("/a", page("a"))
    site.put("/b", page("b"))
    lcc.start_uns()
    assert push(lcc, f"{host}/a") == '<set_accepted received="1"/>'
    wait_for(lambda: lcc.sql("select count(*) from qdb") == [(1,)], 20, "the first set")
    assert push(lcc, f"{host}/b") == '<set_accepted received="1"/>'
    assert lcc.stop_uns() == 0
    before = [(path.name, path.stat().st_mtime_ns) for path in (lcc.folder / "lcc-data/spool").iterdir()]

    command = ["scrapy", "crawl", "lcc_push", "-s", "LCC_UNS_ENDPOINTS=", "-a", "stop_when_done=1"]
    done = run([str(BIN / command[0]), *command[1:]], env=lcc.environment, cwd=lcc.cwd)
    assert done.returncode == 0
    assert cached(lcc) == {f"{host}/a"}
    after = [(path.name, path.stat().st_mtime_ns) for path in (lcc.folder / "lcc-data/spool").iterdir()]
    assert after == before
    assert any(name.endswith("-7-2.set") for name, _ in after)


@pytest.mark.soak_of("sqlite")
@pytest.mark.parametrize("database", ["sqlite", "mariadb"])
def test_what_was_accepted_is_there_after_kills_of_the_uns(
    database: str, make_lcc: Callable[..., Lcc], host: str, site: Site
) -> None:
    lcc = make_lcc(database)
    lcc.add_provider(PID, f"{host}/")
    accepted: list[str] = []
    pushed = 0
    stop = threading.Event()

    def provider() -> None:
        nonlocal pushed
        while not stop.is_set():
            url = f"{host}/{pushed}"
            site.put(f"/{pushed}", page(f"page {pushed}"))
            pushed += 1
            try:
                if push(lcc, url).startswith("<set_accepted"):
                    accepted.append(url)
            except (OSError, AssertionError):
                time.sleep(0.02)

    lcc.start_uns()
    lcc.fetch_only()
    thread = threading.Thread(target=provider)
    thread.start()
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    try:
        for number in range(6):
            wait_for(lambda number=number: len(accepted) > 2 * number, 30, "some more sets to be accepted")
            time.sleep(chance.uniform(0, 0.5))
            lcc.stop_uns(signal.SIGKILL)
            lcc.start_uns()
    finally:
        stop.set()
        thread.join(300)
    lcc.wait_until_fetched()
    wait_for(lambda: open_logins(lcc) == 0, 90, "what the kills left behind to go")
    print(f"{len(accepted)} accepted of {pushed}")
    assert len(accepted) < pushed, "no kill hit a push: the test shows nothing"
    assert set(accepted) <= cached(lcc)
    assert absorbed(lcc) == sorted(absorbed(lcc))
    assert lcc.stop_uns() == 0


def note_the_order_of_absorption(lcc: Lcc) -> None:
    """Let the database note it: who looks from outside may come late."""
    with contextlib.closing(sqlite3.connect(lcc.folder / "lcc-data/lcc.sqlite", timeout=300)) as connection:
        connection.executescript(
            """
            create table absorbed (number integer primary key, pid integer);
            create trigger notes after update of phase on psets when new.phase = 'absorbed'
            begin insert into absorbed (pid) values (new.pid); end;
            create trigger notes_at_once after insert on psets when new.phase = 'absorbed'
            begin insert into absorbed (pid) values (new.pid); end;
            """
        )


def test_a_set_of_100000_urls_does_not_keep_a_small_one_of_somebody_else_waiting(
    make_lcc: Callable[..., Lcc], host: str
) -> None:
    lcc = make_lcc()
    lcc.add_provider(PID, f"{host}/")
    lcc.add_provider(8, f"{host}/")
    note_the_order_of_absorption(lcc)
    lcc.start_uns()
    urls = [f"{host}/{number}" for number in range(100_000)]
    began = time.monotonic()
    assert push(lcc, *urls) == '<set_accepted received="100000"/>'
    accepted = time.monotonic()
    assert push(lcc, f"{host}/one", pid=8) == '<set_accepted received="1"/>'
    pushed = time.monotonic()
    wait_for(lambda: absorbed(lcc, 8) == [1], 30, "the small set")
    waited = time.monotonic() - pushed
    wait_for(lambda: open_logins(lcc) == 0, 120, "the large set")
    print(
        f"large set accepted in {accepted - began:.1f} s, absorbed in {time.monotonic() - accepted:.1f} s;"
        f" the small one waited {waited:.2f} s"
    )
    assert lcc.sql("select pid from absorbed order by number") == [(8,), (7,)]
    assert lcc.sql("select nurlproc from pidb order by pid") == [(100_000,), (1,)]


# --- overload ----------------------------------------------------------------------------------------


def test_an_overload_is_told_to_providers_loses_nothing_and_ends_by_itself(
    make_lcc: Callable[..., Lcc], host: str, site: Site
) -> None:
    lcc = make_lcc(LCC_QUEUE_MAX="10", LCC_SPOOL_MAX_BYTES="32k")
    lcc.add_provider(PID, f"{host}/seven/")
    lcc.add_provider(8, f"{host}/eight/")
    lcc.start_uns()
    accepted: list[str] = []

    def fill(area: str, pid: int) -> str:
        while True:
            url = f"{host}/{area}/{len(accepted)}"
            site.put(f"/{area}/{len(accepted)}", page(url))
            verdict = push(lcc, url, pid=pid)
            if not verdict.startswith("<set_accepted"):
                return verdict
            accepted.append(url)

    for number in range(5):
        first = f"{host}/seven/first-{number}"
        site.put(f"/seven/first-{number}", page(first))
        push_until_accepted(lcc, first)
        accepted.append(first)
    wait_for(lambda: lcc.sql("select count(*) from qdb") == [(5,)], what="half of the queue to be full")

    off_line = f'<reason code="103" retry-after="300">{TRY_LATER}</reason>'
    wait_for(lambda: fill("seven", PID) == off_line and len(accepted) == 8, what="three more in the spool")
    mine = len(accepted)
    print(f"provider 7: {mine} sets, {spooled(lcc)} of them in the spool, then {off_line}")
    assert lcc.sql("select count(*) from qdb") == [(5,)]

    urls = [f"{host}/eight/{'x' * 1000}{number}" for number in range(2)]
    no_room = f'<set_rejected code="203" retry-after="300">{TRY_LATER}</set_rejected>'
    assert push(lcc, *urls, pid=8) == no_room
    never = push(lcc, *(f"{host}/eight/{'x' * 1000}{number}" for number in range(50)), pid=8)
    assert never == '<set_rejected code="204">Set too large</set_rejected>'
    first = f"{host}/eight/first"
    site.put("/eight/first", page(first))
    push_until_accepted(lcc, first, pid=8)
    accepted.append(first)
    wait_for(lambda: lcc.sql("select count(*) from qdb") == [(6,)], what="its set to be absorbed")
    refused: set[str] = set()

    def has_room_beside_seven() -> bool:
        refused.add(fill("eight", 8))
        return len(accepted) > mine + 1

    wait_for(has_room_beside_seven, what="the file of its absorbed set to be removed")
    assert refused <= {off_line, no_room}
    print(f"provider 8: {len(accepted) - mine} sets more, then {refused}; spool {lcc.status()['spool']}")

    lcc.fetch_only()
    lcc.wait_until_fetched()
    assert cached(lcc) == set(accepted)
    for area, pid in (("seven", PID), ("eight", 8)):
        site.put(f"/{area}/again", page("again"))
        push_until_accepted(lcc, f"{host}/{area}/again", pid=pid)
    push_until_accepted(lcc, *urls, pid=8)
    lcc.wait_until_fetched()
    assert (lcc.stop(), lcc.stop_uns()) == (0, 0)


# --- several UNSes -----------------------------------------------------------------------------------


@pytest.mark.soak_of("sqlite")
@pytest.mark.parametrize("database", ["sqlite", "mariadb"])
def test_a_provider_that_alternates_between_two_unses_ends_with_what_it_said_last(
    database: str, make_lcc: Callable[..., Lcc], host: str, site: Site
) -> None:
    one = make_lcc(database)
    two = make_lcc(beside=one)
    one.add_provider(PID, f"{host}/")
    for lcc in (one, two):
        lcc.start_uns()
    names = [f"{host}/{number}" for number in range(6)]
    for number in range(6):
        site.put(f"/{number}", page("a page"))
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    there: set[str] = set()
    for number in range(20):
        changed = chance.sample(names, 4)
        update, gone = tuple(changed[:2]), tuple(changed[2:])
        assert push((one, two)[number % 2], *update, gone=gone) == '<set_accepted received="4"/>'
        there = (there | set(update)) - set(gone)
    wait_for(lambda: open_logins(one) == 0, 60, "all sets to be absorbed")
    assert absorbed(one) == list(range(1, 21))
    one.fetch_only()
    wait_for(lambda: one.sql("select count(*) from qdb") == [(0,)], 60, "the queue to empty")
    assert cached(one) == there
    assert [lcc.stop_uns() for lcc in (one, two)] == [0, 0]


def answers(port: int, login: str, provider_set: str) -> Iterator[str]:
    """Log in, give the answer, send the set, give the answer to that."""
    with socket.create_connection(("127.0.0.1", port), 300) as connection:
        connection.settimeout(300)
        connection.sendall(login.encode())
        answer = ""
        while "</lococa:init_" not in answer:
            data = connection.recv(65536).decode()
            if not data:
                raise ConnectionError
            answer += data
        yield answer
        connection.sendall(provider_set.encode())
        yield b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def test_sets_pushed_to_two_unses_at_once_take_effect_in_the_order_of_logins_though_both_are_killed(
    make_lcc: Callable[..., Lcc], host: str
) -> None:
    one = make_lcc("mariadb")
    two = make_lcc(beside=one)
    one.add_provider(PID, f"{host}/")
    names = [f"{host}/{number}" for number in range(6)]
    said: dict[int, tuple[list[str], list[str]]] = {}
    accepted: list[int] = []
    stop = threading.Event()
    seed = random.randrange(1 << 32)
    print("seed", seed)

    def provider(lcc: Lcc, chance: random.Random) -> None:
        while not stop.is_set():
            changed = chance.sample(names, 4)
            try:
                conversation = answers(lcc.port, init(), partial(*changed[:2], gone=tuple(changed[2:])))
                seq = int(re.search(r'seq="(\d+)"', next(conversation))[1])
                said[seq] = changed[:2], changed[2:]
                if "<set_accepted" in next(conversation):
                    accepted.append(seq)
            except (OSError, TypeError):
                time.sleep(0.02)

    threads = [
        threading.Thread(target=provider, args=(lcc, random.Random(seed + number)))
        for number, lcc in enumerate((one, two, one))
    ]
    chance = random.Random(seed)
    for lcc in (one, two):
        lcc.start_uns()
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            time.sleep(chance.uniform(0.5, 1.5))
            lcc = chance.choice((one, two))
            lcc.stop_uns(signal.SIGKILL)
            lcc.start_uns()
        time.sleep(1)
    finally:
        stop.set()
        for thread in threads:
            thread.join(300)
    wait_for(lambda: open_logins(one) == 0, 90, "all sets to be absorbed")
    order = absorbed(one)
    print(f"{len(accepted)} accepted, {len(order)} absorbed, of {len(said)} logins")
    assert order == sorted(order)
    assert set(accepted) <= set(order) <= said.keys()
    there: dict[str, str] = {}
    for seq in order:
        updated, gone = said[seq]
        there |= dict.fromkeys(updated, "fetch") | {url: "nothing" for url in gone if url in there}
    assert dict(one.sql("select curl, operation from qdb")) == there


def test_sets_wait_for_an_open_conversation_at_another_uns(
    make_lcc: Callable[..., Lcc], host: str, site: Site
) -> None:
    one = make_lcc("mariadb")
    two = make_lcc(beside=one)
    one.add_provider(PID, f"{host}/")
    for lcc in (one, two):
        lcc.start_uns()
    with socket.create_connection(("127.0.0.1", one.port), 300) as slow:
        slow.sendall((init() + partial(f"{host}/a")[:-20]).encode())
        wait_for(lambda: open_logins(one) == 1, 10, "the login")
        assert push(two, gone=(f"{host}/a",)) == '<set_accepted received="1"/>'
        time.sleep(2)
        assert absorbed(one) == []
        slow.sendall(partial(f"{host}/a")[-20:].encode())
        assert b"set_accepted" in b"".join(iter(lambda: slow.recv(65536), b""))
    wait_for(lambda: open_logins(one) == 0, 20, "both sets to be absorbed")
    assert absorbed(one) == [1, 2]
    assert one.sql("select operation from qdb") == [("nothing",)]


def test_a_uns_that_is_dead_holds_nobody_up_for_ever_and_overwrites_nothing_when_it_is_back(
    make_lcc: Callable[..., Lcc], host: str, site: Site
) -> None:
    one = make_lcc("mariadb", LCC_UNS_PATIENCE="1h", LCC_QUEUE_MAX="1")
    two = make_lcc(beside=one, LCC_UNS_PATIENCE="1h")
    one.add_provider(PID, f"{host}/")
    for lcc in (one, two):
        lcc.start_uns()
    assert push(one, f"{host}/a") == '<set_accepted received="1"/>'
    wait_for(lambda: absorbed(one) == [1], 20, "the first set")
    assert push(one, f"{host}/b") == '<set_accepted received="1"/>'
    one.stop_uns(signal.SIGKILL)
    assert push(two, gone=(f"{host}/b",)) == '<set_accepted received="1"/>'
    time.sleep(1.5)
    assert absorbed(one) == [1]
    assert two.stop_uns() == 0
    two.settings["LCC_UNS_PATIENCE"] = "3s"
    two.start_uns()
    wait_for(lambda: absorbed(one) == [1, 3], 20, "the third set to go first")
    said = "provider 7: no longer waiting for 1 earlier logins"
    wait_for(lambda: said in two.uns_log.read_text(), what="the line about it")

    one.settings["LCC_QUEUE_MAX"] = "10"
    one.start_uns()
    wait_for(lambda: open_logins(one) == 0, 20, "the late set to be put away")
    assert absorbed(one) == [1, 3]
    wait_for(lambda: len(list((one.folder / "lcc-data/spool/quarantine").iterdir())) == 1, what="the file")
    assert one.sql("select fullsetwanted from pidb") == [("cache crash",)]
    said = "sets of later logins were absorbed while this UNS was away"
    wait_for(lambda: said in one.uns_log.read_text(), what="the line about it")


# --- those who do not finish -------------------------------------------------------------------------


class Valve:
    """Passes a TCP connection on to a port; of what the client says, only so many bytes as are allowed."""

    def __init__(self, target: int, *, answers: bool = True) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.passed = 0
        """Bytes of the client that were passed on."""
        self._target, self._answers = target, answers
        self._allowed = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._accept, daemon=True).start()

    def allow(self, count: int) -> None:
        with self._changed:
            self._allowed += count
            self._changed.notify_all()

    def close(self) -> None:
        self.allow(1 << 40)
        self._server.close()

    def _accept(self) -> None:
        near, _ = self._server.accept()
        far = socket.create_connection(("127.0.0.1", self._target))
        back = threading.Thread(target=self._carry_back, args=(far, near), daemon=True)
        with near, far:
            if self._answers:
                back.start()
            with contextlib.suppress(OSError):
                while data := near.recv(65536):
                    self._pass_on(data, far)
                far.shutdown(socket.SHUT_WR)
            if self._answers:
                back.join(300)

    def _pass_on(self, data: bytes, far: socket.socket) -> None:
        while data:
            with self._changed:
                self._changed.wait_for(lambda: self._allowed > 0)
                portion = data[: self._allowed]
                self._allowed -= len(portion)
            far.sendall(portion)
            self.passed += len(portion)
            data = data[len(portion) :]

    @staticmethod
    def _carry_back(far: socket.socket, near: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := far.recv(65536):
                near.sendall(data)
            near.shutdown(socket.SHUT_WR)


LOGIN_BYTES = 400
"""More than a login takes, and less than that and a set of many URLs."""


def lcccp(lcc: Lcc, port: int, *options: str, lines: str = "") -> "subprocess.Popen[bytes]":
    """Start a real ``lcccp`` against a port."""
    command = [str(BIN / "lcccp"), f"--uns=127.0.0.1:{port}", f"--pid={PID}", f"--pwd={PASSWORD}", *options]
    with tempfile.TemporaryFile("w+") as given:
        given.write(lines)
        given.seek(0)
        return subprocess.Popen(
            command, cwd=lcc.cwd, stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


def many_lines(host: str, *names: str) -> str:
    urls = [*names, *(f"n{number}" for number in range(3000))]
    lines = [f'<url curl="{host}/{name}" mimetype="text/html"/>\n' for name in urls]
    return "".join(lines) + f'<end count="{len(lines)}"/>\n'


def to_fetch(lcc: Lcc) -> set[str]:
    return {str(row[0]) for row in lcc.sql("select curl from qdb where operation = 'fetch'")}


@pytest.fixture(params=["one UNS", "two UNSes"])
def unses(request: pytest.FixtureRequest, make_lcc: Callable[..., Lcc], host: str) -> tuple[Lcc, Lcc]:
    """The UNS of the older login, and that of the later one."""
    settings = {"LCC_POLL": "0.5s", "LCC_UNS_PATIENCE": "30s"}
    one = make_lcc("mariadb", **settings)
    two = one if request.param == "one UNS" else make_lcc(beside=one, **settings)
    one.add_provider(PID, f"{host}/")
    return one, two


def different(unses: tuple[Lcc, Lcc]) -> list[Lcc]:
    one, two = unses
    return [one] if one is two else [one, two]


def start_unses(unses: tuple[Lcc, Lcc], **settings: str) -> None:
    for lcc in different(unses):
        lcc.settings.update(settings)
        lcc.start_uns()


def stop_unses(unses: tuple[Lcc, Lcc]) -> None:
    assert {lcc.stop_uns() for lcc in different(unses)} == {0}


@pytest.mark.slow
def test_a_check_that_hangs_holds_nobody(unses: tuple[Lcc, Lcc], host: str) -> None:
    """It would be waited for ten minutes if anybody waited for it at all."""
    one, two = unses
    start_unses(unses, LCC_IDLE_SECONDS="600s")
    valve = Valve(one.port, answers=False)
    valve.allow(1 << 40)
    check = lcccp(one, valve.port, "--check")
    try:
        wait_for(lambda: open_logins(one) == 1, 20, "the login")
        assert push(two, f"{host}/a") == '<set_accepted received="1"/>'
        wait_for(lambda: absorbed(one) == [2], 60, "the set of the later login")
        assert open_logins(one) == 1, "the check did not hang"
        assert check.poll() is None
    finally:
        check.kill()
        check.wait(300)
        valve.close()
    stop_unses(unses)


@pytest.mark.slow
def test_a_slow_sender_holds_others_no_longer_than_the_bound_and_its_set_takes_effect_as_the_older_one(
    unses: tuple[Lcc, Lcc], host: str
) -> None:
    one, two = unses
    start_unses(unses, LCC_IDLE_SECONDS="20s")  # without a byte for as long, it would not be slow but gone
    valve = Valve(one.port)
    valve.allow(LOGIN_BYTES)
    slow = lcccp(one, valve.port, lines=many_lines(host, "gone", "twice"))
    try:
        wait_for(lambda: open_logins(one) == 1, 20, "the login")
        wait_for(lambda: valve.passed == LOGIN_BYTES, 20, "the beginning of the set")
        assert push(two, f"{host}/new", f"{host}/twice", gone=(f"{host}/gone",)).startswith("<set_accepted")

        def trickles() -> bool:
            valve.allow(20)
            return absorbed(one) == [2]

        wait_for(trickles, 60, "the set of the later login")
        assert open_logins(one) == 1, "the slow set was over"
        assert to_fetch(one) == {f"{host}/new", f"{host}/twice"}
        valve.allow(1 << 40)
        assert slow.wait(300) == 0
        wait_for(lambda: open_logins(one) == 0, 60, "the slow set")
    finally:
        slow.kill()
        slow.wait(300)
        valve.close()
    assert absorbed(one) == [2, 1]
    assert to_fetch(one) == {f"{host}/{name}" for name in ("new", "twice", *(f"n{n}" for n in range(3000)))}
    wait_for(lambda: one.sql("select count(*) from overtaking") == [(0,)], 60, "what was kept of it to go")
    stop_unses(unses)


@pytest.mark.slow
def test_a_frozen_sender_holds_others_no_longer_than_the_bound(unses: tuple[Lcc, Lcc], host: str) -> None:
    one, two = unses
    start_unses(unses, LCC_IDLE_SECONDS="3s")
    valve = Valve(one.port)
    valve.allow(LOGIN_BYTES)
    frozen = lcccp(one, valve.port, lines=many_lines(host))
    try:
        wait_for(lambda: valve.passed == LOGIN_BYTES, 20, "the beginning of the set")
        frozen.send_signal(signal.SIGSTOP)
        assert push(two, f"{host}/a") == '<set_accepted received="1"/>'
        wait_for(lambda: absorbed(one) == [2], 60, "the set of the later login")
        wait_for(lambda: open_logins(one) == 0, 60, "the frozen sender to be given up")
        frozen.send_signal(signal.SIGCONT)
        valve.allow(1 << 40)
        assert frozen.wait(300) != 0
    finally:
        frozen.kill()
        frozen.wait(300)
        valve.close()
    assert to_fetch(one) == {f"{host}/a"}
    stop_unses(unses)


@pytest.mark.slow
def test_a_uns_that_is_killed_while_a_set_is_sent_to_it_holds_others_no_longer_than_the_bound(
    make_lcc: Callable[..., Lcc], host: str
) -> None:
    """Long before it counts as dead; back again, it forgets what nobody brings any more."""
    settings = {"LCC_POLL": "0.5s", "LCC_UNS_PATIENCE": "1h"}
    one = make_lcc("mariadb", LCC_IDLE_SECONDS="1h", **settings)
    two = make_lcc(beside=one, LCC_IDLE_SECONDS="3s", **settings)
    one.add_provider(PID, f"{host}/")
    for lcc in (one, two):
        lcc.start_uns()
    with socket.create_connection(("127.0.0.1", one.port), 300) as slow:
        slow.sendall((init() + partial(f"{host}/a")[:-20]).encode())
        wait_for(lambda: open_logins(one) == 1, 10, "the login")
        one.stop_uns(signal.SIGKILL)
    assert push(two, f"{host}/b") == '<set_accepted received="1"/>'
    wait_for(lambda: absorbed(one) == [2], 60, "the set of the later login")
    assert open_logins(one) == 1
    one.start_uns()
    wait_for(lambda: open_logins(one) == 0, 60, "what the kill left behind to go")
    wait_for(lambda: one.sql("select count(*) from overtaking") == [(0,)], 60, "what was kept of it to go")
    assert to_fetch(one) == {f"{host}/b"}
    assert [lcc.stop_uns() for lcc in (one, two)] == [0, 0]


# --- starting and stopping ---------------------------------------------------------------------------


def at_port(url: str, port: int) -> str:
    """Return the address of a database as it is behind another port."""
    return make_url(url).set(port=port).render_as_string(hide_password=False)


class Bridge:
    """Passes a TCP port on to another one, once it is open."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self.silent = threading.Event()
        """From now on nothing comes through, and nobody is told."""
        self._target = target
        self._sockets: list[socket.socket] = []

    def open(self) -> None:
        server = socket.create_server(("127.0.0.1", self.port))
        self._sockets.append(server)
        threading.Thread(target=self._accept, args=(server,), daemon=True).start()

    def close(self) -> None:
        for one in self._sockets:
            one.close()

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                near, _ = server.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            self._sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if not self.silent.is_set():
                    sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def test_a_uns_that_is_started_before_its_database_says_try_later_and_comes_to_life_with_it(
    make_lcc: Callable[..., Lcc], host: str
) -> None:
    lcc = make_lcc("mariadb")
    lcc.add_provider(PID, f"{host}/")
    bridge = Bridge(SERVERS["mariadb"].port)
    lcc.settings["LCC_DATABASE_URL"] = at_port(lcc.database_url, bridge.port)
    lcc.start_uns()
    assert push(lcc, f"{host}/a") == f'<reason code="103" retry-after="300">{TRY_LATER}</reason>'
    bridge.open()
    try:
        wait_for(lambda: "the database answers" in lcc.uns_log.read_text(), 20, "the database to be seen")
        assert push(lcc, f"{host}/a") == '<set_accepted received="1"/>'
        wait_for(lambda: absorbed(lcc) == [1], 20, "the set to be absorbed")
        assert lcc.stop_uns() == 0
    finally:
        bridge.close()
    said = lcc.uns_log.read_text()
    assert said.count("the database does not answer, logins get 103 until it does: Can't connect") == 1
    assert f"listening on 127.0.0.1:{lcc.own_port}\n" in said


def test_a_database_that_hangs_does_not_keep_it_from_stopping(
    make_lcc: Callable[..., Lcc], host: str
) -> None:
    lcc = make_lcc("mariadb", LCC_STOP_TIMEOUT="1s")
    lcc.add_provider(PID, f"{host}/")
    bridge = Bridge(SERVERS["mariadb"].port)
    bridge.open()
    lcc.settings["LCC_DATABASE_URL"] = at_port(lcc.database_url, bridge.port)
    lcc.start_uns()
    assert push(lcc, f"{host}/a") == '<set_accepted received="1"/>'
    bridge.silent.set()
    try:
        with socket.create_connection(("127.0.0.1", lcc.port), 300) as provider:
            provider.sendall(init().encode())
            time.sleep(0.5)
            began = time.monotonic()
            assert lcc.stop_uns() == 0
            assert time.monotonic() - began < 200, "usually a statement is waited for 600 s"
    finally:
        bridge.close()


@pytest.fixture
def stop_timeout() -> str:
    return "1h"


@pytest.fixture
def listening(make_lcc: Callable[..., Lcc], host: str, stop_timeout: str) -> Lcc:
    lcc = make_lcc(LCC_STOP_TIMEOUT=stop_timeout, LCC_IDLE_SECONDS="1h")
    lcc.add_provider(PID, f"{host}/")
    lcc.start_uns()
    return lcc


def is_refused(lcc: Lcc) -> bool:
    try:
        socket.create_connection(("127.0.0.1", lcc.own_port), 300).close()
    except ConnectionError:
        return True
    return False


def test_sigterm_lets_a_conversation_end(listening: Lcc, host: str) -> None:
    assert listening.uns is not None
    text = partial(f"{host}/a")
    with socket.create_connection(("127.0.0.1", listening.port), 300) as provider:
        provider.sendall((init() + text[:-20]).encode())
        wait_for(lambda: open_logins(listening) == 1, 10, "the login")
        listening.uns.send_signal(signal.SIGTERM)
        wait_for(lambda: is_refused(listening), 30, "the listener to be closed")
        provider.sendall(text[-20:].encode())
        assert b'<set_accepted received="1"/>' in b"".join(iter(lambda: provider.recv(65536), b""))
    assert listening.uns.wait(300) == 0
    assert spooled(listening) + len(absorbed(listening)) > 0


@pytest.mark.parametrize("stop_timeout", ["3s"])
def test_sigterm_ends_a_conversation_that_does_not_end_by_itself(listening: Lcc, host: str) -> None:
    assert listening.uns is not None
    with socket.create_connection(("127.0.0.1", listening.port), 300) as provider:
        provider.sendall((init() + partial(f"{host}/a")[:-20]).encode())
        wait_for(lambda: open_logins(listening) == 1, 10, "the login")
        began = time.monotonic()
        listening.uns.send_signal(signal.SIGTERM)
        answer = b"".join(iter(lambda: provider.recv(65536), b"")).decode()
        assert f'<set_rejected code="203" retry-after="300">{TRY_LATER}</set_rejected>' in answer
        provider.shutdown(socket.SHUT_WR)
    assert listening.uns.wait(300) == 0
    assert time.monotonic() - began > 2.5
    assert open_logins(listening) == 0


def test_a_second_sigterm_ends_it_at_once(listening: Lcc, host: str) -> None:
    assert listening.uns is not None
    with socket.create_connection(("127.0.0.1", listening.port), 300) as provider:
        provider.sendall((init() + partial(f"{host}/a")[:-20]).encode())
        wait_for(lambda: open_logins(listening) == 1, 10, "the login")
        listening.uns.send_signal(signal.SIGTERM)
        wait_for(lambda: "stopping" in listening.uns_log.read_text(), 10, "the signal to be seen")
        listening.uns.send_signal(signal.SIGTERM)
        assert listening.uns.wait(300) == -signal.SIGTERM, "the first signal would end it with 0"
    listening.start_uns()
    wait_for(lambda: open_logins(listening) == 0, 10, "the open login to go")
    assert push(listening, f"{host}/a") == '<set_accepted received="1"/>'


def test_a_successor_waits_for_its_predecessor_to_end(listening: Lcc, host: str) -> None:
    first = listening.uns
    assert first is not None
    with socket.create_connection(("127.0.0.1", listening.port), 300) as provider:
        provider.sendall(init().encode())
        wait_for(lambda: open_logins(listening) == 1, 10, "the login")
        first.send_signal(signal.SIGTERM)
        wait_for(lambda: "stopping" in listening.uns_log.read_text(), 10, "the signal to be seen")

        def waits() -> bool:
            return "waiting 5 s for the other process" in listening.uns_log.read_text()

        def end_the_conversation() -> None:
            wait_for(waits, 60, "the successor to wait")
            provider.shutdown(socket.SHUT_WR)

        ending = threading.Thread(target=end_the_conversation)
        ending.start()
        with contextlib.suppress(AssertionError):
            listening.start_uns()
        ending.join(300)
    assert first.wait(300) == 0
    assert waits()
    if listening.uns is None or listening.uns.poll() is not None:
        listening.start_uns()  # on a busy machine an end takes longer than any successor waits
    assert push(listening, f"{host}/a") == '<set_accepted received="1"/>'


def test_what_cannot_work_is_refused_in_one_line(listening: Lcc, make_lcc: Callable[..., Lcc]) -> None:
    assert listening.uns is not None
    spool = listening.folder / "lcc-data/spool"
    code, said = refusal_of(listening)
    waiting, refused = said.splitlines()
    assert code == 1
    assert waiting.endswith("INFO: the spool is in use: waiting 5 s for the other process")
    assert refused == (
        f"lcc: error: spool folder {spool} is in use by process {listening.uns.pid}; stop it, set"
        " another LCC_SPOOL_DIR, or, to fetch only, an empty LCC_UNS_ENDPOINTS"
    )
    other = make_lcc()
    code, said = refusal_of(other, LCC_UNS_ENDPOINTS=f"tcp:{listening.port}:interface=127.0.0.1")
    assert code == 1
    assert re.fullmatch(rf"lcc: error: port {listening.port} at 127.0.0.1 is taken .*\n", said)
    for settings, line in {
        "LCC_UNS_ENDPOINTS=": "LCC_UNS_ENDPOINTS is empty: say where to listen",
        "LCC_UNS_PATIENCE=0": "LCC_UNS_PATIENCE: '0', expected more than nothing",
        f"LCC_DATA_DIR={other.folder}": f"no LCC data directory at {other.folder}: run `lcc init` there first, or set LCC_DATA_DIR",
        "LCC_DATABASE_URL=sqlite:////no/such/file": "the database file /no/such/file does not exist: correct LCC_DATABASE_URL, or bring the file back",
        "LCC_DATABASE_URL=nonsense": "LCC_DATABASE_URL: no URL of a database, for example mysql://lcc:secret@db.example.org/lcc",
    }.items():
        name, value = settings.split("=", 1)
        code, said = refusal_of(other, **{name: value})
        assert (code, said) == (2, f"lcc: error: {line}\n")
    foreign = {"LCC_DATABASE_URL": listening.shared_url}
    code, said = refusal_of(other, **foreign)
    assert code == 2
    assert said.startswith("lcc: error: the database belongs to LCC ")
