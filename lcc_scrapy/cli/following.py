"""What ``lcc follow`` does with changes as they happen, of one LCC or of a front."""

import signal
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from lcc_scrapy.cli import printing
from lcc_scrapy.cli.context import Lcc
from lcc_scrapy.cli.exec_command import command_of
from lcc_scrapy.cli.feed_options import Place
from lcc_scrapy.feed.command import Command
from lcc_scrapy.feed.following import Batch, Follower, Source

P = TypeVar("P")


def follow_changes(
    lcc: Lcc,
    source: Source[P],
    where: Place[P],
    lines: Callable[[Batch[P]], bytes],
    command: str | None,
    *,
    limit: int,
    once: bool,
) -> P | None:
    """Pass changes, as ``lines``, to a command or to stdout; returns how far they were taken."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    handing = command_of(lcc, command, stopping=stopping.is_set) if command is not None else None
    follower = Follower(
        source,
        where.since,
        deliver=lambda batch: _deliver(handing, batch, lines(batch)),
        keep=where.keep,
        pause=lambda seconds: not stopping.wait(seconds),
        poll=lcc.config.poll,
    )
    follower.run(limit=limit, once=once)
    return follower.position


def _deliver(handing: Command | None, batch: Batch[P], lines: bytes) -> bool:
    if handing is None:
        sys.stdout.buffer.write(lines)
        sys.stdout.flush()
        return True
    status = handing.run(lines, batch)
    if status:
        count = len(batch.changes)
        printing.note(f"the command ended with status {status}: trying {count} changes again later")
    return not status
