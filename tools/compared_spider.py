# ruff: noqa: INP001 - tools are no package
"""A spider with Scrapy's default settings that notes what it gets: a client of ``compare_clients.py``."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError
from twisted.python.failure import Failure


class ComparedSpider(scrapy.Spider):
    """Reads ``urls.json`` and writes ``found.jsonl`` in the current folder."""

    name = "compared"

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = json.loads(Path("urls.json").read_text(encoding="utf-8"))
        self.found: list[str] = []

    async def start(self) -> AsyncIterator[Any]:
        for number, url in enumerate(self.urls):
            yield scrapy.Request(url, self.note, errback=self.fail, dont_filter=True, meta={"number": number})

    def note(self, response: Response) -> None:
        self._add(response.meta["number"], response.status, response.body)

    def fail(self, failure: Failure) -> None:
        if isinstance(failure.value, HttpError):
            self.note(failure.value.response)
        else:
            self._add(failure.request.meta["number"], 0, b"")  # type: ignore[attr-defined]

    def _add(self, number: int, status: int, body: bytes) -> None:
        told = {"number": number, "status": status, "body": base64.b64encode(body).decode()}
        self.found.append(json.dumps(told))

    def closed(self, _reason: str) -> None:
        Path("found.jsonl").write_text("\n".join(self.found), encoding="utf-8")
