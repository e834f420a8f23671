"""Name servers and proxies that answer more than anybody needs."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lcc_scrapy.http import outgoing
from lcc_scrapy.http.outgoing import NoConnection, NotPublic, Outgoing, refused_by_proxy, tls_context
from lcc_scrapy.http.request import Origin, Request
from tests.ports import free_port

THOUSANDS = 4000


def address(number: int) -> str:
    return f"127.{1 + number // 200}.{number % 200}.1"


def asked(monkeypatch: pytest.MonkeyPatch, addresses: list[tuple[int, str]]) -> list[str]:
    """Ask a host with these addresses, none of which listens; return those that were tried."""
    tried: list[str] = []

    class Noting(socket.socket):
        def connect(self, where: Any) -> None:
            tried.append(where[0])
            raise ConnectionRefusedError

    def named(_: str, port: int, *__: Any) -> list[Any]:
        return [(family, socket.SOCK_STREAM, 6, "", (text, port)) for family, text in addresses]

    async def scenario() -> None:
        made = Outgoing(1, tls_context())
        origin = Origin("many.test", free_port())
        with pytest.raises(NoConnection):
            await made.pool(private=True).ask(Request(origin, "/", []), patience=60, deadline=60)
        known = made._ways[True]._names._known
        assert sum(len(found) for _, found in known.values()) <= 4 * outgoing._ADDRESSES
        await made.close()

    monkeypatch.setattr(outgoing.socket, "getaddrinfo", named)
    monkeypatch.setattr(outgoing, "_made", lambda make, where: Noting(*where[:3]))
    monkeypatch.setattr(asyncio.BaseEventLoop, "sock_connect", _connected, raising=False)
    monkeypatch.setattr("asyncio.selector_events.BaseSelectorEventLoop.sock_connect", _connected)
    in_a_loop(scenario())
    return tried


def in_a_loop(job: Any) -> Any:
    with ThreadPoolExecutor(1) as thread:  # this thread has a loop that runs
        return thread.submit(asyncio.run, asyncio.wait_for(job, 120)).result()


async def _connected(_: Any, made: socket.socket, where: Any) -> None:
    made.connect(where)


def test_a_name_with_thousands_of_addresses_makes_us_try_and_keep_a_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    four = [(socket.AF_INET, address(number)) for number in range(THOUSANDS)]
    tried = asked(monkeypatch, four)
    assert tried == [text for _, text in four[: outgoing._ADDRESSES]]


def test_a_public_address_counts_however_many_private_ones_stand_before_it() -> None:
    private = [(socket.AF_INET, 1, 6, "", (address(number), 80)) for number in range(THOUSANDS)]
    public = (socket.AF_INET, 1, 6, "", ("9.9.9.9", 80))
    six = (socket.AF_INET6, 1, 6, "", ("2001:db8::1", 80, 0, 0))
    found = outgoing._first([*private, public, six])
    assert found == [*private[: outgoing._ADDRESSES], public, six]


@pytest.mark.parametrize("count", [1, 2, 9])
def test_a_host_is_refused_alike_however_many_private_addresses_it_has(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    private = [(socket.AF_INET, 1, 6, "", (address(number), 80)) for number in range(count)]
    monkeypatch.setattr(outgoing.socket, "getaddrinfo", lambda *_: private)

    async def scenario() -> None:
        made = Outgoing(1, tls_context())
        with pytest.raises(NoConnection) as told:
            await made.pool().ask(Request(Origin("many.test", 80), "/", []), patience=60, deadline=60)
        assert isinstance(told.value.cause, NotPublic)
        await made.close()

    in_a_loop(scenario())


def test_what_a_proxy_says_is_short_and_steers_no_terminal() -> None:
    error = refused_by_proxy("403 \x1b[2J\x9b" + "A" * 250_000)
    assert str(error).startswith("the proxy: 403 \\x1b[2J\\x9bAAA")
    assert len(str(error)) < 300
    assert len(str(error.cause)) < 300
