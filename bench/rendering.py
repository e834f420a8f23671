"""Seconds of a visit to a site whose text comes by JavaScript: as served, rendered, and by Playwright alone.

`lcc_spider` visits pages that are the same shell, a script and some data each. Playwright alone opens the
same pages one after the other in the same Chromium, and waits for them to be quiet as the LCC does.

    python bench/rendering.py
    python bench/rendering.py --pages 60 --rounds 3
"""

import asyncio
import json
import shutil
import time
from pathlib import Path
from statistics import median

from at_once import Slow, by_lcc, served
from crawling import running, tables
from crawling.command_line import parser
from playwright.async_api import async_playwright

HEADINGS = ("by", "s: first to last page", "range", "ms a page", "x Playwright", "n")
SHELL = b"<!doctype html><title>%b</title><div id=app>%b</div><script src='/p/app.js'></script>"
APP = b"""fetch(location.pathname + ".json").then(one => one.json()).then(said => {
    document.getElementById("app").append(said.text); });"""
SCRIPT = APP + b"\n// " + b"x" * 100_000
NO_SANDBOX = {"LCC_RENDER_SANDBOX": "no"}


class Scripted(Slow):
    """A site of shells; only these count as pages."""

    async def _answer(self, path: bytes, writer: asyncio.StreamWriter) -> None:
        if path.endswith((b".js", b".json")):
            kind = b"application/javascript" if path.endswith(b".js") else b"application/json"
            body = SCRIPT if path.endswith(b".js") else json.dumps({"text": "It says so. " * 100}).encode()
            head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (kind, len(body))
            writer.write(head + body)
            await writer.drain()
        else:
            await super()._answer(path, writer)

    async def _page(self, path: bytes) -> bytes:
        page = await super()._page(path)
        return page and SHELL % (path, page if path == b"/p/0" else b"")


async def by_playwright(site: Slow) -> tuple[float, int]:
    """Open the pages one after the other, without the LCC."""
    site.forget()
    async with async_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        browser = await playwright.chromium.launch(executable_path=path)
        begun = time.monotonic()
        for number in range(site.pages):
            context = await browser.new_context()
            page = await context.new_page()
            await page.goto(f"http://127.0.0.1:{site.port}/p/{number}", wait_until="networkidle")
            await page.content()
            await context.close()
        took = time.monotonic() - begun
        await browser.close()
    return took, site.most


def main() -> None:
    """Measure and print."""
    options = parser(__doc__, "--markdown", "--scratch")
    options.add_argument("--pages", type=int, default=60)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    took: dict[str, list[float]] = {}
    with running.scratch(given.scratch) as folder, served(given.pages, 0, Scripted) as site:
        for number in range(given.rounds):  # in turns, so that a slow minute is everybody's
            for name, seconds in _round(folder, site, number).items():
                took.setdefault(name, []).append(seconds)
    rows = [_row(name, seen, took["Playwright alone"], given.pages) for name, seen in took.items()]
    tables.show(f"{given.pages} pages with a script of 100 kB", HEADINGS, rows, given.markdown)


def _round(folder: Path, site: Slow, number: int) -> dict[str, float]:
    found = {"Playwright alone": asyncio.run(by_playwright(site))[0]}
    for name, options in {
        "lcc_spider, as served": (),
        "lcc_spider --render": ("--render",),
        "lcc_spider --render --at-once 2": ("--render", "--at-once", "2"),
    }.items():
        where = folder / f"{len(found)}-{number}"
        found[name] = by_lcc(where, site, *options, **NO_SANDBOX)[0]
    return found


def _row(name: str, seen: list[float], playwrights: list[float], pages: int) -> tuple[str, ...]:
    middle = median(seen)
    span, ratio = f"{min(seen):.1f}-{max(seen):.1f}", f"{middle / median(playwrights):.2f}"
    return name, f"{middle:.1f}", span, f"{middle / pages * 1000:.0f}", ratio, str(len(seen))


if __name__ == "__main__":
    main()
