"""What ``lcc export`` does with a format and a place to write to, for one LCC or for a front."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

import click

from lcc_scrapy.apps.exports.choosing import NAMES, choose
from lcc_scrapy.apps.exports.indexers.interface import IndexFormat
from lcc_scrapy.apps.exports.indexing import tell
from lcc_scrapy.apps.exports.interface import ExportFormat
from lcc_scrapy.apps.exports.writing import Writing
from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Failure, Lcc
from lcc_scrapy.cli.feed_options import Command, Place
from lcc_scrapy.cli.output_file import to_file
from lcc_scrapy.feed.reader import Reading

P = TypeVar("P")
_OPTIONS = (
    click.option(
        "--format",
        "form",
        required=True,
        metavar="FORMAT",
        help=f"What to write: {', '.join(NAMES)}, or MODULE:NAME for a format of your own.",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Path(allow_dash=True, path_type=Path),
        metavar="FILE",
        help="Where to write; FILE appears when it is complete and on disk. - is stdout."
        " Or the index to update.",
    ),
    click.option(
        "--exec", "command", metavar="CMD", help="Give the export to CMD on its stdin, instead of -o."
    ),
    click.option("--force", is_flag=True, help="Replace FILE if it exists; an index is built anew."),
    click.option("--text", is_flag=True, help="Add title and main text to rows (jsonl, parquet)."),
    click.option("--no-content", is_flag=True, help="Leave the contents out of rows (jsonl, parquet)."),
)


def outputs(command: Command) -> Command:
    """Give a command the options of an export."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen_format(name: str, *, text: bool, no_content: bool) -> ExportFormat | IndexFormat:
    """Return a format by its name, with what is wanted in its rows."""
    chosen = choose(name)
    return _with_rows(chosen, name, content=not no_content) if text or no_content else chosen


def outlet_of(
    lcc: Lcc, output: Path | None, command: str | None, *, force: bool
) -> AbstractContextManager[IO[bytes]]:
    """Return where to write: a file that is not there unless ``force`` says so, or a command."""
    if output and output.exists() and not force and output != Path("-"):
        raise Failure(f"{output} exists: name another file, or give --force")
    return to_file(output) if output else _to_command(command or "", {**os.environ, **lcc.given})


@contextmanager
def _to_command(command: str, environment: Mapping[str, str]) -> Iterator[IO[bytes]]:
    """Start a user's command and write to its stdin; nothing counts unless it took all and ended with 0."""
    with subprocess.Popen(  # noqa: S603 - what the user said
        ["/bin/sh", "-c", command],
        stdin=subprocess.PIPE,
        env=environment,
        start_new_session=True,  # it ends with us, and never takes a part for the whole
    ) as process:
        stdin = process.stdin
        assert stdin is not None
        try:
            yield stdin
            stdin.close()
        except BaseException as error:
            os.killpg(process.pid, signal.SIGTERM)
            with suppress(BrokenPipeError):
                stdin.close()
            if isinstance(error, BrokenPipeError):
                raise Failure("the command did not read everything; nothing counts as exported") from None
            raise
    if process.returncode:
        raise Failure(f"the command ended with status {process.returncode}; nothing counts as exported")


def _with_rows(form: ExportFormat | IndexFormat, name: str, *, content: bool) -> ExportFormat:
    """Return a format that writes rows, with contents or without."""
    if isinstance(form, ExportFormat) and form.rows:
        return replace(form, make=partial(form.make, content=content))
    raise click.UsageError(f"{name} has no rows: --text and --no-content go with jsonl and parquet")


def check(
    form: ExportFormat | IndexFormat, name: str, output: Path | None, command: str | None, *, keeps: object
) -> None:
    """Refuse what goes not together; ``keeps`` = somebody wants to go on from a cursor."""
    if isinstance(form, IndexFormat):
        if output in {None, Path("-")} or command or keeps:
            raise click.UsageError(f"{name} is an index that keeps its own cursor: name it with -o")
    elif keeps and form.rebuild:
        raise click.UsageError(f"{form.rebuild}: leave --since and --cursor-file out, and build it anew")
    if (output is None) == (command is None):
        raise click.UsageError("give either -o or --exec")


def write(
    make: Callable[[IO[bytes]], Writing],
    reader: Reading[P],
    where: Place[P],
    outlet: AbstractContextManager[IO[bytes]],
    *,
    start: int = 0,
    total: int = 0,
) -> None:
    """Write what is read; ``start`` and ``total`` = seqs, to show how far it is."""
    with outlet as out, printing.progress("exporting", total) as shown:
        where.begin(reader.position)
        writing = make(out)
        writing.run(reader, lambda seq: shown(seq - start))
    tell(writing.written)
