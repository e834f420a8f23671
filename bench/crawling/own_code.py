"""A team's own code, the same under every crawler: a callback with one CSS query, an async pipeline.

The pipeline counts the titles that come to it, so that a run fails in which pages bypass it.
"""

import asyncio
from typing import Any

from scrapy.http import Response

from crawling import counts

TITLE = "A page"
PIPELINE = '{"crawling.own_code.TitlePipeline": 100}'


def title_of(response: Response) -> dict[str, Any]:
    """Return the item of a page."""
    return {"url": response.url, "title": response.css("title::text").get()}


class TitlePipeline:
    """Tidies titles, and awaits something as a pipeline does that asks a server."""

    def __init__(self) -> None:
        self._count = 0

    async def process_item(self, item: Any) -> Any:
        if isinstance(item, dict):
            item["title"] = " ".join(item["title"].split())
            await asyncio.sleep(0)
            self._count += item["title"] == TITLE
        return item

    def close_spider(self) -> None:
        counts.write(counts.TITLES, self._count)
