"""How values are written that the rules do not know: endpoints, networks, files, links, components."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.http_serving import Endpoint
from lcc_scrapy.domain.timeslots import HOURS_PER_DAY, HOURS_PER_WEEK
from lcc_scrapy.links.rules import DOCUMENTS, REQUISITES, IgnoreList

ALL, NOTHING = "all", "none"
"""Of LCC_PROJECT_COMPONENTS: every component, and not a single one."""
_ADDRESS_MAX = 255
_VALIDITY_MAX = 7 * 86400


def components(text: Any) -> tuple[str, ...]:
    """Read import paths of components, or ``all`` or ``none``; a class stands for its path."""
    given = text if isinstance(text, (list, tuple)) else read.parts(text)
    names = read.parts(
        [f"{part.__module__}.{part.__qualname__}" if isinstance(part, type) else part for part in given]
    )
    if len(names) > 1 and not {ALL, NOTHING}.isdisjoint(names):
        raise ValueError(f"{text!r}, expected import paths, or {ALL} or {NOTHING} alone")
    return names


def relations(text: Any) -> frozenset[str]:
    """Read kinds of links, or names of groups of them."""
    words = frozenset(read.words(text))
    groups = {"documents": DOCUMENTS, "requisites": REQUISITES}
    unknown = words - groups.keys() - DOCUMENTS - REQUISITES
    if unknown:
        known = ", ".join(sorted(groups.keys() | DOCUMENTS | REQUISITES))
        raise ValueError(f"{min(unknown)!r}, expected some of {known}")
    return (words - groups.keys()).union(*(groups[word] for word in words & groups.keys()))


def ignore_file(text: Any) -> IgnoreList:
    """Read the file that is named; empty = there is none."""
    path = str(text).strip()
    try:
        return IgnoreList.parse(Path(path).read_text(encoding="utf-8").splitlines()) if path else IgnoreList()
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def validity(text: Any) -> int:
    """Read how many seconds a signed URL is good, a week at most; empty or 0 = there is none."""
    seconds = read.whole_seconds(str(text).strip() or "0")
    if seconds > _VALIDITY_MAX:
        raise ValueError(f"{text!r}, expected 7d at most")
    return seconds


def endpoint(text: Any) -> Endpoint | None:
    """Read where an HTTP server listens; empty = nowhere."""
    return Endpoint.parse(str(text))


def endpoints(text: Any) -> tuple[Endpoint, ...]:
    """Read where an HTTP server listens, several places separated by blanks; empty = nowhere."""
    return tuple(found for part in read.listed(text) if (found := Endpoint.parse(part)) is not None)


def slots(text: Any) -> int:
    """Read the number of slots of a time mask."""
    return int(read.one_of(str(HOURS_PER_DAY), str(HOURS_PER_WEEK))(str(text).strip()))


def zone(text: Any) -> ZoneInfo:
    """Read the name of a time zone."""
    try:
        return ZoneInfo(str(text))
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(f"{text!r}, expected a name like Europe/Amsterdam") from None


def web_url(text: Any) -> str:
    """Read the URL of a site or folder, without the slash at its end; empty = none."""
    url = str(text).strip().rstrip("/")
    if url and not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", url):
        raise ValueError(f"{text!r}, expected for example https://lcc.example.org")
    return url


def address(text: Any) -> str:
    """Read where other machines find this one; empty = not said."""
    found = str(text).strip()
    if found and (len(found) > _ADDRESS_MAX or not _is_address(found)):
        raise ValueError(f"{text!r}, expected for example https://m2.example.org:8081")
    return found.rstrip("/")


def machines(text: Any) -> dict[int, str]:
    """Read the addresses of machines by their numbers."""
    return dict(_machine(one) for one in read.listed(text))


def _machine(text: str) -> tuple[int, str]:
    number, equals, found = text.partition("=")
    if not equals or not _is_address(found):
        raise ValueError(f"{text!r}, expected for example 2=https://m2.example.org:8081")
    return read.at_least_one(number), found.rstrip("/")


def _is_address(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not parts.query
