"""Memory for bodies of requests that are kept whole: bounded for all clients together, and for each one.

A body counts as it arrives, not as it is announced: who announces much and sends nothing takes no room.
"""

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

SMALL = 16_384
"""Bytes of a body that always has room: the number of connections bounds all of these."""


class NoRoom(Exception):
    """Too many large bodies are being read; ``mine``: by this client itself."""

    def __init__(self, *, mine: bool) -> None:
        super().__init__("this client sends" if mine else "all clients send")
        self.mine = mine


class BodyRoom:
    """Counts bytes: ``most`` of all clients, ``each`` of one; beyond either, ``Place.add`` refuses."""

    def __init__(self, most: int, each: int) -> None:
        self._most = most
        self._each = each
        self._by_client: Counter[Hashable] = Counter()
        self.taken = 0

    @contextmanager
    def place(self, client: Hashable | None) -> Iterator["Place"]:
        """Hold room for one body until its bytes are not needed any more; a client None has no share."""
        place = Place(self, client)
        try:
            yield place
        finally:
            self._count(client, -place.counted)

    def take(self, client: Hashable | None, size: int) -> None:
        """Count bytes; raises ``NoRoom``, nothing is counted then."""
        mine = client is not None and self._by_client[client] + size > self._each
        if mine or self.taken + size > self._most:
            raise NoRoom(mine=mine)
        self._count(client, size)

    def _count(self, client: Hashable | None, size: int) -> None:
        self.taken += size
        if client is not None:
            self._by_client[client] += size
            if not self._by_client[client]:
                del self._by_client[client]


class Place:
    """The room of one body. ``counted`` are the bytes of it that take room."""

    def __init__(self, room: BodyRoom, client: Hashable | None) -> None:
        self._room = room
        self._client = client
        self._size = 0
        self.counted = 0

    def add(self, size: int) -> None:
        """So many bytes have arrived; raises ``NoRoom``."""
        self._size += size
        more = self._size - self.counted if self._size > SMALL else 0
        self._room.take(self._client, more)
        self.counted += more
