"""SOCKS 5 (RFC 1928, RFC 1929) over a connection to a proxy, as python-socks speaks it."""

import asyncio
from importlib.util import find_spec
from socket import socket as Socket  # noqa: N812, TID251 - the type of what `outgoing` made
from typing import Any

from lcc_scrapy.domain.errors import MissingExtra
from lcc_scrapy.domain.site_access import Proxy

_LONGEST = 24 * 3600.0
"""Seconds. Who connects has a time-out of their own, which is shorter; without one, the library has 60 s."""


class SocksRefused(Exception):
    """The proxy does not do what it was asked, or does not speak SOCKS; the text has nothing secret."""


def check_installed() -> None:
    """Raise ``MissingExtra`` where there is no library for SOCKS."""
    if find_spec("python_socks") is None:
        raise MissingExtra("socks", "LCC_CREDENTIALS_FILE: a SOCKS proxy: python-socks")


async def tunnel(made: Socket, proxy: Proxy, host: str, port: int) -> None:
    """Have a proxy connect to a host, over a socket that is connected to it and is closed if this fails.

    Nothing is read beyond the proxy's answer. Raises ``SocksRefused`` or ``OSError``.
    """
    from python_socks import ProxyError, ProxyType  # noqa: PLC0415 - an extra
    from python_socks.async_.asyncio import Proxy as Client  # noqa: PLC0415

    user, password = proxy.login
    loop, before = asyncio.get_running_loop(), _Connected(made)
    client = Client(
        ProxyType.SOCKS5,
        proxy.host,
        proxy.port,
        user or None,
        password or None,
        rdns=True,
        forward=before,  # type: ignore[arg-type]
        loop=loop,
    )
    try:
        await client.connect(host, port, timeout=_LONGEST)
    except ProxyError as error:
        raise SocksRefused(str(error)) from None
    except ValueError:
        raise SocksRefused("its answer is malformed") from None


class _Connected:
    """Stands for the way to a proxy, which python-socks would go itself: the guard has been there before."""

    def __init__(self, made: Socket) -> None:
        self._made = made

    async def connect(self, **_: Any) -> Socket:
        return self._made
