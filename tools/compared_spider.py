# ruff: noqa: INP001 - tools are no package
"""A spider with Scrapy's default settings that notes what it gets for each URL; ``tools/compare_clients.py`` runs it."""

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

    async def start(self) -> AsyncIterator[Any]:
        self.found = Path("found.jsonl").open("w", encoding="utf-8")
        for number, url in enumerate(json.loads(Path("urls.json").read_text())):
            yield scrapy.Request(url, self.note, errback=self.fail, dont_filter=True, meta={"number": number})

    def note(self, response: Response) -> None:
        self._write(response.meta["number"], response.status, response.body)

    def fail(self, failure: Failure) -> None:
        if isinstance(failure.value, HttpError):
            self.note(failure.value.response)
        else:
            self._write(failure.request.meta["number"], 0, b"")  # type: ignore[attr-defined]

    def _write(self, number: int, status: int, body: bytes) -> None:
        told = {"number": number, "status": status, "body": base64.b64encode(body).decode()}
        self.found.write(json.dumps(told) + "\n")

    def closed(self, _reason: str) -> None:
        self.found.close()
