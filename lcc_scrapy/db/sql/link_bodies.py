"""How the links of a document are stored: as one deflated text, with those of its site as a dictionary.

Pages of one site share most of their links, and what they do not share looks alike. A dictionary
(RFC 1950, "preset dictionary") of the links that its first pages have in common saves most of both. Stored
so, links take about a tenth of the room of a row for each link.
"""

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby, repeat
from typing import Any

from lcc_scrapy.db.records import DocumentLink

WORDS_MAX = 16 * 1024
"""Bytes of a dictionary: deflate looks 32 KiB back, and the text itself shall have room there, too."""

_WORDS_LEAST = 512
"""Bytes of the smallest dictionary: what has fewer links takes little room without one."""

_LEVEL = 6
_RAW = -15
_MEMORY = 8
_KINDS = b'"],[["'
"""Stands between URLs and the kinds of links."""

_BETWEEN = '","'


def packed(links: Sequence[DocumentLink], words: bytes) -> bytes:
    """Return what is stored of the links of a document, with a dictionary (empty = none)."""
    return _deflated(_text(links).encode("ascii"), words)


def unpacked(body: bytes, words: bytes) -> list[DocumentLink]:
    """Return the links that ``packed`` was given; ``words`` has to be the same dictionary."""
    urls, runs = json.loads(_inflated(body, words))
    kinds = (kind for relation, nofollow, count in runs for kind in repeat((relation, bool(nofollow)), count))
    return [DocumentLink(url, *kind) for url, kind in zip(urls, kinds, strict=True)]


def names_any(body: bytes, words: bytes, urls: Iterable[str], most: int) -> tuple[bool, int]:
    """Tell whether what ``packed`` returned links to one of some URLs, and how many bytes were inflated.

    No more than ``most`` are. Nothing is parsed: a quotation mark inside of a text has a backslash.
    """
    text = _inflater(words).decompress(body, most)
    named = text.partition(_KINDS)[0] + b'"'
    wanted = (json.dumps(url).encode("ascii") for url in urls)
    return any(begin + url in named for url in wanted for begin in (b"[", b",")), len(text)


def grown(words: bytes, documents: Iterable[Sequence[DocumentLink]]) -> bytes:
    """Return a dictionary with the links of further documents too, or the same one where it is not worth it.

    Each is twice as large as the one before, at least, so a site has few of them.
    """
    if len(words) > WORDS_MAX // 2:
        return words
    larger = _words_of([_known(words), *({one.url for one in links} for links in documents)])
    return larger if len(larger) >= max(2 * len(words), _WORDS_LEAST) else words


def _known(words: bytes) -> set[str]:
    return set(json.loads(b'["%s"]' % words)) if words else set()


def _words_of(documents: Iterable[set[str]]) -> bytes:
    """Return a dictionary in which that stands last which most documents have: there it takes fewest bits."""
    counted = Counter(url for urls in documents for url in sorted(urls))
    room = WORDS_MAX
    words: list[str] = []
    for url, _ in counted.most_common():
        word = json.dumps(url)[1:-1]
        room -= len(word) + len(_BETWEEN)
        if room < 0:
            break
        words.append(word)
    return _BETWEEN.join(reversed(words)).encode("ascii")


def _text(links: Sequence[DocumentLink]) -> str:
    """Return URLs in order, and how many of them in a row are of the same kind."""
    kinds = groupby((one.relation, int(one.nofollow)) for one in links)
    runs = [(*kind, sum(1 for _ in run)) for kind, run in kinds]
    return json.dumps([[one.url for one in links], runs], separators=(",", ":"))


def _deflated(text: bytes, words: bytes) -> bytes:
    if words:
        deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW, _MEMORY, zlib.Z_DEFAULT_STRATEGY, words)
    else:
        deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW, _MEMORY)
    return deflate.compress(text) + deflate.flush()


def _inflater(words: bytes) -> Any:
    return zlib.decompressobj(_RAW, words) if words else zlib.decompressobj(_RAW)


def _inflated(body: bytes, words: bytes) -> bytes:
    inflate = _inflater(words)
    text: bytes = inflate.decompress(body) + inflate.flush()
    return text
