"""``scrapy crawl lcc_push``: listens for providers and fetches what they push, for as long as it runs."""

from typing import Any

from lcc_scrapy.spiders.base import LccSpider


class LccPushSpider(LccSpider):
    """The daemon of an LCC: UNS, Queue Manager and robots in one process.

    With an empty ``LCC_UNS_ENDPOINTS`` it only fetches, and leaves listening and the spool to ``lcc uns``.
    ``-a stop_when_done=1`` ends it when the queue is empty, and the spool if it has one.
    """

    name = "lcc_push"

    def __init__(self, stop_when_done: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._stop_when_done = stop_when_done.lower() in {"1", "yes", "true", "on"}

    def worker_options(self) -> dict[str, Any]:
        """Return what this spider wants of its worker beyond the defaults."""
        return {"serves_uns": True, "stop_when_done": self._stop_when_done}
