"""The disks that a process writes to: how much room they have, and the ballast for when there is none."""

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from lcc_scrapy.domain.free_space import Reserve
from lcc_scrapy.machine.ballast import Ballast

_log = logging.getLogger(__name__)


def free_bytes(folder: Path) -> int:
    """Return what may still be written to the disk of a folder."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


class Disks:
    """The disks that a process writes to, by one folder each, and the ballast. Everything here blocks."""

    def __init__(self, folders: Iterable[Path], reserve: Reserve, ballast: Ballast) -> None:
        self._folders = list(folders)
        self._reserve = reserve
        self._ballast = ballast
        self._home = self._folders[0]

    def look(self, *, resting: bool, full: bool) -> str:
        """Give up or renew the ballast; return why nothing new may be begun, empty = it may."""
        free = free_bytes(self._home)
        if self._ballast.is_held:
            if self._reserve.gives_up(free, full=full) and self._ballast.give_up():
                _log.warning("the disk of %s is full: deleted the ballast file", self._home)
        elif not full and self._reserve.renews(free):
            self._ballast.make()
        return self.shortage(resting=resting)

    def shortage(self, *, resting: bool = False) -> str:
        """Return what is short, empty = nothing."""
        wanted = self._reserve.wanted(resting=resting)
        for folder, free in self.free().items():
            if free < wanted:
                return (
                    f"{free} bytes free on the disk of {folder}, LCC_DISK_MIN_FREE is {self._reserve.floor}"
                )
        if not self._ballast.is_held:
            return f"no room for the ballast file in {self._home}"
        return ""

    def free(self) -> Mapping[Path, int]:
        """Return the free space of each disk, by the first of its folders."""
        disks: dict[int, Path] = {}
        for folder in self._folders:
            if folder.is_dir():
                disks.setdefault(folder.stat().st_dev, folder)
        return {folder: free_bytes(folder) for folder in disks.values()}
