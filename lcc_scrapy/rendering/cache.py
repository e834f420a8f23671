"""Scripts and style sheets in memory, so that pages of a provider need not fetch the same again."""

import time
from collections import OrderedDict
from typing import NamedTuple

from lcc_scrapy.domain.rendering import fresh_for
from lcc_scrapy.rendering.page import Fetched


class _Kept(NamedTuple):
    fetched: Fetched
    until: float


class ScriptCache:
    """Answers by provider and URL, the longest unused go first. ``size`` in bytes of bodies."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, str], _Kept] = OrderedDict()
        self._size = 0

    def get(self, pid: int, url: str) -> Fetched | None:
        """Return an answer that is fresh still."""
        kept = self._kept.get((pid, url))
        if kept is None or kept.until <= time.monotonic():
            return None
        self._kept.move_to_end((pid, url))
        return kept.fetched

    def put(self, pid: int, url: str, fetched: Fetched, cache_control: str, most: int) -> None:
        """Keep an answer for as long as it says; ``most`` bytes are kept in all."""
        age = fresh_for(cache_control)
        if age and fetched.status == OK:
            self._drop((pid, url))
            self._kept[pid, url] = _Kept(fetched, time.monotonic() + age)
            self._size += len(fetched.body)
        while self._size > most:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[int, str]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._size -= len(kept.fetched.body)


OK = 200
