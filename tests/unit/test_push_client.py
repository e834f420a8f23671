"""The connection of a provider to a UNS."""

import socket

from lcc_scrapy.push.client import Address


def test_the_end_of_a_set_waits_for_no_acknowledgement() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        conversation = Address(*server.getsockname()).connect(timeout=5.0)
        try:
            inner = conversation._link.socket
            assert inner.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        finally:
            inner.close()
