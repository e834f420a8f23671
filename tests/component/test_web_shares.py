"""The HTTP API: a greedy client uses up its own share, and an honest one beside it is served."""

import asyncio
import io
import threading
from ipaddress import ip_network
from unittest.mock import Mock

import pytest
from web_house import WebHouse

from lcc_scrapy.domain.http_serving import Endpoint, Service
from lcc_scrapy.domain.shares import Share
from lcc_scrapy.domain.throttling import Rate
from lcc_scrapy.web.server import Crowd, Server
from lcc_scrapy.web.sharing import HOPS, client_address
from lcc_scrapy.web.working import EACH

OFTEN = Rate(10**6, 1.0)
PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def house_with(refusal_delay=0.0, **share):
    made = WebHouse(exports=10, share=Share(**{"rate": OFTEN, **share}), refusal_delay=refusal_delay)
    made.shelf.add("page", b"hello")
    return made


def refused(answer, seconds):
    assert (answer.status_code, answer.json()["error"]) == (429, "share-used-up"), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert int(answer.headers["retry-after"]) == seconds
    return True


@pytest.mark.parametrize(
    ("path", "seconds"), [("/v1/export?format=jsonl", 10), ("/v1/documents/{}/content", 2)]
)
def test_a_client_that_holds_all_it_may_is_refused_more_and_another_one_is_served(path, seconds):
    house = house_with(exports=1, streams=1)
    path = path.format(house.shelf.told[0].urlkey.hex())
    go_on, begun = threading.Event(), threading.Event()

    def slow(row):
        if not begun.is_set():
            begun.set()
            assert go_on.wait(30)
        return io.BytesIO(b"hello")

    object.__setattr__(house.lcc, "open", slow)
    with house.client(address="192.0.2.1") as greedy, house.client(address="192.0.2.2") as honest:
        first = threading.Thread(target=greedy.get, args=(path,))
        first.start()
        assert begun.wait(30)
        assert refused(greedy.get(path), seconds)
        assert greedy.get("/v1/changes").status_code == 200  # of what is short it may have more
        assert honest.get(path).status_code == 200
        go_on.set()
        first.join()
        assert greedy.get(path).status_code == 200


def test_exports_of_a_client_are_written_in_its_turns_and_those_of_others_go_on():
    house = house_with()
    house.shelf.add("another")
    go_on, writing = threading.Event(), threading.Semaphore(0)

    def slow(row):
        writing.release()
        assert go_on.wait(30)
        return io.BytesIO(b"hello")

    object.__setattr__(house.lcc, "open", slow)
    with house.client(address="192.0.2.1") as greedy, house.client(address="192.0.2.2") as honest:
        exports = [
            threading.Thread(target=greedy.get, args=("/v1/export?format=jsonl",)) for _ in range(EACH)
        ]
        for one in exports:
            one.start()
            assert writing.acquire(timeout=30)
        waiting = threading.Thread(target=greedy.get, args=("/v1/changes",))
        waiting.start()
        assert honest.get("/v1/changes").status_code == 200
        waiting.join(1)
        assert waiting.is_alive(), "the greedy one has its turns in use"
        go_on.set()
        for one in (*exports, waiting):
            one.join(30)
            assert not one.is_alive()


def test_who_waits_for_changes_as_often_as_may_be_is_refused_more():
    house = house_with(streams=1)
    with house.client(address="192.0.2.1") as greedy, house.client(address="192.0.2.2") as honest:
        cursor = greedy.get("/v1/changes").json()["cursor"]
        wait = {"since": cursor, "wait": 30}
        first = threading.Thread(target=greedy.get, args=("/v1/changes",), kwargs={"params": wait})
        first.start()
        while not house.app.state.watcher._waiting:
            pass
        assert refused(greedy.get("/v1/changes", params=wait), 2)
        assert honest.get("/v1/changes", params={"since": cursor}).status_code == 200
        house.shelf.add("more")
        first.join()


def test_requests_of_one_token_are_counted_from_wherever_they_come():
    house = house_with(rate=Rate(3, 3600.0))
    token = house.token()
    clients = [house.client(token, f"192.0.2.{number}") for number in range(4)]
    codes = []
    for each in clients:
        with each as client:
            codes.append(client.get("/v1/changes").status_code)
    assert codes == [200, 200, 200, 429]
    with house.client(address="192.0.2.1") as honest:
        assert honest.get("/v1/changes").status_code == 200


def test_who_asked_too_often_is_told_so_a_second_later_only(monkeypatch):
    """Or a client that never waits would keep the one thread that serves everybody busy with refusals."""
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    monkeypatch.setattr("lcc_scrapy.web.sharing.sleep", sleep)
    house = house_with(rate=Rate(1, 3600.0), refusal_delay=1.0)
    with house.client(address="192.0.2.1") as greedy:
        assert (greedy.get("/v1/changes").status_code, pauses) == (200, [])
        assert (greedy.get("/v1/changes").status_code, pauses) == (429, [1.0])


@pytest.mark.parametrize(
    ("addresses", "codes"),
    [
        (["192.0.2.1"] * 3, [401, 401, 429]),
        (["192.0.2.1", "192.0.2.2", "192.0.2.1"], [401, 401, 401]),
        (["2001:db8::1", "2001:db8::2:1", "2001:db8:0:0:ffff::1"], [401, 401, 429]),
        (["2001:db8::1", "2001:db8::2:1", "2001:db8:0:1::1"], [401, 401, 401]),
        (["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1"], [401, 401, 429]),
        (["127.0.0.1"] * 3, [401, 401, 401]),
        (["::1"] * 3, [401, 401, 401]),
        ([""] * 3, [401, 401, 401]),
    ],
)
def test_requests_of_an_address_are_counted_whatever_token_they_show(addresses, codes):
    house = house_with(rate=Rate(2, 3600.0))
    found = []
    for number, address in enumerate(addresses):
        with house.client(f"a token of nobody {number}", address) as client:
            found.append(client.get("/v1/changes").status_code)
    assert found == codes


def test_a_proxy_that_is_believed_tells_whose_request_it_brings():
    house = WebHouse(share=Share(rate=Rate(1, 3600.0)), proxies=PROXIES)
    codes = []
    for number, told in enumerate(
        ["192.0.2.1", "192.0.2.1", "192.0.2.2", "1.1.1.1, 192.0.2.2", "192.0.2.3, 10.5.5.5"]
    ):
        with house.client(f"nobody {number}", "10.0.0.1") as client:
            codes.append(client.get("/v1/changes", headers={"X-Forwarded-For": told}).status_code)
    assert codes == [401, 429, 401, 429, 401]


@pytest.mark.parametrize(
    ("peer", "forwarded", "proxies", "whose"),
    [
        ("192.0.2.1", ["10.1.1.1"], PROXIES, "192.0.2.1"),
        ("10.0.0.1", [], PROXIES, "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.9", " 192.0.2.1 "], PROXIES, "192.0.2.1"),
        ("10.0.0.1", ["192.0.2.9", "192.0.2.1", "10.0.0.2"], PROXIES, "192.0.2.1"),
        ("10.0.0.1", ["192.0.2.1", *["10.0.0.2"] * (HOPS - 1)], PROXIES, "192.0.2.1"),
        ("10.0.0.1", ["192.0.2.1", *["10.0.0.2"] * HOPS], PROXIES, "10.0.0.2"),
        ("10.0.0.1", ["nonsense"], PROXIES, "10.0.0.1"),
        ("10.0.0.1", ["192.0.2.1", ""], PROXIES, "10.0.0.1"),
        ("fd00::1", ["[2001:db8::5]"], PROXIES, "2001:db8::5"),
        ("::ffff:10.0.0.1", ["192.0.2.1"], PROXIES, "192.0.2.1"),
        ("", ["192.0.2.1"], PROXIES, "192.0.2.1"),
        ("", ["192.0.2.1"], (), "local"),
        ("10.0.0.1", ["192.0.2.1"], (), "10.0.0.1"),
    ],
)
def test_whose_request_it_is(peer, forwarded, proxies, whose):
    assert client_address(peer, forwarded, proxies) == whose


def test_what_is_over_counts_no_more():
    house = house_with(requests=1, streams=1)
    with house.client(address="192.0.2.1") as client:
        for path in ("/v1/changes", "/v1/ids", "/nothing", "/v1/changes?wrong=1", "/docs", "/resourcesync/x"):
            for _ in range(3):
                assert client.get(path).status_code != 429


def test_connections_of_an_address_have_a_bound_and_those_of_others_have_theirs():
    crowd = Crowd(2, PROXIES)
    greedy = [crowd.arrive(f"2001:db8::{number}") for number in range(4)]
    assert [whose is None for whose in greedy] == [False, False, True, True]
    assert crowd.arrive("2001:db8:0:1::1") is not None
    assert all(crowd.arrive(peer) == "" for peer in ["127.0.0.1", "::1", "", "10.0.0.1"] * 5)
    assert len(crowd) == 2
    crowd.leave(greedy[0])
    assert crowd.arrive("2001:db8::9") is not None
    for whose in [greedy[0], greedy[1], "2001:db8:0:1::/64", ""]:
        crowd.leave(whose)
    assert len(crowd) == 0


def test_a_connection_too_many_is_closed_and_an_ended_one_makes_room():
    server = Server(house_with().app, Endpoint("127.0.0.1", 0), Service(connections_per_address=1))
    server.config.load()
    loop = asyncio.new_event_loop()

    def connect(peer):
        facts = {"peername": (peer, 5), "sockname": ("127.0.0.1", 80)}
        transport = Mock(
            **{"get_extra_info.side_effect": lambda name, default=None: facts.get(name, default)}
        )
        protocol = server.config.http_protocol_class(server.config, server.server_state, {}, loop)
        protocol.connection_made(transport)
        return protocol, transport.abort.called

    first, aborted = connect("192.0.2.1")
    second, crowded = connect("192.0.2.1")
    _, other = connect("192.0.2.2")
    assert (aborted, crowded, other) == (False, True, False)
    second.connection_lost(None)
    assert connect("192.0.2.1")[1]
    first.connection_lost(None)
    assert not connect("192.0.2.1")[1]
    loop.close()
