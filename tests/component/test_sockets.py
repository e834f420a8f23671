"""TCP_NODELAY is set on every connection: a small write must not wait for the acknowledgement of the one before."""

import asyncio
import json
import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol

import lcc_scrapy
from lcc_scrapy.apps.query import client as query_client
from lcc_scrapy.domain.http_serving import Endpoint
from lcc_scrapy.http import outgoing
from lcc_scrapy.http.request import Origin, Request
from lcc_scrapy.listeners.endpoints import Listeners
from lcc_scrapy.listeners.socket_handover import KEPT
from lcc_scrapy.push import client
from lcc_scrapy.web import server as web_server
from lcc_scrapy.wire.sockets import send_at_once

OPENS = re.compile(
    r"create_server\(|create_connection\(\(|serverFromString\(|socket_factory=|\.connect\(place\)"
)


def sends_at_once(one):
    return one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def test_every_module_that_listens_or_connects_sends_at_once():
    package = Path(lcc_scrapy.__file__).parent
    texts = {path: path.read_text() for path in package.rglob("*.py")}
    opening = {path for path, text in texts.items() if OPENS.search(text)}
    assert len(opening) >= 5
    assert [path.name for path in opening if "send_at_once(" not in texts[path]] == []


def test_a_socket_that_is_no_tcp_is_left_alone():
    with socket.socket(socket.AF_UNIX) as local, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        send_at_once(local)
        send_at_once(datagrams)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_what_the_http_server_accepts_sends_at_once(host):
    with web_server._listening(Endpoint(host, 0)) as listener:
        there = socket.create_connection(listener.getsockname()[:2])
        here, _ = listener.accept()
        with there, here:
            assert sends_at_once(here)


def test_what_providers_and_content_users_connect_sends_at_once(server):
    host, port = server.getsockname()
    with query_client.connect(f"{host}:{port}") as wire:
        assert sends_at_once(wire)
    with closing(client.connect(client.Address(host, port), timeout=5.0)._link.socket) as wire:
        assert sends_at_once(wire)


class Arrivals(Factory):
    """Tells whether the first connection sends at once."""

    noisy = False

    def __init__(self):
        self.told = Deferred()

    def buildProtocol(self, addr):
        made = Protocol()
        made.connectionMade = lambda: self.told.callback(made.transport.getTcpNoDelay())
        return made


class NoGatehouse:
    def close(self):
        pass


@pytest.mark.parametrize("kept", [False, True], ids=["opened", "kept by a supervisor"])
@pytest_twisted.inlineCallbacks
def test_what_uns_and_query_socket_accept_sends_at_once(server, monkeypatch, kept):
    from twisted.internet import reactor

    endpoint = "tcp:0:interface=127.0.0.1"
    if kept:
        server.setblocking(False)
        monkeypatch.setenv(KEPT, json.dumps({endpoint: os.dup(server.fileno())}))
    arrivals = Arrivals()
    listeners_ = Listeners(reactor, "uns", arrivals, NoGatehouse())
    (address,) = yield listeners_.open([endpoint], "")
    with socket.create_connection((address.host, address.port)):
        assert (yield arrivals.told)
    yield listeners_.close()


def test_what_fetches_connect_sends_at_once(server, monkeypatch):
    made = []
    make = outgoing._made
    monkeypatch.setattr(outgoing, "_made", lambda *how: made.append(make(*how)) or made[-1])
    host, port = server.getsockname()

    async def connect():
        out = outgoing.Outgoing(1, outgoing.tls_context())
        asking = asyncio.create_task(
            out.pool(private=True).ask(Request(Origin(host, port), "/", []), patience=60, deadline=60)
        )
        there, _ = await asyncio.to_thread(server.accept)
        there.close()
        (one,) = made
        at_once = sends_at_once(one)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await out.close()
        return at_once

    with ThreadPoolExecutor(1) as apart:  # where no loop runs
        assert apart.submit(lambda: asyncio.run(connect())).result()
