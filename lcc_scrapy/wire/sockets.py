"""Options of TCP sockets that everybody who listens or connects sets."""

from __future__ import annotations

import socket


def send_at_once(one: socket.socket) -> None:  # noqa: TID251 - one that others made
    """Set TCP_NODELAY, on TCP sockets only; connections that a listening socket accepts have it too.

    Otherwise a small write waits for the acknowledgement of the one before, which peers delay by 40 ms.
    asyncio sets it only where a socket names its protocol, which those of ``socket.create_server`` do not.
    """
    if one.family in {socket.AF_INET, socket.AF_INET6} and one.type == socket.SOCK_STREAM:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
