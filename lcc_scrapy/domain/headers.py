"""Which headers of an answer are kept with its document (docs/content.md lists them)."""

import json
from collections.abc import Iterable

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

_NOTHING = "[]"
_encode = json.JSONEncoder(check_circular=False).encode

Pairs = list[tuple[str, str]]


def kept(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the headers to keep, as a JSON list of pairs in the order they came.

    One that does not fit within ``LONGEST`` any more is left out as a whole.
    """
    wanted = [pair for pair in pairs if pair[0].lower() in KEPT]
    text = _encode(wanted)
    return text if len(text) <= LONGEST else _encode(_fitting(wanted))


def _fitting(pairs: Pairs) -> Pairs:
    fitting: Pairs = []
    left = LONGEST - len(_NOTHING)
    for pair in pairs:
        length = len(_encode(pair)) + len(", ")
        if length <= left:
            left -= length
            fitting.append(pair)
    return fitting


def length_of(headers: str) -> int:
    """Return the bytes of kept headers that count against the space quota; none = 0."""
    return max(0, len(headers) - len(_NOTHING))
