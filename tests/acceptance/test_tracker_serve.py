"""``lcc tracker serve`` as people and programs use it: curl, Squid's question for a name, a browser's bookmark."""

import http.client
import json
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from harness import PATIENCE, missing, wait_for
from lxml import etree

from lcc_scrapy.db.sql.store import SqlStore
from tests.mirrors import NOW, Tracker, tree_of
from tests.web_process import serving

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

TREE = tree_of("pub/own 2\npub/app/app.tgz 5\npub/app/doc/README 7")
MIRROR = tree_of("m/app.tgz 5\nm/doc/README 7\nother 1")
URL = "ftp://ftp.example.org/pub/app/app.tgz"
DE, AT = "https://m.example.de/m/", "http://m.example.at/m/"


@pytest.fixture
def lcc(make_lcc):
    made = make_lcc()
    store = SqlStore(made.shared_url)
    tracker = Tracker(store)
    tracker.load("ftp://ftp.example.org/", TREE, "org", at=NOW)
    tracker.load("https://m.example.de/", MIRROR, "de", at=NOW + 2)
    tracker.load("http://m.example.at/", MIRROR, "at", at=NOW + 1)
    store.close()
    return made


def curl(port, path, *options):
    """Ask with curl; gives the head and the body of the answer."""
    command = ["curl", "-sS", "-i", "--max-time", "300", *options, f"http://127.0.0.1:{port}{path}"]
    done = subprocess.run(command, capture_output=True, check=True)
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    return head.decode(), body.decode()


def test_curl_gets_each_form_of_the_answer(lcc, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text("")
    name = json.loads(lcc.lcc("tracker", "sums", str(_folder(tmp_path)), "--json").stdout)[0]["md5"]
    with serving(lcc, "tracker serve", LCC_TRACKER_POLICY=str(policy)) as (port, process):
        head, body = curl(port, f"/?url={URL}")
        assert head.startswith("HTTP/1.1 200 ")
        assert f"<{DE}app.tgz>; rel=duplicate; pri=1; geo=de" in head
        assert f'href="{AT}app.tgz"' in body
        _, body = curl(port, f"/?url={URL}", "-H", "Accept: application/json")
        assert [one["url"] for one in json.loads(body)["replicas"]] == [f"{DE}app.tgz", f"{AT}app.tgz"]
        _, body = curl(port, f"/?format=meta4&tld=at&url={URL}")
        assert [one.text for one in etree.fromstring(body.encode()).iter("{*}url")] == [f"{AT}app.tgz"]
        head, _ = curl(port, "/redirect", "-G", "--data-urlencode", f"url={URL}")
        assert head.startswith("HTTP/1.1 302 ")
        assert f"\r\nlocation: {DE}app.tgz\r\n" in head
        head, _ = curl(port, f"/uri-res/N2L?urn:x-tracker:{name}")
        assert head.startswith("HTTP/1.1 303 ")
        head, _ = curl(port, f"/uri-res/N2L?urn:x-tracker:{name}", "--http1.0")
        assert head.split(" ", 2)[1] == "302"
        _, body = curl(port, f"/uri-res/N2L?urn:x-tracker:{name}", "-H", "Accept: text/plain")
        assert body == f"{DE}\r\n"
        _, body = curl(port, f"/uri-res/N2Ls?urn:x-tracker:{name}")
        assert body.split("\r\n")[1:-1] == [DE, AT, "ftp://ftp.example.org/pub/app/"]
        head, body = curl(port, f"/uri-res/N2Rs?urn:x-tracker:{name}")
        assert 'content-type: multipart/alternative; boundary="' in head
        head, _ = curl(port, "/?url=ftp://nowhere.example.org/")
        assert head.startswith("HTTP/1.1 404 ")
        assert _refuses_a_megabyte(port)
        policy.write_text('allowed = ["at"]\nanswer = "redirect"\n')
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: f"\r\nlocation: {AT}app.tgz\r\n" in curl(port, f"/?url={URL}")[0])
        assert "127.0.0.1 GET /redirect 302" in (lcc.folder / "tracker serve.log").read_text()


def _folder(tmp_path):
    """Make the mirrored directory on disk, to get its name."""
    folder = tmp_path / "app"
    (folder / "doc").mkdir(parents=True)
    (folder / "app.tgz").write_bytes(b"12345")
    (folder / "doc" / "README").write_bytes(b"1234567")
    return folder


def _refuses_a_megabyte(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request("GET", f"/?url={'a' * 1_000_000}")
        return connection.getresponse().status == 400
    except ConnectionError:
        return True
    finally:
        connection.close()


def test_where_to_listen_may_be_said_on_the_command_line(lcc):
    assert "expected for example" in lcc.lcc("tracker", "serve", "--listen", "x", check=False).stderr
    done = lcc.lcc("-s", "LCC_TRACKER_ENDPOINT=", "tracker", "serve", check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "LCC_TRACKER_ENDPOINT is empty" in done.stderr
    done = lcc.lcc("tracker", "serve", "--listen", "0.0.0.0:0", check=False)
    assert "beyond loopback" in done.stderr


@pytest.mark.parametrize("width", [1280, 360])
def test_a_browser_finds_mirrors_by_form_and_from_an_https_page(lcc, width):
    if CHROMIUM is None:
        missing("chromium", "apt-get install chromium")
    with serving(lcc, "tracker serve") as (port, _), ThreadPoolExecutor(1) as apart:
        apart.submit(_browse, port, width).result()


@contextmanager
def _page(width):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-sync"],
            timeout=PATIENCE * 1000,
        )
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.set_default_timeout(PATIENCE * 1000)
        yield page
        browser.close()


def _browse(port, width):
    with _page(width) as page:
        complaints = []
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(f"http://127.0.0.1:{port}/")
        page.fill("#url", URL)
        page.keyboard.press("Enter")
        page.wait_for_selector("tbody tr")
        assert page.locator("tbody a").all_inner_texts() == [f"{DE}app.tgz", f"{AT}app.tgz"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert not complaints, "the page's own rules hold nothing of it back"
        bookmark = page.get_attribute("a[href^='javascript:']", "href")
        page.route(
            "https://m.example.de/**", lambda route: route.fulfill(body="<p>files", content_type="text/html")
        )
        page.goto(f"{DE}doc/?#top")
        page.evaluate(bookmark.removeprefix("javascript:"))
        page.wait_for_url(f"http://127.0.0.1:{port}/?url=**")
        assert page.locator("tbody a").all_inner_texts() == [f"{AT}doc/"]
