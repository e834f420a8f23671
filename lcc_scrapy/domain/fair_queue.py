"""Who is served next, and who has to leave, when more want something slow than can be served.

Known callers go before strangers. Providers take turns among those, addresses among these, so that one
that sends a thousand waits for its own and not the others for it.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

from lcc_scrapy.domain.throttling import Caller

Item = TypeVar("Item")

_Share = str | int | None
_Line = OrderedDict[_Share, deque[Item]]


class FairQueue(Generic[Item]):
    """At most ``most`` items wait; ``caller_of`` says for whom."""

    def __init__(self, most: int, caller_of: Callable[[Item], Caller]) -> None:
        self.most = most
        self._caller_of = caller_of
        self._known: _Line[Item] = OrderedDict()
        self._strangers: _Line[Item] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def enter(self, item: Item) -> Item | None:
        """Let an item in; returns the one that has to leave for it, perhaps itself.

        That is the last one of the stranger's address that has most waiting, or else of such a provider.
        """
        line, share = self._place_of(item)
        line.setdefault(share, deque()).append(item)
        self._size += 1
        if self._size <= self.most:
            return None
        crowd = self._strangers or self._known
        largest = max(crowd, key=lambda other: (len(crowd[other]), crowd is line and other == share))
        leaving = crowd[largest][-1]
        self.leave(leaving)
        return leaving

    def leave(self, item: Item) -> None:
        """Take an item out that is not to be served; harmless when it does not wait."""
        line, share = self._place_of(item)
        if item in line.get(share, ()):
            line[share].remove(item)
            self._taken_from(line, share)

    def next(self) -> Item | None:
        """Take out the one whose turn it is; None = nobody waits."""
        line = self._known or self._strangers
        if not line:
            return None
        share = next(iter(line))
        item = line[share].popleft()
        line.move_to_end(share)
        self._taken_from(line, share)
        return item

    def _place_of(self, item: Item) -> tuple[_Line[Item], _Share]:
        caller = self._caller_of(item)
        return (self._known, caller.pid) if caller.known else (self._strangers, caller.address)

    def _taken_from(self, line: _Line[Item], share: _Share) -> None:
        self._size -= 1
        if not line[share]:
            del line[share]
