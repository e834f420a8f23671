"""Printing: tables on a terminal, tab-separated columns in a pipe, JSON on request."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import click

from lcc_scrapy.domain.printable import printable
from lcc_scrapy.domain.shown import ago, duration, hours, moment, size, span

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["ago", "duration", "hours", "moment", "size", "span"]

Row = Sequence[object]
_SHORT = 20
"""Characters that a column on a terminal does not break; only longer ones fold."""
_AT_ONCE = 1000
"""Rows that are written to a pipe at once."""


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
