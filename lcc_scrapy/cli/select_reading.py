"""What becomes of changes that ``lcc select`` reads, of one LCC or of a front."""

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from lcc_scrapy.cli.context import Failure, Lcc
from lcc_scrapy.cli.exec_command import as_lines, command_of
from lcc_scrapy.cli.feed_options import Place
from lcc_scrapy.cli.select_output import Printer
from lcc_scrapy.domain.selection import Change
from lcc_scrapy.feed.following import Batch
from lcc_scrapy.feed.reader import Reading
from lcc_scrapy.feed.row_formats import Record

P = TypeVar("P")
Told = Callable[[Sequence[Change]], list[Record]]
"""What makes records of what was read last."""


def print_changes(reader: Reading[P], where: Place[P], told: Told, shown: Printer) -> P:
    """Print what is selected; returns the position reached when all of it was taken by stdout."""
    where.begin(reader.position)
    shown.begin()
    for page in reader.pages():
        shown.page(told(page))
    shown.end()
    sys.stdout.flush()
    return reader.position


def hand_over(lcc: Lcc, reader: Reading[P], where: Place[P], told: Told, command: str) -> P:
    """Give what is selected to a command; what it took is kept, whatever becomes of the rest."""
    where.begin(reader.position)
    handing = command_of(lcc, command)
    for page in reader.pages():
        batch = Batch(page, reader.position, reader.reached, 0)
        status = handing.run(as_lines(told(page)), batch)
        if status:
            raise Failure(f"the command ended with status {status}: {len(page)} changes come again")
        where.keep(reader.reached)
    return reader.position
