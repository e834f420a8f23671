"""A provider that pushes half of its changes: samples tell so, and it is visited until it pushes again."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from lcc_scrapy.db.sql.store import SqlStore
from tests.acceptance.conftest import Lcc, Nginx
from tests.acceptance.pushers import Conversation
from tests.acceptance.test_spidered_sites import pages, start_spider
from tests.harness import wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

DATABASES = os.environ.get("LCC_MISSES_DATABASES", "sqlite").split()
PAGES = 60
GRACE = 3600
"""Seconds; here they pass when the test says so."""


def write(site: Path, numbers: range, words: int) -> None:
    for number in numbers:
        (site / f"{number}.html").write_text(f"<p>page {number}</p>" + "word " * words)


def push(lcc: Lcc, root: str, numbers: range) -> None:
    conversation = Conversation(lcc.port, 7)
    conversation.login_answer()
    urls: list[dict[str, object]] = [
        {"c": f"{root}{number}.html", "mimetype": "text/html"} for number in numbers
    ]
    assert f'<set_accepted received="{len(numbers)}"/>' in conversation.push("partial", urls)
    conversation.close()
    lcc.wait_until_fetched(120)


def a_day_passes(lcc: Lcc) -> None:
    store = SqlStore(lcc.shared_url)
    with store.engine.begin() as connection:
        connection.execute(text("update lccurl set confirmed_time = confirmed_time - 86400"))
        connection.execute(text("update pidb set created = created - 86400"))
    store.close()


def the_grace_passes(lcc: Lcc) -> None:
    store = SqlStore(lcc.shared_url)
    with store.engine.begin() as connection:
        connection.execute(text(f"update suspects set found = found - {GRACE}"))
    store.close()


def not_pushed(lcc: Lcc) -> dict[str, Any] | None:
    found: dict[str, Any] | None = json.loads(lcc.lcc("provider", "show", "7", "--json").stdout)["not_pushed"]
    return found


def end(spider: subprocess.Popen[str]) -> str:
    spider.terminate()
    return spider.communicate(timeout=300)[0]


@pytest.mark.parametrize("database", DATABASES)
def test_half_of_the_changes_are_missed_and_the_provider_is_visited_until_it_pushes_again(
    database: str, tmp_path: Path, nginx: Nginx, make_lcc: Callable[..., Lcc]
) -> None:
    site = tmp_path / "docroot"
    site.mkdir()
    write(site, range(PAGES), 1)
    nginx.start({"site": site})
    root = f"http://127.0.0.1:{nginx.ports['site']}/"
    lcc = make_lcc(database, LCC_PUSH_GRACE=f"{GRACE}s")
    lcc.add_provider(7, root)
    lcc.start()
    push(lcc, root, range(PAGES))
    a_day_passes(lcc)
    write(site, range(20), 2)
    push(lcc, root, range(10))
    nginx.clear("site")

    sampling = start_spider(lcc, "provider=7", f"sample={2 * PAGES}", "every=1d")
    wait_for(lambda: lcc.sql("select count(*) from suspects") == [(10,)], 60, "ten suspects")
    push(lcc, root, range(10, 11))
    the_grace_passes(lcc)
    wait_for(lambda: lcc.sql("select sum(missed) from misses") == [(9,)], 60, "judgement")
    said = end(sampling)
    found = not_pushed(lcc)
    assert found is not None, said
    assert (found["sampled"], found["missed"], found["pushed"], found["suspected"]) == (PAGES, 9, 11, 0)
    assert found["share"]["lowest"] < 0.45 < found["share"]["highest"]
    assert pages(nginx.log("site")) == {f"/{n}.html": 2 if n == 10 else 1 for n in range(PAGES)}
    status = lcc.lcc("status").stdout
    assert "9 in 60 samples, 11 pushed" in status
    print(f"\n{database}: {next(line for line in status.splitlines() if 'not pushed' in line)}")

    lcc.lcc("provider", "set", "7", "--fallback", "20%")
    nginx.clear("site")
    visiting = start_spider(lcc, "provider=7", "sample=1", "every=1s")
    wait_for(lambda: len(pages(nginx.log("site"))) == PAGES, 60, "visits of all documents")
    assert "; its documents are visited" in lcc.lcc("status").stdout
    conversation = Conversation(lcc.port, 7)
    assert "missed changes" in conversation.login_answer()
    conversation.close()
    write(site, range(PAGES), 3)
    push(lcc, root, range(PAGES))
    ended = "select count(*) from pidb where not fallingback"
    wait_for(lambda: lcc.sql(ended) == [(1,)], 60, "the end of the visits")
    assert "misses few changes now" in end(visiting)
    assert lcc.stop() == 0
    assert lcc.lcc("verify").returncode == 0
