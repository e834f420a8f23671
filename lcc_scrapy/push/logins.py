"""The number of the last login, shared by all that one configuration sends.

The LCC counts logins. A number that nobody here knows of is somebody else's login, or one whose answer was
lost. So a login is counted as ``unsure`` before it begins, until its number is known.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lcc_scrapy.wire.messages import InitAccepted


@dataclass(frozen=True)
class Last:
    """The last login whose number is known, at which LCC, and how many were begun since."""

    lcc: str = ""
    seq: int = 0
    unsure: int = 0


class LoginRecord:
    """A small file; without one, or with one that cannot be read, no login is known."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, count: int = 1) -> None:
        """Some logins begin; their numbers may never become known."""
        if count:
            last = self._last()
            self._write(replace(last, unsure=last.unsure + count))

    def answered(self, login: InitAccepted) -> int:
        """Record the number of a login; returns how many others there were since the one before."""
        last = self._last()
        self._write(Last(login.lcc_id, login.seq))
        if not last.seq or last.lcc != login.lcc_id:
            return 0
        return max(0, login.seq - last.seq - max(1, last.unsure))

    def _last(self) -> Last:
        with suppress(OSError, ValueError, TypeError):
            found = Last(**json.loads(self._path.read_text("utf-8")))
            return Last(str(found.lcc), int(found.seq), int(found.unsure))
        return Last()

    def _write(self, last: Last) -> None:
        temporary = self._path.with_name(self._path.name + ".tmp")
        temporary.write_text(json.dumps(asdict(last)), "utf-8")
        temporary.replace(self._path)
