"""Printing: tables on a terminal, tab-separated columns in a pipe, JSON on request."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import click

from lcc_scrapy.domain.printable import printable

if TYPE_CHECKING:
    from rich.table import Table

Row = Sequence[object]
_K = 1000
_SHORT = 20
"""Characters that a column on a terminal does not break; only longer ones fold."""
_AT_ONCE = 1000
"""Rows that are written to a pipe at once."""
_DAY = 24
_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")(command)


def as_json(value: object) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def utf8(text: str) -> None:
    """Print all of it as UTF-8, whatever the locale: URLs hold any character.

    An unbuffered stdout (``python -u``) may take a part only.
    """
    view = memoryview(text.encode("utf-8", "backslashreplace"))
    while view:
        view = view[sys.stdout.buffer.write(view) :]


def note(text: str) -> None:
    """Say something that is not a result."""
    click.echo(f"lcc: {plain(text)}", err=True)


def plain(value: object) -> str:
    """Return one line without anything a terminal could take for a command."""
    return printable("" if value is None else str(value))


def json_list(values: Iterable[dict[str, Any]]) -> None:
    """Print values as a JSON list, each as it comes: a member of it a line."""
    begin = "["
    for value in values:
        members = _MEMBERS.encode(value)[1:-1]
        click.echo(f"{begin}\n  {{\n    {members}\n  }}", nl=False)
        begin = ","
    click.echo("[]" if begin == "[" else "\n]")


_MEMBERS = json.JSONEncoder(ensure_ascii=False, default=str, separators=(",\n    ", ": "))


def table(columns: Sequence[str], rows: Iterable[Row]) -> int:
    """Print rows below the names of their columns, nothing when there are none; returns how many there were.

    In a pipe each is printed as it comes; a terminal's columns are as wide as their widest cell.
    """
    if sys.stdout.isatty():
        rows = list(rows)
        if rows:
            _print_rich(rich_table(columns, rows))
        return len(rows)
    count, rows = 0, iter(rows)
    while some := list(islice(rows, _AT_ONCE)):
        click.echo(("" if count else "\t".join(columns) + "\n") + tabbed(some), nl=False)
        count += len(some)
    return count


def tabbed(rows: Iterable[Row]) -> str:
    """Return rows as lines of tab-separated columns."""
    return "".join("\t".join(map(plain, row)) + "\n" for row in rows)


def rich_table(columns: Sequence[str], rows: Iterable[Row]) -> "Table":
    """Return a table for a terminal; numbers stand to the right."""
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(columns):
        cells = [row[number] for row in rows]
        shown.add_column(
            name,
            justify="right" if all(isinstance(cell, int) for cell in cells) else "left",
            no_wrap=all(len(plain(cell)) <= _SHORT for cell in cells),
            overflow="fold",
        )
    for row in rows:
        shown.add_row(*(Text(plain(cell)) for cell in row))
    return shown


def _print_rich(shown: object) -> None:
    from rich.console import Console

    Console(highlight=False, markup=False).print(shown)


def facts(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names with their values, one a line."""
    pairs = [(name, plain(value)) for name, value in pairs]
    width = max((len(name) for name, _ in pairs), default=0)
    click.echo("\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in pairs))


def moment(at: float) -> str:
    """Show epoch seconds in UTC; nothing for 0."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ") if at else ""


def ago(seconds: int) -> str:
    """Show a period in its largest unit: ``3 d``, ``5 h``, ``12 min``, ``40 s``."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


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


class Progress(Protocol):
    """What to call with the number done, and with the number in all when that is known only then."""

    def __call__(self, done: int, total: int | None = None, /) -> None: ...


@contextmanager
def progress(text: str, total: int = 0) -> Iterator[Progress]:
    """Show how far something is, if somebody looks."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _done, _total=None: None
        return
    with Progress(console=console, transient=True) as shown:
        task = shown.add_task(text, total=total or None)
        yield lambda done, total=None: shown.update(task, completed=done, total=total)
