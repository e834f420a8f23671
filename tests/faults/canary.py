"""Who must not be visited."""

import socket
import threading
from typing import Self

OWN_DOORS = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}


class Canary:
    """Listens at every IPv4 and IPv6 address of this machine on one port, and remembers who comes."""

    def __init__(self) -> None:
        self._visits: dict[tuple[str, int], str] = {}
        self._visited = threading.Condition()
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
            thread.join(300)
        for one in self._sockets:
            one.close()

    def _hear(self, listener: socket.socket) -> None:
        while True:
            try:
                visitor, source = listener.accept()
            except OSError:
                return
            with self._visited:
                self._visits[source[0], source[1]] = str(visitor.getsockname()[0])
                self._visited.notify_all()
            visitor.close()

    @property
    def visitors(self) -> list[str]:
        """Return the addresses at which others came. It visits itself first, so that nobody is still at the door."""
        own = {self._visit_itself(OWN_DOORS[listener.family]) for listener in self._sockets}
        with self._visited:
            assert self._visited.wait_for(lambda: own <= self._visits.keys(), 300)
            for one in own:
                del self._visits[one]
            return list(self._visits.values())

    def _visit_itself(self, door: str) -> tuple[str, int]:
        with socket.create_connection((door, self.port), 300) as visit:
            source = visit.getsockname()
            return source[0], source[1]
