"""Range and conditional requests (RFC 9110, sections 13 and 14).

One range of bytes is served. Several at once, and what cannot be understood, are ignored, as the RFC allows:
the whole content is sent.
"""

import re

_RANGE = re.compile(r"bytes=[ \t]*(\d*)-(\d*)[ \t]*", re.IGNORECASE | re.ASCII)
_TAG = re.compile(r'(W/)?("[\x21\x23-\x7e\x80-\xff]*")')
_DIGITS_MAX = 18


class Unsatisfiable(Exception):
    """The range begins behind the end."""


def part(header: str, length: int) -> range | None:
    """Return the bytes that a ``Range`` asks for of a content, None = all; raises ``Unsatisfiable``."""
    match = _RANGE.fullmatch(header)
    if match is None or match[1] == match[2] == "" or max(map(len, match.groups())) > _DIGITS_MAX:
        return None
    if not match[1]:
        first, end = max(length - int(match[2]), 0), length
    else:
        first, end = int(match[1]), int(match[2] or length) + bool(match[2])
        if end <= first and match[2]:
            return None
    if first >= length:
        raise Unsatisfiable
    return range(first, min(end, length))


def is_named(header: str, tag: str, *, weakly: bool) -> bool:
    """Tell whether a list of entity tags, or ``*``, names a strong tag (with its quotes)."""
    if header.strip() == "*":
        return True
    return any(found[2] == tag and (weakly or not found[1]) for found in _TAG.finditer(header))
