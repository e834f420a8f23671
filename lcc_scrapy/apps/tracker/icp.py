"""Answers ICP queries of caches: HIT for what a better replica is known of (RFC 2186, seed 004)."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from lcc_scrapy.apps.tracker.lookup_threads import Busy, LookupThreads
from lcc_scrapy.apps.tracker.rules.icp import ERR, HIT, MISS, BadMessage, Query, Reply
from lcc_scrapy.domain.errors import ConfigurationError, LccError, UrlRefused
from lcc_scrapy.domain.http_serving import Endpoint
from lcc_scrapy.listeners.peers import Networks, is_among, plain_address

THREADS = 4
MOST_PENDING = 200
"""Queries that are looked up or wait; more are not answered, and their cache asks elsewhere."""

SECONDS = 2.0
"""How long a query is looked up; what takes longer is a MISS."""

QUIET = 10.0
"""Seconds between two lines of the log about queries that could not be looked up."""

IsKnown = Callable[[str, str], bool]
"""Tells whether a URL has a better replica for an address; blocks, and raises ``UrlRefused``."""

_log = logging.getLogger(__name__)


class IcpResponder(asyncio.DatagramProtocol):
    """Answers each query of a client; all else is passed over without an answer."""

    def __init__(self, is_known: IsKnown, clients: Networks, threads: LookupThreads) -> None:
        self._is_known = is_known
        self._clients = clients
        self._threads = threads
        self._tasks: set[asyncio.Task[None]] = set()
        self._transport: asyncio.DatagramTransport | None = None
        self._quiet_until = 0.0

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        """Begin."""
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Begin to look up what a client asks; of anybody else, nothing is even read."""
        address = plain_address(addr[0])
        if not is_among(address, self._clients):
            return
        try:
            query = Query.parse(data)
        except BadMessage as error:
            _log.debug("ICP of %(peer)s: %(error)s", {"peer": address, "error": error})
            return
        task = asyncio.get_running_loop().create_task(self._answer(query, address, addr))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def error_received(self, exc: Exception) -> None:
        """An answer reached nobody."""
        _log.debug("ICP: %(error)s", {"error": exc})

    async def _answer(self, query: Query, address: str, addr: tuple[str, int]) -> None:
        try:
            opcode = await self._looked_up(query.url, address)
        except Busy:
            return
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(bytes(Reply(opcode, query.number, query.url)), addr)

    async def _looked_up(self, url: str, address: str) -> int:
        if not url:
            return ERR
        try:
            return HIT if await self._threads.do(self._is_known, url, address) else MISS
        except UrlRefused:
            return ERR
        except (LccError, TimeoutError) as error:
            self._warn(str(error) or "the database does not answer")
        except Busy:
            raise
        except Exception as error:  # noqa: BLE001
            self._warn(type(error).__name__)
        return MISS

    def _warn(self, why: str) -> None:
        """Log why queries are not looked up: not for each, for a cache sends thousands in a second."""
        if time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + QUIET
            _log.warning("ICP: %(error)s", {"error": why})


def bound_socket(endpoint: Endpoint) -> socket.socket:
    """Return a UDP socket at an endpoint; raises ``ConfigurationError``."""
    if endpoint.path:
        raise ConfigurationError("LCC_TRACKER_ICP_ENDPOINT: ICP has no Unix sockets; write 127.0.0.1:3130")
    family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    try:
        made.bind((endpoint.host, endpoint.port))
    except OSError as error:
        made.close()
        raise ConfigurationError(
            f"LCC_TRACKER_ICP_ENDPOINT: cannot listen on {endpoint}: {os.strerror(error.errno or 0)}"
        ) from None
    return made


@asynccontextmanager
async def answering_icp(
    listening: socket.socket, is_known: IsKnown, clients: Networks
) -> AsyncIterator[None]:
    """Answer queries that come to a UDP socket, meanwhile; closes it."""
    threads = LookupThreads(THREADS, MOST_PENDING, SECONDS)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(
        lambda: IcpResponder(is_known, clients, threads), sock=listening
    )
    try:
        yield
    finally:
        transport.close()
        threads.close()
