"""Rules for the links of a page: which kinds, and how many.

Apart from what reads pages, so that settings are read without importing a parser.
"""

from dataclasses import dataclass

from lcc_scrapy.links.ignoring import NOTHING, IgnoreList

DOCUMENTS = frozenset(
    ("a", "area", "frame", "iframe", "link", "next", "prev", "alternate", "feed", "canonical", "refresh")
)
"""Relations whose targets are pages themselves. ``link``: another ``rel`` of a link element (up, index…)."""

REQUISITES = frozenset(
    ("stylesheet", "icon", "img", "source", "video", "audio", "track", "embed", "object", "script")
)
"""Relations whose targets are parts of the page that names them."""


@dataclass(frozen=True, slots=True)
class LinkRules:
    """What is wanted of a page.

    ``relations``: kinds of links; ``most``: links at most, further ones are dropped; ``longest``: bytes of a
    page that are looked at; ``ignore``: URLs not to be given; ``strip``: parameters to leave out of URLs, in
    lower case; ``agent``: the product token by which robots directives may address us, in lower case.
    """

    relations: frozenset[str] = DOCUMENTS
    most: int = 10_000
    longest: int = 4_000_000
    ignore: IgnoreList = NOTHING
    strip: frozenset[str] = frozenset()
    agent: str = "lcc-scrapy"
