"""What sources may cost, and where Redis is."""

from dataclasses import dataclass

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain.settings import LIVE, setting


# fmt: off
@dataclass(frozen=True, slots=True)
class SourceSettings:
    """The settings of this app."""

    urls: int = setting("LCC_SOURCE_URLS", "1000000", read.at_least_one, "URLs that are remembered of one [source](sources.md), some 40 bytes each in the database; further ones are not submitted.", LIVE)
    redis_url: str = setting("LCC_REDIS_URL", "", str, "Redis or Valkey whose keys are [sources](scrapy-redis.md): `redis://HOST:6379/0`, `rediss://…` with TLS, `unix://…`, [Sentinels or a cluster](scrapy-redis.md#which-redis). Empty = what `REDIS_URL` and the other settings of scrapy-redis say, else `localhost`.")
# fmt: on
