"""How people write values: durations, sizes, rates, shares, lists.

All readers raise ``ValueError`` with what was expected. Numbers and lists may also be such already, as in a
``settings.py``.
"""

import math
import re
from collections.abc import Callable, Mapping
from datetime import time
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

from lcc_scrapy.domain.revisits import Bounds
from lcc_scrapy.domain.throttling import Rate
from lcc_scrapy.domain.versions import MOST, Keep

Networks = tuple[IPv4Network | IPv6Network, ...]

_DURATION = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SIZE = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_NUMBER_WITH_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]?)b?", re.IGNORECASE)
_VERSIONS = re.compile(r"(?:(?P<count>\d{1,9})\s*(?:,\s*|$))?(?P<age>\d+(?:\.\d+)?[a-z])?", re.IGNORECASE)
_LONGEST_REVISIT = 3650 * 86400
_HIGHEST = 2


def _with_unit(text: Any, units: Mapping[str, int], example: str) -> float:
    match = _NUMBER_WITH_UNIT.fullmatch(str(text).strip())
    if match is None or match[2].lower() not in units:
        raise ValueError(f"{text!r}, expected for example {example}")
    return float(match[1]) * units[match[2].lower()]


def duration(text: Any) -> float:
    """Read a duration in seconds: ``90d``, ``12h``, ``10m``, ``30s`` or a bare number."""
    return _with_unit(text, _DURATION, "90d, 12h, 10m or 30s")


def size(text: Any) -> int:
    """Read a size in bytes: ``200k``, ``10M``, ``2G`` or a bare number (k = 1000)."""
    return int(_with_unit(text, _SIZE, "200k, 10M or 2G"))


def revisits(text: Any) -> Bounds:
    """Read intervals of adaptive revisits: ``1h..30d``, or ``1h..1d..30d`` with that of a new page."""
    try:
        return _bounds([int(duration(part)) for part in str(text).split("..")])
    except (ValueError, OverflowError):
        expected = "rising intervals like 1h..30d or 1h..1d..30d, up to 3650d"
        raise ValueError(f"{text!r}, expected {expected}") from None


def _bounds(ends: list[int]) -> Bounds:
    if len(ends) == 2:  # noqa: PLR2004 - the shortest and the longest
        ends.insert(1, round(math.sqrt(ends[0] * ends[1])))
    shortest, every, longest = ends
    if longest > _LONGEST_REVISIT:
        raise ValueError(longest)
    return Bounds(every, shortest, longest)


def period(text: Any) -> float:
    """Read a duration that is not 0."""
    seconds = duration(text)
    if not seconds:
        raise ValueError(f"{text!r}, expected more than nothing")
    return seconds


def whole_seconds(text: Any) -> int:
    """Read a duration; a fraction of a second counts as a whole one."""
    return math.ceil(duration(text))


def durations(text: Any) -> tuple[float, ...]:
    """Read durations separated by commas."""
    return tuple(map(duration, parts(text, ",")))


def parts(text: Any, pattern: str = r"[,\s]+") -> tuple[str, ...]:
    """Read several values, separated by commas or blanks, or by what else ``pattern`` says."""
    listed = text if isinstance(text, (list, tuple)) else re.split(pattern, str(text))
    return tuple(found for part in listed if (found := str(part).strip()))


def listed(text: Any) -> tuple[str, ...]:
    """Read several values separated by blanks, as they may hold commas."""
    return parts(text, r"\s+")


def networks(text: Any) -> Networks:
    """Read addresses and networks, separated by blanks."""
    return tuple(map(ip_network, listed(text)))


def words(text: Any) -> tuple[str, ...]:
    """Read several words in whichever case."""
    return tuple(part.lower() for part in parts(text))


def one_of(*choices: str) -> Callable[[Any], str]:
    """Return what reads one of these words."""

    def chosen(text: Any) -> str:
        if text not in choices:
            raise ValueError(f"{text!r}, expected {', '.join(choices[:-1])} or {choices[-1]}")
        return str(text)

    return chosen


def whole(text: Any, least: int = 0) -> int:
    """Read a whole number, 0 or more."""
    digits = str(text).strip()
    if not (digits.isascii() and digits.isdigit()) or int(digits) < least:
        raise ValueError(f"{text!r}, expected a whole number from {least} on")
    return int(digits)


def at_least_one(text: Any) -> int:
    """Read a whole number, 1 or more."""
    return whole(text, least=1)


def priority(text: Any) -> int:
    """Read the priority of a provider: 0, 1 or 2."""
    number = whole(text)
    if number > _HIGHEST:
        raise ValueError(f"{text!r}, expected 0, 1 or 2")
    return number


def share(text: Any) -> float:
    """Read a share between 0 and 1: ``50%`` or ``0.5``."""
    number, percent, rest = str(text).strip().partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if rest or not 0 <= value <= 1:
        raise ValueError(f"{text!r}, expected a share like 50%")
    return value


def rate(text: Any) -> Rate:
    """Read how often something may be: ``30/m``, ``5/h``, ``1/10s``."""
    count, _, unit = (part.strip() for part in str(text).partition("/"))
    try:
        return Rate(at_least_one(count), period(unit if unit[:1].isdigit() else unit and f"1{unit}"))
    except ValueError:
        raise ValueError(f"{text!r}, expected a rate like 30/m, 5/h or 1/10s") from None


def at_least(least: int, read: Callable[[Any], int]) -> Callable[[Any], int]:
    """Return what reads numbers as ``read`` does, from ``least`` on."""

    def bounded(text: Any) -> int:
        number = read(text)
        if number < least:
            raise ValueError(f"{text!r}, expected {least} or more")
        return number

    return bounded


def versions(text: Any) -> Keep:
    """Read how many versions are kept, for how long, or both: ``5``, ``30d``, ``5, 30d``."""
    match = _VERSIONS.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"{text!r}, expected for example 5, 30d or '5, 30d'")
    keep = Keep(int(match["count"] or 0), duration(match["age"] or 0))
    if keep.count > MOST:
        raise ValueError(f"{text!r}, expected at most {MOST} versions")
    return keep


def flag(text: Any) -> bool:
    """Read ``yes`` or ``no``, and other words for them."""
    if isinstance(text, bool):
        return text
    if str(text).lower() not in {"0", "1", "yes", "no", "true", "false", "on", "off"}:
        raise ValueError(f"{text!r}, expected yes or no")
    return str(text).lower() in {"1", "yes", "true", "on"}


def clock_time(text: Any) -> time | None:
    """Read an hour like ``06:00``; None for an empty text."""
    given = str(text).strip()
    hour, _, minute = given.partition(":")
    try:
        return time(int(hour), int(minute or 0)) if given else None
    except ValueError:
        raise ValueError(f"{text!r}, expected an hour like 06:00") from None
