"""What the processes of a crawl count, each in a file of its own in the crawl's folder."""

import os
from pathlib import Path

TITLES, PASSAGES = "titles", "passages"
"""Items that a team's own pipeline had; documents that went through ``LccPipeline``."""


def write(name: str, count: int) -> None:
    """Leave a count of this process where it was started."""
    Path(f"{name}-{os.getpid()}").write_text(str(count))


def total(folder: Path, name: str) -> int:
    """Add up what all processes have counted."""
    return sum(int(path.read_text()) for path in folder.glob(f"{name}-*"))
