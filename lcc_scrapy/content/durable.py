"""Names on disk: an fsync of a file keeps its content, only one of the folder keeps its name (POSIX)."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folders(folder: Path) -> None:
    """Make a folder and those above it that are missing, durably; one that exists is left alone."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in missing:
        sync_folder(one.parent)
