"""What a program leaves out that is to be seen to lose data by a power cut.

``CARELESS`` in the environment of a process names the care that it does not take: one of ``SYNCHRONOUS`` (SQLite
syncs less) or of ``FORGOTTEN`` (an fsync does nothing), or ``TOGETHER``, which leaves out nothing: all content files
go by syncfs. ``careless_start/sitecustomize.py`` applies it in every process that inherits it, so in the settling
process too.
"""

import os
import re
import stat
from functools import partial
from pathlib import Path
from sqlite3 import Connection, dbapi2

from lcc_scrapy.machine import group_fsync

SYNCHRONOUS = ("NORMAL", "OFF")

TOGETHER = "together"

FORGOTTEN = {
    "spool files": re.compile(r".*/spool/.*"),
    "content files": re.compile(r".*/content/.*/(\d+|body-[\d-]+)"),
    "spool folder": re.compile(r".*/spool"),
    "content folders": re.compile(r".*/content(/\d+)*"),
}
"""What is not synced, by name. A folder's path ends with its name, a file's goes on behind it."""


def forgets(care: str, path: str, *, is_folder: bool) -> bool:
    """Tell whether a careless program leaves out the fsync of a path."""
    return is_folder is ("folder" in care) and FORGOTTEN[care].fullmatch(path) is not None


class _Hasty(Connection):
    synchronous = "FULL"

    def execute(self, sql, *parameters):
        return super().execute(
            sql.replace("synchronous=FULL", f"synchronous={self.synchronous}"), *parameters
        )


def _fsync(care, real, descriptor):
    number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
    is_folder = stat.S_ISDIR(os.fstat(number).st_mode)
    if not forgets(care, os.readlink(f"/proc/self/fd/{number}"), is_folder=is_folder):
        real(descriptor)


def apply(care: str) -> None:
    """Leave out a care in this process, before anything is opened."""
    if care in SYNCHRONOUS:
        _Hasty.synchronous = care
        dbapi2.connect = partial(dbapi2.connect, factory=_Hasty)
    elif care == TOGETHER:
        group_fsync.FEW = 0
    else:
        os.fsync = partial(_fsync, care, os.fsync)


def environment(care: str) -> dict[str, str]:
    """Return what makes the processes careless that are started with it."""
    start = Path(__file__).with_name("careless_start")
    return {"CARELESS": care, "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], str(start)])}
