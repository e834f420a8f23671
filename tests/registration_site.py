"""A site that shows files, redirects, echoes or goes on for ever; and an application that registers it."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fastapi import FastAPI
from starlette.testclient import TestClient

from lcc_scrapy.apps.registration.hints import Places
from lcc_scrapy.apps.registration.routes import make_router
from lcc_scrapy.apps.registration.rules import FILE
from lcc_scrapy.apps.registration.service import Registrations
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.apps.registration.steps import Steps
from lcc_scrapy.apps.registration.store import rows_in
from lcc_scrapy.domain.throttling import Rate
from lcc_scrapy.web import problems
from tests.sqlite_store import sqlite_store

OFTEN = Rate(10_000, 1.0)
NOW = 1_800_000_000


class LittleSite:
    """Answers by path: bytes, or a function of the request's handler."""

    def __init__(self):
        self.files = {}
        self.asked = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/"

    def put(self, secret, folder="/"):
        self.files[folder + FILE] = f"{secret}\n".encode()

    def _handler(self):
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                site.asked.append((self.path, dict(self.headers)))
                found = site.files.get(self.path, site.files.get("*"))
                if callable(found):
                    found(self)
                elif found is None:
                    answer(self, b"no", 404)
                else:
                    answer(self, found)

            def log_message(self, *_):
                pass

        return Handler


def answer(handler, body, status=200, **headers):
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def redirect(to, status=302):
    return lambda handler: answer(handler, b"", status, Location=to)


@contextmanager
def little_site():
    made = LittleSite()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
        thread.join(60)


class Outbox:
    """A mailer that keeps what it sends."""

    def __init__(self):
        self.sent = []
        self.trouble = None

    def send(self, to, subject, text, headers=None):
        if self.trouble:
            raise self.trouble
        self.sent.append((to, subject, text))


class Registry:
    """Registration on a store of its own, and an application that serves it."""

    def __init__(self, *ports, store=None, mailer=None, proxies=(), push_url="", **rules):
        self.now, self.clock = NOW, 0.0
        self.store = store or sqlite_store()
        given = {"mode": "open", "private": True, "ports": frozenset({80, 443, *ports})}
        given |= {"per_address": OFTEN, "per_host": OFTEN, "proofs": OFTEN}
        self.rules = RegistrationRules(**{**given, **rules})
        self.registrations = Registrations(self.store, self.rules, fullsets=10, now=lambda: self.now)
        self.steps = Steps(
            self.registrations,
            slots=168,
            places=Places(push_url, self.rules.uns),
            mailer=mailer,
            clock=lambda: self.clock,
        )
        router = make_router(self.steps, proxies)
        self.app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
        self.app.include_router(router)
        problems.install(self.app, [router])

    @contextmanager
    def client(self, address="192.0.2.1"):
        with TestClient(self.app, client=(address, 50_000), base_url="http://lcc.example.org") as client:
            yield client

    def provider(self, pid):
        with self.store.read() as tx:
            return tx.provider(pid)

    def roots(self, pid):
        with self.store.read() as tx:
            return tx.roots(pid)

    def rows(self):
        with self.store.read() as tx:
            return rows_in(tx).registrations()
