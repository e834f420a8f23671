"""An operator on call, in a real browser without script: five tasks, the keyboard alone, light and dark, a phone.

Providers and sites write what would run if anything did. ``LCC_SCREENSHOTS`` names a folder for pictures.
"""

import base64
import html
import json
import os
import shutil
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
from harness import PATIENCE, missing, wait_for

from lcc_scrapy.cache.last_outcomes import of_fetch
from lcc_scrapy.db.records import (
    EVERYBODY,
    DocumentLink,
    Fetched,
    ProviderSet,
    TurnDelta,
    UrlErrorRecord,
    WorkerRow,
)
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.cache import CachedUrl, UrlMeta
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.fetch_counts import span_of
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.queue import FETCH, QueuedUrl
from lcc_scrapy.domain.users import Role, User
from lcc_scrapy.domain.versions import version_of
from lcc_scrapy.feed.store_feed import head_of
from lcc_scrapy.login import people
from lcc_scrapy.login.passwords import hash_password
from tests.dashboard_house import write_index
from tests.web_process import serving

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

EVIL = '"><script>document.title="ran"</script><img src=x onerror=\'document.title="ran"\'>\u202e'
INDEX = "search.db"
PASSWORD = "correct horse battery"
PROVIDERS, PAUSED, HOLDING, FAILING = 120, 7, 9, 11
HELD, FAILED = 40, 500
STORED = f"http://h{HOLDING}.example/0{EVIL}"
DOCID = urlkey(HOLDING, STORED, "text/html").hex()
PICTURE = f"http://h{FAILING}.example/picture"
HOSTILE = f"http://h{FAILING}.example/hostile"
PICTURE_ID, HOSTILE_ID = (urlkey(FAILING, one, "text/html").hex() for one in (PICTURE, HOSTILE))
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PAGES = {
    "overview": "",
    "workers": "/workers",
    "changes": "/changes",
    "url": f"/urls?{urlencode({'url': STORED})}",
    "waiting-url": f"/urls?{urlencode({'url': f'http://h{FAILING}.example/{EVIL}'})}",
    "text": f"/urls/{DOCID}/text",
    "content": f"/urls/{DOCID}/content",
    "picture": f"/urls/{PICTURE_ID}/content",
    "links-in": f"/urls/links-to?{urlencode({'url': HOSTILE, 'pid': HOLDING})}",
    "search": f"/search?{urlencode({'q': 'provider word'})}",
    "compared": f"/urls/{DOCID}/changes?version={HELD + 1}",
    "list": "/providers?order=failures&falling=1",
    "provider": f"/providers/{FAILING}",
    "held": f"/providers/{HOLDING}/confirm-removals",
    "audit": "/audit",
    "sign-in": "/sign-in",
}


def fill(store, path_of):
    """Providers with hostile names; one is paused, one holds removals, one fails."""
    now = int(time.time())
    people.add(store, User("otto", Role.OPERATOR, "", hash_password(PASSWORD), now))
    providers = [
        (Provider(pid, "", name=f"{pid} {EVIL}", contact=EVIL, created=now), [f"http://h{pid}.example/"])
        for pid in range(1, PROVIDERS + 1)
    ]
    documents = [_document(HOLDING, n, now) for n in range(HELD)]
    header = json.dumps([["X-Evil", EVIL]])
    answers = {bytes.fromhex(DOCID): UrlMeta(bytes.fromhex(DOCID), "HTTP/1.1 200 OK", header, "", now)}
    before = replace(version_of(documents[0], now), seq=HELD + 1, fetched_fileid=HELD + 1)
    for fileid, word in ((documents[0].fetched_fileid, "new"), (HELD + 1, "old")):
        path = path_of(1, fileid)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"<title>{EVIL}</title><p>The same. {word} &lt;script&gt; {html.escape(EVIL)}.")
    with store.begin() as tx:
        tx.insert_providers(providers)
        tx.take("feed", HELD)
        tx.insert_cached(documents, answers)
        tx.insert_versions([before])
        links = [DocumentLink(f"http://h9.example/{EVIL}", EVIL), DocumentLink(HOSTILE, "a")]
        tx.put_links({documents[0].urlkey: links})
        tx.update_provider(HOLDING, {"heldremovals": HELD, "fileused": HELD})
        tx.put_outcomes([of_fetch(_row(FAILING, n), 503, EVIL, now) for n in range(FAILED)])
        for ago in range(0, 80_000, 5000):
            counts = {Fetched(EVERYBODY, "stored", 0): 90 + ago % 7, Fetched(EVERYBODY, "failed", 503): 9}
            tx.count_fetches(counts, span_of(now - ago))
        tx.count_fetches({Fetched(FAILING, "failed", 503): FAILED, Fetched(3, "retrying", 503): 2}, now)
        psetid = tx.take("psetid", 1)
        waits = replace(_row(FAILING, EVIL), psetid=psetid, position=1, tries=0)
        pset = ProviderSet(psetid, FAILING, 1, "", "", False, 1, "absorbed", 1, started=now - 900)
        tx.insert_psets([pset])
        tx.insert_queued([waits])
        tx.add_to_parts({(psetid, "", FAILING): 1}, {FAILING: 1})
        tx.update_provider(FAILING, {"nurlproc": 1})
        tx.add_to_turns({str(FAILING): TurnDelta(waiting=1)})
        tx.put_worker(WorkerRow("2/0", 1, 2, 4711, now, now + 86_400, 8, 3, 5, job=EVIL, idle=EVIL))
        tx.lease_turns([str(FAILING)], "2/0", 1)
        tx.add_errors([UrlErrorRecord(FAILING, 503, EVIL, f"http://h11.example/{EVIL}", "{}", now)], 100)


def store_page(store, path_of, url, content):
    """Store a further document of the provider that fails; returns its row."""
    with store.begin() as tx:
        seq = tx.take("feed", 1)
        row = replace(
            _document(FAILING, seq, int(time.time())), urlkey=urlkey(FAILING, url, "text/html"), curl=url,
            furl=url, seq=seq, confirmed_seq=seq, fetched_fileid=900 + seq, fetched_len=len(content),
        )  # fmt: skip
        tx.insert_cached([row])
    path = path_of(1, row.fetched_fileid)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return row


def index(lcc, store, rows):
    """Write the index in which the dashboard searches."""
    with store.read() as tx:
        head = head_of(tx)
    text = f"<title>{EVIL}</title><p>Each provider has a word. {html.escape(EVIL)}"
    write_index(lcc.folder / INDEX, ((row, text.encode()) for row in rows), head)


def _row(pid, number):
    url = f"http://h{pid}.example/{number}"
    key = urlkey(pid, url, "text/html")
    return QueuedUrl(
        key, pid, url, "text/html", "", url, url, None, None, None, "", 1, number, FETCH, 1, 0, 0
    )


def _document(pid, number, now):
    url = f"http://h{pid}.example/{number}{EVIL}"
    return CachedUrl(
        urlkey(pid, url, "text/html"), pid, url, "text/html", "", url, url, None, None, None, "", now, 1,
        number + 1, 1000, "0" * 32, "0" * 64, "text/html", "utf-8", "", url, "", "", now, "push", number + 1,
        1, 1, 0,
    )  # fmt: skip


@dataclass
class Desk:
    """A page in a browser; counts what is clicked and keeps what goes wrong."""

    page: object
    port: int
    clicks: int = 0
    wrong: list[str] = field(default_factory=list)

    def go(self, path):
        self.page.goto(f"http://127.0.0.1:{self.port}/dashboard{path}")

    def click(self, selector):
        self.clicks += 1
        self.page.click(selector)

    def find(self, pid):
        self.page.fill("#q", str(pid))
        self.page.keyboard.press("Enter")
        self.click(f"td >> text='{pid}'")

    def text(self):
        return self.page.inner_text("main")


@contextmanager
def desk(port, **options):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-sync"],
            timeout=PATIENCE * 1000,
        )
        page = browser.new_context(**options).new_page()
        page.set_default_timeout(PATIENCE * 1000)
        made = Desk(page, port)
        page.on("console", lambda said: made.wrong.append(said.text) if said.type == "error" else None)
        yield made
        browser.close()
    assert [text for text in made.wrong if "Content Security Policy" in text] == []


def sign_in(at):
    at.go("/sign-in")
    at.page.fill("#name", "otto")
    at.page.fill("#password", PASSWORD)
    at.page.keyboard.press("Enter")
    at.page.wait_for_selector("nav")


@pytest.fixture
def house(make_lcc):
    if CHROMIUM is None:
        missing("chromium", "apt-get install chromium")
    lcc = make_lcc()
    store = SqlStore(lcc.shared_url)
    fill(store, lcc.path_of)
    picture = store_page(store, lcc.path_of, PICTURE, DOT)
    index(lcc, store, [picture])
    store.close()
    lcc.lcc("provider", "pause", str(PAUSED))
    return lcc


def in_browser(house, use, **options):
    """Playwright wants a thread in which no event loop runs."""

    def run():
        with desk(port, **options) as at:
            use(at)

    index_file = str(house.folder / INDEX)
    with serving(house, LCC_SEARCH_INDEX=index_file) as (port, _), ThreadPoolExecutor(1) as apart:
        apart.submit(run).result()


def test_five_tasks_of_an_operator_on_call(house):
    took = {}

    def task(at, name, do, said):
        at.go("/providers")
        at.clicks, begun = 0, time.perf_counter()
        do()
        assert said in at.text(), (name, at.text())
        took[name] = (at.clicks, time.perf_counter() - begun)

    def use(at):
        sign_in(at)
        task(at, "why is provider 7 not served", lambda: at.find(PAUSED), "his provider is paused: nothing")
        task(at, "which providers fail", lambda: failing(at), "503")
        task(at, "release held removals", lambda: release(at), f"Done: confirm-removals: {HELD} URLs")
        task(at, "retry all 503", lambda: retry(at), f"Done: retry: {FAILED} URLs")
        task(at, "who paused this", lambda: at.find(PAUSED), "\tpause\t")

    in_browser(house, use, java_script_enabled=False)
    for name, (clicks, seconds) in took.items():
        print(f"{name}: {clicks} clicks, {seconds:.2f} s")
    assert max(clicks for clicks, _ in took.values()) <= 5


def failing(at):
    at.click("th >> text='Failed fetches, 1 h'")
    numbers = at.page.locator("tbody tr td:first-child").all_inner_texts()
    assert [one.strip() for one in numbers] == [str(FAILING), "3"]
    at.click(f"td >> text='{FAILING}'")


def release(at):
    at.click("th >> text='Held'")
    at.click("tbody tr:first-child td:first-child a")
    at.click("text=Confirm 40 held removals")
    at.click("[name=sure]")
    at.click("button:text('Confirm')")


def retry(at):
    at.click("th >> text='Failed fetches, 1 h'")
    at.click("tbody tr:first-child td:first-child a")
    at.page.fill("#code", "503")
    at.click("button:text('Retry failed URLs')")


APART = """Array.from(document.querySelectorAll("form.search label[for], form.inline label[for]"))
  .filter((label) => {
    const [its, of] = [label, label.control].map((one) => one.getBoundingClientRect());
    return its.bottom <= of.top || of.bottom <= its.top;
  }).map((label) => label.textContent)"""


class Canary:
    """Sites that nobody must connect to, one for each name; ``touched`` has the names of those that were."""

    def __init__(self, names):
        self.touched = set()
        self._sockets = {name: socket.create_server(("127.0.0.1", 0)) for name in names}
        for name in names:
            threading.Thread(target=self._watch, args=[name], daemon=True).start()

    def _watch(self, name):
        with suppress(OSError):
            while True:
                self._sockets[name].accept()[0].close()
                self.touched.add(name)

    def url(self, name):
        return f"http://127.0.0.1:{self._sockets[name].getsockname()[1]}/{name}"

    def close(self):
        for one in self._sockets.values():
            one.shutdown(socket.SHUT_RDWR)
            one.close()


LOADED = (
    "script", "onerror", "css", "frame", "svg", "object", "preload", "font", "video", "import", "preconnect", "refresh",
    "base", "form", "link",
)  # fmt: skip


def hostile_page(canary):
    """Return a page that loads, runs, sends and goes elsewhere, in every way that there is."""
    at = canary.url
    return f"""<!doctype html><html><head><title>hostile</title><base href="{at("base")}/" target="_top">
    <link rel="preconnect" href="{at("preconnect")}"><link rel="preload" as="script" href="{at("preload")}">
    <link rel="stylesheet" href="{at("css")}"><meta http-equiv="refresh" content="0;url={at("refresh")}">
    <style>@import "{at("import")}"; @font-face{{font-family:x;src:url({at("font")})}} *{{font-family:x}}</style>
    <script>document.title = "ran"; fetch("{at("script")}/" + document.cookie)</script></head>
    <body onload="document.title='ran'"></pre></textarea></noscript></iframe>
    <script src="{at("script")}"></script><img src="{at("onerror")}" onerror="document.title='ran'">
    <svg xmlns="http://www.w3.org/2000/svg" onload="document.title='ran'"><image href="{at("svg")}"/></svg>
    <iframe src="{at("frame")}"></iframe><object data="{at("object")}"></object><video src="{at("video")}"></video>
    <img src="relative.png"><form action="{at("form")}"><input autofocus onfocus="document.title='ran'">
    <button>Send</button></form><a href="{at("link")}" target="_top">The link</a><script>document.forms[0].submit()</script>
    <p>The visible words.</p></body></html>"""


def test_nothing_of_a_hostile_page_runs_loads_sends_or_leads_elsewhere(house):
    canary = Canary(LOADED)
    store = SqlStore(house.shared_url)
    rows = [store_page(store, house.path_of, HOSTILE, hostile_page(canary).encode())]
    index(house, store, rows)
    store.close()

    def use(at):
        sign_in(at)
        for path in (
            f"/urls?{urlencode({'url': HOSTILE})}", f"/urls/{HOSTILE_ID}/content", f"/urls/{HOSTILE_ID}/text",
            "/search?q=provider", f"/urls/{HOSTILE_ID}/picture",
        ):  # fmt: skip
            at.go(path)
            begun = at.page.url
            at.page.wait_for_load_state("networkidle")
            assert (at.page.url, len(at.page.frames), at.page.title() != "ran") == (begun, 1, True)
        at.go(f"/urls?{urlencode({'url': HOSTILE})}")
        assert "The visible words" not in at.text()
        at.click("a:text('Show the content')")
        assert "<p>The visible words.</p>" in at.text()
        assert at.page.locator("main pre a, main pre *").count() == 0
        at.page.click("text=The visible words")
        assert at.page.evaluate("document.cookie") == ""
        assert canary.touched == set()
        at.page.goto("about:blank")
        at.page.set_content(hostile_page(canary), wait_until="commit")
        wait_for(lambda: len(canary.touched) >= 3, what="what is hostile without a policy")

    try:
        in_browser(house, use)
    finally:
        canary.close()


def test_a_picture_is_shown_and_is_a_file_when_it_is_opened_alone(house):
    def use(at):
        sign_in(at)
        at.go(f"/urls/{PICTURE_ID}/content")
        shown = at.page.locator("img.stored")
        assert shown.evaluate("one => one.complete && one.naturalWidth") == 1
        with at.page.expect_download() as download, suppress(Error):
            at.page.goto(f"http://127.0.0.1:{at.port}" + shown.get_attribute("src"))
        assert download.value.suggested_filename == f"{PICTURE_ID}.png"

    from playwright.sync_api import Error

    in_browser(house, use)


def test_changes_appear_as_they_happen_as_text(house):
    def use(at):
        sign_in(at)
        at.go("/changes")
        at.page.wait_for_selector("text=New changes appear")
        before = at.page.locator("tbody tr").count()
        store = SqlStore(house.shared_url)
        with store.begin() as tx:
            seq = tx.take("feed", 1)
            tx.insert_cached([replace(_document(FAILING, seq, int(time.time())), seq=seq, confirmed_seq=seq)])
        store.close()
        row = at.page.locator(f"tbody tr:first-child:has-text('h{FAILING}.example/{seq}')")
        row.wait_for()
        assert "<script>" in row.inner_text()
        assert at.page.locator("tbody tr").count() == before + 1
        assert at.page.title() == "Changes - LCC"
        row.locator("a").last.click()
        at.page.wait_for_selector("h2:has-text('Provider 11')")

    in_browser(house, use)


def test_the_keyboard_alone_is_enough(house):
    def use(at):
        press = at.page.keyboard
        at.go("/sign-in")
        tab_to(at, "#name")
        press.type("otto")
        tab_to(at, "#password")
        press.type(PASSWORD)
        press.press("Enter")
        at.page.wait_for_selector("nav")
        tab_to(at, "#q")
        press.type(str(PAUSED))
        press.press("Enter")
        tab_to(at, "button:text('Resume')")
        press.press("Enter")
        at.page.wait_for_selector("text=Done: resume")

    in_browser(house, use)


def tab_to(at, selector):
    """Press the tabulator until an element has the focus, and see that the focus can be seen."""
    at.page.wait_for_selector(selector)
    for _ in range(60):
        at.page.keyboard.press("Tab")
        if at.page.locator(selector).first.evaluate("one => one === document.activeElement"):
            width = at.page.locator(selector).first.evaluate("one => getComputedStyle(one).outlineWidth")
            assert width == "3px", (selector, width)
            return
    raise AssertionError(f"{selector} is not reached")


def test_nothing_serious_is_found_on_any_page_at_any_width_in_light_and_dark(house):
    from axe_playwright_python.sync_playwright import Axe

    looked, axe = [], Axe()

    def look(at, name, width, scheme):
        page = at.page
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        found = [
            one for one in axe.run(page).response["violations"] if one["impact"] in {"serious", "critical"}
        ]
        assert found == [], (name, width, scheme, [(one["id"], one["nodes"][:2]) for one in found])
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, (name, width, wide)
        assert page.title() != "ran"
        apart = page.evaluate(APART)
        assert apart == [], (name, width, "labels that stand above or below their fields")
        looked.append(name)
        if folder := os.environ.get("LCC_SCREENSHOTS"):
            page.screenshot(path=Path(folder) / f"dashboard-{name}-{width}-{scheme}.png", full_page=True)

    def use(at):
        sign_in(at)
        for name, path in PAGES.items():
            at.go(path)
            assert (name == "compared") is (at.page.locator("ins").count() > 0), (name, at.text())
            for width in (1440, 390):
                for scheme in ("light", "dark"):
                    look(at, name, width, scheme)

    in_browser(house, use)
    assert len(looked) == 4 * len(PAGES)
