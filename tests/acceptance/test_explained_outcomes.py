"""``lcc explain`` gives the right reason for each situation, before and after the provider's next login."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.timeslots import parse_mask
from tests.harness import Lcc, lccs, wait_for
from tests.integration.site import Site, page
from tests.ports import free_port

pytestmark = [pytest.mark.slow]

SITE, CLOSED_PORT, CLOSED_HOURS = 7, 8, 9
ROBOTS = "User-agent: *\nDisallow: /a/robots.html\n"


REASONS = {
    "stored": ("cached", "fetched"),
    "missing": ("failed", "404 Not Found, ", " ago)"),
    "forbidden": ("failed", "403 Forbidden"),
    "robots": ("failed", "611 Forbidden by robots.txt"),
    "large": ("failed", "604 Body too large"),
    "gone": ("failed", "404 Not Found", "answered 404"),
    "removed": ("removed", "removed by its provider"),
    "healed": ("cached", "404 Not Found", "; since then stored"),
    "outside": ("refused", "refused  ", "704 URL outside the provider's roots"),
    "type": ("refused", "refused  ", "703 mimetype not accepted: video/mp4"),
    "bad": ("refused", "refused  ", "705 URL not valid or scheme not supported"),
    "unreachable": ("waiting", "602 ", "has failed since"),
    "hours": ("waiting", "its hours are closed until"),
}
"""The state of each URL, and what else the lines must hold."""


class World:
    """One crawl of a site in which everything happens once; ``told`` is what was said before and after."""

    def __init__(self, lcc: Lcc, site: Site) -> None:
        self.lcc = lcc
        self.site = site
        self.root = f"http://127.0.0.1:{site.listen()}/a/"
        self.closed = f"http://127.0.0.1:{free_port()}/"
        self.told: dict[tuple[str, str], str] = {}

    def url(self, name: str) -> str:
        known = {
            "outside": self.root.replace("/a/", "/b/page.html"),
            "bad": "gopher://127.0.0.1/x",
            "unreachable": f"{self.closed}page.html",
            "hours": f"{self.root}hours/page.html",
        }
        return known.get(name, f"{self.root}{name}.html")

    def run(self) -> None:
        hour = (time.gmtime().tm_hour + 12) % 24
        later = parse_mask(f"{hour:02}-{(hour + 1) % 24:02}")
        self.lcc.register(
            Provider(SITE, "", allowprivate=True),
            Provider(CLOSED_PORT, "", allowprivate=True),
            Provider(CLOSED_HOURS, "", allowprivate=True, timeofday=later, timezone="UTC"),
            roots=[[self.root], [self.closed], [f"{self.root}hours/"]],
        )
        self.site.put("/robots.txt", page(ROBOTS))
        for name in ("stored", "gone", "removed", "large"):
            self.site.put(f"/a/{name}.html", page("x" * (70_000 if name == "large" else 7)))
        self.site.put("/a/forbidden.html", page("no", "403 Forbidden"))
        self.lcc.start()
        self._push(SITE, "gone", "removed", "healed")
        self._wait()
        self.site.put("/a/healed.html", page("well again"))
        self.site.put("/a/gone.html", page("no more", "404 Not Found"))
        self._push(CLOSED_PORT, "unreachable")
        self._push(CLOSED_HOURS, "hours")
        names = (
            "stored",
            "missing",
            "forbidden",
            "robots",
            "large",
            "gone",
            "healed",
            "outside",
            "bad",
            "type",
        )
        self._push(SITE, *names, remove="removed")
        self._wait()
        wait_for(lambda: self._count("outcomes where state = 'refused'") == 3, 60, "the refusals")
        wait_for(lambda: self._count("outcomes where code = 602") == 1, 60, "the host to fail")
        self._explain("before")
        for pid in (SITE, CLOSED_PORT, CLOSED_HOURS):
            self.lcc.check(pid)
        wait_for(lambda: self._count("urlerrors") == 0, 60, "the errors to be handed over")
        self._explain("after")
        self._retry()
        assert self.lcc.stop() == 0

    def _push(self, pid: int, *names: str, remove: str = "") -> None:
        urls: list[dict[str, object]] = [
            {"curl": self.url(name), "mimetype": "video/mp4" if name == "type" else "text/html"}
            for name in names
        ]
        if remove:
            urls.append({"curl": self.url(remove), "mimetype": "text/html", "op": "remove"})
        told = self.lcc.push_urls(pid, urls)
        assert "accepted" in told.stderr, told.stderr

    def _wait(self) -> None:
        wait_for(
            lambda: not self.lcc.is_spooled() and not self._count(f"qdb where pid = {SITE}"), 120, "fetches"
        )

    def _count(self, what: str) -> int:
        return int(str(self.lcc.sql(f"select count(*) from {what}")[0][0]))

    def _explain(self, when: str) -> None:
        for name in REASONS:
            self.told[when, name] = self.lcc.lcc("explain", self.url(name)).stdout

    def _retry(self) -> None:
        """Let an operator, without the site's owner, have again what failed, and what is there."""
        self.site.put("/a/missing.html", page("found"))
        self.site.put("/a/stored.html", page("another"))
        self.retried = json.loads(self.lcc.lcc("retry", "--provider", "7", "--code", "404", "--json").stdout)
        self.refetched = json.loads(self.lcc.lcc("refetch", self.url("stored"), "--json").stdout)
        self.unknown = self.lcc.lcc("retry", self.url("outside"), check=False)
        self._wait()
        self.bodies = {
            name: self._count(f"lccurl where curl = '{self.url(name)}' and fetched_len = {length}")
            for name, length in (("missing", 5), ("stored", 7))
        }
        self.codes = [row[0] for row in self.lcc.sql("select code from urlerrors")]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("explained")
    with lccs(folder) as make, Site() as site:
        lcc = make(
            LCC_MIMETYPES="text/*", LCC_FETCH_MAX_BYTES="60k", LCC_RETRY_DELAYS="1s", LCC_HOST_BACKOFF="1h"
        )
        made = World(lcc, site)
        made.run()
        yield made


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", REASONS)
def test_the_reason_is_right_before_and_after_the_providers_next_login(world, when, name):
    lines = world.told[when, name]
    state, *words = REASONS[name]
    assert re.findall(r"^state +(.*)$", lines, re.MULTILINE) == [state]
    assert [one for one in words if one not in lines] == []


def test_an_operator_has_again_what_failed_and_what_is_there(world):
    assert (world.retried["queued"], world.retried["done_since"]) == (2, 1)
    assert world.refetched["queued"] == 1
    assert world.unknown.returncode == 1
    assert "only the provider can send them again" in world.unknown.stderr
    assert world.bodies == {"missing": 1, "stored": 1}
    assert world.codes == [404]  # what is gone is told to its provider again, of the refetch nothing
