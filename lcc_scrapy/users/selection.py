"""What a content user wants to see of the feed."""

import re
from dataclasses import dataclass

from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.entries import accepts

_PATTERN = re.compile(r"\*/\*|[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+)")


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter. ``since`` (epoch seconds) admits what was fetched or removed after it; None = no limit.

    Provider and mimetype are part of a document's key: a document never stops matching them, so nobody
    has to be told that one left the selection.
    """

    pid: int | None = None
    mimetype: str = "*/*"
    since: int | None = None

    def admits(self, row: CachedUrl | Tombstone) -> bool:
        """Tell whether a change is wanted."""
        if self.pid is not None and row.pid != self.pid:
            return False
        if self.since is not None and happened(row) <= self.since:
            return False
        return accepts((self.mimetype,), row.mimetype)


def happened(row: CachedUrl | Tombstone) -> int:
    """Return when a document was fetched or removed (epoch seconds)."""
    return row.removed_time if isinstance(row, Tombstone) else row.fetched_time


def is_pattern(text: str) -> bool:
    """Tell whether ``text`` is a mimetype or a pattern like ``text/*`` (lower case, no parameters)."""
    return _PATTERN.fullmatch(text) is not None
