"""The real Squid of Debian gets a file from a replica while its origin is dead: by each way that it can ask."""

import signal
from contextlib import contextmanager, suppress
from hashlib import md5
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from test_cli import House

from lcc_scrapy.apps.tracker.cache_peer import DIGEST_PATH
from lcc_scrapy.db.sql.store import SqlStore
from tests.forkserver import popen
from tests.harness import BIN, answers, wait_for
from tests.mirrors import NOW, Tracker
from tests.ports import free_port
from tests.squid import little_mirror, squid

pytestmark = pytest.mark.slow

FILES = 300
"""So many that the filter of the digest has more than the 128 bytes that Squid gets right in any case."""

NAMES = [f"f{number:03d}.tgz".encode() for number in range(FILES)]
CONTENTS = {(b"app", b"1.0"): [(name, bytes(31) + b"1") for name in NAMES]}
HELPER = "url_rewrite_children 1 startup=1 idle=1 concurrency=10\n"


class Mirrored:
    """A tracker that knows a dead origin and its mirror."""

    def __init__(self, folder, mirror_port):
        self.house = House(folder)
        self.house.lcc("init")
        self.port, self.icp = free_port(), free_port()
        self.origin = f"http://127.0.0.1:{free_port()}/"
        self.mirror = f"http://127.0.0.1:{mirror_port}/"
        self.house.settings["LCC_TRACKER_ENDPOINT"] = f"127.0.0.1:{self.port}"
        self.house.settings["LCC_TRACKER_ICP_ENDPOINT"] = f"127.0.0.1:{self.icp}"
        release = dict.fromkeys(NAMES, 5)
        store = SqlStore(self.house.url)
        Tracker(store).load(self.origin, {b"app": {b"1.0": release}}, at=NOW, digests=CONTENTS)
        Tracker(store).load(self.mirror, {b"1.0": release, b"other": 3}, at=NOW + 1)
        store.close()

    def of_origin(self, name="f299.tgz"):
        return f"{self.origin}app/1.0/{name}"

    def has_digest(self):
        with suppress(HTTPError), urlopen(f"http://127.0.0.1:{self.port}{DIGEST_PATH}") as answer:
            return answer.status == 200
        return False

    @contextmanager
    def serving(self):
        with (self.house.folder / "serve.log").open("wb") as log:
            process = popen([str(BIN / "lcc"), "tracker", "serve"], env=self.house.environment, cwd=self.house.folder, log=log)  # fmt: skip
            try:
                wait_for(lambda: answers(self.port), 20, "the tracker")
                yield
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait()


@pytest.fixture
def mirror():
    with little_mirror() as made:
        yield made


@pytest.fixture
def tracker(tmp_path, mirror):
    return Mirrored(tmp_path, mirror[0])


@pytest.mark.parametrize("policy", ["list", "redirect"])
def test_the_rewriting_helper_sends_squid_to_the_replica(tracker, mirror, tmp_path, policy):
    (tmp_path / "policy.toml").write_text(f'answer = "{policy}"\n')
    settings = {**tracker.house.settings, "LCC_TRACKER_POLICY": str(tmp_path / "policy.toml")}
    variables = " ".join(f"{name}={value}" for name, value in settings.items())
    helper = f"url_rewrite_program /usr/bin/env {variables} {BIN}/lcc tracker rewrite\n"
    with squid(tmp_path, helper + HELPER) as proxy:
        assert proxy.get(tracker.of_origin()) == b"the mirror's /1.0/f299.tgz"
        assert proxy.get(f"{tracker.mirror}1.0/f001.tgz") == b"the mirror's /1.0/f001.tgz"  # not back
        if policy == "redirect":
            print(proxy.logged("TCP_REDIRECT/302", tracker.of_origin()))
        print(proxy.logged("TCP_MISS/200", "HIER_DIRECT/127.0.0.1"))
    assert mirror[1] == ["/1.0/f299.tgz", "/1.0/f001.tgz"]


def test_an_icp_hit_sends_squid_to_the_tracker_which_redirects(tracker, tmp_path):
    peer = f"cache_peer 127.0.0.1 sibling {tracker.port} {tracker.icp} no-digest no-netdb-exchange\n"
    rules = f"icp_port {free_port()}\nicp_query_timeout 30000\nminimum_direct_rtt 0\nminimum_direct_hops 0\n"
    with tracker.serving(), squid(tmp_path, peer + rules) as proxy:
        assert proxy.get(tracker.of_origin()) == b"the mirror's /1.0/f299.tgz"
        print(proxy.logged("TCP_MISS/302", "SIBLING_HIT/127.0.0.1", tracker.of_origin()))
        print(proxy.logged("TCP_MISS/200", "HIER_DIRECT/127.0.0.1", "/1.0/f299.tgz"))
        assert proxy.counter("icp.queries_sent") == proxy.counter("icp.replies_recv") == 2
        assert proxy.counter("icp.times_used") >= 1


def test_a_cache_digest_sends_squid_to_the_tracker_which_redirects(tracker, tmp_path):
    peer = f"cache_peer 127.0.0.1 sibling {tracker.port} 0 no-query no-netdb-exchange\n"
    rules = "minimum_direct_rtt 0\nminimum_direct_hops 0\nserver_persistent_connections off\n"
    with tracker.serving():
        wait_for(
            tracker.has_digest, 20, "the digest to be made"
        )  # told to come later, Squid does so in minutes
        with squid(tmp_path, peer + rules) as proxy:
            proxy.get(f"{tracker.mirror}other")  # it fetches the digest when it first needs it
            wait_for(lambda: "usable: yes" in proxy.manager("digest_stats"), 20, "the digest")
            for name in NAMES[::100]:
                assert proxy.get(tracker.of_origin(name.decode())) == b"the mirror's /1.0/" + name
            print(proxy.logged("TCP_MISS/302", "CD_SIBLING_HIT/127.0.0.1"))
            assert proxy.counter("cd.times_used") >= 3
            print(proxy.manager("digest_stats"))


def test_squid_resolves_a_urn_by_the_tracker(tracker, tmp_path):
    urn = f"urn:x-tracker:{md5(b''.join(b'5' + name for name in NAMES)).hexdigest()}"
    rules = (
        f"cache_peer 127.0.0.1 parent {tracker.port} 0 no-query no-digest no-netdb-exchange\n"
        "acl names urlpath_regex ^/uri-res/N2L[?]\ncache_peer_access 127.0.0.1 allow names\n"
        "cache_peer_access 127.0.0.1 deny all\nnever_direct allow names\n"
    )
    with tracker.serving(), squid(tmp_path, rules) as proxy:
        told = proxy.asked(f"GET {urn} HTTP/1.0\r\n\r\n")
        assert told.startswith("HTTP/1.1 302 ")
        assert f"Location: {tracker.mirror}1.0/\r\n" in told
        print(proxy.logged(urn))
