"""Bytes that a site sends behind an answer are never the next page, and cost no good one."""

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest
from scrapy import Request

from lcc_scrapy.fetch.download_handler import PRIVATE_HOSTS, LccDownloadHandler
from lcc_scrapy.fetch.turn import code_of
from tests.faults.handling import LOOPS, Handling, run
from tests.faults.late_bytes import LateSites, body_of, mark_of

BUSY = 0.002
"""Seconds for which the event loop does something else after each page."""


async def visited(handler: LccDownloadHandler, port: int, pages: int) -> Counter[str]:
    """Ask one site for its pages, one after the other; tells how they ended."""
    found: Counter[str] = Counter()
    for number in range(pages):
        path = f"/{number}"
        meta = {PRIVATE_HOSTS: {f"127.0.0.1:{port}"}}
        try:
            response = await handler.download_request(Request(f"http://127.0.0.1:{port}{path}", meta=meta))
        except Exception as error:
            found[f"lost {code_of(error)} {str(error)[:160]}"] += 1
        else:
            found[judged(port, path, response)] += 1
        time.sleep(BUSY)
    return found


def judged(port: int, path: str, response) -> str:
    kind = int(path[1:]) % 6
    status = {1: 304, 2: 302}.get(kind, 200)
    marked = response.headers.get("ETag", b"") == mark_of(port, path) if kind else True
    body = b"" if status != 200 else body_of(port, path)
    return "good" if (response.status, response.body) == (status, body) and marked else "wrong"


def crawled(folder: Path, sites: LateSites, pages: int, loop: str) -> Counter[str]:
    async def scenario() -> Counter[str]:
        handler = Handling(folder, fetch_timeout=5.0).handler()
        found = await asyncio.gather(*(visited(handler, port, pages) for port in sites.ports))
        await handler.close()
        return sum(found, Counter())

    return run(scenario, loop)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("latest", [0.004, 0.05])
@pytest.mark.parametrize("pages", [6, pytest.param(300, marks=pytest.mark.soak)])
def test_late_bytes_are_no_page_and_cost_none(tmp_path: Path, loop: str, latest: float, pages: int) -> None:
    """They come before the next request has arrived; later ones may look like its answer."""
    with LateSites(64, 0.1, latest, seed=7) as sites:
        found = crawled(tmp_path, sites, pages, loop)
    assert sites.sent["strays"] > 10
    assert found == {"good": 64 * pages}
