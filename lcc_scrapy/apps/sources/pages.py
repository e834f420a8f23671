"""Links in the head of an HTML page that name feeds and hubs: ``<link rel=… type=… href=…>``."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lxml import etree

LOOKED_AT = 512_000
"""Bytes of a page that are looked at."""

MOST = 64


@dataclass(frozen=True, slots=True)
class HeadLink:
    """One link of a page, as written; ``relation`` and ``type`` are in lower case."""

    href: str
    relation: str
    type: str = ""


def head_links(pieces: Iterable[bytes]) -> list[HeadLink]:
    """Return the links of a page, as far as it can be read."""
    collector = _Collector()
    target: Any = collector
    parser = etree.HTMLParser(target=target, huge_tree=False)
    fed = 0
    try:
        for piece in pieces:
            parser.feed(piece[: LOOKED_AT - fed])
            fed += len(piece)
            if fed >= LOOKED_AT or len(collector.found) >= MOST:
                break
        parser.close()
    except etree.LxmlError:
        pass
    return collector.found[:MOST]


class _Collector:
    def __init__(self) -> None:
        self.found: list[HeadLink] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        if tag in {"link", "a"} and attributes.get("href") and len(self.found) < MOST:
            kind = attributes.get("type", "").partition(";")[0].strip().lower()
            for relation in attributes.get("rel", "")[:100].lower().split():
                self.found.append(HeadLink(attributes["href"].strip(), relation, kind))

    def end(self, tag: str) -> None:
        """An element ends."""

    def data(self, text: str) -> None:
        """A piece of text."""

    def close(self) -> None:
        """The page has ended."""
