"""One URL that answers 503 stops no other; a host that is down is asked no more often than one at a time."""

import time
from collections.abc import Callable, Iterator

import pytest

from lcc_scrapy.domain.providers import Provider
from tests.harness import Lcc, wait_for
from tests.integration.site import Answer, Site, page
from tests.ports import free_port

pytestmark = [pytest.mark.slow]

PID = 7
BACKOFF = 2.0
BROKEN = page("no", "503 Service Unavailable")


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


def begun(make_lcc: Callable[..., Lcc], *roots: str, at_once: int = 1, **settings: str) -> Lcc:
    lcc = make_lcc(**{"LCC_HOST_BACKOFF": f"{BACKOFF:g}s", "LCC_RETRY_DELAYS": "1s,1s", **settings})
    lcc.register(Provider(PID, "", allowprivate=True, atonce=at_once), roots=[list(roots)])
    lcc.start()
    return lcc


def push(lcc: Lcc, *urls: str) -> None:
    pushed = lcc.push_urls(PID, [{"curl": url, "mimetype": "text/html"} for url in urls])
    assert pushed.returncode == 0, pushed.stderr


def stored(lcc: Lcc) -> int:
    return int(lcc.sql("select count(*) from lccurl")[0][0])


def asked(site: Site) -> list[str]:
    return [visit.path for visit in site.visits if visit.path != "/robots.txt"]


@pytest.mark.parametrize("at_once", [1, 4])
def test_good_pages_beside_a_broken_one_wait_once(
    make_lcc: Callable[..., Lcc], site: Site, at_once: int
) -> None:
    root = f"http://127.0.0.1:{site.listen()}/"
    site.put("/0.html", BROKEN)
    for n in range(1, 31):
        site.put(f"/{n}.html", page(f"page {n}"))
    lcc = begun(make_lcc, root, at_once=at_once)
    push(lcc, *(f"{root}{n}.html" for n in range(31)))
    wait_for(lambda: stored(lcc) == 30, 60, "the good pages")
    lcc.wait_until_fetched()
    assert asked(site).count("/0.html") == 3, "its own tries, and no more"
    assert lcc.sql("select code from urlerrors") == [(503,)]


def test_a_run_of_broken_pages_is_left_at_once(make_lcc: Callable[..., Lcc], site: Site) -> None:
    root = f"http://127.0.0.1:{site.listen()}/"
    for n in range(300):
        site.put(f"/shop/{n}.html", BROKEN)
    for n in range(30):
        site.put(f"/news/{n}.html", page(f"page {n}"))
    lcc = begun(make_lcc, root)
    push(lcc, *(f"{root}shop/{n}.html" for n in range(300)), *(f"{root}news/{n}.html" for n in range(30)))
    wait_for(lambda: any(path.startswith("/news") for path in asked(site)), 60, "a good page")
    assert asked(site)[:2] == ["/shop/0.html", "/news/0.html"]


def test_good_pages_behind_a_broken_section_wait_once(make_lcc: Callable[..., Lcc], site: Site) -> None:
    root = f"http://127.0.0.1:{site.listen()}/"
    broken, good = [f"broken/{n}" for n in range(300)], [f"good/{n}" for n in range(30)]
    for path in broken:
        site.put(f"/{path}", BROKEN)
    for path in good:
        site.put(f"/{path}", page(path))
    lcc = begun(make_lcc, root, LCC_HOST_BACKOFF="1h", LCC_POLL="1s", LCC_RETRY_DELAYS="1h")
    push(lcc, *(f"{root}{path}" for path in [*broken, *good]))
    wait_for(lambda: lcc.sql("select failures from failinghosts") == [(1,)], 30, "the failure")
    assert "is asked now" in lcc.lcc("provider", "ask", str(PID)).stdout
    wait_for(lambda: stored(lcc) == 30, 120, "the good pages: another wait would be 15 minutes")
    by_turns = [f"/{path}" for pair in zip(broken, good, strict=False) for path in pair]
    assert asked(site)[: len(by_turns)] == by_turns


def test_a_dead_host_holds_up_no_other(make_lcc: Callable[..., Lcc], site: Site) -> None:
    dead = f"http://127.0.0.1:{free_port()}/"
    root = f"http://127.0.0.1:{site.listen()}/"
    began = time.monotonic()
    lcc = begun(make_lcc, root, dead)
    for n in range(30):
        site.put(f"/{n}.html", page(f"page {n}"))
    push(lcc, *(f"{dead}{n}.html" for n in range(200)), *(f"{root}{n}.html" for n in range(30)))
    wait_for(lambda: stored(lcc) == 30, 60, "the good pages")
    told = lcc.lcc("explain", f"{dead}5.html").stdout
    assert "has failed since" in told
    assert "next request at" in told
    assert "has failed since" in lcc.lcc("provider", "show", str(PID)).stdout
    assert "has failed since" in lcc.lcc("status").stdout
    assert lcc.sql("select failures from failinghosts")[0][0] <= 1 + (time.monotonic() - began) / BACKOFF
    assert lcc.sql("select count(*) from qdb") == [(200,)]


def test_the_retry_after_of_429_is_kept_by_the_whole_host(make_lcc: Callable[..., Lcc], site: Site) -> None:
    root = f"http://127.0.0.1:{site.listen()}/"
    site.put("/0.html", page("slowly", "429 Too Many Requests", retry_after="6"), page("page 0"))
    for n in range(1, 5):
        site.put(f"/{n}.html", page(f"page {n}"))
    lcc = begun(make_lcc, root)
    push(lcc, *(f"{root}{n}.html" for n in range(5)))
    wait_for(lambda: stored(lcc) == 5, 60, "all pages")
    first, second, *_ = [visit.start for visit in site.visits if visit.path != "/robots.txt"]
    assert second - first >= 5.5


def test_an_operator_asks_before_the_wait_is_over(make_lcc: Callable[..., Lcc], site: Site) -> None:
    root = f"http://127.0.0.1:{site.listen()}/"
    site.put("/0.html", BROKEN, page("page 0"))
    lcc = begun(make_lcc, root, LCC_HOST_BACKOFF="1h", LCC_POLL="1s")
    push(lcc, f"{root}0.html")
    wait_for(lambda: lcc.sql("select failures from failinghosts") == [(1,)], 30, "the failure")
    assert "is asked now" in lcc.lcc("provider", "ask", str(PID)).stdout
    wait_for(lambda: stored(lcc) == 1, 30, "the page")
    assert "no host" in lcc.lcc("provider", "ask", str(PID)).stdout


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
@pytest.mark.parametrize("retry_after", ["", "Retry-After: 2\r\n"])
def test_the_only_url_of_a_host_is_asked_again_after_its_wait(
    make_lcc: Callable[..., Lcc], site: Site, status: str, retry_after: str
) -> None:
    root = f"http://127.0.0.1:{site.listen()}/"
    failing = f"HTTP/1.1 {status}\r\n{retry_after}Content-Length: 0\r\n\r\n".encode()
    site.put("/only.html", Answer((failing,), last=False), page("there"))
    lcc = begun(make_lcc, root)
    push(lcc, f"{root}only.html")
    wait_for(lambda: stored(lcc) == 1, 20, "the page")
    assert asked(site) == ["/only.html"] * 2
