"""The spider middleware of the LCC's spiders, for answers that go through Scrapy's engine."""

import logging
from collections.abc import AsyncIterator
from typing import Any, Final

from scrapy import Request
from scrapy.http import Response

from lcc_scrapy.items import LccDocument

_log = logging.getLogger(__name__)

MOST_WITHHELD: Final = 10_000
"""Items of one document that are withheld; further ones go to the pipelines at once."""


class WithholdItems:
    """Withholds what a callback yields for a document until that has passed the pipelines of a team.

    It stands next to the engine, so that a team's spider middlewares see items and requests as ever. What is
    withheld goes with the document: ``LccPipeline`` sends it on.
    """

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Yield requests as they come, and the document with its items at the end."""
        withheld: list[Any] = []
        document: LccDocument | None = None
        async for output in result:
            if isinstance(output, LccDocument):
                document = output
            elif isinstance(output, Request) or len(withheld) == MOST_WITHHELD:
                yield output
            else:
                withheld.append(output)
        if len(withheld) == MOST_WITHHELD:
            _log.warning(
                "%(url)s yielded %(count)d items or more: the others did not follow their document",
                {"url": response.url, "count": MOST_WITHHELD},
            )
        if document is not None:
            document.withheld = withheld
            yield document
