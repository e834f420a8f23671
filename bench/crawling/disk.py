"""What a disk takes: the rate of ``dd`` with a final fsync."""

import subprocess
import time
from pathlib import Path

AMOUNT = 400_000_000
"""Bytes that are written: some seconds' worth of a crawl."""

_BLOCK = 1_000_000


def written_by_dd(folder: Path, size: int, amount: int = AMOUNT) -> float:
    """Return how many pages of ``size`` bytes ``dd`` writes per second, until all of them are durable."""
    file = folder / "written-by-dd"
    blocks = amount // _BLOCK
    command = ["dd", "if=/dev/zero", f"of={file}", f"bs={_BLOCK}", f"count={blocks}", "conv=fsync"]
    begun = time.monotonic()
    try:
        subprocess.run(command, check=True, capture_output=True)
        return blocks * _BLOCK / size / (time.monotonic() - begun)
    finally:
        file.unlink(missing_ok=True)
