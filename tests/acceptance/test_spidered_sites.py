"""``scrapy crawl lcc_spider`` on real documents: all that can be reached, nothing twice, nothing outside."""

import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.conftest import Lcc, Nginx, Served
from tests.acceptance.test_the_whole_way import overlaps
from tests.acceptance.walker import Walk, walk
from tests.harness import wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(3600)]

DOCUMENTS = os.environ.get("LCC_SPIDER_SITE", "")
"""A folder of html pages to be spidered instead of the small site, for long runs."""
UNSETTLED = 64
"""Fetches that may have ended and not be on disk yet when a process is killed; they are done again."""
KILLS = int(os.environ.get("LCC_SPIDER_KILLS", "2"))
PATIENCE = 1800 if DOCUMENTS else 120
"""Seconds."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, corpora: dict[str, Path]) -> Path:
    """A docroot with pages inside and outside of the root that is spidered."""
    folder = tmp_path_factory.mktemp("site")
    inside = Path(DOCUMENTS).absolute() if DOCUMENTS else excerpt(corpora["python"], folder / "excerpt")
    (folder / "docs").symlink_to(inside)
    (folder / "outside.html").write_text("<a href='docs/'>docs</a>")
    return folder


def excerpt(source: Path, target: Path) -> Path:
    """Copy a part of the Python documentation; its links to the rest are dead."""
    target.mkdir()
    for path in [source / "index.html", *source.glob("tutorial/*.html"), *source.glob("howto/*.html")]:
        copied = target / path.relative_to(source)
        copied.parent.mkdir(exist_ok=True)
        copied.write_bytes(path.read_bytes())
    (target / "tutorial" / "out.html").write_text(
        "<a href='../../outside.html'>x</a> <a href='nowhere.html'>x</a>"
    )
    with (target / "index.html").open("a") as page:
        page.write("<a href='tutorial/out.html'>out</a> <a href='/outside.html'>outside</a>")
    return target


def spider(lcc: Lcc, *arguments: str, timeout: float = 1800) -> str:
    """Run the spider to its end, and return what it said."""
    done = start_spider(lcc, "provider=7", *arguments)
    said, _ = done.communicate(timeout=timeout)
    assert done.returncode == 0, said[-3000:]
    return said


def start_spider(lcc: Lcc, *arguments: str, said: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    command = ["scrapy", "crawl", "lcc_spider", *said, "-s", "LCC_UNS_ENDPOINTS="]
    for argument in arguments:
        command += ["-a", argument]
    return subprocess.Popen(
        command, env=lcc.environment, cwd=lcc.cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def cached(lcc: Lcc) -> dict[str, str]:
    return {str(url): str(kind) for url, kind in lcc.sql("select furl, mimetype from lccurl")}


def pages(requests: list[Served]) -> Counter[str]:
    return Counter(one.uri for one in requests if one.uri != "/robots.txt")


def paths(walked: Walk, host: str) -> set[str]:
    return {url.removeprefix(host) for url in {*walked.pages, *walked.missing}}


@pytest.mark.parametrize("database", ["sqlite"] if DOCUMENTS else ["mariadb"])
def test_every_page_that_links_lead_to_is_cached_and_visited_again_for_a_304(
    database: str, site: Path, nginx: Nginx, make_lcc: Callable[..., Lcc]
) -> None:
    nginx.start({"site": site})
    host = f"http://127.0.0.1:{nginx.ports['site']}"
    root = f"{host}/docs/"
    expected = walk(root, root)
    nginx.clear("site")
    lcc = make_lcc(database)
    lcc.add_provider(7, root)

    begun = time.monotonic()
    spider(lcc)
    first, took = nginx.log("site"), time.monotonic() - begun
    assert len(expected.pages) > 30
    assert cached(lcc) == expected.pages
    assert pages(first) == dict.fromkeys(paths(expected, host), 1)
    assert all(uri.startswith("/docs/") for uri in pages(first))

    nginx.clear("site")
    assert "lcc/stored" not in spider(lcc)
    assert not pages(nginx.log("site"))

    begun = time.monotonic()
    spider(lcc, "every=1s", "stop_when_done=1")
    again, took_again = nginx.log("site"), time.monotonic() - begun
    assert pages(again) == dict.fromkeys(paths(expected, host), 1)
    assert {one.status for one in again} - {404} == {304}
    print(
        f"\n{database}: {len(expected.pages)} documents, {len(expected.missing)} dead links; first {took:.1f} s,"
        f" {sum(one.sent for one in first)} bytes; again {took_again:.1f} s, {sum(one.sent for one in again)} bytes"
    )


@pytest.mark.parametrize("database", ["sqlite"])
def test_a_spider_that_is_killed_again_and_again_visits_everything(
    database: str, site: Path, nginx: Nginx, make_lcc: Callable[..., Lcc]
) -> None:
    nginx.start({"site": site})
    host = f"http://127.0.0.1:{nginx.ports['site']}"
    root = f"{host}/docs/"
    expected = walk(root, root)
    nginx.clear("site")
    lcc = make_lcc(database)
    lcc.add_provider(7, root, *([] if DOCUMENTS else ["--bandwidth", "2M"]))
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    before = 0
    for _ in range(KILLS):
        process = start_spider(lcc, "provider=7")
        wanted = before + chance.randrange(1, max(2, len(expected.pages) // (KILLS + 1)))
        wait_for(lambda wanted=wanted: len(pages(nginx.log("site"))) > wanted, PATIENCE, "visits")
        time.sleep(chance.uniform(0, 0.3))
        process.kill()
        process.communicate(timeout=300)
        before = len(pages(nginx.log("site")))
    spider(lcc)
    requests = pages(nginx.log("site"))
    again = sum(requests.values()) - len(requests)
    print(f"\nseed {seed}: {KILLS} kills, {len(requests)} URLs, {again} requests done again")
    assert cached(lcc) == expected.pages
    assert requests.keys() == paths(expected, host)
    assert lcc.sql("select count(*) from lccurl") == [(len(expected.pages),)]
    assert again <= UNSETTLED * KILLS
    assert lcc.lcc("verify").returncode == 0
    assert lcc.sql("select count(*) from lccurl") == [(len(expected.pages),)]


@pytest.mark.parametrize("database", ["sqlite"] if DOCUMENTS else ["mariadb"])
def test_a_push_and_a_spider_of_one_provider_fetch_nothing_twice(
    database: str, site: Path, nginx: Nginx, make_lcc: Callable[..., Lcc]
) -> None:
    nginx.start({"site": site})
    host = f"http://127.0.0.1:{nginx.ports['site']}"
    root = f"{host}/docs/"
    expected = walk(root, root)
    nginx.clear("site")
    lcc = make_lcc(database)
    lcc.add_provider(7, root)
    lcc.start()
    visiting = start_spider(lcc, "provider=7")
    wait_for(lambda: len(pages(nginx.log("site"))) > 3, 60, "visits")
    pushed = lcc.push((site / "docs").resolve(), 7, root, "-name '*.html'")
    assert pushed.returncode == 0, pushed.stderr
    said, _ = visiting.communicate(timeout=600)
    assert visiting.returncode == 0, said[-3000:]
    lcc.wait_until_fetched(300)
    log = nginx.log("site")
    twice = {uri: count for uri, count in pages(log).items() if count > 1}
    origins = Counter(str(origin) for (origin,) in lcc.sql("select origin from lccurl"))
    print(f"\n{sum(pages(log).values())} requests, {len(twice)} URLs twice, origins {dict(origins)}")
    assert cached(lcc).keys() >= expected.pages.keys()
    assert not twice
    assert overlaps(log) == 0
    assert origins["spider"] < origins["push"]
    assert lcc.stop() == 0


def test_what_cannot_begin_is_one_line(make_lcc: Callable[..., Lcc]) -> None:
    lcc = make_lcc("sqlite")
    for arguments, words, expected in [
        (("provider=7", "evry=6h"), "unknown argument evry", 2),
        (("provider=8",), "there is no provider 8", 1),
    ]:
        process = start_spider(lcc, *arguments, said=("-L", "ERROR"))
        said, _ = process.communicate(timeout=300)
        assert (process.returncode, said.count("\n"), words in said) == (expected, 1, True), said
