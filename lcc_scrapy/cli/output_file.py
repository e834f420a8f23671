"""Output into a file that is there when it is complete, or to stdout."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO

from lcc_scrapy.cli.context import Failure


@contextmanager
def tidy_when_told_to_stop() -> Iterator[None]:
    """Let SIGTERM end the block like an exception, so that half of a file is taken away; status 143."""
    before = signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)  # a second one need not wait
    raise SystemExit(128 + number)


@contextmanager
def to_file(output: Path) -> Iterator[IO[bytes]]:
    """Open what is written to; a file gets its name when all of it is on disk."""
    if output == Path("-"):
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    if not output.parent.is_dir():
        raise Failure(f"{output}: there is no folder {output.parent}")
    part = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        part.replace(output)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    folder = os.open(output.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
