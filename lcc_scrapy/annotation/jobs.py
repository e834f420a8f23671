"""A document on its way through the engine: what a processor needs, and what it found."""

from dataclasses import dataclass

from lcc_scrapy.annotation.messages import Found
from lcc_scrapy.domain.acis import Waiting
from lcc_scrapy.domain.annotation_queue import urds_of
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.versions import Version


@dataclass(frozen=True, slots=True)
class Job:
    """A document that waits, as it is in the cache, its owners, and the content before, if that counts."""

    waiting: Waiting
    row: CachedUrl
    owners: tuple[str, ...] = ()
    previous: Version | None = None

    @property
    def only(self) -> list[int]:
        """The URDs that it is for; empty = all."""
        return urds_of(self.waiting)

    @property
    def is_old(self) -> bool:
        """Tell whether the document was cached before the URDs came that it is for."""
        return not self.waiting.base


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a job: findings, or why there are none."""

    job: Job
    found: tuple[Found, ...] = ()
    failed: str = ""
    cpu: float = 0.0


def docbase_of(row: CachedUrl | Version | None) -> str:
    """Return the name of a content in ACIs, ``machine/file``; "" = there is none."""
    return f"{row.fetched_machineid}/{row.fetched_fileid}" if row else ""
