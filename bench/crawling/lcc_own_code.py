"""The LCC's spider with a team's own code, run by ``scrapy runspider``."""

from collections.abc import Iterator
from typing import Any

from scrapy.http import Response

from crawling.own_code import title_of
from lcc_scrapy.spiders.lcc_push import LccPushSpider


class TitleSpider(LccPushSpider):
    """Works on every document as a team's spider does."""

    name = "titles"

    def parse_document(self, response: Response) -> Iterator[dict[str, Any]]:
        yield title_of(response)
