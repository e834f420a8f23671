"""Who is not the host of a webhook of alarms learns nothing, and the operator is told why."""

import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lcc_scrapy.apps.alarms.rules import Notice, Rule
from lcc_scrapy.apps.alarms.webhooks import NotTold, WebhookChannel
from tests.certificates import DAY, NOW, Authority

BEGUN = Notice(Rule.HELD, on=True, at=1_800_000_000, text="3 removals are held", name="held-1")
OURS, THEIRS = Authority(), Authority()


class Hook:
    """A webhook with a certificate; ``heads`` are what it was sent."""

    def __init__(self, certified, folder):
        self.heads = heads = []

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self):
                heads.append(dict(self.headers))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        where = certified.write(folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(where / "cert.pem", where / "key.pem")
        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)

    def tell(self):
        """Tell it as `lcc alarms` does, in a thread: in this one a reactor runs."""
        url = f"https://localhost:{self.server.server_port}/send?access_token=secret"
        serving = threading.Thread(target=self._serve)
        serving.start()
        try:
            with ThreadPoolExecutor(1) as apart:
                apart.submit(WebhookChannel("matrix", url, "agent").tell, BEGUN).result()
        finally:
            serving.join(60)
            self.server.server_close()

    def _serve(self):
        self.server.timeout = 30
        with suppress(OSError):
            self.server.handle_request()


@pytest.fixture(autouse=True)
def _trusting(tmp_path, monkeypatch):
    (tmp_path / "ca.pem").write_bytes(OURS.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))


def test_the_hook_itself_is_good(tmp_path):
    hook = Hook(OURS.issue("localhost"), tmp_path / "hook")
    hook.tell()
    assert [one["Authorization"] for one in hook.heads] == ["Bearer secret"]


@pytest.mark.parametrize(
    "certified",
    [
        OURS.issue("evil.example"),
        OURS.issue("*"),
        OURS.issue("localhost", begins=NOW - 2 * DAY, ends=NOW - DAY),
        OURS.issue("localhost", begins=NOW + DAY, ends=NOW + 2 * DAY),
        THEIRS.issue("localhost"),
    ],
    ids=["another host", "all hosts", "expired", "not yet", "another authority of that name"],
)
def test_a_hook_without_a_certificate_for_its_host_gets_no_byte_of_the_token(certified, tmp_path):
    hook = Hook(certified, tmp_path / "hook")
    with pytest.raises(NotTold, match=r"^TLS failure: CERTIFICATE_VERIFY_FAILED$"):
        hook.tell()
    assert hook.heads == []
