"""The way out: the one place where connections to hosts that somebody else named are made.

Whoever fetches takes a session from here, and nothing else in this package makes one (the linter holds
it). What such a session may reach is decided by its sockets, when they connect: after DNS, for every
address that is tried, whichever URL, redirect or resolver it came from.
"""

import asyncio
import errno
import socket
import ssl
import threading
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from lcc_scrapy.domain.addresses import is_public

_DNS_KEPT = 60
"""Seconds. Addresses that are remembered are checked again by every connection."""

_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


class NotPublic(OSError):
    """The address is private, loopback, link-local or otherwise not of the open Internet."""

    def __init__(self, address: str) -> None:
        super().__init__(errno.EACCES, f"address refused: {address}")


class _PublicSocket(socket.socket):
    """A socket that connects to addresses of the open Internet only."""

    def connect(self, address: Any) -> None:
        super().connect(_checked(address))

    def connect_ex(self, address: Any) -> int:
        return super().connect_ex(_checked(address))


def _checked(address: Any) -> Any:
    host = str(address[0])
    if not is_public(host):
        raise NotPublic(host)
    return address


class Outgoing:
    """Sessions for http and https: one for the open Internet, one that may go to private addresses too.

    They share neither connections nor names. ``connections``: at most so many open at a time in each.
    Must be used inside a running event loop, and closed there.
    """

    def __init__(self, connections: int, tls: ssl.SSLContext, **options: Any) -> None:
        self._connections = connections
        self._tls = tls
        self._options = options
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    def session(self, *, private: bool = False) -> aiohttp.ClientSession:
        """Return the session; proxies of the environment and cookies are unknown to it."""
        if private not in self._sessions:
            self._sessions[private] = self._open(socket.socket if private else _PublicSocket)
        return self._sessions[private]

    def _open(self, make: type[socket.socket]) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                ssl=self._tls,
                limit=self._connections,
                resolver=_Resolver(public_first=make is _PublicSocket),
                socket_factory=lambda info: make(*info[:3]),
                ttl_dns_cache=_DNS_KEPT,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            **self._options,
        )

    async def close(self) -> None:
        """Close all connections."""
        for session in self._sessions.values():
            await session.close()


def tls_context(*, verify: bool = True) -> ssl.SSLContext:
    """Return how TLS is spoken: version 1.2 or later, with certificates that verify unless told otherwise."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class _Resolver(AbstractResolver):
    """The system's resolver. ``public_first``: where a host has public addresses, only those are tried.

    So a host that is down and has a private address beside its public one counts as a host that is down.
    """

    def __init__(self, *, public_first: bool) -> None:
        self._public_first = public_first

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await _looked_up(host, port, family)
        public = [one for one in found if is_public(one[4][0])] if self._public_first else []
        return [
            ResolveResult(
                hostname=host, host=address[0], port=port, family=kind, proto=protocol, flags=_NUMERIC
            )
            for kind, _, protocol, _, address in public or found
        ]

    async def close(self) -> None:
        pass


def _looked_up(host: str, port: int, family: int) -> "asyncio.Future[list[Any]]":
    """Ask in a thread of its own: a name server that hangs holds up neither others nor the process's end.

    There are as many threads as look-ups under way, which the fetches bound.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Any]] = loop.create_future()

    def ask() -> None:
        found: list[Any] = []
        error: Exception | None = None
        try:
            found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)
        except OSError as failure:
            error = failure
        except UnicodeError as failure:
            error = socket.gaierror(socket.EAI_NONAME, str(failure))
        if not loop.is_closed():
            loop.call_soon_threadsafe(_tell, answer, found, error)

    threading.Thread(target=ask, name="name look-up", daemon=True).start()
    return answer


def _tell(answer: "asyncio.Future[list[Any]]", found: list[Any], error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(found)
    else:
        answer.set_exception(error)
