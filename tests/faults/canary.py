"""Who must not be visited."""

import socket
import threading
from typing import Self


class Canary:
    """Listens at every IPv4 and IPv6 address of this machine on one port, and counts who comes."""

    def __init__(self) -> None:
        self.visitors: list[str] = []
        self._sockets = [socket.socket(socket.AF_INET, socket.SOCK_STREAM)]
        self._sockets[0].bind(("0.0.0.0", 0))
        self.port = int(self._sockets[0].getsockname()[1])
        if socket.has_ipv6:
            other = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
            other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                other.bind(("::", self.port))
                self._sockets.append(other)
            except OSError:
                other.close()

    def __enter__(self) -> Self:
        self._threads = [
            threading.Thread(target=self._hear, args=(one,), daemon=True) for one in self._sockets
        ]
        for one in self._sockets:
            one.listen(100)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._sockets:
            one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for one in self._sockets:
            one.close()

    def _hear(self, listener: socket.socket) -> None:
        while True:
            try:
                visitor, _ = listener.accept()
            except OSError:
                return
            self.visitors.append(str(visitor.getsockname()[0]))
            visitor.close()
