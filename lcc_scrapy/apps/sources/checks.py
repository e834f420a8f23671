"""``lcc doctor``: whether the Redis whose keys are sources answers."""

from collections.abc import Iterator

from lcc_scrapy.apps.sources.redis_key import client_of
from lcc_scrapy.apps.sources.settings import SourceSettings
from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.ops import doctor
from lcc_scrapy.ops.doctor import Check, Finding, ReadSettings


def _redis(config: Config, _store: Store | None, settings: ReadSettings) -> Iterator[Finding]:
    url = config.of(SourceSettings).redis_url
    if url:
        try:
            yield doctor.redis("LCC_REDIS_URL", client_of(settings(), url))
        except LccError as error:
            yield doctor.problem("redis", error)


CHECK: Check = _redis
