"""Which headers of an answer are kept with its document (docs/content.md lists them)."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from json.encoder import encode_basestring_ascii

KEPT = frozenset(
    (
        "accept-ranges",
        "access-control-allow-origin",
        "age",
        "allow",
        "cache-control",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-length",
        "content-location",
        "content-md5",
        "content-script-type",
        "content-style-type",
        "content-type",
        "date",
        "digest",
        "etag",
        "expires",
        "last-modified",
        "link",
        "location",
        "memento-datetime",
        "pragma",
        "refresh",
        "repr-digest",
        "server",
        "transfer-encoding",
        "vary",
        "via",
        "warning",
        "x-content-type-options",
        "x-powered-by",
        "x-robots-tag",
        "x-ua-compatible",
    )
)
"""Names, in lower case: what tells of the content, its age and its use by robots. No cookies."""

LONGEST = 8000
"""Bytes of all headers that are kept of an answer, as JSON."""

_LONGEST_NAME = max(map(len, KEPT))
_NOTHING = "[]"


def kept(fields: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the headers to keep, as a JSON list of pairs in the order they came, their octets as Latin-1.

    One that does not fit within ``LONGEST`` any more is left out as a whole.
    """
    wanted = [
        f"[{written}, {encode_basestring_ascii(value.decode('latin-1'))}]"
        for name, value in fields
        if len(name) <= _LONGEST_NAME and (written := _written(name))
    ]
    text = f"[{', '.join(wanted)}]"
    return text if len(text) <= LONGEST else f"[{', '.join(_fitting(wanted))}]"


@lru_cache(maxsize=1000)
def _written(name: bytes) -> str:
    """Return the name of a header as JSON; empty for one that is not kept."""
    text = name.decode("latin-1")
    return encode_basestring_ascii(text) if text.lower() in KEPT else ""


def _fitting(pairs: Sequence[str]) -> list[str]:
    fitting = []
    left = LONGEST - len(_NOTHING)
    for pair in pairs:
        length = len(pair) + len(", ")
        if length <= left:
            left -= length
            fitting.append(pair)
    return fitting


def length_of(headers: str) -> int:
    """Return the bytes of kept headers that count against the space quota; none = 0."""
    return max(0, len(headers) - len(_NOTHING))
