"""What a content user wants to see of the feed, and how somebody learns that a document left that.

Provider, curl and mimetype are part of a document's key: it never stops matching them. Its subtype can
change, and then those who selected by it have to be told. A row knows when that last happened
(``subtype_seq``), a content user when it began: whatever turned before that, it never had.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import ClassVar

from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.cursor import SELECTION_MAX
from lcc_scrapy.domain.entries import accepts

_PATTERN = re.compile(r"\*/\*|[a-z0-9!#$&^_.+-]+/(?:\*|[a-z0-9!#$&^_.+-]+)")


@dataclass(frozen=True, slots=True)
class Leave:
    """A document that is still there, but no longer as the selection wants it."""

    op: ClassVar[str] = "leave"

    urlkey: bytes
    pid: int
    curl: str
    mimetype: str
    furl: str
    seq: int

    @property
    def docid(self) -> str:
        """The key as 32 hex digits."""
        return self.urlkey.hex()


Change = CachedUrl | Tombstone | Leave
"""What content users are told; ``op`` is ``upsert``, ``remove`` or ``leave``."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A filter; of each kind, one of the values has to match, and an empty kind admits everything.

    ``mimetypes`` may be patterns like ``text/*``; a subtype that ends in ``*`` stands for all that begin
    so, and ``""`` for documents without one; ``url_prefixes`` are those of curls. ``since`` (epoch seconds)
    admits what was fetched or removed after it; None = no limit. ``confirmed``: it is about confirmations,
    the places of which are none in the feed.
    """

    providers: tuple[int, ...] = ()
    mimetypes: tuple[str, ...] = ()
    subtypes: tuple[str, ...] = ()
    url_prefixes: tuple[str, ...] = ()
    since: int | None = None
    confirmed: bool = False

    @property
    def digest(self) -> str:
        """What tells this selection from others in a cursor; empty = everything is selected.

        It is the same however the values are ordered or repeated.
        """
        given = {
            name: sorted(set(value)) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
            if value not in {(), None} and value is not False
        }
        return sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:SELECTION_MAX] if given else ""

    def admits(self, row: CachedUrl | Tombstone) -> bool:
        """Tell whether a document is wanted as it is, or its removal."""
        return self._names(row) and self._is_late(row) and (isinstance(row, Tombstone) or self._suits(row))

    def tell(self, row: CachedUrl | Tombstone, began: int) -> Change | None:
        """Return what somebody is to be told who began to follow when the feed was at ``began``."""
        if self.admits(row):
            return row
        if self.confirmed:
            return None
        may_be_known = isinstance(row, CachedUrl) and row.subtype_seq > began and not self._suits(row)
        return _leave(row) if may_be_known and self._names(row) else None

    def _names(self, row: CachedUrl | Tombstone) -> bool:
        return (
            (not self.providers or row.pid in self.providers)
            and (not self.mimetypes or accepts(self.mimetypes, row.mimetype))
            and (not self.url_prefixes or row.curl.startswith(self.url_prefixes))
        )

    def _is_late(self, row: CachedUrl | Tombstone) -> bool:
        return self.since is None or happened(row) > self.since

    def _suits(self, row: CachedUrl) -> bool:
        return not self.subtypes or any(_is_like(row.subtype, wanted) for wanted in self.subtypes)


def happened(row: CachedUrl | Tombstone) -> int:
    """Return when a document was fetched or removed (epoch seconds)."""
    return row.removed_time if isinstance(row, Tombstone) else row.fetched_time


def is_pattern(text: str) -> bool:
    """Tell whether ``text`` is a mimetype or a pattern like ``text/*`` (lower case, no parameters)."""
    return _PATTERN.fullmatch(text) is not None


def _is_like(subtype: str, wanted: str) -> bool:
    return subtype.startswith(wanted[:-1]) if wanted.endswith("*") else subtype == wanted


def _leave(row: CachedUrl | Tombstone) -> Leave:
    return Leave(row.urlkey, row.pid, row.curl, row.mimetype, row.furl, row.seq)


def selected(
    provider: int | Iterable[int],
    mimetype: str | Iterable[str],
    subtype: str | Iterable[str],
    url_prefix: str | Iterable[str],
    since_time: int | None,
) -> Selection:
    """Return a selection of single values or several."""
    return Selection(
        (provider,) if isinstance(provider, int) else tuple(provider),
        _texts(mimetype),
        _texts(subtype),
        _texts(url_prefix),
        since_time,
    )


def _texts(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
