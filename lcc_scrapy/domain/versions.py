"""Versions: earlier contents of documents that are kept beside the newest one (seed 002 section 4).

They belong to a document that is there. When it goes, they go with it, but for those that somebody is
still to be alerted to (decision 67).
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any

from lcc_scrapy.domain.cache import CachedUrl

MOST = 100
"""Versions of one document, whatever the setting says."""


@dataclass(frozen=True, slots=True)
class Keep:
    """How many earlier contents of a document are kept, and for how long after they were replaced (seconds).

    0 = no such bound; both 0 = none are kept. Whichever bound is reached first counts.
    """

    count: int = 0
    age: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.count or self.age)

    @property
    def most(self) -> int:
        """Versions of one document that are kept at most."""
        return (self.count or MOST) if self else 0

    def replaced_before(self, now: int) -> int:
        """Return the moment (epoch seconds) up to which what was replaced is too old; -1 = nothing is."""
        return now - int(self.age) if self.age else -1


KEEP_NONE = Keep()


@dataclass(frozen=True, slots=True)
class Version:
    """An earlier content of a document (one row of ``versions``); names and units are those of ``CachedUrl``.

    ``seq`` is the last one that the document had with this content, and no other version has it.
    ``replaced_time`` is when the next content was stored.
    """

    seq: int
    urlkey: bytes
    pid: int
    replaced_time: int
    fetched_time: int
    fetched_machineid: int
    fetched_fileid: int
    fetched_len: int
    fetched_md5: str
    sha256: str
    served_type: str
    served_charset: str
    file_encoding: str
    final_url: str
    etag: str
    last_modified: str

    @property
    def docid(self) -> str:
        """The key of the document as 32 hex digits."""
        return self.urlkey.hex()


_SAME = tuple(field.name for field in fields(Version) if field.name != "replaced_time")


def version_of(row: CachedUrl, now: int) -> Version:
    """Return what is kept of a row whose content is replaced ``now`` (epoch seconds)."""
    same: dict[str, Any] = {name: getattr(row, name) for name in _SAME}
    return Version(replaced_time=now, **same)


def outlived(versions: Sequence[Version], keep: Keep, now: int) -> list[Version]:
    """Return which of a document's versions (newest first) are not kept any longer."""
    before = keep.replaced_before(now)
    within, beyond = versions[: keep.most], versions[keep.most :]
    return [*beyond, *(one for one in within if one.replaced_time <= before)]


def held_back(versions: Sequence[Version], alerts: Collection[int], hold: float, now: int) -> set[int]:
    """Return the seqs of those of a document's versions that open alerts keep for ``hold`` seconds.

    ``alerts`` are seqs of the document when it was annotated. A content has the last seq that the document
    had with it, so an alert is about the content with the lowest seq from its own on.
    """
    rising = sorted(one.seq for one in versions)
    places = (bisect_left(rising, seq) for seq in alerts)
    wanted = {rising[place] for place in places if place < len(rising)}
    return {one.seq for one in versions if one.seq in wanted and now < one.replaced_time + hold}
