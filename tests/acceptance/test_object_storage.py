"""A crawl into object storage, killed: no row without its object, and no object without a row after the next start.

``LCC_S3_DOCUMENTS``, ``LCC_S3_KILLS`` and ``LCC_S3_RESTARTS``, which are kills of the S3 server, make it larger
(``make soak``).
"""

import os
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from lcc_scrapy.apps.object_storage.objects import RETRYING, ContentObjects
from tests.acceptance.mortals import settling_of
from tests.harness import BIN, answers, free_port, missing, wait_for
from tests.s3_server import CREDENTIALS, s3_on_disk, s3_server

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

DOCUMENTS = int(os.environ.get("LCC_S3_DOCUMENTS", "200"))
KILLS = int(os.environ.get("LCC_S3_KILLS", "3"))
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
RESTARTS = int(os.environ.get("LCC_S3_RESTARTS", "1"))


@pytest.fixture
def credentials(monkeypatch):
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def server(credentials):
    with s3_server() as running:
        yield running


@pytest.fixture
def on_disk(credentials, tmp_path):
    with s3_on_disk(tmp_path / "buckets") as running:
        yield running


@pytest.mark.timeout(1200)
def test_kills_leave_no_row_without_object_and_no_object_without_row(on_disk, make_lcc, nginx, tmp_path):
    docroot = tmp_path / "docroot"
    docroot.mkdir()
    for number in range(DOCUMENTS):
        (docroot / f"{number}.txt").write_text(f"document {number}\n" * (1 + number % 50))
    nginx.start({"site": docroot})
    root = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc(LCC_CONTENT_URL=on_disk.url, LCC_COMMIT_PAGES="20", LCC_LEASE="5s")
    lcc.add_provider(7, root)
    assert "object storage: s3://lcc/contents" in lcc.lcc("doctor", check=False).stdout
    objects = ContentObjects(on_disk.url, 1)

    def stored():
        return lcc.sql("select count(*) from lccurl")[0][0]

    lcc.start()
    assert lcc.push(docroot, 7, root).returncode == 0
    restarts = {KILLS * number // RESTARTS for number in range(RESTARTS)}
    for kill in range(KILLS):
        bound = (kill + 1) * DOCUMENTS // (KILLS + 2)
        wait_for(lambda bound=bound: stored() >= bound, 300, "documents")
        if kill in restarts:
            on_disk.restart(away=0 if kill else RETRYING + 2)  # once so long that commits fail
            bound = stored() + 1
            wait_for(lambda bound=bound: stored() >= bound, 300, "documents after its return")
        for child in settling_of([lcc.crawl.pid]):
            os.kill(child, signal.SIGKILL)
        lcc.stop(signal.SIGKILL)
        print(f"killed at {stored()} of {DOCUMENTS} documents")
        there = {fileid for fileid, _ in objects.all_files()}
        bare = {row[0] for row in lcc.sql("select fetched_fileid from lccurl")} - there
        assert not bare, "rows without an object"
        lcc.start()
    lcc.wait_until_fetched(600)
    lcc.stop()
    lcc.start_once_more()
    named = {row[0] for row in lcc.sql("select fetched_fileid from lccurl")}
    assert len(named) == DOCUMENTS
    assert {fileid for fileid, _ in objects.all_files()} == named
    assert "all is well" in lcc.lcc("verify").stdout
    assert not list((lcc.folder / "lcc-data/content/1").glob("[0-9]*"))


@pytest.mark.timeout(600)
def test_a_server_that_stands_still_loses_no_url(server, make_lcc, nginx, tmp_path):
    docroot = tmp_path / "docroot"
    docroot.mkdir()
    for number in range(20):
        (docroot / f"{number}.txt").write_text(f"document {number}")
    nginx.start({"site": docroot})
    root = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc(LCC_CONTENT_URL=server.url)
    lcc.add_provider(7, root)
    lcc.start()
    server.stand_still()
    assert lcc.push(docroot, 7, root).returncode == 0
    wait_for(lambda: "content object: object storage" in lcc.log_text(), 300, "a commit that fails")
    assert lcc.sql("select count(*) from lccurl") == [(0,)]
    server.go_on()
    lcc.wait_until_fetched(300)
    lcc.stop()
    assert lcc.sql("select count(*) from lccurl") == [(20,)]
    assert "all is well" in lcc.lcc("verify").stdout
    assert "not-a-secret" not in lcc.log_text()


EVIL = b"<!doctype html><title>evil</title><script>document.title = 'ran'</script><h1>rendered</h1>"


@contextmanager
def http_api(lcc):
    """Run ``lcc web``. Gives its URL, its log, and an option of curl that shows a token."""
    port = free_port()
    lcc.settings["LCC_WEB_ENDPOINT"] = f"127.0.0.1:{port}"
    token = lcc.lcc("token", "add", "reader").stdout.strip()
    log = lcc.folder / "web.log"
    with log.open("wb") as out:
        web = subprocess.Popen([str(BIN / "lcc"), "web"], env=lcc.environment, cwd=lcc.cwd, stderr=out)
    try:
        wait_for(lambda: answers(port), 300, "lcc web")
        yield f"http://127.0.0.1:{port}", log, f"Authorization: Bearer {token}"
    finally:
        web.terminate()
        web.wait(300)


@pytest.mark.timeout(600)
def test_a_reader_is_sent_to_the_bucket_where_no_browser_renders_what_it_gets(
    on_disk, make_lcc, nginx, tmp_path
):
    if CHROMIUM is None:
        missing("chromium", "apt-get install chromium fonts-dejavu-core")
    docroot = tmp_path / "docroot"
    docroot.mkdir()
    (docroot / "evil.html").write_bytes(EVIL)
    nginx.start({"site": docroot})
    root = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc(LCC_CONTENT_URL=on_disk.url, LCC_CONTENT_REDIRECT="10m")
    lcc.add_provider(7, root)
    lcc.start()
    assert lcc.push(docroot, 7, root).returncode == 0
    lcc.wait_until_fetched(300)
    lcc.stop()
    docid = lcc.sql("select urlkey from lccurl")[0][0].hex()
    with http_api(lcc) as (url, log, shown):
        asked = ["curl", "-sS", "-H", shown, f"{url}/v1/documents/{docid}/content"]
        address = subprocess.check_output([*asked, "-o", "/dev/null", "-w", "%{redirect_url}"], text=True)
        assert address.startswith(f"http://127.0.0.1:{on_disk.port}/lcc/contents/1/")
        assert subprocess.check_output([*asked, "-fL"]) == EVIL
        with ThreadPoolExecutor(1) as apart:  # playwright wants a thread without an event loop
            apart.submit(_download, address, tmp_path / "kept").result()
        on_disk.restart()  # it has forgotten what it was told of its objects
        assert subprocess.check_output([*asked, "-f", "-w", "%{http_code}"]) == EVIL + b"200"
        said = log.read_text()
    assert f"GET /v1/documents/{docid}/content 302" in said
    assert "X-Amz" not in said
    assert "not-a-secret" not in said


def _download(address, kept):
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
            timeout=300_000,
        )
        page = browser.new_page()
        page.set_default_timeout(300_000)
        with page.expect_download() as coming, pytest.raises(Error):
            page.goto(address)
        coming.value.save_as(kept)
        assert kept.read_bytes() == EVIL
        assert page.title() != "ran"
        browser.close()
