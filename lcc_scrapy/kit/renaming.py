"""What apps do when a root of a provider gets another URL (app ``renaming``)."""

from collections.abc import Callable, Mapping
from typing import Protocol

from lcc_scrapy.db.tx import Tx


class RenamingHook(Protocol):
    """What an app does with its rows then. It is asked also while the app is left out; a kill repeats it."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """Return what ``renamed`` counts, and what the operator reads: ``sources``, "files of sources"."""

    def renamed(self, tx: Tx, pid: int, name: Callable[[str], str]) -> Mapping[str, int]:
        """Rename URLs of a provider; returns how many of each kind."""

    def moved(self, tx: Tx, places: Mapping[bytes, bytes]) -> None:
        """Follow URLs that have another ``furlkey`` now, by the former one."""
