"""What a site's owner declared is what the cache ends with, though a cache of the site lags behind each push.

CI runs short versions. ``LCC_CONVERGENCE=10`` (``make soak``) keeps pages for 10 s in the cache of a site of 200 pages,
which change for a minute; then each test prints how many seconds after the last change all was right.
"""

import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import md5
from pathlib import Path

import pytest

from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider
from tests.acceptance.edge import Author, Edge, Visitor, run_nginx
from tests.acceptance.pushers import Conversation
from tests.faults.real_web_site import RealWebSite, page
from tests.harness import BIN, PASSWORD, Lcc, wait_for
from tests.ports import free_port

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(3600)]

SECONDS = int(os.environ.get("LCC_CONVERGENCE", "0"))
"""For how long the cache of the site keeps a page; 0: the short versions."""
CACHE, PAGES, CHANGES, EVERY, DELAYS = (
    (SECONDS, 200, 300, 2.0, "10s,30s,5m") if SECONDS else (1, 20, 25, 0.7, "2s,4s,10s")
)
DEFAULT = ",".join(f"{delay:g}s" for delay in QueuePolicy().retry_delays)
PAUSE = 0.2
"""Seconds between two changes."""
KILLS = 8 if SECONDS else 2
SERIES = 25
"""Wrong pages after which no doubt is left, some more than the LCC wants to see."""
PID = 7
WRONG = b"<p>what the site has served for ever</p>"


class Pusher(threading.Thread):
    """Runs ``lcc-push`` again and again, as cron would."""

    def __init__(self, lcc: Lcc, edge: Edge) -> None:
        super().__init__(name="lcc-push", daemon=True)
        self.statuses = Counter[int]()
        self._ending = threading.Event()
        self._environment = {**lcc.environment, "LCC_PASSWORD": PASSWORD}
        server, state = f"127.0.0.1:{lcc.port}", str(lcc.folder / "push")
        self._command = [str(BIN / "lcc-push"), "--quiet", "--server", server, "--pid", str(PID), "--state", state,
                         "--max-removal", "100", str(edge.docroot), edge.url]  # fmt: skip
        self._cwd = lcc.folder

    def run(self) -> None:
        while not self._ending.is_set():
            begun = time.monotonic()
            self.push()
            self._ending.wait(max(0.1, EVERY - (time.monotonic() - begun)))

    def push(self) -> int:
        done = subprocess.run(
            self._command, env=self._environment, cwd=self._cwd, capture_output=True, timeout=300, check=False
        )
        self.statuses[done.returncode] += 1
        return done.returncode

    def end(self) -> None:
        self._ending.set()
        self.join(300)


@contextmanager
def lagging(folder: Path, lcc: Lcc) -> Iterator[tuple[Edge, Author, Pusher]]:
    """Give a site behind a cache with visitors, all of whose pages are in the LCC's cache."""
    chance = random.Random(random.randrange(1 << 32))
    with Edge(folder / "edge", CACHE) as edge:
        author = Author(edge, PAGES, chance)
        lcc.register(Provider(PID, "", allowprivate=True), roots=[[edge.url]])
        lcc.start()
        pusher, visitor = Pusher(lcc, edge), Visitor(edge, author.names)
        assert pusher.push() == 0
        lcc.wait_until_fetched()
        assert held(lcc) == edge.pages()
        (edge.folder / "lcc.log").write_text("")
        visitor.start()
        pusher.start()
        try:
            yield edge, author, pusher
        finally:
            pusher.end()
            visitor.end()


def held(lcc: Lcc) -> dict[str, bytes]:
    rows = lcc.sql("select curl, fetched_machineid, fetched_fileid, file_encoding from lccurl")
    return {str(curl): lcc.content(machine, file, coding) for curl, machine, file, coding in rows}


def converged(lcc: Lcc, edge: Edge, begun: float) -> float:
    """Wait until the cache is what the site is; returns after how many seconds."""
    wait_for(lambda: held(lcc) == edge.pages(), 15 * (1 + SECONDS), "the cache to be as the site is")
    return time.monotonic() - begun


def settings(**more: str) -> dict[str, str]:
    return {"LCC_RETRY_DELAYS": DELAYS, "LCC_MAX_REMOVAL": "100%", **more}


@pytest.mark.soak_of("strict")
@pytest.mark.parametrize("declared", ["record", "strict"])
def test_a_site_that_lags_behind_its_pushes_ends_as_declared(
    declared: str, make_lcc: Callable[..., Lcc], tmp_path: Path
) -> None:
    lcc = make_lcc(**settings(LCC_DECLARED=declared))
    with lagging(tmp_path, lcc) as (edge, author, pusher):
        for _ in range(CHANGES):
            author.change()
            time.sleep(PAUSE)
        took = converged(lcc, edge, time.monotonic())
        asked = len(edge.requests())
        print(
            f"\n{declared}: {author.changes} changes, {asked} requests, all as the site {took:.1f} s after the last"
        )
        lcc.wait_until_fetched()
        assert held(lcc) == edge.pages()
        assert len(edge.requests()) <= 2 * author.changes
        assert set(pusher.statuses) == {0}
    assert lcc.lcc("verify").returncode == 0


@pytest.mark.soak
def test_kills_do_not_change_that(make_lcc: Callable[..., Lcc], tmp_path: Path) -> None:
    lcc = make_lcc(**settings())
    with lagging(tmp_path, lcc) as (edge, author, _):
        for _ in range(KILLS):
            for _ in range(CHANGES // KILLS):
                author.change()
                time.sleep(PAUSE * random.uniform(0, 2))
            lcc.stop(signal.SIGKILL)
            lcc.start()
        took = converged(lcc, edge, time.monotonic())
        print(
            f"\n{KILLS} kills, {author.changes} changes, {len(edge.requests())} requests, all right after {took:.1f} s"
        )
        lcc.wait_until_fetched()
        assert held(lcc) == edge.pages()
        assert len(edge.requests()) <= 2 * author.changes + 2 * KILLS
    assert lcc.lcc("verify").returncode == 0


@pytest.mark.soak
@pytest.mark.skipif(not SECONDS, reason="takes more than a minute: LCC_CONVERGENCE=10")
def test_with_the_default_delays_it_takes_a_minute_more(make_lcc: Callable[..., Lcc], tmp_path: Path) -> None:
    lcc = make_lcc(**settings(LCC_RETRY_DELAYS=DEFAULT))
    with lagging(tmp_path, lcc) as (edge, author, _):
        for _ in range(CHANGES):
            author.change()
            time.sleep(PAUSE)
        took = converged(lcc, edge, time.monotonic())
        print(f"\ndefault delays: {len(edge.requests())} requests for {author.changes} changes, {took:.1f} s")
        assert len(edge.requests()) <= 2 * author.changes


# --- what never becomes right ---------------------------------------------------------------------------


class Owner:
    """A provider whose site does not serve what it declares; every push declares the same."""

    def __init__(self, lcc: Lcc, site: RealWebSite, pages: int) -> None:
        self.lcc, self.site, self.port = lcc, site, site.listen()
        self.names = [f"/{number:04d}.html" for number in range(pages)]
        lcc.register(Provider(PID, "", allowprivate=True, ignorerobots=True), roots=[[self.url("/")]])

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def push(self, kind: str = "partial", pages: int | None = None) -> None:
        body = b"what is declared"
        declared = {
            "mimetype": "text/html",
            "len": len(body),
            "md5": md5(body, usedforsecurity=False).hexdigest(),
        }
        conversation = Conversation(self.lcc.port, PID)
        assert "init_accepted" in conversation.login_answer()
        urls = [{"curl": self.url(name), **declared} for name in self.names[:pages]]
        told = conversation.push(kind, urls)
        assert f'received="{len(urls)}"' in told, told
        conversation.close()

    def absorbed(self) -> None:
        wait_for(lambda: not self.lcc.is_spooled(), 60, "the set to be absorbed")

    def requests(self) -> int:
        return len(self.site.asked)

    def counted(self, what: str) -> int:
        return int(str(self.lcc.sql(f"select count(*) from {what}")[0][0]))


def test_the_same_declaration_again_and_again_is_asked_for_once_per_delay(
    make_lcc: Callable[..., Lcc],
) -> None:
    """The last delay is so long that its request does not come in CI: whatever is pushed, there are three.

    What is pushed after the last try waits for the last delay once more.
    """
    lcc = make_lcc(LCC_RETRY_DELAYS="10s,30s,5m" if SECONDS else "1s,1s,1h")
    with RealWebSite() as site:
        owner = Owner(lcc, site, 1)
        site.put(owner.port, owner.names[0], page(WRONG))
        lcc.start()
        for _ in range(300 if SECONDS else 8):
            owner.push()
            time.sleep(2 if SECONDS else 0.3)
        wait_for(lambda: owner.requests() >= 3, 60, "the retries")
        for _ in range(4):
            owner.push()
            owner.absorbed()
        assert owner.requests() == (4 if SECONDS else 3)
        assert owner.counted("qdb") == 1


def test_pages_that_are_always_wrong_cost_a_bounded_number_of_requests_and_are_told(
    make_lcc: Callable[..., Lcc],
) -> None:
    """After ``SERIES`` pages the LCC knows this provider: the others are settled at their first answer."""
    pages = 2000 if SECONDS else 150
    lcc = make_lcc(LCC_RETRY_DELAYS="1s,1s", LCC_ERRORS_KEPT=str(pages))
    with RealWebSite() as site:
        owner = Owner(lcc, site, pages)
        for name in owner.names:
            site.put(owner.port, name, page(WRONG))
        lcc.start()
        owner.push(pages=SERIES)
        lcc.wait_until_fetched(300)
        assert owner.requests() == 3 * SERIES
        owner.push()
        lcc.wait_until_fetched(300)
        print(f"\n{pages} wrong pages: {owner.requests()} requests")
        assert owner.requests() <= 3 * SERIES + pages
        assert {url for (url,) in lcc.sql("select url from urlerrors where code = 608")} == set(
            map(owner.url, owner.names)
        )
        first = owner.requests()
        owner.push()
        lcc.wait_until_fetched(300)
        assert owner.requests() - first <= pages
        for words in (("status",), ("doctor",), ("explain", owner.url(owner.names[0]))):
            assert "declared" in lcc.lcc(*words, check=False).stdout, words


@pytest.mark.soak
def test_dead_urls_in_two_full_sets_get_one_series_and_then_one_request_each(
    make_lcc: Callable[..., Lcc],
) -> None:
    pages = 1000 if SECONDS else 100
    lcc = make_lcc(LCC_RETRY_DELAYS="1s,1s", LCC_ERRORS_KEPT=str(pages))
    with RealWebSite() as site:
        owner = Owner(lcc, site, pages)
        lcc.start()
        owner.push("full")
        lcc.wait_until_fetched(300)
        assert owner.requests() == 3 * pages
        owner.push("full")
        lcc.wait_until_fetched(300)
        assert owner.requests() == 4 * pages
        assert owner.counted("lccurl") == 0


# --- redirects ------------------------------------------------------------------------------------------

LATEST = "location = /latest {{ {what} }}"


def test_a_redirect_that_leads_elsewhere_is_followed_to_an_older_page(
    make_lcc: Callable[..., Lcc], tmp_path: Path
) -> None:
    """nginx compares dates only, as many servers do: the date of one page says nothing of another."""
    docroot, port = tmp_path / "docroot", free_port()
    docroot.mkdir()
    for name, age in (("r1.html", 1000), ("r2.html", 9000), ("latest.html", 5000)):
        (docroot / name).write_text(f"<p>{name}</p>")
        os.utime(docroot / name, (time.time() - age,) * 2)
    latest = tmp_path / "latest.conf"
    servers = f"server {{ listen 127.0.0.1:{port}; root {docroot}; etag off; if_modified_since before; include {latest}; }}"
    latest.write_text(LATEST.format(what="return 302 /r1.html;"))
    process = run_nginx(tmp_path, servers, port)
    try:
        lcc, url = make_lcc(), f"http://127.0.0.1:{port}/latest"
        lcc.register(Provider(PID, "", allowprivate=True), roots=[[url.removesuffix("latest")]])
        lcc.start()
        for number, (what, name) in enumerate(
            (
                ("return 302 /r1.html;", "r1"),
                ("return 302 /r2.html;", "r2"),
                ("try_files /latest.html =404;", "latest"),
            )
        ):
            latest.write_text(LATEST.format(what=what))
            process.send_signal(signal.SIGHUP)
            wait_for(
                lambda name=name: _served(url) == f"<p>{name}.html</p>", 20, "nginx to read its configuration"
            )
            assert (
                lcc.push_urls(PID, [{"curl": url, "mimetype": "text/html", "mtime": number}]).returncode == 0
            )
            lcc.wait_until_fetched()
            assert held(lcc) == {url: f"<p>{name}.html</p>".encode()}
    finally:
        process.terminate()
        process.wait(300)


def _served(url: str) -> str:
    return subprocess.run(["curl", "-sL", url], capture_output=True, text=True, check=True).stdout
