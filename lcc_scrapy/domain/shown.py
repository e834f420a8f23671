"""Times, periods, sizes and hours as people read them: in commands and on pages."""

from collections.abc import Iterator
from datetime import UTC, datetime

BLANK = "\u202f"
"""Stands between the thousands of a number: narrow, and no line breaks there."""

_K = 1000
_DAY = 24
_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def moment(at: float) -> str:
    """Show epoch seconds in UTC; nothing for 0."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ") if at else ""


def ago(seconds: int) -> str:
    """Show a period in its largest unit: ``3 d``, ``5 h``, ``12 min``, ``40 s``."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def number(count: int) -> str:
    """Show a count with blanks between its thousands: ``1 000 000``. What programs read has none."""
    return f"{count:,}".replace(",", BLANK)


def size(count: int) -> str:
    """Show a number of bytes: ``1.5 MB`` (k = 1000)."""
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < _K or unit == "TB":
            break
        value /= _K
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def span(seconds: int) -> str:
    """Write a number of seconds as settings have it, in the largest unit that it is a multiple of."""
    fitting = (
        (length, unit) for length, unit in ((86_400, "d"), (3600, "h"), (60, "m")) if not seconds % length
    )
    length, unit = next(fitting, (1, "s"))
    return f"{seconds // length}{unit}"


def duration(seconds: int) -> str:
    """Show how long something has lasted, in its two largest units: ``2 d 4 h``, ``3 min 20 s``."""
    units = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))
    first = next((place for place, (_, length) in enumerate(units) if seconds >= length), len(units) - 1)
    shown: list[str] = []
    for unit, length in units[first : first + 2]:
        count, seconds = divmod(seconds, length)
        shown += [f"{count} {unit}"] if count or not shown else []
    return " ".join(shown)


def hours(mask: str) -> str:
    """Show a mask of 24 or 168 slots in the notation that ``--timeofday`` reads."""
    if "0" not in mask:
        return "always"
    days_of: dict[str, list[int]] = {}
    for start, length in _runs(mask):
        for day, span in _per_day(start, length):
            days_of.setdefault(span, []).append(day)
    if len(mask) == _DAY:
        return ",".join(days_of) or "never"
    spans = (f"{days} {span}".strip() for span, its in days_of.items() for days in _day_ranges(its))
    return ",".join(spans) or "never"


def _runs(mask: str) -> Iterator[tuple[int, int]]:
    """Yield (first slot, number of slots) of open hours; one may run past the end of the mask."""
    for start, bit in enumerate(mask):
        if bit == "1" and mask[start - 1] == "0":
            yield start, (mask[start:] + mask).index("0")


def _per_day(start: int, length: int) -> Iterator[tuple[int, str]]:
    """Cut a run into spans that begin on a day each; one past midnight is kept whole up to a day."""
    while length > 0:
        hour = start % _DAY
        taken = length if length <= _DAY else _DAY - hour
        end = (hour + taken) % _DAY or _DAY
        yield start // _DAY % 7, f"{hour}-{end}"
        start, length = start + taken, length - taken


def _day_ranges(days: list[int]) -> Iterator[str]:
    days = [] if len(days) == len(_NAMES) else sorted(days)
    if not days:
        yield ""
    while days:
        count = next((n for n, day in enumerate(days) if day != days[0] + n), len(days))
        first, last = _NAMES[days[0]], _NAMES[days[count - 1]]
        yield first if count == 1 else f"{first}-{last}"
        days = days[count:]
