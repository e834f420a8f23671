"""The operator's choices that the rules need, as plain values."""

from dataclasses import dataclass

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.revisits import Bounds
from lcc_scrapy.domain.settings import LIVE, setting
from lcc_scrapy.domain.versions import Keep

RECORD = "record"
STRICT = "strict"


# fmt: off
@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """Choices about queue and cache; times in seconds, shares between 0 and 1."""

    retry_delays: tuple[float, ...] = setting("LCC_RETRY_DELAYS", "60s, 10m, 1h", read.durations, "Waits before a URL that failed is tried again; after the last it is final.", LIVE)
    file_grace: float = setting("LCC_FILE_GRACE", "1h", read.duration, "How long the file of a replaced or removed document stays.", LIVE)
    errors_kept: int = setting("LCC_ERRORS_KEPT", "100", read.at_least_one, "Failed URLs kept per provider with all they were submitted with; the count is exact beside it.", LIVE)
    refusals_kept: int = setting("LCC_REFUSALS_KEPT", "1000", read.whole, "URLs refused at push of which `lcc explain` knows why: the newest per provider; 0 = none.", LIVE)
    max_removal: float = setting("LCC_MAX_REMOVAL", "50%", read.share, "Share of a provider's documents beyond which (and beyond 20) removals within a day are held.", LIVE)
    declared: str = setting("LCC_DECLARED", RECORD, read.one_of(RECORD, STRICT), "`record` stores what was served when it is not what was declared, and says so (607, 608); `strict` refuses it.", LIVE)
    fullset_period: float = setting("LCC_FULLSET_PERIOD", "30d", read.duration, "The period in which full sets are counted.", LIVE)
    stale_after: float = setting("LCC_STALE_AFTER", "90d", read.duration, "Documents that nobody has confirmed for so long: their provider is asked for a full set (reason `old files`); 0 = never.", LIVE)
    expire_after: float = setting("LCC_EXPIRE_AFTER", "180d", read.duration, "Documents that nobody has confirmed for so long are removed, by daily portions that LCC_MAX_REMOVAL lets pass (reason `expired files`); 0 = never.", LIVE)
    mimetypes: tuple[str, ...] = setting("LCC_MIMETYPES", "text/*, application/pdf, application/xml, application/xhtml+xml, application/json, application/msword", read.words, "Accepted mimetypes; `text/*` and `*/*` are patterns.", LIVE)
    tombstones_keep: float = setting("LCC_TOMBSTONES_KEEP", "90d", read.duration, "How long content users are told of a removal; a cursor that is older has to start over; 0 = for ever.", LIVE)
    push_grace: float = setting("LCC_PUSH_GRACE", "1h", read.duration, "How long after a [sample](push-misses.md) found a change its push may arrive; later it counts as missed.", LIVE)
    versions: Keep = setting("LCC_KEEP_VERSIONS", "0", read.versions, "Earlier contents that are kept of each document: `5` (how many, at most 100), `30d` (for how long after they were replaced), or `5, 30d` (both bounds); 0 = none. They are not charged to the provider, and go with the document.", LIVE)
    alert_hold: float = setting("LCC_ALERT_HOLD", "7d", read.duration, "How long a content that was replaced or removed stays as a version while an [alert](annotation.md) on it waits to be delivered; 0 = not at all.", LIVE)
    revisits: Bounds = setting("LCC_REVISIT", "1h..1d..30d", read.revisits, "How often a spider visits a page again with `-a every=auto`: the shortest interval, that of a page not known yet, and the longest one. `1h..30d` puts the middle one between the others. `lcc provider set --revisit` gives a provider its own.", LIVE)
    drop_irrelevant: bool = setting("LCC_DROP_IRRELEVANT", "no", read.flag, "Whether pages that spiders and directives found lose their content when they [concern nobody](annotation.md#irrelevant-pages).", LIVE)
    resend_period: float = 30 * 86400.0
# fmt: on
