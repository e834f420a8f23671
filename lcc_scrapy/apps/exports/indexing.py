"""Bringing an index up to date for ``lcc export``."""

import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lcc_scrapy.apps.exports.indexers.interface import IndexFormat
from lcc_scrapy.apps.exports.indexers.updating import Updating
from lcc_scrapy.apps.exports.writing import Written
from lcc_scrapy.cli import printing
from lcc_scrapy.domain.cursor import BadCursor, Position, StartOver
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.feed.reader import Reader

if TYPE_CHECKING:
    from lcc_scrapy.content_user import ContentUser


def update(
    user: "ContentUser", form: IndexFormat, path: Path, selection: Selection, *, limit: int, anew: bool
) -> None:
    """Take what changed since the cursor in an index; ``anew`` = build it again, and then replace it."""
    if not anew:
        _update(user, form, path, selection, limit)
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        _update(user, form, part, selection, limit)
        _remove(path)
        part.replace(path)
        form.open(path).close()  # for one that keeps its own path
    finally:
        _remove(part)


def _update(user: "ContentUser", form: IndexFormat, path: Path, selection: Selection, limit: int) -> None:
    with closing(form.open(path)) as index:
        try:
            reader = Reader(
                user.feed, selection, Position.parse(index.cursor) if index.cursor else None, limit
            )
        except (StartOver, BadCursor) as error:
            raise type(error)(f"{error} (--force builds the index anew)") from None
        start = reader.position.seq
        with printing.progress("indexing", reader.end.seq - start) as shown:
            updating = Updating(index, user.open)
            updating.run(reader, lambda seq: shown(seq - start))
    tell(updating.written)
    click.echo(f"cursor: {reader.position}", err=True)


def tell(done: Written) -> None:
    """Say what was exported."""
    parts = [f"{done.documents} documents ({printing.size(done.size)}), {done.removals} removals"]
    if done.changed:
        parts.append(f"{done.changed} changed meanwhile and come the next time")
    if done.textless:
        parts.append(f"{done.textless} hold no text")
    printing.note("; ".join(parts))


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
