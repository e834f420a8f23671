"""A site moves to another host: its documents follow, the site is not asked, and content users see it."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from hashlib import md5
from typing import Any

import pytest

from tests.harness import BIN, Lcc, wait_for
from tests.integration.site import Site, page

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

PAGES = 200
MANY = 1200
"""Documents of several transactions."""

NAMED_ANEW = {"docid", "curl", "burl", "furl", "final_url", "seq", "cursor"}
"""Fields of a row that a renaming changes."""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


def names(count: int) -> list[str]:
    return [f"{number:04}.html" for number in range(count)]


def urls(root: str, pages: list[str], bodies: dict[str, str]) -> list[dict[str, object]]:
    contents = {name: bodies[name].encode() for name in pages}
    return [
        {"c": root + name, "mimetype": "text/html", "md5": md5(body).hexdigest(), "len": len(body)}
        for name, body in contents.items()
    ]


def crawled(lcc: Lcc, site: Site, count: int) -> tuple[str, str, dict[str, str]]:
    """Let provider 7 push pages and have them fetched; returns the old and the new root, and the pages."""
    old, new = (f"http://127.0.0.1:{site.listen()}/" for _ in range(2))
    bodies = {name: f'this is {name}, see <a href="{names(count)[0]}">one</a>' for name in names(count)}
    for name, body in bodies.items():
        site.put(f"/{name}", page(body))
    lcc.add_provider(7, old, "--ignore-robots")
    lcc.start()
    pushed = lcc.push_urls(7, urls(old, names(count), bodies))
    assert pushed.returncode == 0, pushed.stderr
    lcc.wait_until_fetched()
    assert lcc.sql("select count(*) from lccurl") == [(count,)]
    return old, new, bodies


def select(lcc: Lcc, *options: str) -> list[dict[str, Any]]:
    done = lcc.lcc("select", "--format", "jsonl", *options)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_nothing_is_fetched_and_the_feed_says_what_moved(make_lcc: Callable[..., Lcc], site: Site) -> None:
    lcc = make_lcc()
    old, new, bodies = crawled(lcc, site, PAGES)
    follow = ("--cursor-file", str(lcc.folder / "cursor"))
    before = {row["curl"]: row for row in select(lcc, *follow)}
    visits = len(site.visits)
    dry = json.loads(lcc.lcc("provider", "rename-root", "7", old, new, "--dry-run", "--json").stdout)
    assert (dry["documents"], dry["dry_run"]) == (PAGES, True)
    assert select(lcc, *follow) == []

    said = lcc.lcc("provider", "rename-root", "7", old, new).stdout
    assert said == f"{old} renamed to {new}: {PAGES} documents\n"
    told = select(lcc, *follow)
    assert [row["op"] for row in told] == ["remove", "upsert"] * PAGES
    for gone, come in zip(told[::2], told[1::2], strict=True):
        was = before[gone["curl"]]
        assert come["curl"] == new + gone["curl"].removeprefix(old)
        assert gone["reason"] == f"renamed to {come['docid']}"
        assert {name for name in was if was[name] != come[name]} <= NAMED_ANEW
        assert come["path"] == was["path"]
    assert not json.loads(lcc.lcc("verify", "--json").stdout)["found"]

    changed = names(PAGES)[7]
    bodies[changed] = "this has changed"
    site.put(f"/{changed}", page(bodies[changed]))
    pushed = lcc.push_urls(7, urls(new, names(PAGES), bodies), "--full")
    assert pushed.returncode == 0, pushed.stderr
    lcc.wait_until_fetched()
    assert [f"http://127.0.0.1:{one.port}{one.path}" for one in site.visits[visits:]] == [new + changed]
    assert lcc.sql("select count(*) from lccurl") == [(PAGES,)]
    pushed = lcc.push_urls(7, urls(old, names(1), bodies))
    assert "704" in pushed.stdout + pushed.stderr
    lcc.wait_until_fetched()
    assert len(site.visits) == visits + 1
    assert lcc.stop() == 0


def test_killed_in_the_middle_it_goes_on_and_a_provider_is_told_to_come_again(
    make_lcc: Callable[..., Lcc], site: Site
) -> None:
    lcc = make_lcc()
    old, new, bodies = crawled(lcc, site, MANY)
    visits = len(site.visits)
    command = [str(BIN / "lcc"), "provider", "rename-root", "7", old, new]
    with subprocess.Popen(command, env=lcc.environment, cwd=lcc.cwd) as renaming:
        wait_for(lambda: lcc.sql("select count(*) from tombstones") > [(0,)], 60, "the first portion")
        renaming.send_signal(signal.SIGKILL)
    left = lcc.sql(f"select count(*) from lccurl where curl like '{old}%'")[0][0]
    print(f"\nkilled with {left} of {MANY} documents left")
    state = lcc.sql("select state from pidb")
    if state == [("moving",)]:
        assert "103" in lcc.lcccp(7, "--check").stderr
        lcc.lcc("provider", "rename-root", "7", old, new)
    assert lcc.sql("select state from pidb") == [("active",)]
    assert lcc.sql("select count(*) from tombstones") == [(MANY,)]
    assert lcc.sql(f"select count(*) from lccurl where curl like '{new}%'") == [(MANY,)]
    pushed = lcc.push_urls(7, urls(new, names(MANY), bodies), "--full")
    assert pushed.returncode == 0, pushed.stderr
    lcc.wait_until_fetched()
    assert len(site.visits) == visits
    assert not json.loads(lcc.lcc("verify", "--json").stdout)["found"]
    assert lcc.stop() == 0
