"""An LCC's push endpoint in miniature: checks the password, keeps what it is told, answers in real protocol XML."""

import base64
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from xml.sax.saxutils import unescape

from lcc_scrapy.wire import writing
from lcc_scrapy.wire.messages import InitAccepted, Quota, SetAccepted, UrlError

Answer = tuple[int, dict[str, str], bytes]


@dataclass
class HttpLcc:
    """``likes``: beginnings of the URLs that it takes; ``held``: what it was told, by absolute URL."""

    password: str = "s3cret"
    likes: tuple[str, ...] = ("",)
    revision: str = "1"
    held: dict[str, dict[str, str]] = field(default_factory=dict)
    sets: list[list[str]] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    seq: int = 0
    wanted: bool = False
    errors: list[UrlError] = field(default_factory=list)
    """What the next login reports, and then no more."""
    before: Callable[["HttpLcc", Any], Answer | None] = lambda _lcc, _handler: None
    """Gets each request first; what it returns is the answer."""
    routes: dict[tuple[str, str], Callable[[Any, bytes], Answer]] = field(default_factory=dict)

    def __enter__(self):
        lcc = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def serve(self):
                lcc.answer(self)

            do_GET = do_POST = serve  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join(60)
        self._server.server_close()

    def wrap(self, context) -> None:
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = self.url.replace("http://", "https://")

    # --- requests ------------------------------------------------------------------------------

    def answer(self, handler) -> None:
        self.requests.append((handler.command, handler.path))
        made = self.before(self, handler)
        if made is None:
            body = read_body(handler)
            made = self.routes.get((handler.command, handler.path), self._push)(handler, body)
        status, headers, data = made
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        if status != 304:
            handler.send_header("Content-Length", str(len(data)))
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(data)
        handler.close_connection = True

    def is_known(self, handler, pid: str = "7", password: str | None = None) -> bool:
        pair = base64.b64encode(f"{pid}:{password or self.password}".encode()).decode()
        return handler.headers["Authorization"] == f"Basic {pair}"

    def _push(self, handler, body: bytes) -> Answer:
        if (handler.command, handler.path) != ("POST", "/v1/push"):
            return problem(404, "nothing here")
        if not self.is_known(handler):
            return problem(401, "unknown provider or wrong password")
        self.seq += 1
        quota = replace(Quota(), fullset_wanted=self.wanted, fullset_reason="lost" if self.wanted else "")
        told, self.errors = tuple(self.errors), []
        said = writing.init_accepted(
            InitAccepted(self.seq, "127.0.0.1", ("text/*",), quota, len(told), 0, told, "one", self.revision)
        )
        return 200, {"Content-Type": "application/xml"}, said + (self._take(body) if body else b"")

    def _take(self, body: bytes) -> bytes:
        assert body.endswith(b"</lococa:set>\n"), body[-100:]
        tag = dict(re.findall(r'([\w]+)="([^"]*)"', re.search(rb"<lococa:set ([^>]*)>", body)[1].decode()))
        errors, named = [], []
        urls = [
            {name: unescape(value) for name, value in re.findall(r'(\w+)="([^"]*)"', item)}
            for item in re.findall(r"<url ([^>]*)/>", body.decode())
        ]
        dry = tag.get("dryrun") == "yes"
        held = {} if tag["set"] == "full" else dict(self.held)
        for url in urls:
            curl = url["curl"] if "://" in url["curl"] else tag.get("urlprefix", "") + url["curl"]
            named.append(("-" if url.get("op") == "remove" else "") + url["curl"])
            if url.get("op") == "remove":
                held.pop(curl, None)
            elif curl.startswith(self.likes):
                held[curl] = url
            else:
                errors.append(UrlError(704, "URL outside the provider's roots", curl, url))
        if not dry:
            self.held = held
            self.sets.append(named)
        verdict = SetAccepted(len(urls) - len(errors), 0 if dry else None)
        parts = [writing.set_result_start(), *map(writing.url_error, errors), writing.set_result_end(verdict)]
        return b"".join(parts)


def problem(status: int, detail: str, **headers: str) -> Answer:
    body = json.dumps({"type": "about:blank", "status": status, "detail": detail}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, {"Content-Type": "application/problem+json", **named}, body


def read_body(handler) -> bytes:
    if handler.headers.get("Transfer-Encoding") == "chunked":
        found = b""
        while size := int(handler.rfile.readline(), 16):
            found += handler.rfile.read(size)
            handler.rfile.readline()
        handler.rfile.readline()
        return found
    return handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
