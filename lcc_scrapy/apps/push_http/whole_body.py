"""An XML set that counts only when the whole body of its request has come."""

from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.uns.codec import Codec, Malformed
from lcc_scrapy.wire.messages import Message, SetEnd

BEHIND = 64 * 1024
"""Bytes that may stand behind the set; they mean nothing."""


class WholeBody:
    """The UNS's own codec, which says that a set ends when its body has ended.

    A body may be cut, or its checksum be wrong, behind the closing tag of the set.
    """

    mark = Codec.mark

    def __init__(self, limits: Limits, *, logged_in: bool) -> None:
        self._codec = Codec(limits, logged_in=logged_in)
        self._is_whole = False
        self._behind = 0

    @property
    def unfinished(self) -> bool:
        """Tell whether the body is cut short if it ends now."""
        return self._codec.unfinished

    def feed(self, data: bytes) -> list[Message | Malformed]:
        """Return the messages completed by ``data``, but for the end of the set and what stands behind it."""
        if self._is_whole:
            return self._pass_over(len(data))
        found = self._codec.feed(data)
        end = next((at for at, message in enumerate(found) if isinstance(message, SetEnd)), None)
        self._is_whole = end is not None
        return found[:end]

    def finish(self) -> list[Message | Malformed]:
        """Return the end of the set, if it has come."""
        return [SetEnd()] if self._is_whole else []

    def _pass_over(self, size: int) -> list[Message | Malformed]:
        before, self._behind = self._behind, self._behind + size
        if before <= BEHIND < self._behind:
            self._is_whole = False
            return [Malformed(f"more than {BEHIND} bytes behind the set")]
        return []
