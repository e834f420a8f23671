"""Hours of the day or week in which fetching is permitted (seed 001 "Fetching", 003 "Time Of Day").

A mask has 24 slots (hours of a day) or 168 (hours of a week, Monday 0 h first). It is kept as text of
``0`` and ``1``; the empty text means "always". Whether an hour is open is decided from UTC at each
look, in the provider's time zone, so that daylight-saving changes need no bookkeeping.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta, tzinfo

from lcc_scrapy.domain.errors import UrlRefused

HOURS_PER_DAY = 24
HOURS_PER_WEEK = 168
_QUARTER = 900
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_ALIASES = {
    "sunday": "sun",
    "monday": "mon",
    "tuesday": "tue",
    "wednesday": "wed",
    "thursday": "thu",
    "friday": "fri",
    "saturday": "sat",
}
_RANGE = re.compile(
    r"(?P<no>!)?(?:(?P<days>[a-z]+(?:-[a-z]+)?)(?:\s+|$))?(?:(?P<start>\d{1,2})-(?P<end>\d{1,2}))?"
)

NOTATION_MAX = 512
"""Characters of a notation; all days with three ranges each take half of it."""

_WEEK = (1 << HOURS_PER_WEEK) - 1

ALWAYS = ""
"""The mask of somebody to whom all hours are equal."""


def parse_mask(text: str, slots: int = HOURS_PER_WEEK) -> str:
    """Parse mask notation into ``0``/``1`` text of ``slots`` (24 or 168) characters.

    Notation: parts separated by commas; ``0-8`` (end excluded, may run past midnight), ``mon-fri 20-06``,
    ``sat``; a leading ``!`` prohibits; or the bits themselves. Text with only prohibitions starts from
    "always". Raises ``UrlRefused`` 706 for what cannot be read, for days in a 24-slot LCC, or for more than
    ``NOTATION_MAX`` characters.
    """
    if len(text) > NOTATION_MAX:
        raise UrlRefused(706, f"time mask of {len(text)} characters, at most {NOTATION_MAX}")
    text = text.strip().lower()
    if not text:
        return ALWAYS
    if re.fullmatch(r"[01]+", text):
        return _fit(text, slots)
    parts = [part.strip() for part in text.split(",")]
    week = _WEEK if all(part.startswith("!") for part in parts) else 0
    for part in parts:
        hours = _hours(part, days_known=slots == HOURS_PER_WEEK)
        week = week & ~hours if part.startswith("!") else week | hours
    return f"{week:0{HOURS_PER_WEEK}b}"[::-1][:slots]


def _fit(bits: str, slots: int) -> str:
    if len(bits) == slots:
        return bits
    if len(bits) == HOURS_PER_DAY and slots == HOURS_PER_WEEK:
        return bits * 7
    raise UrlRefused(706, f"time mask of {len(bits)} bits, expected {slots}")


def _hours(part: str, *, days_known: bool) -> int:
    """Return the hours that a part names, hour ``n`` of the week as bit ``n``."""
    match = _RANGE.fullmatch(part)
    if match is None or not (match["days"] or match["start"]):
        raise UrlRefused(706, f"time mask {part!r}, expected for example 'mon-fri 20-06'")
    if match["days"] and not days_known:
        raise UrlRefused(706, f"time mask {part!r} names days, but this LCC has 24 slots")
    start, end = int(match["start"] or 0), int(match["end"] or HOURS_PER_DAY)
    if start >= HOURS_PER_DAY or end > HOURS_PER_DAY:
        raise UrlRefused(706, f"time mask {part!r}, hours run from 0 to 24")
    if end <= start:
        end += HOURS_PER_DAY
    hours = (1 << end) - (1 << start)
    days = sum(1 << day * HOURS_PER_DAY for day in _days(match["days"]))
    found = hours * days  # no more than a day each, so that no two of them overlap
    return found & _WEEK | found >> HOURS_PER_WEEK


def _days(text: str | None) -> list[int]:
    if text is None:
        return list(range(7))
    first, _, last = text.partition("-")
    start = _day(first)
    end = _day(last) if last else start
    return [(start + step) % 7 for step in range((end - start) % 7 + 1)]


def _day(name: str) -> int:
    name = _ALIASES.get(name, name)
    if name not in _DAYS:
        raise UrlRefused(706, f"day {name!r}, expected one of {', '.join(_DAYS)}")
    return _DAYS.index(name)


def intersect(first: str, second: str) -> str:
    """Return the hours open in both masks; all zeros when there are none."""
    if not first or not second:
        return first or second
    if len(first) != len(second):
        first, second = _fit(first, HOURS_PER_WEEK), _fit(second, HOURS_PER_WEEK)
    return "".join("1" if pair == ("1", "1") else "0" for pair in zip(first, second, strict=True))


def unite(masks: Iterable[str]) -> str:
    """Return the hours of the week open in any of the masks, none of which is empty (always open)."""
    bits = 0
    for mask in masks:
        bits |= int(_fit(mask, HOURS_PER_WEEK), 2)
    return f"{bits:0{HOURS_PER_WEEK}b}"


def never_opens(mask: str) -> bool:
    """Tell whether a mask has no permitted hour at all (708)."""
    return bool(mask) and "1" not in mask


def first_slot(mask: str) -> int:
    """Return the first permitted slot, or -1 for "any time" (the seed's STARTTIMESLOT)."""
    return mask.index("1") if mask else -1


def permits(mask: str, now: float, zone: tzinfo) -> bool:
    """Tell whether fetching is permitted at ``now`` (epoch seconds)."""
    if not mask:
        return True
    local = datetime.fromtimestamp(now, UTC).astimezone(zone)
    slot = local.weekday() * HOURS_PER_DAY + local.hour
    return mask[slot % len(mask)] == "1"


def next_permitted(mask: str, now: float, zone: tzinfo) -> float:
    """Return the first moment from ``now`` on at which fetching is permitted (epoch seconds).

    Infinity when the mask never opens. Steps from local quarter to local quarter, so that hours which
    daylight-saving changes skip, double or cut come out right (some zones change at a quarter to).
    """
    if never_opens(mask):
        return float("inf")
    moment = now
    for _ in range(4 * (HOURS_PER_WEEK + 2 * HOURS_PER_DAY)):
        if permits(mask, moment, zone):
            return moment
        local = datetime.fromtimestamp(moment, UTC).astimezone(zone)
        into_quarter = local.minute % 15 * 60 + local.second + local.microsecond / 1e6
        moment = round(moment - into_quarter) + _QUARTER
    return float("inf")


def next_at(hour: time, now: int, zone: tzinfo) -> int:
    """Return when an hour next comes, by the clock of a time zone; all in epoch seconds.

    An hour that a change of the clock leaves out comes an hour later, one that comes twice counts once.
    """
    today = datetime.fromtimestamp(now, zone).date()
    days = (today + timedelta(days=number) for number in (0, 1, 2))
    times = (int(datetime.combine(day, hour, zone).timestamp()) for day in days)
    return next(at for at in times if at > now)
