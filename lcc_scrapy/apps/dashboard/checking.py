"""What ``lcc doctor`` says of the dashboard; it needs no HTTP server."""

from collections.abc import Iterator
from pathlib import Path

from lcc_scrapy.apps.dashboard.settings import DashboardRules
from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.feed.fts5_search import Fts5Search
from lcc_scrapy.feed.store_feed import head_of
from lcc_scrapy.ops.doctor import Check, Finding, ReadSettings, State


def _check(config: Config, store: Store | None, _settings: ReadSettings) -> Iterator[Finding]:
    """Say whether the index can be searched, and what it lacks."""
    path = config.of(DashboardRules).search_index
    if not path or store is None:
        return
    with store.read() as tx:
        head = head_of(tx)
    try:
        age = Fts5Search(Path(path)).age(head)
    except LccError as error:
        yield Finding("search index", State.PROBLEM, f"{path}: {error}")
    else:
        yield Finding("search index", State.OK, f"{path} has changes up to {age.seq} of {head.seq}")


CHECK: Check = _check
