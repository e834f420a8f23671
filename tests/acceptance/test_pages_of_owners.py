"""An owner signs in, tries and saves a profile, reads alerts and adds a recipient, in a browser without script."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from harness import PATIENCE, missing

from lcc_scrapy.db.sql.store import SqlStore
from tests.alert_house import aci
from tests.web_process import serving

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

CHANGE = {
    "keywords": [],
    "added": ["The new regulation applies from 1 January 2028 on to all makers of lamps."],
    "removed": ["The regulation applies from 1 January 2030 on."],
    "diff": "@@ -3,2 +3,2 @@\n Article 4\n-The regulation applies from 1 January 2030 on.\n"
    "+The new regulation applies from 1 January 2028 on to all makers of lamps.\n",
}
LONG = "http://www.example.org/" + "a-very-long-name-without-any-break-" * 6
EVIL = "<img src=x onerror=alert(1)>"


@contextmanager
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-sync"],
            timeout=PATIENCE * 1000,
        )
        yield browser
        browser.close()


@pytest.mark.soak_of("1280")
@pytest.mark.parametrize("width", [1280, 360])
def test_an_owner_uses_the_pages_without_script(make_lcc, width):
    if CHROMIUM is None:
        missing("chromium", "apt-get install chromium")
    lcc = make_lcc()
    token = lcc.lcc("token", "add", "anna", "--scope", "annotate").stdout.strip()
    found = [
        aci(1, "anna", title=EVIL, uri=LONG),
        aci(2, "anna", title="Lamps and how to choose them"),
        aci(3, "anna", title="Regulation on lamps", summary="", detail=json.dumps(CHANGE)),
    ]
    store = SqlStore(lcc.shared_url)
    with store.begin() as tx:
        tx.put_acis([replace(one, urgency=1) for one in found])
        tx.take("aci", 3)
    store.close()
    with serving(lcc) as (port, _), ThreadPoolExecutor(1) as apart:
        apart.submit(browse, port, token, width).result()
    (row,) = json.loads(lcc.lcc("recipient", "list", "anna", "--json").stdout)
    assert (row["channel"], row["address"]) == ("webhook", "https://hooks.example.org/anna")
    (urd,) = json.loads(lcc.lcc("urd", "list", "--json").stdout)
    assert urd["owner"] == "anna"


def browse(port, token, width):
    with chromium() as browser:
        context = browser.new_context(java_script_enabled=False, viewport={"width": width, "height": 800})
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        wrong, asked = [], []
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("request", lambda one: asked.append(one.url))
        page.goto(f"http://127.0.0.1:{port}/my/alerts")
        shown(page, width, "sign-in")
        page.fill("#token", token)
        page.keyboard.press("Enter")
        page.wait_for_selector("article")
        assert page.locator("article").count() == 3
        assert page.locator("article img").count() == 0
        assert page.locator("mark").first.inner_text() == "lamps"
        page.click("summary:text('All changes')")
        page.click("summary:text('For a feed reader')")
        shown(page, width, "alerts")
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.click("nav a:text('Profiles')")
        page.click("text=New profile")
        page.fill("#keywords", "lamps = 3")
        page.click("text=Try it on cached pages")
        page.wait_for_selector("[role=status]")
        shown(page, width, "tried")
        page.fill("#timing", "whenever")
        page.click("button:text('Save')")
        page.wait_for_selector("[role=alert]")
        shown(page, width, "refused")
        page.fill("#timing", "0")
        page.click("button:text('Save')")
        page.wait_for_selector("article")
        shown(page, width, "profiles")
        page.click("nav a:text('Recipients')")
        page.select_option("#channel", "webhook")
        page.fill("#address", "https://hooks.example.org/anna")
        page.click("button:text('Add')")
        page.wait_for_selector("pre")
        assert page.inner_text("pre").startswith("whsec_")
        shown(page, width, "secret")
        page.click("text=Go on")
        shown(page, width, "recipients")
        page.click("button:text('Sign out')")
        page.wait_for_selector("#token")
        assert context.cookies() == []
        assert [text for text in wrong if "Content Security Policy" in text] == []
        assert all(url.startswith(f"http://127.0.0.1:{port}/") for url in asked)


def shown(page, width, name):
    """Nothing may be wider than the window: sizes are measured by the browser itself."""
    for place in page.locator("body *").all():
        box = place.bounding_box()
        assert box is None or box["x"] + box["width"] <= width + 1, (name, box, place.inner_text()[:40])
    folder = os.environ.get("LCC_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"owner-{name}-{width}.png", full_page=True)
