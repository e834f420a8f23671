"""Outgoing connections: the one place that connects to hosts which somebody else named.

Whoever fetches takes a pool from here, and nothing else in this package makes one (the linter
holds it). What they may reach is decided by their sockets, when they connect: after DNS, for every
address that is tried, whichever URL, redirect or resolver it came from.
"""

import asyncio
import errno
import os
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address
from typing import Any

import aiohappyeyeballs
from aiohappyeyeballs import AddrInfoType

from lcc_scrapy.domain.addresses import is_public
from lcc_scrapy.domain.printable import printable
from lcc_scrapy.domain.site_access import SOCKS, Proxy
from lcc_scrapy.http import socks
from lcc_scrapy.http.answer import BadHead, HttpError
from lcc_scrapy.http.connection import Connection
from lcc_scrapy.http.earlier_tries import EarlierTries
from lcc_scrapy.http.pool import Pool
from lcc_scrapy.http.request import Origin, Request
from lcc_scrapy.wire.sockets import send_at_once

_DNS_KEPT = 60
"""Seconds. Addresses that are remembered are checked again by every connection."""

_NAMES_KEPT = 1000
_ADDRESSES = 8
"""Addresses of a host at most, of each family: a name server may name thousands, and all would be tried."""

_SAID_MAX = 200
"""Characters of what a proxy says that are passed on."""

UNREAD = 64 * 1024
"""Bytes of a line in a stream at most."""

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
"""What carries bytes of another protocol than HTTP."""

_HEAD_START = 0.25
"""Seconds that an address has to connect before the next one is tried beside it (RFC 8305)."""


class NotPublic(OSError):
    """The address is private, loopback, link-local or otherwise not of the open Internet."""

    def __init__(self, address: str) -> None:
        super().__init__(errno.EACCES, f"address refused: {address}")


class NoConnection(Exception):
    """There is none; ``cause`` says why: ``NotPublic``, ``socket.gaierror``, or what else the system says."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause) or type(cause).__name__)
        self.cause = cause


class NoProxy(NoConnection):
    """The proxy on the way cannot be reached, or does not do its work.

    ``said`` is what it answered, empty = nothing. The text does not say where it is: providers may read it.
    """

    def __init__(self, cause: OSError, said: str = "") -> None:
        super().__init__(cause)
        self.args = (f"the proxy: {said or _in_words(cause)}",)


def why(error: BaseException, if_private: str = "its address is private") -> str:
    """Return in a few words why nothing came; ``if_private`` where the address is private."""
    cause = error.cause if isinstance(error, NoConnection) and not isinstance(error, NoProxy) else error
    if isinstance(cause, NotPublic):
        return if_private
    if isinstance(cause, socket.gaierror):
        return "host name not found"
    if isinstance(cause, ssl.SSLError):
        return f"TLS failure: {cause.reason}"
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, OSError) and cause.errno:
        return os.strerror(cause.errno).lower()
    return printable(str(cause) or type(cause).__name__)[:200]


def _in_words(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return f"TLS failure ({error.reason})"
    if isinstance(error, socket.gaierror):
        return "its name is not found"
    return os.strerror(error.errno) if error.errno else "no connection"


class _PublicSocket(socket.socket):
    """A socket that connects to addresses of the open Internet only."""

    def connect(self, address: Any) -> None:
        super().connect(_checked(address))

    def connect_ex(self, address: Any) -> int:
        return super().connect_ex(_checked(address))


def _made(make: type[socket.socket], where: AddrInfoType) -> socket.socket:
    made = make(*where[:3])
    send_at_once(made)
    return made


def _checked(address: Any) -> Any:
    host = str(address[0])
    if not is_public(host):
        raise NotPublic(host)
    return address


class Outgoing:
    """Pools for http and https, one for the open Internet, one for private addresses too.

    They share neither connections nor names. ``connections``: at most so many in use at a time in each. Must
    be used inside a running event loop, and closed there.
    """

    def __init__(self, connections: int, tls: ssl.SSLContext) -> None:
        self._connections = connections
        self._tls = tls
        self._tries = EarlierTries()
        self._pools: dict[bool, Pool] = {}
        self._ways: dict[bool, _Way] = {}

    def pool(self, *, private: bool = False) -> Pool:
        """Return the pool; failing to connect raises ``NoConnection`` in it."""
        pool = self._pools.get(private)
        if pool is None:
            connect = partial(self._connect, private=private)
            pool = self._pools[private] = Pool(connect, self._connections, self._tries)
        return pool

    async def _connect(
        self, origin: Origin, gone: Callable[[Connection], None], *, private: bool
    ) -> Connection:
        """Connect, through the origin's proxy if it has one; raises ``NoConnection``."""
        try:
            if origin.proxy is None:
                return await self._way(private=private).connect(
                    origin.host, origin.port, gone, self._tls_to(origin)
                )
            if not private:
                _check_literal(origin)
            if origin.proxy.socks:
                return await self._by_socks(origin.proxy, origin, gone, private=private)
            connection = await self._to_proxy(origin.proxy, gone, private=private)
            return await self._through(connection, origin, gone) if origin.tls else connection
        except OSError as error:
            raise NoConnection(error) from error

    async def _to_proxy(
        self, proxy: Proxy, gone: Callable[[Connection], None], *, private: bool
    ) -> Connection:
        way = self._way(private=private or proxy.private)
        try:
            return await way.connect(proxy.host, proxy.port, gone, self._tls if proxy.tls else None)
        except NotPublic:
            raise
        except OSError as error:
            raise NoProxy(error) from error

    async def _by_socks(
        self, proxy: Proxy, origin: Origin, gone: Callable[[Connection], None], *, private: bool
    ) -> Connection:
        """Connect by a SOCKS proxy: to a name that it looks up, or to one address of each family in turn."""
        hosts = [origin.host.rstrip(".")]
        if proxy.socks == SOCKS:
            hosts = await self._way(private=private).one_of_each_family(origin.host, origin.port)
        for host in hosts[:-1]:
            try:
                made = await self._tunnelled(proxy, host, origin.port, private=private)
            except NoProxy:
                continue
            break
        else:
            made = await self._tunnelled(proxy, hosts[-1], origin.port, private=private)
        return await _spoken(made, origin.host, gone, self._tls_to(origin))

    async def _tunnelled(self, proxy: Proxy, host: str, port: int, *, private: bool) -> socket.socket:
        try:
            made = await self._way(private=private or proxy.private).connected(proxy.host, proxy.port)
            await socks.tunnel(made, proxy, host, port)
        except NotPublic:
            raise
        except OSError as error:
            raise NoProxy(error) from error
        except socks.SocksRefused as error:
            raise refused_by_proxy(str(error)) from error
        return made

    def _tls_to(self, origin: Origin) -> ssl.SSLContext | None:
        return (origin.identity or self._tls) if origin.tls else None

    async def _through(
        self, proxy: Connection, origin: Origin, gone: Callable[[Connection], None]
    ) -> Connection:
        """Have a proxy make a tunnel, and speak TLS with whoever is at its end."""
        try:
            await _make_tunnel(proxy, origin)
            tls = origin.identity or self._tls
            return await proxy.within(tls, origin.host.rstrip("."), Connection(gone))
        except BaseException:
            proxy.close()
            raise

    def _way(self, *, private: bool) -> "_Way":
        way = self._ways.get(private)
        if way is None:
            way = self._ways[private] = _Way(socket.socket if private else _PublicSocket)
        return way

    async def stream(self, host: str, port: int, *, private: bool = False, unread: int = UNREAD) -> Stream:
        """Connect for another protocol than HTTP; raises ``NoConnection``.

        ``unread``: bytes of a line at most; twice as many may wait for their reader. Who asked closes it.
        """
        try:
            return await self._way(private=private).stream(host, port, unread)
        except OSError as error:
            raise NoConnection(error) from error

    async def address(self, host: str, port: int, *, private: bool = False) -> str:
        """Return an address of a host, for a program that connects itself; raises ``NoConnection``."""
        try:
            return await self._way(private=private).address(host, port)
        except OSError as error:
            raise NoConnection(error) from error

    def relax(self) -> None:
        """Close what is open and not in use, as descriptors are short."""
        for pool in self._pools.values():
            pool.relax()

    async def close(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            await pool.close()


def tls_context(*, verify: bool = True) -> ssl.SSLContext:
    """Return how TLS is spoken: version 1.2 or later, with certificates that verify unless told otherwise."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class _Way:
    """Makes connections with one kind of socket."""

    def __init__(self, make: type[socket.socket]) -> None:
        self._make = make
        self._names = _Names(public_first=make is _PublicSocket)

    async def connect(
        self, host: str, port: int, gone: Callable[[Connection], None], tls: ssl.SSLContext | None
    ) -> Connection:
        """Connect for HTTP, with TLS if there is any."""
        return await _spoken(await self.connected(host, port), host, gone, tls)

    async def stream(self, host: str, port: int, unread: int) -> Stream:
        """Connect, and read and write bytes."""
        reader = asyncio.StreamReader(unread)
        protocol = asyncio.StreamReaderProtocol(reader)
        made, loop = await self.connected(host, port), asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: protocol, sock=made)
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def address(self, host: str, port: int) -> str:
        """Return the first address of a host that may be connected to."""
        found = [str(one[4][0]) for one in await self._names.look_up(host, port)]
        if self._make is _PublicSocket:
            return str(_checked(found)[0])
        return found[0]

    async def one_of_each_family(self, host: str, port: int) -> list[str]:
        """Return the first address of IPv4 and of IPv6 that a host has and that may be connected to."""
        found: dict[int, Any] = {}
        for family, *_, address in await self._names.look_up(host, port):
            found.setdefault(family, address)
        if self._make is _PublicSocket:
            found = {family: _checked(address) for family, address in found.items()}
        return [str(address[0]).partition("%")[0] for address in found.values()]

    async def connected(self, host: str, port: int) -> socket.socket:
        """Return a socket that is connected."""
        found = await self._names.look_up(host, port)
        if self._make is _PublicSocket:
            # For all of them: refusals of several would come as one error that is no `NotPublic`.
            _checked(found[0][4])
        return await aiohappyeyeballs.start_connection(
            found,
            happy_eyeballs_delay=_HEAD_START,
            socket_factory=partial(_made, self._make),
        )


async def _spoken(
    made: socket.socket, host: str, gone: Callable[[Connection], None], tls: ssl.SSLContext | None
) -> Connection:
    """Speak HTTP over a connected socket, within TLS with ``host`` if there is any."""
    _, connection = await asyncio.get_running_loop().create_connection(
        lambda: Connection(gone),
        sock=made,
        ssl=tls,
        server_hostname=host.rstrip(".") if tls else None,
    )
    return connection


async def _make_tunnel(proxy: Connection, origin: Origin) -> None:
    """Have a proxy connect to an origin; raises ``NoProxy``."""
    assert origin.proxy is not None
    said = origin.proxy.authorization
    fields = [(b"Host", origin.authority.encode()), *([(b"Proxy-Authorization", said)] if said else [])]
    asked = Request(origin, origin.authority, fields, "CONNECT")
    try:
        await proxy.ask(asked.encoded(), bodiless=True, patience=0.0, deadline=0.0)
        _check_tunnel(proxy)
    except HttpError as error:
        raise refused_by_proxy(str(error)) from error


def refused_by_proxy(said: str) -> NoProxy:
    """Return the error of a proxy that answers, and says that it does not do what it was asked."""
    text = printable(said[:_SAID_MAX])
    return NoProxy(ConnectionRefusedError(errno.ECONNREFUSED, text), text)


def _check_tunnel(proxy: Connection) -> None:
    answer = proxy.answer
    if not 200 <= answer.status < 300:  # noqa: PLR2004
        raise BadHead(f"{answer.status} {answer.reason}".rstrip())
    if not proxy.usable:
        raise BadHead("it ended the tunnel at once")


def _check_literal(origin: Origin) -> None:
    """Refuse a private address that a proxy would be told to connect to; names are the proxy's to look up."""
    if _literal(origin.host, origin.port) is not None:
        _checked((origin.host, origin.port))


class _Names:
    """What names stand for, remembered for a while.

    ``public_first``: where a host has public addresses, only those are tried. So a host that is down and has
    a private address beside its public one counts as a host that is down.
    """

    def __init__(self, *, public_first: bool) -> None:
        self._public_first = public_first
        self._known: dict[tuple[str, int], tuple[float, list[AddrInfoType]]] = {}
        self._asking: dict[tuple[str, int], asyncio.Future[list[AddrInfoType]]] = {}

    async def look_up(self, host: str, port: int) -> list[AddrInfoType]:
        """Return where to connect to; raises ``socket.gaierror``."""
        if (literal := _literal(host, port)) is not None:
            return [literal]
        until, found = self._known.get((host, port), (0.0, []))
        if until <= asyncio.get_running_loop().time():
            found = await asyncio.shield(self._ask((host, port)))
        public = [one for one in found if is_public(str(one[4][0]))] if self._public_first else []
        return public or found

    def _ask(self, name: tuple[str, int]) -> "asyncio.Future[list[AddrInfoType]]":
        """Ask, or wait with those who did."""
        asking = self._asking.get(name)
        if asking is None:
            asking = self._asking[name] = _looked_up(*name)
            asking.add_done_callback(lambda answer: self._remember(name, answer))
        return asking

    def _remember(self, name: tuple[str, int], answer: "asyncio.Future[list[AddrInfoType]]") -> None:
        del self._asking[name]
        self._known.pop(name, None)
        if not answer.cancelled() and answer.exception() is None:
            self._known[name] = (answer.get_loop().time() + _DNS_KEPT, answer.result())
        while len(self._known) > _NAMES_KEPT:
            del self._known[next(iter(self._known))]


def _literal(host: str, port: int) -> AddrInfoType | None:
    """Return where an address leads, which no name server has to be asked for; None for a name."""
    try:
        kind = ip_address(host)
    except ValueError:
        return None
    if kind.version == 4:  # noqa: PLR2004
        return socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port)
    return socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port, 0, 0)


def _looked_up(host: str, port: int) -> "asyncio.Future[list[Any]]":
    """Ask in a thread of its own: a name server that hangs holds up neither others nor the process's end.

    There are as many threads as look-ups under way, which the fetches bound.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[Any]] = loop.create_future()

    def ask() -> None:
        found: list[Any] = []
        error: Exception | None = None
        try:
            found = _first(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG))
        except OSError as failure:
            error = failure
        except UnicodeError as failure:
            error = socket.gaierror(socket.EAI_NONAME, str(failure))
        if not loop.is_closed():
            loop.call_soon_threadsafe(_tell, answer, found, error)

    threading.Thread(target=ask, name="name look-up", daemon=True).start()
    return answer


def _first(found: list[Any]) -> list[Any]:
    """Return the first ``_ADDRESSES`` of each family, public and private ones counted apart."""
    kinds: Counter[tuple[int, bool]] = Counter()
    first = []
    for one in found:
        kind = one[0], is_public(str(one[4][0]))
        kinds[kind] += 1
        if kinds[kind] <= _ADDRESSES:
            first.append(one)
    return first


def _tell(answer: "asyncio.Future[list[Any]]", found: list[Any], error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(found)
    else:
        answer.set_exception(error)
