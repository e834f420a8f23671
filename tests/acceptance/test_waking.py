"""A crawl that looks into the database once an hour fetches at once what processes beside it have queued."""

import base64
import urllib.request

import pytest

from tests.harness import PASSWORD, Lcc, wait_for
from tests.integration.site import Site, page
from tests.push_process import push_server

pytestmark = pytest.mark.acceptance
PID = 7


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
