"""How much the annotation engine does at a time."""

import os
from dataclasses import dataclass

from lcc_scrapy.domain import notations as read
from lcc_scrapy.domain import shared_settings as shared
from lcc_scrapy.domain.settings import setting

PROCESSORS_MOST = 10
"""What the seed's engine had; more are not taken by themselves."""


# fmt: off
@dataclass(frozen=True, slots=True)
class AnnotationRules:
    """Bounds of ``lcc annotate``. Times are in seconds."""

    queue: int = setting("LCC_AE_QUEUE", "1000", read.at_least_one, "Documents that wait for the [annotation engine](annotation.md) at most; the feed holds all others.")
    processors: int = setting("LCC_AE_PROCESSORS", "0", read.whole, "Processes that compare documents with profiles; 0 = one for each CPU, 10 at most.")
    page_timeout: float = setting("LCC_AE_PAGE_TIMEOUT", "60s", read.period, "Longest time for one document; then its process is ended, and the document is tried once more.")
    memory: int = setting("LCC_AE_MEMORY", "2G", read.at_least(256_000_000, read.size), "Address space of each of these processes; one that needs more is ended like one that takes too long.")
    link_texts: bool = setting("LCC_AE_LINK_TEXTS", "yes", read.flag, "Whether what links show counts as text of their page; their markup never does.")
    poll: float = shared.poll()
    stop_timeout: float = shared.stop_timeout()
# fmt: on

    def processes(self, given: int | None = None) -> int:
        """Return how many processors there are; ``given`` on the command line goes first."""
        return given or self.processors or min(PROCESSORS_MOST, os.cpu_count() or 1)
