"""Python's codecs for pages, by the charset names that sites and pages give."""

from w3lib.encoding import resolve_encoding

_NOT_OF_PAGES = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)  # as ``codecs.lookup`` calls them
"""Slow ones (punycode: seconds for 100 kB), those of Python, and one that browsers do not read."""


_WITHOUT_MARK = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}
"""What pages are in that have no byte order mark (WHATWG Encoding); Python's codecs wait for one."""


def codec_of(name: str | None) -> str:
    """Return the codec that a name of a charset stands for, empty = none that a page may be in."""
    codec = resolve_encoding(name) if name else None
    if codec is None or codec in _NOT_OF_PAGES:
        return ""
    try:
        b"x".decode(codec, "replace")
    except (LookupError, ValueError):  # one that makes no text
        return ""
    return _WITHOUT_MARK.get(codec, codec)
