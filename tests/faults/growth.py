"""How the cost of reading foreign input grows: CPU and peak memory, as slopes against a harmless input.

A ``Parser`` reads what a site, a provider or a content user sends. Each of its ``Dimension`` makes an input
of about ``n`` bytes that grows in one way: items, nesting, repetition, the length of one thing, or a product of
two. ``check`` measures it at ``n`` and ``4n``, and holds two things:

* CPU grows by no more than ``STEEPEST`` when the input doubles: 2 is linear, 4 is quadratic. That does not
  count where it is cheaper than a harmless input, or where the parser's bound is reached;
* at the largest size, CPU and peak memory are within a factor of those of a harmless input of as many bytes.

CPU is that of the process, in the fastest of several runs, so that other programs do not count. Memory is what
Python allocates, and for parsers in C the growth of the resident set.
"""

import ctypes
import gc
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import log2
from pathlib import Path
from typing import Any

from tests.pace import slowness

STEEPEST = 2.8
"""Growth for a doubled input."""

CPU_FACTOR, MEMORY_FACTOR = 100.0, 40.0
"""Of what a harmless input costs, or where that is more: of ``FAIR_CPU``, and for memory of the input's size."""

FAIR_CPU = 10e-9
"""Seconds for a byte, on a machine that is as fast as ``tests.pace`` says. What is harmless to a parser in C would make everything else look expensive."""

LEAST_CPU = 0.001
"""Seconds of a measurement: what takes less is repeated."""

_RESIDENT_SLACK = 24 << 20
"""Bytes below which the resident set is noise."""

_RUNS = 2
_TRIES = 3
_HOPELESS = 0.5
"""CPU seconds after which one run is enough."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """One way for an input to grow: ``make(n)`` returns one of about ``n`` bytes."""

    name: str
    make: Callable[[int], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Parser:
    """What reads foreign input.

    ``where``: the thread or process that runs it; ``bound``: bytes of one input; ``start``: the smallest size
    measured. ``resident``: it allocates outside of Python. ``harmless`` is what one expects to be sent;
    ``fair_cpu`` (seconds for a byte) and ``slack`` (bytes) are what reading may take at least.
    """

    name: str
    where: str
    bound: int
    read: Callable[[Any], object]
    harmless: Callable[[int], Any]
    dimensions: tuple[Dimension, ...]
    start: int = 16_000
    resident: bool = False
    fair_cpu: float = FAIR_CPU
    slack: int = 1 << 20

    def sizes(self, times: int) -> tuple[int, int]:
        """Return the two sizes to measure, none above the bound; ``times`` as large as in a short run."""
        least = min(self.start * times, self.bound // 4)
        return least, 4 * least


def grown(name: str, unit: str | bytes, head: str | bytes = b"", tail: str | bytes = b"") -> Dimension:
    """Return a dimension in which ``unit`` is repeated between ``head`` and ``tail``."""
    before, one, after = (text.encode() if isinstance(text, str) else text for text in (head, unit, tail))
    return Dimension(
        name, lambda n: before + one * max(1, (n - len(before) - len(after)) // len(one)) + after
    )


@dataclass(frozen=True, slots=True)
class Cost:
    """What reading one input takes: CPU seconds, and bytes at the peak."""

    cpu: float
    memory: int


def cpu_of(read: Callable[[Any], object], given: Any) -> float:
    """Return the CPU seconds of reading an input once."""
    times, taken = 1, _cpu(read, given, 1)
    while taken < LEAST_CPU and times < 1 << 16:
        times *= max(2, min(64, int(1.5 * LEAST_CPU / max(taken, 1e-6))))
        taken = _cpu(read, given, times)
    again = 0 if taken > _HOPELESS else _RUNS - 1
    return min([taken, *(_cpu(read, given, times) for _ in range(again))]) / times


def _cpu(read: Callable[[Any], object], given: Any, times: int) -> float:
    begun = time.process_time()
    for _ in range(times):
        read(given)
    return time.process_time() - begun


def memory_of(parser: Parser, given: Any) -> int:
    """Return the bytes that reading an input takes at its peak."""
    return _resident(parser.read, given) if parser.resident else _allocated(parser.read, given)


def _allocated(read: Callable[[Any], object], given: Any) -> int:
    tracemalloc.start()
    try:
        kept = read(given)
        del kept
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _resident(read: Callable[[Any], object], given: Any) -> int:
    ctypes.CDLL(None).malloc_trim(0)
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    kept = read(given)
    del kept
    return max(0, _status("VmHWM") - before)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))


@cache
def _harmless_cpu(parser: Parser, size: int) -> float:
    return cpu_of(parser.read, parser.harmless(size))


@cache
def _harmless_memory(parser: Parser, size: int) -> int:
    return memory_of(parser, parser.harmless(size))


@dataclass(frozen=True, slots=True)
class Finding:
    """What was measured of one dimension at its largest size, and what is wrong with it (empty = nothing)."""

    parser: str
    dimension: str
    size: int
    cost: Cost
    slope: float
    factor: float
    wrong: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.parser}, {self.dimension}: {self.size} bytes, {self.cost.cpu * 1e3:.2f} ms,"
            f" {self.slope:.1f} x for a doubled input, {self.factor:.1f} x fair,"
            f" peak {self.cost.memory / 1e6:.1f} MB {'; '.join(self.wrong)}"
        )


def _slack(parser: Parser) -> int:
    return max(parser.slack, _RESIDENT_SLACK if parser.resident else 0)


def _fair_memory(parser: Parser, size: int, taken: int) -> int:
    """Return what reading so many bytes may take, which is measured only where their number does not do."""
    if taken <= max(_slack(parser), MEMORY_FACTOR * size):
        return size  # to watch every allocation costs several times what reading does
    return max(_harmless_memory(parser, size), size)


def measure(parser: Parser, dimension: Dimension, times: int = 1) -> Finding:
    """Measure one dimension of a parser at its smallest size and at four times that, each ``times`` as large."""
    small, large = parser.sizes(times)
    first = max(cpu_of(parser.read, dimension.make(small)), 1e-9)
    given = dimension.make(large)
    cost = Cost(cpu_of(parser.read, given), memory_of(parser, given))
    slope = (cost.cpu / first) ** (1 / log2(large / small))
    factor = cost.cpu / max(_harmless_cpu(parser, large), parser.fair_cpu * large)
    if factor > CPU_FACTOR:
        factor /= slowness()
    fair = _fair_memory(parser, large, cost.memory)
    goes_on = 2 * large <= parser.bound
    wrong = (
        (goes_on and factor > 1 and slope > STEEPEST, f"CPU grows {slope:.1f} x for a doubled input"),
        (factor > CPU_FACTOR, f"CPU is {factor:.0f} x what is fair"),
        (
            cost.memory > max(_slack(parser), MEMORY_FACTOR * fair),
            f"memory is {cost.memory / fair:.0f} x what is fair",
        ),
    )
    told = tuple(what for is_wrong, what in wrong if is_wrong)
    return Finding(parser.name, dimension.name, large, cost, slope, factor, told)


def check(parser: Parser, dimension: Dimension, times: int = 1) -> None:
    """Measure, and again where something seems wrong; raises ``AssertionError`` when it stays wrong."""
    gc.freeze()  # looking for garbage among all that other tests left would count as reading
    try:
        for _ in range(_TRIES):
            found = measure(parser, dimension, times)
            if not found.wrong:
                return
            _harmless_cpu.cache_clear()
            _harmless_memory.cache_clear()
    finally:
        gc.unfreeze()
    raise AssertionError(str(found))
