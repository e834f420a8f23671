"""The user's command (``--exec``), and the JSON lines that it gets."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

from lcc_scrapy.cli.context import Lcc
from lcc_scrapy.domain.directives import Owners
from lcc_scrapy.domain.selection import Change
from lcc_scrapy.feed.command import Command
from lcc_scrapy.feed.row_formats import JsonLines, PathOf, Record, records


def json_lines(changes: Sequence[Change], path_of: PathOf, owners: Owners) -> bytes:
    """Return changes as lines, in UTF-8."""
    return as_lines(records(changes, path_of, owners))


def as_lines(told: Iterable[Record]) -> bytes:
    """Return records as lines, in UTF-8."""
    return JsonLines().records(told).encode("utf-8", "backslashreplace")


def command_of(lcc: Lcc, command: str, **options: Any) -> Command:
    """Return a user's command; settings that were given with ``-s`` hold for it as well."""
    return Command(command, {**os.environ, **lcc.given}, patience=lcc.config.stop_timeout, **options)
