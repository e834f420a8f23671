"""A site owner registers, and pushes with what the page showed; in a browser with the keyboard alone."""

import http.client
import json
import os
import re
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from harness import BIN, PATIENCE, missing

from tests.push_process import push_server
from tests.registration_site import answer, little_site

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


@pytest.fixture
def site():
    with little_site() as made:
        yield made


@pytest.fixture
def lcc(make_lcc, site):
    made = make_lcc()
    made.settings |= {
        "LCC_REGISTRATION": "open", "LCC_REGISTRATION_PRIVATE": "yes", "LCC_REGISTRATION_RATE": "1000/s",
        "LCC_REGISTRATION_PORTS": f"80 443 {site.port}", "LCC_PUBLIC_UNS": f"127.0.0.1:{made.port}",
        "LCC_REGISTRATION_HOST_RATE": "1000/s",
    }  # fmt: skip
    return made


def post(port, path, body):
    """Send a form; gives status and page."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("POST", path, urlencode(body), {"Content-Type": "application/x-www-form-urlencoded"})
    told = connection.getresponse()
    found = told.status, unescape(told.read().decode())
    connection.close()
    return found


def check(lcc, pid, password):
    """Log in at the UNS; gives the exit status of lcccp and what it said."""
    command = [str(BIN / "lcccp"), f"--uns=127.0.0.1:{lcc.port}", f"--pid={pid}", "--check"]
    done = subprocess.run(
        command, env={**lcc.environment, "LCC_PWD": password}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_a_registered_site_pushes_with_the_lines_of_the_page(lcc, site, tmp_path):
    lcc.start_uns()
    with push_server(lcc) as server:
        status, page = post(server.port, "/register", {"site": site.url})
        assert status == 201
        given = dict(re.findall(r'name="(\w+)" (?:type="\w+" )?value="([^"]*)"', page))
        pid, password = given["pid"], given["password"]
        code, said = check(lcc, pid, password)
        assert (code, "101" in said) == (77, True), "before its proof the password logs in nowhere"
        lcc.stop_uns()
        lcc.start_uns()
        assert check(lcc, pid, password)[0] == 77, "nor after a restart"
        secret = re.search(r"echo (\w{40}) >", page)[1]
        site.put(secret, "/docs/")
        status, page = post(server.port, "/register/activate", given | {"folder": site.url + "docs/"})
        assert (status, "Your password is active" in page) == (200, True)
    site.files.clear()
    assert check(lcc, pid, password)[0] == 0
    lines = [one for one in re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL) if "lcccp " in one]
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.html").write_text("hello")
    site.files["/docs/a.html"] = b"hello"
    (tmp_path / "lcc.pwd").write_text(password + "\n")
    (tmp_path / "lcc.pwd").chmod(0o600)
    (command,) = (one.replace("DOCROOT", shlex.quote(str(docs))) for one in lines)
    done = subprocess.run(
        command, shell=True, cwd=tmp_path, env=lcc.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    refused = subprocess.run(
        [str(BIN / "lcccp"), f"--uns=127.0.0.1:{lcc.port}", f"--pid={pid}", f"--urlprefix={site.url}"],
        input='<url curl="x" mimetype="text/html"/>\n', env={**lcc.environment, "LCC_PWD": password},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (refused.returncode, "704" in refused.stdout + refused.stderr) == (1, True)
    lcc.stop_uns()
    lcc.start_once_more()
    rows = [json.loads(line) for line in lcc.lcc("select", "--format", "jsonl").stdout.splitlines()]
    assert [(row["curl"], row["pid"]) for row in rows if row.get("curl")] == [
        (site.url + "docs/a.html", int(pid))
    ]


def test_the_operator_approves_and_rejects(lcc, site):
    lcc.settings["LCC_REGISTRATION"] = "approve"
    given = []
    with push_server(lcc) as server:
        for _ in range(2):
            _, page = post(server.port, "/register", {"site": site.url})
            given.append(dict(re.findall(r'name="(\w+)" (?:type="\w+" )?value="([^"]*)"', page)))
            site.put(re.search(r"echo (\w{40}) >", page)[1])
            status, page = post(server.port, "/register/activate", given[-1])
            assert (status, "has to approve it now" in page) == (200, True)
    first, second = (one["pid"] for one in given)
    rows = json.loads(lcc.lcc("registration", "list", "--json").stdout)
    assert [(str(row["pid"]), row["stage"], row["root"]) for row in rows] == [
        (first, "proved", site.url), (second, "proved", site.url),
    ]  # fmt: skip
    for command in ("list", "show"):
        told = lcc.lcc("registration", command, *([first] if command == "show" else [])).stdout
        assert "waits for approval" in told
        assert given[0]["password"] not in told
    assert first in lcc.lcc("registration", "approve", first).stdout
    assert "not given out again" in lcc.lcc("registration", "reject", second).stdout
    assert lcc.lcc("registration", "approve", second, check=False).returncode == 1
    assert lcc.lcc("registration", "list").stdout == ""
    refused = lcc.lcc(
        "provider", "add", second, "--root", site.url, "--password-file", "-", check=False, stdin="x\n"
    )
    assert "never used again" in refused.stderr
    lcc.start_uns()
    assert [check(lcc, one["pid"], one["password"])[0] for one in given] == [0, 77]


# --- a browser -----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1280, 360])
def test_a_browser_registers_with_the_keyboard_alone_and_without_script(lcc, site, width):
    if CHROMIUM is None:
        missing("chromium", "apt-get install chromium")
    with push_server(lcc) as server, ThreadPoolExecutor(1) as apart:
        apart.submit(_browse, server.port, site, width).result()
    (row,) = json.loads(lcc.lcc("provider", "list", "--json").stdout)
    assert row["roots"] == [site.url]
    assert (row["bandwidth"], row["timezone"]) == (200_000, "Europe/Amsterdam")


@contextmanager
def _chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-sync"],
            timeout=PATIENCE * 1000,
        )
        yield browser
        browser.close()


def _browse(port, site, width):
    with _chromium() as browser:
        context = browser.new_context(java_script_enabled=False, viewport={"width": width, "height": 800})
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        wrong = []
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.goto(f"http://127.0.0.1:{port}/register")
        _shown(page, width, "register")
        _type(page, "site", site.url.replace("http://", ""))
        page.keyboard.press("Enter")
        page.wait_for_selector("[role=alert]")
        assert "in front" in page.inner_text("[role=alert]")
        _type(page, "site", site.url)
        for name, text in (
            ("bandwidth", "200k"),
            ("hours", "mon-fri 20-06"),
            ("timezone", "Europe/Amsterdam"),
        ):
            _type(page, name, text)
        page.keyboard.press("Enter")
        page.wait_for_selector("ol")
        _shown(page, width, "given")
        secret = re.search(r"echo (\w{40}) >", page.inner_text("body"))[1]
        _press(page, "The file is there")
        page.wait_for_selector("text=Try again")
        _shown(page, width, "failed")
        site.put(secret)
        _press(page, "Try again")
        page.wait_for_selector("text=Your password is active")
        _shown(page, width, "done")
        assert f"127.0.0.1:{site.port}" in page.inner_text("body")
        refused = [text for text in wrong if "Content Security Policy" in text]
        assert refused == []


def test_a_form_on_a_page_of_another_site_registers_nothing(lcc, site):
    if CHROMIUM is None:
        missing("chromium", "apt-get install chromium")
    with push_server(lcc) as server, ThreadPoolExecutor(1) as apart:
        form = (
            f'<form method="post" action="http://127.0.0.1:{server.port}/register">'
            f'<input name="site" value="{site.url}"><button>Win</button></form>'
        )
        site.files["/"] = lambda handler: answer(handler, form.encode(), **{"Content-Type": "text/html"})
        said = apart.submit(_click, site.url).result()
        assert "sent by a page of another site" in said
        assert json.loads(lcc.lcc("registration", "list", "--json").stdout) == []


def _click(url):
    with _chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.goto(url)
        page.click("button")
        page.wait_for_selector("[role=alert]")
        return page.inner_text("[role=alert]")


def _type(page, name, text):
    """Go to a field with the tabulator key, and write."""
    _tab_to(page, f"#{name}")
    page.keyboard.press("Control+a")
    page.keyboard.type(text)


def _press(page, label):
    _tab_to(page, f"button:text('{label}')")
    page.keyboard.press("Enter")


def _tab_to(page, selector):
    for _ in range(40):
        if page.locator(f"{selector}:focus").count():
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the tabulator key does not lead to {selector}")


def _shown(page, width, name):
    """Nothing may be wider than the window: sizes are measured by the browser itself."""
    for place in page.locator("body *").all():
        box = place.bounding_box()
        assert box is None or box["x"] + box["width"] <= width + 1, (name, box, place.inner_text()[:40])
    folder = os.environ.get("LCC_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"registration-{name}-{width}.png", full_page=True)
