"""Title and main text of documents, for pipelines that want to read rather than to show (``[text]``).

Pages are read by a process of its own (``text_worker``), whose time and memory are bounded: a page that
breaks it has no text, and the next one gets another process.
"""

import importlib.util
import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import IO, Any, Self

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.errors import ConfigurationError, MissingExtra
from lcc_scrapy.feed import text_worker

PAGE_MAX = 10_000_000
"""Bytes of content; what is larger is not read for its text."""

CPU_SECONDS = 10.0
PATIENCE = 120.0
"""Seconds for a page, of CPU time and in all."""


@dataclass(frozen=True, slots=True)
class PageText:
    """What there is to read in a document; None = there is none, or it could not be had."""

    title: str | None = None
    text: str | None = None


NO_TEXT = PageText()


class TextReader:
    """Reads documents of the types that have a text: HTML (main text), ``text/*`` (all of it).

    Nothing is started before the first document. ``seconds`` are those of CPU time for a page. Raises
    ``ConfigurationError`` when trafilatura is missing.
    """

    def __init__(self, seconds: float = CPU_SECONDS) -> None:
        if importlib.util.find_spec("trafilatura") is None:
            raise MissingExtra("text", "trafilatura")
        self._seconds = seconds
        self._worker: subprocess.Popen[bytes] | None = None

    def read(self, row: CachedUrl, content: IO[bytes]) -> PageText:
        """Return title and text; ``content`` is that of the row, decoded."""
        kind = (row.served_type or row.mimetype).lower()
        if not (kind in text_worker.MARKUP or kind.startswith("text/")) or row.fetched_len > PAGE_MAX:
            return NO_TEXT
        body = content.read(PAGE_MAX)
        request = json.dumps({"type": kind, "charset": row.served_charset, "size": len(body)})
        answer = self._ask(request.encode() + b"\n" + body)
        return PageText(answer["title"], answer["text"]) if answer else NO_TEXT

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.kill()
            self._worker.communicate()
            self._worker = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, request: bytes) -> dict[str, Any] | None:
        worker = self._worker = self._worker or _started(self._seconds)
        line = _answer(worker, request)
        if not line.endswith(b"\n"):
            self.close()
            return None
        answer: dict[str, Any] = json.loads(line)
        return answer


def _started(seconds: float) -> "subprocess.Popen[bytes]":
    worker = subprocess.Popen(  # noqa: S603 - this program
        [sys.executable, "-P", text_worker.__file__, str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if not name.startswith("LCC_")},
    )
    if not _answer(worker, b""):
        worker.communicate()
        raise ConfigurationError("texts cannot be extracted: what is said above ended the program for that")
    return worker


def _answer(worker: "subprocess.Popen[bytes]", request: bytes) -> bytes:
    """Hand a request over and return a line; what is not one whole line means that the worker is dead."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    timer = threading.Timer(PATIENCE, worker.kill)
    timer.start()
    try:
        worker.stdin.write(request)
        worker.stdin.flush()
        return worker.stdout.readline()
    except BrokenPipeError:
        return b""
    finally:
        timer.cancel()
