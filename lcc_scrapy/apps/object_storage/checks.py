"""What ``lcc doctor`` looks at in object storage."""

from collections.abc import Iterator

from lcc_scrapy.apps.object_storage.objects import ContentObjects
from lcc_scrapy.config.config import Config
from lcc_scrapy.content.store import scheme_of
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.ops.doctor import Check, Finding, ReadSettings, State, problem


def _objects(config: Config, _store: Store | None, _settings: ReadSettings) -> Iterator[Finding]:
    """Check that small objects can be put, read, listed and deleted."""
    url = config.content_url
    if scheme_of(url) != "s3":
        return
    try:
        ContentObjects(url, 0).check()
    except LccError as error:
        yield problem("object storage", error)
    else:
        yield Finding("object storage", State.OK, url.partition("?")[0])


CHECK: Check = _objects
