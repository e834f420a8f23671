"""Shares of the HTTP API: one client's requests, streams and exports leave room for those of others.

A client is known by its token and by its address (an IPv6 /64 is one). Programs on this machine have no share
by their address: they may be proxies, which bring everybody's requests.
"""

import time
from asyncio import sleep
from collections.abc import Hashable, Iterator, Sequence
from hashlib import sha256

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lcc_scrapy.domain.http_serving import Bounds
from lcc_scrapy.domain.shares import Kind, Shares, ShareUsedUp, Visit
from lcc_scrapy.listeners.peers import (
    LOCAL,
    Networks,
    is_address,
    is_among,
    is_here,
    neighbourhood,
    plain_address,
)
from lcc_scrapy.web.problems import share_used_up
from lcc_scrapy.web.working import Slots, current

HOPS = 16
"""Proxies between a client and this server; what a longer header says before them is not read."""

READING = frozenset({"GET", "HEAD"})
"""Methods whose requests have no body, and take turns."""

_VISIT = "lcc.visit"
_BEARER = b"bearer "


class ShareOut:
    """Counts each request for its token and its address, as long as it lasts; clients take turns."""

    def __init__(self, app: ASGIApp, bounds: Bounds) -> None:
        self._app = app
        self._bounds = bounds
        self._shares = Shares(bounds.share, time.monotonic)
        self._slots = Slots()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or tell that its client has enough."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        keys = list(_keys(scope, self._bounds.proxies))
        try:
            visit = self._shares.enter(keys)
        except ShareUsedUp as error:
            # One thread serves everybody: refusals without end would keep it from all others.
            await sleep(self._bounds.refusal_delay)
            await share_used_up(error)(scope, receive, send)
            return
        scope[_VISIT] = visit
        try:
            await self._in_turn(keys[:1], scope, receive, send)
        finally:
            visit.leave()

    async def _in_turn(self, whose: list[Hashable], scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request when it is its client's turn; the turn is over when the answer begins."""
        if scope["method"] not in READING:  # a body may come as slowly as its sender likes
            await self._app(scope, receive, send)
            return
        slot = await self._slots.take(tuple(whose))
        current.set(slot)

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                slot.leave()
            await send(message)

        try:
            await self._app(scope, receive, told)
        finally:
            slot.leave()


def visit_of(request: Request) -> Visit:
    """Return what a request counts as."""
    found = request.scope[_VISIT]
    assert isinstance(found, Visit)
    return found


async def streaming(request: Request) -> None:
    """Count a request as a stream: a dependency of routes whose answers are long. Raises ``ShareUsedUp``."""
    visit_of(request).begin(Kind.STREAM)


def _keys(scope: Scope, proxies: Networks) -> Iterator[Hashable]:
    headers = scope["headers"]
    address = address_of(scope, proxies)
    if not is_here(address):
        yield neighbourhood(address)
    for name, value in headers:
        if name == b"authorization" and value[: len(_BEARER)].lower() == _BEARER:
            yield sha256(value[len(_BEARER) :].strip()).digest()
            return


def _forwarded(headers: Sequence[tuple[bytes, bytes]]) -> list[str]:
    told = b",".join(value for name, value in headers if name == b"x-forwarded-for")
    return told.decode("latin-1").split(",") if told else []


def address_of(scope: Scope, proxies: Networks) -> str:
    """Return the address of a request's client."""
    return client_address((scope.get("client") or ("",))[0], _forwarded(scope["headers"]), proxies)


def client_address(peer: str, forwarded: Sequence[str], proxies: Networks) -> str:
    """Return the client's address, traced back through trusted proxies only.

    With any proxies given, who comes over a Unix socket is one too.
    """
    address = plain_address(peer)
    for told in reversed(forwarded[-HOPS:]):
        believed = bool(proxies) if address == LOCAL else is_among(address, proxies)
        before = plain_address(told.strip().strip("[]"))
        if not believed or not is_address(before):
            break
        address = before
    return address
