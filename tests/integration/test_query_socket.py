"""The query socket as it is run: `lcc query` beside writers, asked by `lcc ask`, by nc, and by programs."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from test_cli import SITE, House, one_error, rows_of
from test_cli import house as any_house

from lcc_scrapy.apps.query.client import Rejected, Unanswered, ask, connect
from lcc_scrapy.apps.query.wire.messages import Content, ContentEnds, Query, ResultEnds, Row, Wanted, What
from lcc_scrapy.content_user import ContentUser
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.entries import Operation
from tests.certificates import Authority
from tests.forkserver import popen
from tests.harness import BIN

PROGRAM = [sys.executable, "-m", "lcc_scrapy.cli.main"]
PAGE = (Path(__file__).parents[2] / "docs" / "query-protocol.md").read_text(encoding="utf-8")
CLIENTS = 8
EVERYTHING = Query()
POSITION = Position("l", 1, 0)
__all__ = ["any_house"]


class Served:
    """A running `lcc query`, at a Unix socket and at ports."""

    def __init__(self, house, *more):
        self.house = house
        self.path = str(house.folder / "query.sock")
        self._log = (house.folder / "query.log").open("wb")
        words = ["query", "--listen", f"unix:{self.path}", *(f"--listen={one}" for one in more)]
        self.process = popen(
            [str(BIN / "lcc"), *words], env=house.environment, cwd=house.folder, log=self._log
        )
        until(lambda: "listening on" in self.log or self.process.poll() is not None)
        self.ports = [int(port) for port in re.findall(r"\d+\.\d+\.\d+\.\d+:(\d+)", self.log)]

    @property
    def log(self):
        return (self.house.folder / "query.log").read_text()

    def asked(self, query=EVERYTHING):
        with connect(self.path) as wire:
            return list(ask(wire, query))

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(300)
        self._log.close()
        return status


def until(condition, seconds=240):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def served():
    running = []

    def make(house, *more):
        running.append(Served(house, *more))
        return running[-1]

    yield make
    for one in running:
        assert one.end() == 0
        assert "Traceback" not in one.log


@pytest.fixture
def small(tmp_path):
    """A house on SQLite with a provider and a document or two."""
    made = House(tmp_path)
    made.lcc("init")
    made.add()
    made.settings["LCC_POLL"] = "0.1"
    made.documents("a", "b/é?x=1&y=2")
    return made


def bodies_of(said):
    """Return the documents and their contents."""
    found, row, body = {}, None, b""
    for one in said:
        match one:
            case Row():
                row, body = one, b""
            case Content(data):
                body += data
            case ContentEnds():
                found[row.values["docid"]] = body
    return found


def test_the_socket_says_what_the_python_api_says_contents_too(any_house, served):
    house = any_house
    house.add()
    house.documents("a", "b", "c/é?x=1&y=2")
    house.documents("pic", mimetype="image/png")
    house.push("b", operation=Operation.REMOVE)
    server = served(house)
    said = server.asked(Query(content=Wanted.INSIDE))
    rows = [one for one in said if isinstance(one, Row)]
    with ContentUser(house.settings) as user:
        changes = user.select()
        expected, bodies = [], {}
        for change in changes:
            expected.append((change.op, change.docid, str(change.seq), change.curl))
            if change.op == "upsert":
                with user.open(change) as stream:
                    bodies[change.docid] = stream.read()
        assert [
            (row.op, *(row.values[name] for name in ("docid", "seq", "curl"))) for row in rows
        ] == expected
        assert said[-1] == ResultEnds(str(changes.position), 3, 1, 0)
    assert bodies_of(said) == bodies
    for row in rows:
        if row.op == "upsert":
            assert hashlib.sha256(bodies[row.values["docid"]]).hexdigest() == row.values["sha256"]
    assert server.asked(Query(since=said[-1].position))[-1] == ResultEnds(said[-1].position)


def test_many_clients_beside_a_writer_end_up_with_what_there_is(any_house, served):
    house = any_house
    house.add()
    house.settings["LCC_POLL"] = "0.1"
    house.documents("first")
    server = served(house)
    done = []

    def follow(number):
        copy, cursor, last = {}, "", False
        while not last:
            last = bool(done)
            for said in server.asked(Query(since=cursor, limit=1 + number, wait=0 if last else 1)):
                match said:
                    case Row("upsert", values):
                        copy[values["docid"]] = values["seq"]
                    case Row(_, values):
                        copy.pop(values["docid"], None)
                    case ResultEnds(position):
                        last = last and position == cursor
                        cursor = position
        return copy

    with ThreadPoolExecutor(CLIENTS) as pool:
        copies = [pool.submit(follow, number) for number in range(CLIENTS)]
        try:
            for number in range(6):
                house.documents(f"a{number}", f"b{number % 3}")
                house.push(f"a{number - 1}", operation=Operation.REMOVE)
        finally:
            done.append(True)
        with ContentUser(house.settings) as user:
            expected = {row.docid: str(row.seq) for row in user.documents()}
        assert len(expected) > 4
        for copy in copies:
            assert copy.result(300) == expected


# --- who may ask ---------------------------------------------------------------------------------


def test_over_tcp_a_token_is_needed_and_shows_its_own_part_only(small, served):
    small.add(8)
    small.documents("other", pid=8)
    secret, revoked = (small.lcc("token", "add", "me", "--provider", "8").stdout.strip() for _ in range(2))
    server = served(small, "tcp:0:interface=127.0.0.1")
    place = f"127.0.0.1:{server.ports[0]}"

    def asked(token):
        with connect(place) as wire:
            return [one.values["pid"] for one in ask(wire, Query(token=token)) if isinstance(one, Row)]

    assert asked(secret) == ["8"]
    assert asked(revoked) == ["8"]
    (tokenid,) = {row[0][:12] for row in small.query("select digest from tokens")} - {
        hashlib.sha256(secret.encode()).hexdigest()[:12]
    }
    small.lcc("token", "revoke", tokenid)
    for token in ("", "lcc_" + "x" * 32, "nonsense", revoked):
        with pytest.raises(Rejected) as caught:
            asked(token)
        assert caught.value.code == 801
    assert secret not in server.log
    assert os.stat(server.path).st_mode & 0o777 == 0o660


@pytest.mark.parametrize("endpoint", ["tcp:0", "haproxy:tcp:0"])
def test_it_does_not_listen_beyond_loopback_in_plain_text(small, endpoint):
    done = small.run("query", "--listen", endpoint)
    assert done.returncode == 2
    assert "LCC_QUERY_ALLOW_PLAIN_REMOTE" in done.stderr.splitlines()[-1]


def test_nothing_listens_unless_it_is_told_where(small):
    assert "LCC_QUERY_ENDPOINTS" in one_error(small.lcc("query", status=2))


def test_lcc_ask_over_tls_keeps_its_cursor_and_fetches_contents(small, served):
    secret = small.lcc("token", "add", "me").stdout
    (small.folder / "token").write_text(secret)
    authority = Authority("an authority")
    leaf = authority.issue("localhost")
    (small.folder / "tls.pem").write_bytes(leaf.key_pem() + leaf.fullchain)
    (small.folder / "ca.pem").write_bytes(authority.pem)
    server = served(small, f"tls:{small.folder}/tls.pem:port=0:interface=0.0.0.0")
    place = f"localhost:{server.ports[0]}"
    words = [
        "ask",
        place,
        "--tls",
        "--token-file",
        "token",
        "--cursor-file",
        "position",
        "--content",
        "pages",
    ]
    assert "certificate not trusted" in one_error(small.lcc(*words, status=1))
    words += ["--ca", "ca.pem"]
    rows = rows_of(small.lcc(*words))
    assert [row["curl"] for row in rows] == [SITE + "a", SITE + "b/é?x=1&y=2"]
    for row in rows:
        assert (small.folder / row["content"]).read_bytes() == row["curl"].encode()
    assert len(list((small.folder / "pages").iterdir())) == 2
    small.documents("c")
    assert [row["curl"] for row in rows_of(small.lcc(*words))] == [SITE + "c"]
    (small.folder / "position").write_text("nonsense")
    assert small.lcc(*words, status=2).stdout == ""


# --- large answers, slow readers -----------------------------------------------------------------


def memory_of(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024


def rest_of(wire):
    """Read what was sent before the connection was cut."""
    rest = b""
    with contextlib.suppress(ConnectionResetError):
        while data := wire.recv(1 << 20):
            rest = data
    return rest


def test_a_large_answer_is_streamed_beside_readers_who_read_nothing_and_are_cut(small, served):
    small.settings["LCC_QUERY_IDLE_SECONDS"] = "20s"
    small.push("large1", "large2")
    small.fetch(body=os.urandom(1 << 20) * 40)
    server = served(small)
    server.asked()
    before = memory_of(server.process)
    deaf = []
    for _ in range(5):
        wire = socket.socket(socket.AF_UNIX)
        wire.connect(server.path)
        wire.sendall(b"<lococa:query content='inside'/>")
        deaf.append(wire)
    with connect(server.path) as wire:
        size = sum(
            len(said.data) for said in ask(wire, Query(content=Wanted.INSIDE)) if isinstance(said, Content)
        )
    assert size > 80 * (1 << 20)
    assert memory_of(server.process) - before < 40_000_000
    until(lambda: server.log.count("cut off") == 5)
    for wire in deaf:
        with wire:
            assert b"<end " not in rest_of(wire)


def test_who_waits_is_told_of_a_change_at_once_and_lets_the_server_stop(small, served):
    server = served(small)
    cursor = server.asked()[-1].position
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(server.asked, Query(since=cursor, wait=280))
        time.sleep(0.5)
        assert not waiting.done()
        small.documents("new")
        rows = [one for one in waiting.result(300) if isinstance(one, Row)]
        assert [row.values["curl"] for row in rows] == [SITE + "new"]
        cursor = server.asked()[-1].position
        waiting = pool.submit(server.asked, Query(since=cursor, wait=280))
        time.sleep(0.5)
        assert server.end() == 0
        assert waiting.result(300)[-1] == ResultEnds(cursor)


def test_an_answer_without_its_end_is_no_answer(small):
    server = Served(small)
    with connect(server.path) as wire:
        server.process.kill()
        assert server.end() == -signal.SIGKILL
        with pytest.raises(Unanswered):
            list(ask(wire, Query()))
    assert "cannot connect" in one_error(small.lcc("ask", server.path, status=1))


@pytest.mark.parametrize("row", ["<document/>", "<document docid='../x'/>", "<document docid='a' seq='b'/>"])
def test_lcc_ask_says_in_one_line_that_a_row_is_none(small, row):
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:

        def answer():
            wire, _ = listening.accept()
            with wire:
                row_with_content = row.replace("/>", " content='inside'>eA==</document>")
                wire.sendall(f"<lococa:result lcc='l' position='{POSITION}'>{row_with_content}".encode())
                wire.recv(1000)

        pool.submit(answer)
        place = f"127.0.0.1:{listening.getsockname()[1]}"
        done = small.lcc("ask", place, "--content", "pages", status=1)
    assert "no LCC: a row" in one_error(done)
    assert not any((small.folder / "pages").iterdir())


# --- what the page shows -------------------------------------------------------------------------


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_page_do_what_it_says(small, served):
    if not shutil.which("nc"):
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("apt-get install netcat-openbsd")
    served(small)
    (shell,) = blocks("sh")
    done = subprocess.run(["sh", "-c", shell], cwd=small.folder, capture_output=True, check=True, timeout=300)
    assert done.stdout.count(b"<document ") == 2
    assert done.stdout.endswith(b'documents="2" removed="0" left="0"/>\n</lococa:result>\n')
    examples = blocks("python")
    assert len(examples) == 2
    for example in examples:
        done = subprocess.run(
            [sys.executable, "-c", example], cwd=small.folder, capture_output=True, text=True, check=True,
            timeout=300, env={**small.environment, "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
        lines = done.stdout.splitlines()
        assert [line.split()[0] for line in lines] == ["upsert", "upsert", "cursor"]
        assert lines[1].endswith(SITE + "b/é?x=1&y=2")


def test_ids_and_rows_reconcile_over_the_socket(small, served):
    server = served(small)
    listed = [one.values for one in server.asked(Query(what=What.IDS)) if isinstance(one, Row)]
    docids = tuple(values["docid"] for values in listed)
    rows = [one.values for one in server.asked(Query(what=What.ROWS, docids=docids)) if isinstance(one, Row)]
    assert {row["docid"]: row["seq"] for row in rows} == {one["docid"]: one["seq"] for one in listed}
    lines = rows_of(small.lcc("ask", server.path, "--limit", "1"))
    assert [json.loads(json.dumps(line))["pid"] for line in lines] == [7]
