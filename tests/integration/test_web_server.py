"""``lcc web`` and ``lcc files`` as real processes: raw requests, several machines, a browser, hostile clients."""

import base64
import contextlib
import http.client
import io
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tarfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import certificates
import pytest
from harness import PATIENCE, missing, wait_for
from ports import free_port
from test_cli import SITE, House, rows_of
from web_process import serving

from lcc_scrapy.content.files import relative_path

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
EVIL = b"<!doctype html><title>evil</title><script>document.title = 'ran'</script><h1>rendered</h1>"
LONG = os.environ.get("LCC_SCHEMATHESIS") == "long"


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path)
    made.lcc("init")
    made.add()
    return made


@pytest.fixture
def full(house):
    """Two documents; ``page`` is HTML that a site made."""
    house.push("page", "other")
    house.fetch(body=EVIL)
    return house


def token(house, *options):
    return house.lcc("token", "add", "indexer", *options).stdout.strip()


def ask(port, path, secret, *, method="GET", tls=None, **headers):
    """Ask for something; gives status, headers and body."""
    kind = http.client.HTTPSConnection if tls else http.client.HTTPConnection
    connection = kind(
        "localhost" if tls else "127.0.0.1", port, timeout=300, **({"context": tls} if tls else {})
    )
    shown = {"Authorization": f"Bearer {secret}"} if secret else {}
    connection.request(
        method, path, headers={**shown, **{n.replace("_", "-"): v for n, v in headers.items()}}
    )
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


def rows(port, secret, query=""):
    status, _, body = ask(port, f"/v1/changes{query}", secret)
    assert status == 200, body
    return json.loads(body)["changes"]


def raw(port, request, seconds=300):
    """Write bytes, read to the end."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as link:
        link.sendall(request)
        data = b""
        while block := link.recv(65536):
            data += block
    return data


# --- a user ---------------------------------------------------------------------------------------


def test_what_http_tells_is_what_the_command_tells(full):
    secret = token(full)
    with serving(full) as (port, _):
        told = rows(port, secret)
        command = rows_of(full.lcc("select", "--format", "jsonl"))
        assert [{**row, "path": None} for row in told] == [{**row, "path": None} for row in command]
        cursor = json.loads(ask(port, "/v1/changes?limit=1", secret)[2])["cursor"]
        again = rows_of(full.lcc("select", "--format", "jsonl", "--since", cursor))
        assert [row["docid"] for row in again] == [told[1]["docid"]]


def test_a_content_in_raw_requests(full):
    secret = token(full)
    digest = sha256(EVIL).digest()
    with serving(full) as (port, _):
        path = rows(port, secret)[0]["path"]

        def request(*lines, method="GET"):
            head = (
                f"{method} {path} HTTP/1.1",
                "Host: x",
                f"Authorization: Bearer {secret}",
                "Connection: close",
                *lines,
            )
            head, _, body = raw(port, "\r\n".join((*head, "", "")).encode()).partition(b"\r\n\r\n")
            return head.decode().lower(), body

        head, body = request()
        assert head.startswith("http/1.1 200 ok")
        assert body == EVIL
        assert f'etag: "{digest.hex()}"' in head
        assert f"repr-digest: sha-256=:{base64.b64encode(digest).decode().lower()}:" in head
        assert "content-disposition: attachment; filename=" in head
        assert "x-content-type-options: nosniff" in head
        head, body = request("Range: bytes=2-8")
        assert head.startswith("http/1.1 206")
        assert (body, f"content-range: bytes 2-8/{len(EVIL)}" in head) == (EVIL[2:9], True)
        assert request(f"Range: bytes={len(EVIL)}-")[0].startswith("http/1.1 416")
        assert request(f'If-None-Match: "{digest.hex()}"')[0].startswith("http/1.1 304")
        head, body = request(method="HEAD")
        assert (head.startswith("http/1.1 200"), f"content-length: {len(EVIL)}" in head, body) == (
            True,
            True,
            b"",
        )


def test_without_a_good_token_there_is_nothing(full):
    expired = token(full, "--expires", "1s")
    metrics = token(full, "--scope", "metrics")
    time.sleep(1.1)
    with serving(full) as (port, _):
        for secret in ("", "lcc_" + "x" * 32, expired):
            status, headers, body = ask(port, "/v1/changes", secret)
            assert (status, headers["www-authenticate"][:6], SITE.encode() in body) == (401, "Bearer", False)
        assert ask(port, "/v1/changes", metrics)[0] == 403
        status, _, body = ask(port, "/metrics", metrics)
        assert status == 200
        assert re.search(rb"^lcc_documents 2\.0$", body, re.MULTILINE)
        assert re.search(rb'^lcc_fetches_total\{[^}]*outcome="stored"[^}]*\} 2\.0$', body, re.MULTILINE)
        assert re.search(rb"^lcc_spool_sets 0\.0$", body, re.MULTILINE)
        assert ask(port, "/healthz", "")[::2] == (200, b"ok\n")


def test_metrics_tell_how_far_a_named_cursor_is_behind(full):
    secret, metrics = token(full), token(full, "--scope", "metrics")

    def lags(port):
        text = ask(port, "/metrics", metrics)[2].decode()
        return [
            float(
                re.search(rf'^lcc_cursor_lag_{what}\{{[^}}]*name="main"[^}}]*\}} (\S+)$', text, re.MULTILINE)[
                    1
                ]
            )
            for what in ("changes", "seconds")
        ]

    with serving(full) as (port, _):
        told = json.loads(ask(port, "/v1/changes?name=main", secret)[2])
        changes, seconds = lags(port)
        assert changes == 2
        assert 0 <= seconds < 120
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        body = json.dumps({"cursor": told["cursor"]})
        shown = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        connection.request("PUT", "/v1/cursors/main", body, shown)
        assert connection.getresponse().status == 200
        connection.close()
        assert lags(port) == [0, 0]


# --- several machines -----------------------------------------------------------------------------


@pytest.fixture
def two(tmp_path, databases):
    """One LCC on MariaDB with two machines: the document ``other`` lies on the second one."""
    url = databases.empty("mariadb")
    first, second = House(tmp_path / "first", url), House(tmp_path / "second", url)
    for house, options in ((first, ()), (second, ("--machine",))):
        house.folder.mkdir()
        house.lcc("init", *options)
    first.add()
    first.push("page", "other")
    first.fetch()
    store = first.store()
    with store.engine.begin() as connection:
        fileid = connection.exec_driver_sql(
            f"select fetched_fileid from lccurl where curl = '{SITE}other'"
        ).scalar_one()
        connection.exec_driver_sql(f"update lccurl set fetched_machineid = 2 where curl = '{SITE}other'")
    store.close()
    here, there = (
        first.data / "content" / relative_path(1, fileid),
        second.data / "content" / relative_path(2, fileid),
    )
    there.parent.mkdir(parents=True)
    here.rename(there)
    return first, second


def test_a_user_of_two_machines_sees_one_lcc(two):
    first, second = two
    secret = token(first)
    (first.folder / "token").write_text(token(first, "--scope", "files") + "\n")
    there = free_port()
    found_at = {"LCC_FILES_ENDPOINT": f"127.0.0.1:{there}", "LCC_FILES_ADDRESS": f"http://127.0.0.1:{there}"}
    with serving(second, "files", **found_at):
        others = {"LCC_FILES_TOKEN_FILE": str(first.folder / "token")}
        with serving(first, **others) as (port, _):
            told = rows(port, secret)
            assert {row["fetched_machineid"] for row in told} == {1, 2}
            for row in told:
                status, headers, body = ask(port, row["path"], secret)
                assert (status, body) == (200, row["curl"].encode())
                assert headers["etag"] == f'"{sha256(body).hexdigest()}"'
                assert ask(port, row["path"], secret, Range="bytes=5-9")[2] == body[5:10]
            status, _, archive = ask(port, "/v1/export?format=tar.gz", secret)
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                assert len(tar.getnames()) == 3
        first.settings.update(others)
        first.lcc("export", "--format", "zip", "-o", "all.zip")


def test_files_are_served_without_the_packages_of_the_http_api():
    said = (
        "import sys; import lcc_scrapy.web.files, lcc_scrapy.web.server;"
        " print({'fastapi', 'starlette', 'pydantic', 'anyio'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", said], text=True, timeout=300) == "set()\n"


def test_files_are_for_machines_with_a_token_only(two):
    first, second = two
    reader, machine = token(first), token(first, "--scope", "files")
    with serving(second, "files") as (port, _):
        fileid = rows_of(first.lcc("select", "--format", "jsonl"))[1]["fetched_fileid"]
        path = f"/v1/files/2/{fileid}"
        assert ask(port, path, machine)[::2] == (200, (SITE + "other").encode())
        assert ask(port, path, "")[0] == 401
        assert ask(port, path, reader)[0] == 403
        assert ask(port, path, "lcc_wrong")[0] == 401
        for odd in (
            "/v1/files/2/999",
            "/v1/files/2/..%2f..%2flcc.json",
            "/v1/files/2/0",
            "/v1/files/tmp/1",
            "/v1/files/2/-1",
            "/",
        ):
            assert ask(port, odd, machine)[0] in {404, 422}


def test_a_machine_that_does_not_answer_is_503_and_not_for_ever(two):
    first, _ = two
    secret = token(first)
    (first.folder / "token").write_text("lcc_" + "x" * 32)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = closed.getsockname()[1]
    others = {
        "LCC_FILES_MACHINES": f"2=http://127.0.0.1:{nobody}",
        "LCC_FILES_TOKEN_FILE": str(first.folder / "token"),
    }
    with serving(first, **others) as (port, _):
        for row in rows(port, secret):
            status, _, body = ask(port, row["path"], secret)
            assert status == (503 if row["fetched_machineid"] == 2 else 200)
            assert str(nobody).encode() not in body


# --- starting and stopping ------------------------------------------------------------------------


def test_who_waits_is_answered_when_the_server_stops(full):
    secret = token(full)
    answers = []
    with serving(full) as (port, process):
        cursor = json.loads(ask(port, "/v1/changes", secret)[2])["cursor"]
        asked = threading.Thread(
            target=lambda: answers.append(ask(port, f"/v1/changes?wait=60&since={cursor}", secret))
        )
        asked.start()
        time.sleep(1)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
        assert time.monotonic() - begun < 50, "not at the end of the wait"
        asked.join()
    assert answers[0][0] == 200


def test_what_hangs_does_not_keep_the_server_from_stopping(full):
    secret = token(full)
    (fileid, *_) = [row["fetched_fileid"] for row in rows_of(full.lcc("select", "--format", "jsonl"))]
    hanging = full.data / "content" / relative_path(1, fileid)
    hanging.unlink()
    os.mkfifo(hanging)
    with serving(full, LCC_STOP_TIMEOUT="1s") as (port, process):
        (path,) = [row["path"] for row in rows(port, secret) if row["fetched_fileid"] == fileid]
        with socket.create_connection(("127.0.0.1", port)) as wire:
            wire.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n\r\n".encode())
            time.sleep(1)
            begun = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.wait(300) == 0
        assert time.monotonic() - begun < 200


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"LCC_WEB_ENDPOINT": "0.0.0.0:0"}, "beyond loopback"),
        ({"LCC_FILES_MACHINES": "2=http://x", "LCC_FILES_TOKEN_FILE": "nowhere"}, "LCC_FILES_TOKEN_FILE"),
        ({"LCC_WEB_ENDPOINT": "127.0.0.1:0", "LCC_HTTP_CERTIFICATE": "nowhere"}, "LCC_HTTP_CERTIFICATE"),
    ],
)
def test_what_can_never_work_is_refused_with_one_line(house, settings, said):
    done = house.run("web", **settings)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_is_told(house):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = house.run("web", LCC_WEB_ENDPOINT=f"127.0.0.1:{taken.getsockname()[1]}")
    assert (done.returncode, "cannot listen on 127.0.0.1" in done.stderr) == (2, True)


def test_a_certificate_is_renewed_while_it_runs(full):
    secret = token(full)
    authorities = [certificates.Authority("old"), certificates.Authority("new")]
    folder = authorities[0].issue("localhost").write(full.folder / "tls")
    settings = {"LCC_HTTP_CERTIFICATE": str(folder / "cert.pem"), "LCC_HTTP_KEY": str(folder / "key.pem")}
    old, new = [ssl.create_default_context(cadata=one.pem.decode()) for one in authorities]
    with serving(full, **settings) as (port, process):
        assert ask(port, "/v1/changes", secret, tls=old)[0] == 200
        authorities[1].issue("localhost").write(folder)
        process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 240
        while True:
            try:
                assert ask(port, "/v1/changes", secret, tls=new)[0] == 200
                break
            except ssl.SSLError:
                assert time.monotonic() < end
                time.sleep(0.1)
        (folder / "cert.pem").write_text("no certificate")
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert ask(port, "/v1/changes", secret, tls=new)[0] == 200


def test_a_unix_socket_is_for_its_group(full):
    secret = token(full)
    path = full.folder / "web.sock"
    with subprocess.Popen(
        [sys.executable, "-m", "lcc_scrapy.cli.main", "-s", f"LCC_WEB_ENDPOINT=unix:{path}", "web"],
        env=full.environment, cwd=full.folder,
    ) as process:  # fmt: skip
        end = time.monotonic() + 240
        while not path.exists() or path.stat().st_mode & 0o007:
            assert time.monotonic() < end
            time.sleep(0.05)
        with socket.socket(socket.AF_UNIX) as link:
            while link.connect_ex(str(path)):  # it is bound before it listens
                assert time.monotonic() < end
                time.sleep(0.05)
            link.sendall(
                f"GET /v1/changes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n\r\n".encode()
            )
            assert link.recv(12) == b"HTTP/1.1 200"
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0


# --- clients that are slow, deaf or wrong ---------------------------------------------------------


def assert_cut_while_it_drips(wire):
    wire.settimeout(0.3)
    for _ in range(600):
        try:
            wire.sendall(b"x")
            if not wire.recv(1000):
                return
        except TimeoutError:
            continue
        except OSError:
            return
    raise AssertionError("it was listened to for 180 s")


def test_clients_that_say_nothing_or_hear_nothing_are_cut(house):
    house.push("large")
    house.fetch(body=b"x" * 50_000_000)
    secret = token(house)
    with serving(house, LCC_HTTP_SILENCE="1s") as (port, _):
        path = rows(port, secret)[0]["path"]
        with socket.create_connection(("127.0.0.1", port), timeout=300) as silent:
            assert silent.recv(1) == b""
        with socket.create_connection(("127.0.0.1", port), timeout=300) as slow:
            slow.sendall(b"GET /healthz HTTP/1.1\r\nHost:")
            assert slow.recv(1) == b""
        with socket.create_connection(("127.0.0.1", port), timeout=300) as drips:
            drips.sendall(b"PUT /v1/cursors/x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
            assert_cut_while_it_drips(drips)
        with socket.create_connection(("127.0.0.1", port), timeout=300) as deaf:
            deaf.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n\r\n".encode())
            time.sleep(3)
            got = 0
            try:
                while block := deaf.recv(1 << 20):
                    got += len(block)
            except ConnectionResetError:
                pass
            assert got < 50_000_000
        assert ask(port, path, secret)[0] == 200


@pytest.mark.parametrize(
    "request_",
    [
        b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000,
        b"PUT /v1/cursors/x HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    ],
)  # fmt: skip
def test_what_is_no_http_is_refused(served, request_):
    port, _ = served
    assert raw(port, request_).startswith((b"HTTP/1.1 4", b"HTTP/1.1 5"))
    assert ask(port, "/healthz", "")[0] == 200


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server with a document that nobody changes, and a token for it."""
    made = House(tmp_path_factory.mktemp("served"))
    made.lcc("init")
    made.add()
    made.push("page")
    made.fetch(body=EVIL)
    secret = token(made, "--scope", "read", "--scope", "metrics", "--scope", "annotate")
    with serving(made) as (port, _):
        yield port, secret


# --- programs that users have ---------------------------------------------------------------------


CONFIGURATION = """
[parameters]
"path.docid" = "{docid}"
"query.wait" = 0

[checks.positive_data_acceptance]
# conditions may not hold: 412 and 416 are right answers
expected-statuses = ["2XX", "3XX", 404, 409, 412, 416, 503]

[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 410, 412, 415, 416, 422, 428, 429, "5XX"]
"""


HOOKS = """
import schemathesis

CURSOR = "{cursor}"
URD = {{
    "uri": "http://www.example.org/", "timing": 60000, "method": "pull", "processtype": "filter", "rule": "",
    "depth": 0, "urgency": 1, "threshold": 1, "expires": None, "keywords": [{{"key": "ibm"}}],
}}
CONFIRMED = "{confirmed}"
NOT_ALWAYS = ("address", "new_secret")


@schemathesis.hook
def filter_case(context, case):
    \"\"\"A head has 16 KiB, which is told in words only: a hundred filters of 2,048 characters are more.\"\"\"
    return len(repr(case.query)) + len(repr(case.headers)) < 4000


@schemathesis.hook
def before_call(context, case, kwargs):
    \"\"\"What is good but for its cursors or its URD gets good ones: no schema can say how to make them.\"\"\"
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    case.headers.pop("last-event-id", None)
    if "since" in case.query or "name" in case.query:  # filters are to be those of the cursor
        kept = ("limit", "format", "wait", "name", "since")
        case.query = {{name: case.query[name] for name in kept if name in case.query}}
    if "since" in case.query:
        case.query["since"] = CONFIRMED if case.path == "/v1/confirmations" else CURSOR
    if isinstance(case.body, dict) and "cursor" in case.body:
        case.body["cursor"] = CURSOR
    if isinstance(case.body, dict) and "uri" in case.body:  # nor what a URL, a word and a rule may be
        case.body.update(URD)
    if isinstance(case.body, dict) and "channel" in case.body:  # nor what an address may be
        case.body.update({{"channel": "mail", "address": "a@example.org"}})
    elif isinstance(case.body, dict):
        case.body = {{name: value for name, value in case.body.items() if name not in NOT_ALWAYS}}
"""


def test_schemathesis_finds_nothing(served, tmp_path):
    port, secret = served
    docid = rows(port, secret)[0]["docid"]
    cursor = json.loads(ask(port, "/v1/changes", secret)[2])["cursor"]
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION.format(docid=docid))
    confirmed = json.loads(ask(port, "/v1/confirmations", secret)[2])["cursor"]
    (tmp_path / "hooks.py").write_text(HOOKS.format(cursor=cursor, confirmed=confirmed))
    how = (
        ["--max-examples", "500"]
        if LONG
        else ["--max-examples", "10", "--phases", "examples,fuzzing", "--seed", "1"]
    )
    done = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "run", f"http://127.0.0.1:{port}/openapi.json",
            "-H", f"Authorization: Bearer {secret}", "--request-timeout", "100", "--no-color", *how,
        ],
        cwd=tmp_path, env={**os.environ, "SCHEMATHESIS_HOOKS": "hooks"}, capture_output=True, text=True,
        timeout=3000, check=False,
    )  # fmt: skip
    print(done.stdout[-1500:])
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert re.search(r"Selected: (\d+)/\1\n +Tested: \1\n", done.stdout), done.stdout[-1500:]


@pytest.fixture(scope="module")
def generated(served, tmp_path_factory):
    """A client that was made of the description."""
    port, _ = served
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_bytes(ask(port, "/openapi.json", "")[2])
    (folder / "client.json").write_text('{"content_type_overrides": {"application/atom+xml": "text/xml"}}')
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"  # it wants ruff there
    done = subprocess.run(
        [
            sys.executable, "-m", "openapi_python_client", "generate", "--path", "openapi.json",
            "--meta", "none", "--output-path", "made_client", "--fail-on-warning", "--config", "client.json",
        ],
        cwd=folder, env={**os.environ, "NO_COLOR": "1", "PATH": path}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, "WARNING" in done.stdout) == (0, False), done.stdout + done.stderr
    return folder


USES = """
import sys
from made_client import AuthenticatedClient
from made_client.api.documents import content_v1_documents_docid_content_get as content
from made_client.api.feed import changes_v1_changes_get as changes, events_v1_events_get as events
from made_client.api.feed import export_v1_export_get as export, ids_v1_ids_get as ids
from made_client.models import ExportV1ExportGetFormat

with AuthenticatedClient(sys.argv[1], token=sys.argv[2]) as client:
    (row,) = changes.sync(client=client).changes
    assert row.file_encoding in {None, "gzip"}, row
    assert content.sync(row.docid, client=client).payload.read() == sys.argv[3].encode()
    assert row.docid.encode() in ids.sync(client=client).payload.read()
    assert export.sync(client=client, format_=ExportV1ExportGetFormat.ZIP).payload.read().startswith(b"PK")
    assert row.docid in events.sync(client=client, wait=0)
"""


@pytest.mark.slow
def test_a_client_that_is_made_of_the_description_has_contents_as_bytes(served, generated):
    port, secret = served
    words = [f"http://127.0.0.1:{port}", secret, EVIL.decode()]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", USES, *words], cwd=generated, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_browser_downloads_foreign_html_and_never_renders_it(served, tmp_path):
    if CHROMIUM is None:
        missing("chromium", "apt-get install chromium fonts-dejavu-core")
    with ThreadPoolExecutor(1) as apart:  # playwright wants a thread without an event loop
        apart.submit(_browse, *served, tmp_path / "kept").result()


def _browse(port, secret, kept):
    from playwright.sync_api import Error, sync_playwright

    address = f"http://127.0.0.1:{port}"
    path = rows(port, secret)[0]["path"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
            timeout=PATIENCE * 1000,
        )
        page = browser.new_context(extra_http_headers={"Authorization": f"Bearer {secret}"}).new_page()
        page.set_default_timeout(PATIENCE * 1000)
        with page.expect_download() as coming, pytest.raises(Error):
            page.goto(address + path)
        coming.value.save_as(kept)
        assert kept.read_bytes() == EVIL
        assert re.fullmatch(r"[0-9a-f]{32}\.html", coming.value.suggested_filename)
        assert page.title() != "ran"
        page.goto(f"{address}/docs")
        assert "/v1/changes" in page.inner_text("body")
        page.goto("about:blank")
        page.set_content(f"<iframe src='{address}{path}'></iframe><object data='{address}{path}'></object>")
        page.wait_for_timeout(500)
        assert not any("rendered" in frame.content() for frame in page.frames)
        browser.close()


@pytest.mark.slow
def test_a_stream_of_events_is_over_when_its_client_is_gone(full):
    secret = token(full)
    request = f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n\r\n".encode()
    with serving(full, LCC_WEB_SHARE_STREAMS="1") as (port, _):
        with socket.create_connection(("127.0.0.1", port), timeout=300) as link:
            link.sendall(request)
            data = b""
            while b"other" not in data:
                data += link.recv(65536)
            assert ask(port, "/v1/events?wait=0", secret)[0] == 429
        wait_for(lambda: ask(port, "/v1/events?wait=0", secret)[0] == 200, what="the end of the stream")


PAGE = """<!doctype html><title>changes</title><script>
window.told = []; window.opened = 0;
const source = new EventSource("/v1/events?mimetype=text/html&wait=1");  // then it connects again
source.onopen = () => { window.opened += 1; };
source.onmessage = event => window.told.push([JSON.parse(event.data).curl, event.lastEventId]);
</script>"""


@pytest.mark.slow
def test_a_browser_and_a_program_are_told_of_changes_and_go_on_where_they_were_cut(house, tmp_path):
    if CHROMIUM is None:
        missing("chromium", "apt-get install chromium fonts-dejavu-core")
    house.push("one")
    house.fetch()
    secret = token(house)
    with serving(house) as (port, _), ThreadPoolExecutor(1) as apart:
        apart.submit(_be_told, house, port, secret).result()


def _be_told(house, port, secret):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
            timeout=PATIENCE * 1000,
        )
        page = browser.new_context(extra_http_headers={"Authorization": f"Bearer {secret}"}).new_page()
        page.set_default_timeout(PATIENCE * 1000)
        address = f"http://127.0.0.1:{port}"
        page.route(f"{address}/page", lambda route: route.fulfill(content_type="text/html", body=PAGE))
        page.goto(f"{address}/page")
        page.wait_for_function("window.told.length == 1")
        page.wait_for_function("window.opened > 1")
        house.push("two")
        house.fetch()
        page.wait_for_function("window.told.length >= 2")
        told = page.evaluate("window.told")
        browser.close()
    assert [curl for curl, _ in told] == [SITE + "one", SITE + "two"]
    assert [name for name, _ in events_of(port, secret, told[0][1])] == [SITE + "two"]
    assert events_of(port, secret, told[1][1]) == []


def events_of(port, secret, last):
    """Be a program: return name and id of each event after the one that came last, until the stream ends."""
    _, headers, body = ask(port, "/v1/events?wait=0&mimetype=text/html", secret, Last_Event_ID=last)
    assert headers["content-type"].startswith("text/event-stream")
    told = []
    for line in body.decode().splitlines():
        name, _, value = line.partition(": ")
        last = value if name == "id" else last
        told += [(json.loads(value)["curl"], last)] if name == "data" else []
    return told


@pytest.mark.parametrize("command", ["web", "files"])
def test_systemd_hears_that_it_is_ready_that_its_loop_goes_on_and_that_it_ends(house, tmp_path, command):
    told = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
        wire.bind(str(tmp_path / "notify"))
        wire.settimeout(PATIENCE)
        watched = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "1000000"}
        with serving(house, command, **watched):
            while told.count("WATCHDOG=1") < 3:
                told.append(wire.recv(4096).decode())
        wire.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                told.append(wire.recv(4096).decode())
    assert (told[0], told.count("READY=1"), told.count("STOPPING=1")) == ("READY=1", 1, 1)
