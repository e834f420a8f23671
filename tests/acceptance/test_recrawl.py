"""Crawling a site once more: 304s for what did not change, and time and bytes for what did.

``LCC_RECRAWL_SITE`` is a folder of html pages to be used whole (the small site is a part of the Python
documentation), ``LCC_RECRAWL_ROUNDS`` how often everything is measured (1), ``LCC_RECRAWL_BANDWIDTH`` the
provider's limit (none).
"""

import os
import re
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

from lcc_scrapy.domain.notations import size
from tests.acceptance.conftest import Lcc, Nginx
from tests.acceptance.test_spidered_sites import excerpt, spider

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(3600)]

WHOLE = os.environ.get("LCC_RECRAWL_SITE", "")
ROUNDS = int(os.environ.get("LCC_RECRAWL_ROUNDS", "1"))
BANDWIDTH = os.environ.get("LCC_RECRAWL_BANDWIDTH", "0")
EVERY = 36_000
"""Seconds until the next visit; they pass when the test says so, and in no crawl."""

SHARE = 10
"""One page of so many changes."""


@dataclass(frozen=True)
class Crawl:
    """What a crawl took (seconds, bytes of bodies), its answers, and the pages read for links since the start."""

    seconds: float
    sent: int
    answers: Counter[int]
    read: int
    said: str

    def counted(self, what: str) -> int:
        found = re.search(rf"'lcc/{what}': (\d+)", self.said)
        return int(found[1]) if found else 0


@pytest.fixture
def site(tmp_path: Path, corpora: dict[str, Path]) -> Path:
    """A docroot of our own, whose pages may be changed."""
    folder = tmp_path / "site"
    folder.mkdir()
    if WHOLE:
        shutil.copytree(Path(WHOLE).absolute(), folder / "docs", ignore_dangling_symlinks=True)
    else:
        excerpt(corpora["python"], folder / "docs")
    return folder


def crawl(lcc: Lcc, nginx: Nginx, *arguments: str) -> Crawl:
    nginx.clear("site")
    begun = time.monotonic()
    said = spider(lcc, *arguments)
    took = time.monotonic() - begun
    log = [one for one in nginx.log("site") if one.uri != "/robots.txt"]
    sent = sum(one.sent for one in log)
    assert not size(BANDWIDTH) or sent <= 1.05 * size(BANDWIDTH) * took
    ((read,),) = lcc.sql("select pages from scans")
    return Crawl(took, sent, Counter(one.status for one in log), int(str(read)), said)


def all_due(lcc: Lcc) -> bool:
    ((first, last),) = lcc.sql("select min(due), max(due) from spidered")
    return int(str(first)) > 0 and int(str(last)) < time.time()


def time_passes(lcc: Lcc) -> None:
    """Let all visits have been so long ago that the next ones are due."""
    columns = ("found", "visited", "answered", "due")
    longer = max(intervals(lcc).values()) + 1
    with closing(sqlite3.connect(lcc.folder / "lcc-data/lcc.sqlite", timeout=300)) as connection, connection:
        moved = ", ".join(f"{name} = {name} - {longer}" for name in columns)
        connection.execute(f"update spidered set {moved} where due > 0")
    assert all_due(lcc)


def intervals(lcc: Lcc) -> dict[str, int]:
    return {
        str(url): int(str(every)) for url, every in lcc.sql("select furl, every from spidered where code = 0")
    }


def change(site: Path, lcc: Lcc) -> set[str]:
    """Change a tenth of the pages that were found; returns their URLs. (The index has two.)"""
    found = lcc.sql("select furl from lccurl where furl like '%.html' and furl not like '%/docs/index.html'")
    urls = sorted(str(url) for (url,) in found)
    for url in urls[::SHARE]:
        with (site / url.split("/", 3)[3]).open("a") as page:
            page.write(f"<!-- changed at {time.time()} -->")
    return set(urls[::SHARE])


def test_a_crawl_once_more_brings_304s_and_what_changed(
    site: Path, nginx: Nginx, make_lcc: Callable[..., Lcc]
) -> None:
    nginx.start({"site": site})
    root = f"http://127.0.0.1:{nginx.ports['site']}/docs/"
    rounds = [one_round(site, nginx, make_lcc("sqlite"), root) for _ in range(ROUNDS)]
    for number, name in enumerate(("first", "nothing changed", "a tenth changed")):
        crawls = [crawls[number] for crawls in rounds]
        seconds, sent = [one.seconds for one in crawls], [one.sent for one in crawls]
        ratio = median(crawls[0].seconds / crawls[number].seconds for crawls in rounds)
        times = " ".join(f"{one:.1f}" for one in seconds)
        print(
            f"\n{name}: {times} s, {median(sent):.0f} bytes, {dict(crawls[0].answers)}, {ratio:.1f} times as fast"
        )


def one_round(site: Path, nginx: Nginx, lcc: Lcc, root: str) -> tuple[Crawl, Crawl, Crawl]:
    """Crawl three times: all, with nothing changed, with a tenth changed."""
    lcc.add_provider(7, root, "--bandwidth", BANDWIDTH, "--revisit", f"{EVERY}s..{EVERY}s..{9 * EVERY}s")
    first = crawl(lcc, nginx)
    pages = first.answers[200]
    assert pages > 30

    time_passes(lcc)
    unchanged = crawl(lcc, nginx, "every=auto", "stop_when_done=1")
    assert unchanged.answers == {304: pages, **({404: first.answers[404]} if first.answers[404] else {})}
    assert (unchanged.counted("confirmed"), unchanged.counted("stored")) == (pages, 0)
    assert unchanged.read == first.read

    changed, before = change(site, lcc), intervals(lcc)
    time_passes(lcc)
    tenth = crawl(lcc, nginx, "every=auto", "stop_when_done=1")
    assert (tenth.answers[200], tenth.answers[304]) == (len(changed), pages - len(changed))
    assert (tenth.counted("stored"), tenth.counted("confirmed")) == (len(changed), pages - len(changed))
    assert tenth.read == unchanged.read + len(changed)
    after = intervals(lcc)
    assert {url for url in after if after[url] <= before[url]} == changed
    return first, unchanged, tenth
