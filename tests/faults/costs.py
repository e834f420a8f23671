"""What a piece of work costs: processor time to compare within one run, and memory as it is allocated."""

import gc
import time
import tracemalloc
from collections.abc import Callable


def processor_time(work: Callable[[], object], runs: int = 3) -> float:
    """Return the least CPU seconds of some runs, of all threads together."""
    gc.disable()
    try:
        return min(_once(work) for _ in range(runs))
    finally:
        gc.enable()


def _once(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def memory(work: Callable[[], object]) -> int:
    """Return the most bytes that Python had allocated at a time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
