"""Runs coroutines side by side, and waits until all of them have ended, whatever ends the first."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

_T = TypeVar("_T")


async def together(jobs: Iterable[Coroutine[Any, Any, _T]]) -> list[_T]:
    """Run jobs, and return what they return; the first error ends all, and is raised when they have ended."""
    running = [asyncio.ensure_future(job) for job in jobs]
    try:
        return await asyncio.gather(*running)
    finally:
        await ended(running)


async def ended(running: Iterable[asyncio.Task[Any]]) -> None:
    """End what runs, and wait until it has."""
    left = list(running)
    for one in left:
        if not one.cancelling():  # a second time would break off what the first began to put in order
            one.cancel()
    await asyncio.gather(*left, return_exceptions=True)
