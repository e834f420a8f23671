"""What `lcc export --format warc` writes is an archive to others: warcio accepts it, pywb replays it."""

import shutil
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.acceptance.conftest import Lcc, Nginx
from tests.harness import BIN, free_port, wait_for
from tests.own_venv import install

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

PAGES = 10


@pytest.fixture(scope="module")
def pywb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of pywb's programs; it takes about 15 s to install."""
    return install(tmp_path_factory.mktemp("pywb") / "venv", "pywb==2.10.*")


@pytest.fixture
def pages(corpora: dict[str, Path], tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    for path in sorted(corpora["python"].rglob("library/*.html"))[:PAGES]:
        shutil.copy(path, folder)
    return folder


def test_ten_pages_are_replayed_byte_by_byte(
    make_lcc: Callable[..., Lcc], nginx: Nginx, pages: Path, pywb: Path, tmp_path: Path
) -> None:
    nginx.start({"site": pages}, "gzip on;")
    prefix = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc("sqlite")
    lcc.add_provider(1, prefix)
    lcc.start()
    assert lcc.push(pages, 1, prefix, "-name '*.html'").returncode == 0
    lcc.wait_until_fetched()
    assert lcc.stop() == 0
    archive = tmp_path / "pages.warc.gz"
    lcc.lcc("export", "--format", "warc", "-o", str(archive))

    checked = subprocess.run(
        [str(BIN / "warcio"), "check", "-v", str(archive)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert "digest failed" not in checked.stdout
    assert checked.stdout.count("digest pass") >= PAGES
    dates = {}
    with archive.open("rb") as stream:
        for record in ArchiveIterator(stream):
            if record.rec_type == "response":
                assert record.http_headers.get_header("X-Archive-Orig-Transfer-Encoding") == "chunked"
                date = record.rec_headers.get_header("WARC-Date")
                dates[record.rec_headers.get_header("WARC-Target-URI")] = "".join(filter(str.isdigit, date))
    assert dates.keys() == {prefix + path.name for path in pages.iterdir()}

    replay = tmp_path / "replay"
    replay.mkdir()
    for words in (["init", "C"], ["add", "C", str(archive)]):
        subprocess.run([str(pywb / "wb-manager"), *words], cwd=replay, check=True, timeout=300)
    port = free_port()
    server = subprocess.Popen([str(pywb / "wayback"), "-b", "127.0.0.1", "-p", str(port)], cwd=replay)
    try:
        wait_for(lambda: _get(f"http://127.0.0.1:{port}/") is not None, 60, "pywb")
        for url, date in dates.items():
            assert (
                _get(f"http://127.0.0.1:{port}/C/{date}id_/{url}")
                == (pages / url.rpartition("/")[2]).read_bytes()
            )
    finally:
        server.terminate()
        server.wait(300)


def _get(url: str) -> bytes | None:
    try:
        with urllib.request.urlopen(url, timeout=300) as answer:
            return bytes(answer.read())
    except OSError:
        return None
