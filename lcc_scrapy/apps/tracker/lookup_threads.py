"""Look-ups that block, in threads of their own: so many at a time, so many waiting, for so long."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Busy(Exception):
    """So many look-ups wait that another one is not begun."""


class LookupThreads:
    """Threads for look-ups; ``pending`` are at work or wait, also those that nobody waits for any more."""

    def __init__(self, threads: int, most_pending: int, seconds: float) -> None:
        self._pool = ThreadPoolExecutor(threads, "lookup")
        self._most = most_pending
        self._seconds = seconds
        self.pending = 0

    async def do(self, work: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
        """Do work in a thread; raises ``Busy``, ``TimeoutError``, or what the work does."""
        if self.pending >= self._most:
            raise Busy
        self.pending += 1
        loop = asyncio.get_running_loop()
        future = self._pool.submit(work, *args, **kwargs)
        future.add_done_callback(lambda one: self._done(loop, one))
        async with asyncio.timeout(self._seconds):
            return await asyncio.wrap_future(future)

    def _done(self, loop: asyncio.AbstractEventLoop, _future: Future[Result]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._one_less)

    def _one_less(self) -> None:
        self.pending -= 1

    def close(self) -> None:
        """Begin nothing more; what is at work is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
