"""The operator's choices that the rules need, as plain values."""

from dataclasses import dataclass

from lcc_scrapy.domain.revisits import DEFAULT, Bounds
from lcc_scrapy.domain.versions import KEEP_NONE, Keep

RECORD = "record"
STRICT = "strict"


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """Choices about queue and cache; times in seconds, shares between 0 and 1."""

    retry_delays: tuple[float, ...] = (60.0, 600.0, 3600.0)
    file_grace: float = 3600.0
    errors_kept: int = 100
    refusals_kept: int = 1000
    """URLs refused at push of which it is known why, for each provider."""
    max_removal: float = 0.5
    declared: str = RECORD
    fullset_period: float = 30 * 86400.0
    resend_period: float = 30 * 86400.0
    stale_after: float = 90 * 86400.0
    """How long a document may be unconfirmed before its provider is asked for a full set; 0 = for ever."""
    expire_after: float = 180 * 86400.0
    """How long it may be unconfirmed before it goes; 0 = for ever."""
    mimetypes: tuple[str, ...] = ("*/*",)
    """Types that found documents may have; those of pushed ones were asked when their set arrived."""
    tombstones_keep: float = 90 * 86400.0
    """How long content users are told of a removal; 0 = for ever."""
    push_grace: float = 3600.0
    """How long a push of a change that a sample found may come late."""
    versions: Keep = KEEP_NONE
    """Which earlier contents are kept."""
    revisits: Bounds = DEFAULT
    """How often found pages are revisited, unless their provider has bounds of its own."""
