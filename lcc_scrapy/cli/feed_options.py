"""Options that say what of the feed is wanted, and from where on: the same for all commands that read it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

import click

from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.selection import Selection, is_pattern
from lcc_scrapy.feed.cursor_file import CursorFile

Command = Callable[..., Any]
P = TypeVar("P")


def moment(_ctx: click.Context | None, _param: click.Parameter | None, text: str | None) -> int | None:
    """Read a time as an option's value: epoch seconds."""
    if text is None:
        return None
    try:
        if text.strip().isdecimal():
            return int(text)
        at = datetime.fromisoformat(text.strip())
        return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{text!r}, expected epoch seconds or ISO 8601") from None


def patterns(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return mimetypes or patterns of them, checked."""
    found = tuple(text.strip().lower() for text in given)
    for text in found:
        if not is_pattern(text):
            raise click.BadParameter(f"{text!r}, expected for example text/html or 'text/*'")
    return found


_FILTERS = (
    click.option(
        "--provider",
        "providers",
        type=click.IntRange(1),
        multiple=True,
        metavar="PID",
        help="Only this provider's documents; may be repeated.",
    ),
    click.option(
        "--mimetype",
        "mimetypes",
        callback=patterns,
        multiple=True,
        metavar="PATTERN",
        help="Only documents of this type, for example 'text/*'; may be repeated.",
    ),
    click.option(
        "--subtype",
        "subtypes",
        multiple=True,
        metavar="TEXT",
        help="Only documents of this subtype; 'lang:*' means all that begin with lang:. May be repeated.",
    ),
    click.option(
        "--url-prefix",
        "url_prefixes",
        multiple=True,
        metavar="PREFIX",
        help="Only documents whose conceptual URL (curl) begins with PREFIX; may be repeated.",
    ),
    click.option(
        "--since-time",
        "since_time",
        callback=moment,
        metavar="TIME",
        help="Only documents fetched or removed after TIME: epoch seconds or ISO 8601 (UTC by default).",
    ),
)
_PLACES = (
    click.option("--since", "cursor", metavar="CURSOR", help="Only changes after this cursor."),
    click.option(
        "--cursor-file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Keep the cursor in FILE: read it if it exists, replace it when the changes were taken.",
    ),
)


def filters(command: Command) -> Command:
    """Give a command the options of a selection; it gets them as ``selection``."""

    @wraps(command)
    def selecting(*args: Any, providers: Any, mimetypes: Any, subtypes: Any, **options: Any) -> Any:
        prefixes, since = options.pop("url_prefixes"), options.pop("since_time")
        selection = Selection(providers, mimetypes, subtypes, prefixes, since)
        return command(*args, selection=selection, **options)

    return _with(_FILTERS, selecting)


def places(command: Command) -> Command:
    """Give a command ``--since`` and ``--cursor-file``."""
    return _with(_PLACES, command)


def _with(options: tuple[Callable[[Command], Command], ...], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


class Place(Generic[P]):
    """Where a command begins to read, and where it keeps how far it came."""

    def __init__(self, since: P | None, file: CursorFile[P] | None) -> None:
        self.since = since
        self._file = file

    def begin(self, position: P) -> None:
        """Note, before anything is handed out, when somebody began who had no cursor."""
        if self.since is None:
            self.keep(position)

    def keep(self, position: P) -> None:
        """Note how far what was read has been taken."""
        if self._file is not None:
            self._file.write(position)


@overload
def place(
    cursor: str | None, cursor_file: Path | None, *, reads: bool = True
) -> AbstractContextManager[Place[Position]]: ...


@overload
def place(
    cursor: str | None, cursor_file: Path | None, *, parse: Callable[[str], P]
) -> AbstractContextManager[Place[P]]: ...


@contextmanager
def place(
    cursor: str | None,
    cursor_file: Path | None,
    *,
    reads: bool = True,
    parse: Callable[[str], Any] = Position.parse,
) -> Iterator[Place[Any]]:
    """Open the place that ``--since`` or ``--cursor-file`` name; a file is locked meanwhile.

    Without ``reads`` a file is only written. ``parse`` reads a cursor.
    """
    if cursor is not None and cursor_file is not None:
        raise click.UsageError("--since goes not with --cursor-file")
    with CursorFile(cursor_file, parse) if cursor_file else nullcontext() as file:
        since = parse(cursor) if cursor is not None else file.read() if file and reads else None
        yield Place(since, file)
