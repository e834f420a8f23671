"""A crawl into object storage, killed: no row without its object, and no object without a row after the next start.

``LCC_S3_DOCUMENTS``, ``LCC_S3_KILLS`` and ``LCC_S3_RESTARTS``, which are kills of the S3 server, make it larger
(``make soak``).
"""

import os
import signal

import pytest

from lcc_scrapy.content.objects import RETRYING, ContentObjects
from tests.acceptance.mortals import settling_of
from tests.harness import wait_for
from tests.s3_server import CREDENTIALS, s3_on_disk, s3_server

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

DOCUMENTS = int(os.environ.get("LCC_S3_DOCUMENTS", "200"))
KILLS = int(os.environ.get("LCC_S3_KILLS", "3"))
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
