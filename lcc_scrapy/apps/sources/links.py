"""Link headers (RFC 8288), as far as they name hubs, topics and feeds."""

import re
from collections.abc import Iterable

_LINK = re.compile(r"<([^<>]{0,2048})>([^<]{0,2048})")
_REL = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))', re.IGNORECASE)
HEADER_MAX = 8192
"""Characters of one header that are looked at."""


def link_headers(headers: Iterable[str]) -> list[tuple[str, str]]:
    """Return (URL as written, relation) of all links; one with several relations comes with each."""
    found: list[tuple[str, str]] = []
    for header in headers:
        for url, parameters in _LINK.findall(header[:HEADER_MAX]):
            said = _REL.search(parameters)
            relations = (said[1] or said[2] or "").lower().split() if said else []
            found.extend((url.strip(), relation) for relation in relations)
    return found
