"""When providers get their digest: the operator's choice."""

from dataclasses import dataclass
from datetime import time

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.settings import LIVE, setting


# fmt: off
@dataclass(frozen=True, slots=True)
class DigestRules:
    """When providers get their digest."""

    hour: time | None = setting("LCC_MAIL_DIGEST", "06:00", read.clock_time, "When providers with an address get their daily digest of URL errors, in their time zone, or else LCC_TIMEZONE; empty = no digests.", LIVE)
# fmt: on
