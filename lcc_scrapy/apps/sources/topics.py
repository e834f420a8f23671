"""Reads topics of WebSub: feeds, and pages that name their hub in their head, of which only they are news."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from lcc_scrapy.apps.sources.pages import LOOKED_AT, head_links
from lcc_scrapy.apps.sources.reading import Unreadable, read
from lcc_scrapy.apps.sources.rules import Entry, Listing, Role, stamp_of


def read_topic(pieces: Iterable[bytes]) -> Listing:
    """Read a topic; raises ``Unreadable`` for what is neither a feed nor a page with a hub."""
    page = _Page(pieces)
    try:
        return read(page)
    except Unreadable:
        links = head_links(page.whole())
        hubs = tuple(one.href for one in links if one.relation == "hub")
        if not hubs:
            raise
    topic = next((one.href for one in links if one.relation == "self"), "")
    said = blake2b(b"".join(page.whole()), digest_size=16).hexdigest()
    return Listing(Role.NEWS, (Entry("", stamp_of(said)),), (), hubs, topic)


class _Page:
    """Pieces of a body, of which no more are kept than a page may have."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._kept: list[bytes] = []
        self._size = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self._size += len(piece)
            if self._size <= LOOKED_AT:
                self._kept.append(piece)
            yield piece

    def whole(self) -> list[bytes]:
        """Return all pieces, those that were not read yet too; none of what is longer than a page."""
        for _ in self:
            if self._size > LOOKED_AT:
                break
        return self._kept if self._size <= LOOKED_AT else []
