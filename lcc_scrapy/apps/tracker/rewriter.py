"""A ``url_rewrite_program`` for Squid: lines in, lines out, several at a time (seed 004)."""

import asyncio
import logging
from collections.abc import Callable
from typing import BinaryIO

from lcc_scrapy.apps.tracker.lookup_threads import Busy, LookupThreads
from lcc_scrapy.apps.tracker.redirection import Better
from lcc_scrapy.apps.tracker.rules.url_rewriting import LONGEST, Asked, changed, unchanged
from lcc_scrapy.domain.errors import LccError, UrlRefused

THREADS = 10
MOST_PENDING = 1000
"""Lines that are looked up or wait; more are answered ERR at once."""

SECONDS = 5.0
"""How long a line is looked up; what takes longer is answered ERR."""

Find = Callable[[str, str], Better | None]
"""Finds a better replica of a URL for an address; blocks, and raises ``LccError``."""

_log = logging.getLogger(__name__)


class Rewriter:
    """Answers the lines of one Squid."""

    def __init__(self, find: Find, out: BinaryIO, threads: LookupThreads) -> None:
        self._find = find
        self._out = out
        self._threads = threads
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, lines: BinaryIO) -> None:
        """Answer lines until they end; each answer is written at once, in any order."""
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, _next_line, lines):
            asked = Asked.parse(line)
            if asked is not None:
                task = loop.create_task(self._answer(asked))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        await asyncio.gather(*self._tasks, return_exceptions=True)  # such as that Squid is gone

    async def _answer(self, asked: Asked) -> None:
        found = await self._found(asked) if asked.is_worth_looking_up else None
        if found is None:
            line = unchanged(asked.channel)
        else:
            line = changed(asked.channel, found.url, redirects=found.redirects)
        self._out.write(line.encode("ascii"))
        self._out.flush()

    async def _found(self, asked: Asked) -> Better | None:
        try:
            return await self._threads.do(self._find, asked.url, asked.address)
        except UrlRefused:  # which cites the URL
            _log.info("%(site)s: a malformed URL", {"site": asked.site})
        except (LccError, TimeoutError, Busy) as error:
            _log.info(
                "%(site)s: %(error)s", {"site": asked.site, "error": str(error) or type(error).__name__}
            )
        except Exception as error:  # noqa: BLE001
            _log.error("%(site)s: %(error)s", {"site": asked.site, "error": type(error).__name__})
        return None


def _next_line(lines: BinaryIO) -> bytes:
    """Return the next line, cut where it is too long; b"" at the end."""
    line = lines.readline(LONGEST)
    rest = line
    while rest and not rest.endswith(b"\n"):
        rest = lines.readline(LONGEST)
    return line
