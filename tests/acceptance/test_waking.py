"""A crawl that looks into the database once an hour fetches at once what processes beside it have queued."""

import base64
import os
import statistics
import time
import urllib.request
from contextlib import closing

import pytest

from lcc_scrapy.machine.wake_redis import channel_of
from tests.harness import PASSWORD, Lcc, wait_for
from tests.integration.site import Site, page
from tests.push_process import push_server
from tests.redis_server import URL

pytestmark = pytest.mark.acceptance
PID = 7
WAKES = int(os.environ.get("LCC_WAKES", "3"))


@pytest.fixture
def site():
    with Site() as made:
        made.url = f"http://127.0.0.1:{made.listen()}/"
        yield made


@pytest.fixture
def lcc(make_lcc, site):
    made = make_lcc(LCC_POLL="1h")
    made.add_provider(PID, site.url)
    return made


def over_socket(lcc: Lcc, site: Site, name: str) -> None:
    done = lcc.push_urls(PID, [{"curl": f"{site.url}{name}", "mimetype": "text/html"}])
    assert done.returncode == 0, done.stderr


def over_http(lcc: Lcc, site: Site, name: str) -> None:
    login = base64.b64encode(f"{PID}:{PASSWORD}".encode()).decode()
    kind = {"Content-Type": "application/x-ndjson", "Authorization": f"Basic {login}"}
    with push_server(lcc) as server:
        body = f'{{"set": "partial"}}\n"{site.url}{name}"\n'.encode()
        request = urllib.request.Request(f"http://127.0.0.1:{server.port}/v1/push", body, kind)
        with urllib.request.urlopen(request, timeout=300) as answer:
            assert answer.status == 200
        wait_for(lambda: site.asked(f"/{name}"), 60, "the fetch")


def by_a_source(lcc: Lcc, site: Site, name: str) -> None:
    site.put("/list.txt", page(f"{site.url}{name}\n", content_type="text/plain"))
    lcc.lcc("source", "add", str(PID), "--sitemap", f"{site.url}list.txt")
    lcc.lcc("source", "run", str(PID))


def test_what_was_queued_beside_a_crawl_is_fetched_without_waiting_for_its_next_look(lcc, site):
    ways = {"socket": over_socket, "http": over_http, "source": by_a_source}
    for name in ways:
        site.put(f"/{name}", page(name))
    lcc.start_uns("-s", "LCC_POLL=0.1")
    lcc.fetch_only()
    for name, way in ways.items():
        way(lcc, site, name)
        wait_for(lambda name=name: site.asked(f"/{name}"), 60, f"the fetch of what came by {name}")
    assert lcc.stop_uns() == 0
    assert lcc.stop() == 0


@pytest.mark.slow
def test_a_crawl_of_another_machine_is_woken_over_redis(make_lcc, site, redis_server):
    """``LCC_WAKES`` says how often; how long it took from the acceptance to the fetch is printed."""
    here = make_lcc("mariadb", LCC_POLL="1h", LCC_WAKE_REDIS=URL)
    there = make_lcc(beside=here, LCC_POLL="1h", LCC_WAKE_REDIS=URL, LCC_UNS_ENDPOINTS="")
    here.add_provider(PID, site.url)
    there.start()
    here.start_uns("-s", "LCC_POLL=0.1")
    took = []
    for number in range(WAKES):
        site.put(f"/{number}", page(str(number)))
        over_socket(here, site, str(number))
        accepted = time.monotonic()
        wait_for(lambda number=number: site.asked(f"/{number}"), 60, "the fetch")
        took.append(site.asked(f"/{number}")[0].start - accepted)
    print(f"median {1000 * statistics.median(took):.0f} ms, longest {1000 * max(took):.0f} ms, n = {WAKES}")
    assert (there.stop(), here.stop_uns()) == (0, 0)


@pytest.mark.slow
def test_a_crawl_with_a_uns_tells_other_machines_what_it_queued(make_lcc, site, redis_server):
    client, _ = redis_server
    lcc = make_lcc("sqlite", LCC_WAKE_REDIS=URL)
    lcc.add_provider(PID, site.url)
    site.put("/a", page("a"))
    with closing(client.pubsub(ignore_subscribe_messages=True)) as channel:
        channel.subscribe(channel_of(lcc.status()["lcc"]))
        channel.get_message(timeout=60)  # the confirmation
        lcc.start()
        over_socket(lcc, site, "a")
        wait_for(lambda: channel.get_message(timeout=1), 60, "the message")
    assert lcc.stop() == 0
