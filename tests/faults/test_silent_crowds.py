"""Crowds that connect to an HTTP server and say nothing, before TLS or behind it, hold up nobody else.

``LCC_SILENT`` says how many come (600; ``make soak`` takes 3,000).
"""

import asyncio
import os
import resource
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import certificates
import pytest

from lcc_scrapy.domain.http_serving import Endpoint, Service
from lcc_scrapy.web import newcomers
from lcc_scrapy.web.server import Server

SILENT = int(os.environ.get("LCC_SILENT", "600"))


async def app(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def authority() -> certificates.Authority:
    return certificates.Authority("lcc")


def made(tmp_path: Path, authority: certificates.Authority | None) -> tuple[Server, ssl.SSLContext | None]:
    if authority is None:
        return Server(app, Endpoint("127.0.0.1"), service(), lifespan=False), None
    folder = authority.issue("localhost").write(tmp_path / "tls")
    server = Server(app, Endpoint("127.0.0.1"), service(folder), lifespan=False)
    return server, ssl.create_default_context(cadata=authority.pem.decode())


def service(folder: Path | None = None) -> Service:
    names = {} if folder is None else {"certificate": f"{folder}/cert.pem", "key": f"{folder}/key.pem"}
    return Service(connections=300, **names)


def apart(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run in a loop of its own: that of the tests runs already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(work())).result()


async def ask(port: int, tls: ssl.SSLContext | None) -> bytes:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=tls, server_hostname="localhost" if tls else None
    )
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return await reader.read()
    finally:
        writer.transport.abort()


async def crowd(
    server: Server, tls: ssl.SSLContext | None, says: bytes, meanwhile: Callable[[int], Awaitable[None]]
) -> int:
    """Let a crowd come to a server that runs; returns the most newcomers that it had."""
    port = int((await server.begin()).rpartition(":")[2])
    most, writers = 0, []
    try:
        for number in range(SILENT):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(says)
            writers.append(writer)
            if number % 100 == 0:
                await meanwhile(port)
            most = max(most, len(server._newcomers))
        await meanwhile(port)
    finally:
        for writer in writers:
            writer.transport.abort()
        await server.end()
    return most


@pytest.mark.parametrize(
    "says", [b"", b"GET / HT", b"\x16\x03\x01"], ids=["nothing", "half a head", "half a hello"]
)
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_a_silent_crowd_is_kept_small_and_an_honest_client_is_served(
    secure: bool, says: bytes, tmp_path: Path, authority: certificates.Authority
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 3 * SILENT)), hard))
    server, tls = made(tmp_path, authority if secure else None)
    answers: list[bytes] = []

    async def honest(port: int) -> None:
        answers.append(await ask(port, tls))

    async def run() -> int:
        return await crowd(server, tls, says, honest)

    most = apart(run)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert most <= newcomers.MOST
    assert len(answers) > SILENT // 100
    assert all(answer.startswith(b"HTTP/1.1 200") and answer.endswith(b"ok") for answer in answers)


def test_what_is_sent_at_once_behind_the_handshake_is_not_lost(
    tmp_path: Path, authority: certificates.Authority
) -> None:
    server, tls = made(tmp_path, authority)

    async def run() -> list[bytes]:
        port = int((await server.begin()).rpartition(":")[2])
        try:
            return await asyncio.gather(*(ask(port, tls) for _ in range(50)))
        finally:
            await server.end()

    assert all(answer.endswith(b"ok") for answer in apart(run))


def test_a_client_that_has_too_many_connections_is_not_served_however_early_it_asks(
    tmp_path: Path, authority: certificates.Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, tls = made(tmp_path, authority)
    monkeypatch.setattr(server._crowd, "arrive", lambda peer: None)

    async def run() -> list[bytes | BaseException]:
        port = int((await server.begin()).rpartition(":")[2])
        try:
            return await asyncio.gather(*(ask(port, tls) for _ in range(50)), return_exceptions=True)
        finally:
            await server.end()

    assert all(isinstance(answer, OSError) or answer == b"" for answer in apart(run))
    assert server.server_state.total_requests == 0
