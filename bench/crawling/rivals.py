"""Scrapy spiders for comparison, run by ``scrapy runspider``."""

import sqlite3
from collections.abc import AsyncIterator
from hashlib import sha1
from pathlib import Path
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response

from crawling.own_code import title_of


class Pages(Spider):
    """Fetches the URLs of a file (``-a urls=FILE``) and does nothing with them, or with ``-a keep=FOLDER``
    keeps them: each in a file, and a row that is committed at once. ``-a own_code=1``: with the callback of
    ``own_code.py``, whose title goes into the item of a page that is kept."""

    name = "pages"

    def __init__(self, urls: str, keep: str = "", own_code: str = "") -> None:
        super().__init__()
        self._urls = Path(urls).read_text().split()
        self._keep = bool(keep)
        self._own_code = bool(own_code)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> "Pages":
        if kwargs.get("keep"):
            pipelines = {**crawler.settings.getdict("ITEM_PIPELINES"), Keeper: 300}
            crawler.settings.set("ITEM_PIPELINES", pipelines, "cmdline")
            crawler.settings.set("KEEP", kwargs["keep"], "spider")
        return super().from_crawler(crawler, *args, **kwargs)

    async def start(self) -> AsyncIterator[Request]:
        for url in self._urls:
            yield Request(url)

    def parse(self, response: Response) -> Any:
        item = title_of(response) if self._own_code else {}
        if self._keep:
            kind = response.headers.get("Content-Type", b"").decode()
            item |= {"url": response.url, "status": response.status, "type": kind, "body": response.body}
        if item:
            yield item


class Keeper:
    """A file for each page, and a row; what a team writes first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._rows = sqlite3.connect(folder / "pages.sqlite")
        self._rows.execute("create table pages (url text primary key, status int, type text, file text)")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "Keeper":
        return cls(Path(crawler.settings["KEEP"]))

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        name = sha1(item["url"].encode(), usedforsecurity=False).hexdigest()
        folder = self._folder / name[:2]
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(item["body"])
        row = (item["url"], item["status"], item["type"], name)
        self._rows.execute("insert or replace into pages values (?, ?, ?, ?)", row)
        self._rows.commit()
        return item

    def close_spider(self) -> None:
        self._rows.close()
