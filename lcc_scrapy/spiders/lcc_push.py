"""``scrapy crawl lcc_push``: listens for providers and fetches what they push, for as long as it runs."""

from collections.abc import Mapping
from typing import Any

from lcc_scrapy.spiders.arguments import is_yes
from lcc_scrapy.spiders.base import LccSpider

_ONCE = "stop_when_done"


class LccPushSpider(LccSpider):
    """The daemon of an LCC: UNS, Queue Manager and robots in one process.

    With an empty ``LCC_UNS_ENDPOINTS`` it only fetches, and leaves listening and the spool to ``lcc uns``.
    ``-a stop_when_done=1`` ends it when the queue is empty, and the spool of its data directory where that is
    absorbed, by this process or by ``lcc uns``.
    """

    name = "lcc_push"
    serves_uns = True

    def __init__(self, stop_when_done: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._stop_when_done = is_yes({_ONCE: stop_when_done}, _ONCE)

    @classmethod
    def check_arguments(cls, given: Mapping[str, str]) -> None:
        """Raise ``ValueError`` with what is wrong with the spider's arguments."""
        super().check_arguments(given)
        is_yes(given, _ONCE)

    def worker_options(self) -> dict[str, Any]:
        """Return what this spider wants of its worker beyond the defaults."""
        return {"stop_when_done": self._stop_when_done}
