"""A hub of WebSub, as small as one can be that does all a subscriber can be shown."""

import hmac
import threading
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


class Hub:
    """Notes what it is asked for; it verifies intents and sends content when a test says so.

    ``moved`` maps paths to (status, Location).
    """

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.moved: dict[str, tuple[int, str]] = {}
        self.status = 202

    def __enter__(self) -> Self:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                hub.paths.append(self.path)
                status, location = hub.moved.get(self.path, (hub.status, ""))
                if not location:
                    hub.asked.append(dict(urllib.parse.parse_qsl(body)))
                self.send_response(status)
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hub"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(300)

    @property
    def last(self) -> dict[str, str]:
        return self.asked[-1]

    def verify(self, **changed: str) -> tuple[int, str]:
        """Verify the last intent; ``mode``, ``topic``, ``challenge`` … may be told otherwise."""
        said = {"mode": self.last["hub.mode"], "topic": self.last["hub.topic"], "challenge": "prove it",
                "lease_seconds": "3600"} | changed  # fmt: skip
        query = urllib.parse.urlencode({f"hub.{name}": value for name, value in said.items()})
        return ask(f"{self.last['hub.callback']}?{query}")

    def send(self, body: str, secret: str | None = None, method: str = "sha256", header: str = "") -> int:
        """Distribute content, signed with the secret that the subscriber gave, or another one."""
        secret = self.last["hub.secret"] if secret is None else secret
        signed = hmac.new(secret.encode(), body.encode(), method).hexdigest()
        name = header or "X-Hub-Signature"
        headers = {name: f"{method}={signed}", "Content-Type": "application/atom+xml"} if secret else {}
        return ask(self.last["hub.callback"], body.encode(), headers)[0]


def ask(url: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> tuple[int, str]:
    request = urllib.request.Request(url, body, headers or {})
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
