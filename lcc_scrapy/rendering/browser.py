"""One Chromium for all pages of a process, through Playwright; each page has a context of its own.

Chromium itself can reach nobody: who asked for a page answers its requests; its proxy and its names lead
nowhere. What a page does is bounded in time, requests, bytes and length; a page that hangs is closed, and
a browser that does not close one is replaced. So is one that a page makes grow.
"""

import asyncio
import logging
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.async_api import Browser as Chromium
from playwright.async_api import BrowserContext, CDPSession, Error, Page, Playwright, Route, async_playwright

from lcc_scrapy.domain.render_rules import RenderRules
from lcc_scrapy.rendering.page import Answer, BrowserLost, NoBrowser, NotRendered, ServedPage

_log = logging.getLogger(__name__)

PAGES_OF_A_BROWSER = 1000
"""Pages after which a browser is replaced, whatever it has kept."""

CLOSING = 5.0
"""Seconds that a page may take to be closed; then the browser is."""

WATCH = 0.25
"""Seconds between two looks at the memory of pages."""

START = 30.0
"""Seconds that the browser may take to start."""

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ARGUMENTS = (
    "--proxy-server=http://127.0.0.1:9",  # the discard port: whatever were not answered here goes nowhere
    "--proxy-bypass-list=<-loopback>",  # nor to this machine
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--disable-quic",
    "--disable-gpu",
    "--js-flags=--max-old-space-size=256",
)
_PAGE = os.sysconf("SC_PAGE_SIZE")
_WORLD = "lcc"
_HTML = """(() => {
    const type = document.doctype ? new XMLSerializer().serializeToString(document.doctype) + "\\n" : "";
    return (type + document.documentElement.outerHTML).slice(0, %d);
})()"""
"""Evaluated in a world of its own, where nothing of the page's has replaced anything."""


class Browser:
    """Renders pages; starts its Chromium when there is a first one."""

    def __init__(self, rules: Callable[[], RenderRules], longest: Callable[[], int]) -> None:
        self._rules = rules
        self._longest = longest
        self._starting = asyncio.Lock()
        self._playwright: Playwright | None = None
        self._chromium: Chromium | None = None
        self._watching: asyncio.Future[None] | None = None
        self._pages = 0
        self._open = 0
        self._room = asyncio.Condition()

    async def version(self) -> str:
        """Start the browser and return its version; raises ``NoBrowser``."""
        return (await self._started(self._rules())).version

    async def render(self, page: ServedPage, answer: Answer) -> str:
        """Return the HTML that a page has become when it rests, or when its time is over.

        Raises ``NoBrowser``, or ``NotRendered`` for the page's own reasons.
        """
        rules = self._rules()
        async with self._room:
            await self._room.wait_for(lambda: self._open < rules.pages)
            self._open += 1
        try:
            try:
                return await self._render(page, answer, rules)
            except BrowserLost:  # perhaps by another page
                return await self._render(page, answer, rules)
        finally:
            self._open -= 1
            async with self._room:
                self._room.notify_all()

    async def _render(self, page: ServedPage, answer: Answer, rules: RenderRules) -> str:
        chromium = await self._started(rules)
        context = await self._opened(chromium)
        crashes: list[Page] = []
        try:
            async with asyncio.timeout(rules.seconds + CLOSING):
                view = await context.new_page()
                seen = asyncio.ensure_future(self._seen(view, page, answer, rules.seconds))

                def end(crashed: Page) -> None:
                    crashes.append(crashed)
                    seen.cancel()

                view.on("crash", end)
                return await seen
        except TimeoutError:
            raise NotRendered("it keeps its browser busy") from None
        except asyncio.CancelledError:
            if crashes:
                raise NotRendered("its process ended") from None
            raise
        except Error as error:
            if chromium is not self._chromium or not chromium.is_connected():
                raise BrowserLost("its browser ended") from None
            raise NotRendered(_reason(error)) from None
        finally:
            await self._closed(context, chromium)

    async def _seen(self, view: Page, page: ServedPage, answer: Answer, seconds: float) -> str:
        view.on("dialog", lambda dialog: asyncio.ensure_future(_dismiss(dialog)))
        view.on("popup", lambda popup: asyncio.ensure_future(_close(popup)))
        await view.context.route("**/*", _Routes(page, answer, view).handle)
        await view.context.route_web_socket("**/*", lambda socket: socket.close())
        with suppress(Error):  # it was not quiet in time, or wanted to go elsewhere
            await view.goto(page.url, wait_until="networkidle", timeout=seconds * 1000)
        return await _html(await view.context.new_cdp_session(view), self._longest())

    # --- its life --------------------------------------------------------------------------------

    async def _started(self, rules: RenderRules) -> Chromium:
        async with self._starting:
            if self._chromium is not None and self._pages >= PAGES_OF_A_BROWSER and self._open == 1:
                await self._stop_chromium()
            if self._chromium is None or not self._chromium.is_connected():
                self._chromium, self._pages = await self._start(rules), 0
                self._watching = asyncio.ensure_future(self._watch(self._chromium))
            self._pages += 1
            return self._chromium

    async def _start(self, rules: RenderRules) -> Chromium:
        path = rules.browser or next(filter(None, map(shutil.which, _NAMES)), None)
        began = time.monotonic()
        try:
            async with asyncio.timeout(START):
                if self._playwright is None:
                    self._playwright = await async_playwright().start()
                chromium = await self._playwright.chromium.launch(
                    executable_path=path,
                    args=list(_ARGUMENTS),
                    chromium_sandbox=rules.sandbox,
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                )
        except (Error, OSError, TimeoutError) as error:
            self._playwright, broken = None, self._playwright
            if broken is not None:
                with suppress(Exception):
                    await broken.stop()
            raise NoBrowser(f"Chromium does not start: {_reason(error)}{_advice(error)}") from None
        what = {"version": chromium.version, "seconds": time.monotonic() - began}
        _log.info("Chromium %(version)s renders pages, started in %(seconds).1f s", what)
        return chromium

    async def _watch(self, chromium: Chromium) -> None:
        """Kill what takes too much memory, for as long as a browser is there: of pages, or all of it."""
        with suppress(Error):
            session = await chromium.new_browser_cdp_session()
            while True:
                await asyncio.sleep(WATCH)
                if self._open:
                    told = await session.send("SystemInfo.getProcessInfo")
                    await self._bound(told["processInfo"], self._rules().memory)

    async def _bound(self, processes: Iterable[Mapping[str, Any]], most: int) -> None:
        """Kill pages that take more than so many bytes, and the browser if the rest of it does."""
        pages = [int(one["id"]) for one in processes if one["type"] == "renderer"]
        others = [int(one["id"]) for one in processes if one["type"] != "renderer"]
        sizes = await asyncio.to_thread(lambda: {pid: memory_of(pid) for pid in pages + others})
        for pid in pages:
            if sizes[pid] > most:
                _log.warning("a page takes more than LCC_RENDER_MEMORY: its process %d is killed", pid)
                _kill(pid)
        if sum(sizes[pid] for pid in others) > most:
            _log.warning("a page makes its browser take more than LCC_RENDER_MEMORY: it is replaced")
            self._chromium = None
            for pid in others:
                _kill(pid)

    async def _opened(self, chromium: Chromium) -> BrowserContext:
        try:
            return await chromium.new_context(service_workers="block", accept_downloads=False)
        except Error as error:
            raise NoBrowser(f"Chromium has ended: {_reason(error)}") from None

    async def _closed(self, context: BrowserContext, chromium: Chromium) -> None:
        """Close a page; a browser that does not is closed with all its pages."""
        try:
            async with asyncio.timeout(CLOSING):
                await context.close()
        except Exception:  # noqa: BLE001 - whatever it was: that browser is not used any more
            if chromium is self._chromium:
                await self._stop_chromium()

    async def _stop_chromium(self) -> None:
        chromium, self._chromium = self._chromium, None
        if self._watching is not None:
            self._watching.cancel()
        if chromium is not None:
            with suppress(Exception):
                async with asyncio.timeout(CLOSING):
                    await chromium.close()

    async def close(self) -> None:
        """End the browser."""
        await self._stop_chromium()
        playwright, self._playwright = self._playwright, None
        if playwright is not None:
            with suppress(Exception):
                async with asyncio.timeout(CLOSING):
                    await playwright.stop()


def memory_of(pid: int) -> int:
    """Return the bytes that a process has, of shared ones its share (``Pss`` of proc(5)); 0 = it is gone.

    Where the kernel does not tell that of a process that changed its rights, shared ones do not count.
    """
    try:
        with suppress(PermissionError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
            return 1024 * int(next(line for line in lines if line.startswith("Pss:")).split()[1])
        _, resident, shared, *_ = map(int, Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split())
        return (resident - shared) * _PAGE
    except (OSError, StopIteration, ValueError):
        return 0


def _kill(pid: int) -> None:
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)


class _Routes:
    """Answers what a page asks for: the page itself as it was served, everything else by ``answer``."""

    def __init__(self, page: ServedPage, answer: Answer, view: Page) -> None:
        self._page = page
        self._answer = answer
        self._view = view
        self._shown = False

    async def handle(self, route: Route) -> None:
        """Answer one request, or let it fail."""
        request = route.request
        with suppress(Error):  # the page is gone
            if request.is_navigation_request() and request.frame == self._view.main_frame:
                await self._show(route)
                return
            fetched = await self._answer(request.method, request.resource_type, request.url, request.headers)
            if fetched is None:
                await route.abort("blockedbyclient")
            else:
                await route.fulfill(status=fetched.status, headers=fetched.headers, body=fetched.body)

    async def _show(self, route: Route) -> None:
        """Show the page, once: where it wants to go then is another page."""
        if self._shown:
            await route.fulfill(status=204)  # the browser stays where it is; an error would become its page
        else:
            self._shown = True
            await route.fulfill(status=200, headers=self._page.headers, body=self._page.body)


async def _html(session: CDPSession, longest: int) -> str:
    """Return what is shown, as HTML; raises ``NotRendered`` where that is too long."""
    frame = (await session.send("Page.getFrameTree"))["frameTree"]["frame"]
    if not frame["url"].startswith("http"):
        raise NotRendered("there is nothing to be seen")
    world = {"frameId": frame["id"], "worldName": _WORLD}
    made = await session.send("Page.createIsolatedWorld", world)
    asked = {
        "expression": _HTML % (longest + 1),
        "contextId": made["executionContextId"],
        "returnByValue": True,
    }
    html = (await session.send("Runtime.evaluate", asked))["result"].get("value", "")
    if len(html) > longest:
        raise NotRendered(f"it becomes longer than {longest} characters")
    return str(html)


async def _dismiss(dialog: Any) -> None:
    with suppress(Exception):
        await dialog.dismiss()


async def _close(popup: Any) -> None:
    with suppress(Exception):
        await popup.close()


def _advice(error: BaseException) -> str:
    if "sandbox" not in str(error):
        return ""
    return "; run as another user than root, or see LCC_RENDER_SANDBOX"


def _reason(error: BaseException) -> str:
    """Return the line of Playwright's report that says why."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = next((line for line in lines if "sandbox" in line or "ERROR" in line), "")
    return (told or (lines or [type(error).__name__])[0])[:300]
