"""Where blocking jobs of the database are run: seen from a coroutine."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar

from lcc_scrapy.db.thread import StoreThread

T = TypeVar("T")


class Work(Protocol):
    """Runs a blocking job of the database where such jobs are run."""

    def __call__(self, job: Callable[..., T], /, *args: Any) -> Awaitable[T]: ...


async def at_once(job: Callable[..., T], /, *args: Any) -> T:
    """Run a job here: for a process that does nothing else meanwhile."""
    return job(*args)


def in_thread(thread: StoreThread) -> Work:
    """Return what runs jobs in a process's store thread."""

    async def work(job: Callable[..., T], /, *args: Any) -> T:
        return await thread.run(job, *args).asFuture(asyncio.get_running_loop())

    return work


def in_executor(executor: Executor) -> Work:
    """Return what runs jobs in an executor, one at a time where that has one thread."""

    async def work(job: Callable[..., T], /, *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(executor, job, *args)

    return work
