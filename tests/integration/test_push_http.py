"""Pushing over HTTP with real processes: curl, TLS, the examples of the page, hostile clients, kills."""

import base64
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import certificates
import pytest
from harness import missing, wait_for
from ports import free_port
from push_process import push_server
from test_cli import House

PAGE = Path(__file__).parents[2] / "docs" / "http-push.md"
EXAMPLES = re.findall(r"<!-- run -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
WORKFLOW = re.search(r"  run: \|\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
SITE = "https://www.example.org/"
KILLS = int(os.environ.get("LCC_PUSH_KILLS", "4"))
BASIC = {"Authorization": "Basic " + base64.b64encode(b"7:secret").decode()}


@pytest.fixture
def house(tmp_path):
    if shutil.which("curl") is None:
        missing("curl", "apt-get install curl")
    made = House(tmp_path)
    made.lcc("init")
    made.lcc(
        "provider", "add", "7", "--password-file", "-", "--root", SITE, "--root", "http://www.example.org/",
        stdin="secret\n",
    )  # fmt: skip
    return made


def queued(house):
    store = house.store()
    try:
        with store.read() as tx:
            return tx.queued_total()
    finally:
        store.close()


def curl(house, *words, stdin=b""):
    done = subprocess.run(
        ["curl", "-sS", "-m", "300", "-w", "\n%{http_code}", *words],
        cwd=house.folder, input=stdin, capture_output=True, check=False,
    )  # fmt: skip
    body, _, status = done.stdout.decode().rpartition("\n")
    return int(status), body, done


def shell(house, server, text, **environment):
    token = house.lcc("token", "add", "site", "--scope", "push", "--provider", "7").stdout.strip()
    text = text.replace("https://lcc.example.org/", f"http://127.0.0.1:{server.port}/")
    text = text.replace("7:PASSWORD", "7:secret").replace("Bearer TOKEN", f"Bearer {token}")
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=house.folder, env={**os.environ, "PUSH_TOKEN": token, **environment},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def post(port, body, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request("POST", "/v1/push", body, {**BASIC, **headers})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def lines(*urls):
    return "\n".join(['{"set": "partial"}', *(json.dumps(url) for url in urls)]).encode()


LINES = {"Content-Type": "application/x-ndjson"}


def test_the_examples_of_the_page_are_accepted_and_queued(house):
    with push_server(house) as server:
        for example in EXAMPLES:
            done = shell(house, server, example)
            assert done.returncode == 0, (example, done.stdout, done.stderr)
            assert "rejected" not in done.stdout
        pushed = {SITE + name for name in ("news.html", "report.pdf", "a.html", "b.pdf")}
        wait_for(lambda: {row["furl"] for row in _queue(house)} == pushed, 120, "what the examples pushed")
    assert len(EXAMPLES) == 5


def test_the_step_of_a_workflow_pushes_what_a_commit_changed(house):
    git = "git -c user.name=a -c user.email=a@example.org"
    begin = f"""
        git init -q site; cd site
        echo 1 > a.html; echo 1 > b.html; git add .; {git} commit -qm one
        echo 2 > a.html; git rm -q b.html; echo 1 > c.html; git add .; {git} commit -qm two
    """
    with push_server(house) as server:
        done = shell(house, server, begin + WORKFLOW)
        assert done.returncode == 0, done.stderr
        assert '"received":3' in done.stdout
        pushed = {f"{SITE}a.html", f"{SITE}c.html"}
        wait_for(lambda: {row["furl"] for row in _queue(house)} == pushed, 120, "what the commit changed")


def test_pushes_and_content_users_are_served_by_one_process(house):
    port = free_port()
    token = house.lcc("token", "add", "reader").stdout.strip()
    with push_server(house, LCC_WEB_ENDPOINT=f"127.0.0.1:{port}") as server:
        assert post(server.port, lines(f"{SITE}a"), **LINES)[0] == 200
        status, body, _ = curl(
            house, "-H", f"Authorization: Bearer {token}", f"http://127.0.0.1:{port}/v1/changes"
        )
        assert (status, json.loads(body)["changes"]) == (200, [])
        assert curl(house, f"http://127.0.0.1:{server.port}/v1/changes")[0] == 404


def test_over_tls_with_a_certificate_that_can_be_renewed(house):
    authorities = [certificates.Authority("old"), certificates.Authority("new")]
    folder = authorities[0].issue("localhost").write(house.folder / "tls")
    for authority, name in zip(authorities, ("old", "new"), strict=True):
        (house.folder / name).write_bytes(authority.pem)
    tls = {"LCC_HTTP_CERTIFICATE": str(folder / "cert.pem"), "LCC_HTTP_KEY": str(folder / "key.pem")}
    with push_server(house, **tls) as server:
        url = f"https://localhost:{server.port}/v1/push"
        words = (
            "--resolve",
            f"localhost:{server.port}:127.0.0.1",
            "-u",
            "7:secret",
            "--data-binary",
            "@-",
            url,
        )

        def push(trusted):
            words_of_set = ("-H", "Content-Type: application/x-ndjson", "--cacert", trusted, *words)
            return curl(house, *words_of_set, stdin=lines(f"{SITE}a"))[0]

        assert (push("old"), push("new")) == (200, 0)
        authorities[1].issue("localhost").write(folder)
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "certificates read again: 1" in server.log.read_text(), 240, "the renewal")
        assert (push("old"), push("new")) == (0, 200)
        (folder / "cert.pem").write_text("broken")
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "the old certificate stays" in server.log.read_text(), 240, "the refusal")
        assert push("new") == 200
        assert curl(house, f"http://127.0.0.1:{server.port}/")[0] == 0


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"LCC_PUSH_ENDPOINTS": "0.0.0.0:0"}, "beyond loopback"),
        ({"LCC_HTTP_CERTIFICATE": "nowhere"}, "LCC_HTTP_CERTIFICATE"),
        ({"LCC_PUSH_ENDPOINTS": "unix:/nowhere/at/all"}, "cannot listen on unix:/nowhere/at/all"),
        ({"LCC_PUSH_ENDPOINTS": ""}, "say where to listen"),
        ({"LCC_PUSH_ENDPOINTS": "example.org:80"}, "LCC_PUSH_ENDPOINTS"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(house, settings, says):
    done = house.run("web", **{"LCC_WEB_ENDPOINT": "", "LCC_PUSH_ENDPOINTS": "127.0.0.1:0", **settings})
    assert done.returncode == 2, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert says in last
    assert "Traceback" not in done.stderr


def test_an_address_in_use_is_said_in_one_line(house):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = house.run("web", LCC_WEB_ENDPOINT="", LCC_PUSH_ENDPOINTS=address)
    assert done.returncode == 2, done.stderr
    assert f"cannot listen on {address}" in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_large_set_with_chunks_gzip_and_expect(house):
    urls = [f"{SITE}{n}.html" for n in range(20_000)]
    (house.folder / "set.json").write_bytes(json.dumps({"set": "partial", "urls": urls}).encode())
    subprocess.run(["gzip", "-k", "set.json"], cwd=house.folder, check=True)
    with push_server(house) as server:
        status, body, done = curl(
            house, "-v", "-u", "7:secret", "-H", "Content-Type: application/json", "-H", "Content-Encoding: gzip",
            "-H", "Transfer-Encoding: chunked", "-H", "Expect: 100-continue", "--data-binary", "@set.json.gz",
            f"http://127.0.0.1:{server.port}/v1/push",
        )  # fmt: skip
        assert status == 200, body
        assert b"100 Continue" in done.stderr
        assert '"received":20000' in body


def test_hostile_clients_do_not_keep_others_from_pushing(house):
    hostile = {"LCC_IDLE_SECONDS": "2s", "LCC_LOGIN_SECONDS": "300s", "LCC_SET_MAX_BYTES": "3M"}
    with push_server(house, **hostile) as server, ThreadPoolExecutor(8) as threads:
        slow = threads.submit(_slow, server.port)
        endless = threads.submit(_endless, server.port)
        bomb = threads.submit(_bomb, house, server.port)
        both = list(threads.map(lambda n: post(server.port, lines(f"{SITE}{n}"), **LINES)[0], range(20)))
        assert both == [200] * 20
        assert b" 408 " in slow.result(300)
        assert b" 413 " in endless.result(300)
        assert bomb.result(300) == 400
        assert [post(server.port, b"", Authorization=_wrong(n))[0] for n in range(12)] == [401] * 10 + [
            503
        ] * 2
        wait_for(lambda: queued(house) == 20, 120, "what was accepted")


def _wrong(number):
    return "Basic " + base64.b64encode(f"99:guess {number}".encode()).decode()


def _head(length):
    basic = BASIC["Authorization"]
    return f"POST /v1/push HTTP/1.1\r\nHost: x\r\nAuthorization: {basic}\r\n{length}\r\n\r\n".encode()


def _slow(port):
    """Begin a set, and say nothing more."""
    with socket.create_connection(("127.0.0.1", port), 300) as link:
        link.sendall(_head("Content-Length: 1000") + b'<lococa:set set="partial">')
        return link.recv(4096)


def _endless(port):
    """Send a set for as long as it is taken."""
    with socket.create_connection(("127.0.0.1", port), 300) as link:
        link.sendall(_head("Transfer-Encoding: chunked") + b'1a\r\n<lococa:set set="partial">\r\n')
        chunk = b'<url c="http://www.example.org/a" mimetype="text/html"/>' * 100
        said = threading.Event()

        def send():
            try:
                while not said.is_set():
                    link.sendall(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            except OSError:
                pass

        sending = threading.Thread(target=send)
        sending.start()
        try:
            return link.recv(4096)
        finally:
            said.set()
            link.shutdown(socket.SHUT_RDWR)
            sending.join(300)


def _bomb(house, port):
    bomb = house.folder / "bomb.gz"
    subprocess.run(f"head -c 50000000 /dev/zero | gzip > {bomb}", shell=True, check=True)
    return post(port, bomb.read_bytes(), **{"Content-Encoding": "gzip"})[0]


@pytest.mark.slow
def test_kills_during_pushes_lose_nothing_that_was_acknowledged(house):
    """Two sites push set after set; the server is killed again and again, and started anew."""
    acknowledged, told, done = [], threading.Event(), threading.Event()
    with push_server(house, LCC_QUEUE_MAX="0") as server:

        def push(whose):
            for number in range(1_000_000):
                if done.is_set():
                    return
                url = f"{SITE}{whose}/{number}.html"
                try:
                    status, _ = post(server.port, lines(url), **LINES)
                except (OSError, http.client.HTTPException):
                    continue
                if status == 200:
                    acknowledged.append(url)
                    told.set()

        with ThreadPoolExecutor(2) as threads:
            pushing = [threads.submit(push, whose) for whose in ("a", "b")]
            try:
                for _ in range(KILLS):
                    before = len(acknowledged) + 5
                    wait_for(lambda least=before: len(acknowledged) >= least, 300, "pushes")
                    server.kill()
                    server.start()
                before = len(acknowledged) + 5
                wait_for(lambda: len(acknowledged) >= before, 300, "pushes after the last kill")
            finally:
                done.set()
            for one in pushing:
                one.result(300)
        spool = house.data / "spool-push"
        wait_for(lambda: not list(spool.glob("*.set")), 300, "the intake")
    found = {row["furl"] for row in _queue(house)}
    assert set(acknowledged) <= found
    assert not list(spool.glob("*.part"))
    print(f"{KILLS} kills, {len(acknowledged)} sets acknowledged, all of them queued")


def _queue(house):
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(house.data / "lcc.sqlite")) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute("select furl from qdb").fetchall()
