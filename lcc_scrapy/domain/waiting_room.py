"""Who is served next, and who has to leave, when more want something slow than can be served.

Known ones go before strangers; within both, addresses take turns, so that one that sends a thousand
waits for its own and not the others for it.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

from lcc_scrapy.domain.throttling import Caller

Item = TypeVar("Item")

_Line = OrderedDict[str, deque[Item]]


class WaitingRoom(Generic[Item]):
    """At most ``most`` items wait; ``caller_of`` says for whom."""

    def __init__(self, most: int, caller_of: Callable[[Item], Caller]) -> None:
        self._most = most
        self._caller_of = caller_of
        self._known: _Line[Item] = OrderedDict()
        self._strangers: _Line[Item] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def enter(self, item: Item) -> Item | None:
        """Let an item in; returns the one that has to leave for it, perhaps itself.

        That is the last one of the stranger's address that has most waiting, or else of the known address.
        """
        address = self._caller_of(item).address
        self._line_of(item).setdefault(address, deque()).append(item)
        self._size += 1
        if self._size <= self._most:
            return None
        crowd = self._strangers or self._known
        largest = max(crowd, key=lambda other: (len(crowd[other]), other == address))
        leaving = crowd[largest][-1]
        self.leave(leaving)
        return leaving

    def leave(self, item: Item) -> None:
        """Take an item out that is not to be served; harmless when it does not wait."""
        line, address = self._line_of(item), self._caller_of(item).address
        if item in line.get(address, ()):
            line[address].remove(item)
            self._taken_from(line, address)

    def next(self) -> Item | None:
        """Take out the one whose turn it is; None = nobody waits."""
        line = self._known or self._strangers
        if not line:
            return None
        address = next(iter(line))
        item = line[address].popleft()
        line.move_to_end(address)
        self._taken_from(line, address)
        return item

    def _line_of(self, item: Item) -> _Line[Item]:
        return self._known if self._caller_of(item).known else self._strangers

    def _taken_from(self, line: _Line[Item], address: str) -> None:
        self._size -= 1
        if not line[address]:
            del line[address]
