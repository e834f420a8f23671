"""Reads topics of WebSub: feeds, and pages that name their hub in their head, of which only they are news."""

from collections.abc import Iterable
from hashlib import blake2b

from lcc_scrapy.domain.sources import Entry, Listing, Role, stamp_of
from lcc_scrapy.sources.pages import LOOKED_AT, head_links
from lcc_scrapy.sources.reading import Unreadable, read


def read_topic(pieces: Iterable[bytes]) -> Listing:
    """Read a topic; raises ``Unreadable`` for what is neither a feed nor a page with a hub."""
    kept = list(pieces)
    try:
        return read(kept)
    except Unreadable:
        links = head_links(kept)
        hubs = tuple(one.href for one in links if one.relation == "hub")
        if not hubs or sum(map(len, kept)) > LOOKED_AT:
            raise
    topic = next((one.href for one in links if one.relation == "self"), "")
    said = blake2b(b"".join(kept), digest_size=16).hexdigest()
    return Listing(Role.NEWS, (Entry("", stamp_of(said)),), (), hubs, topic)
