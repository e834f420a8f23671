"""The ICP responder over UDP: its clients get an answer to every query, and nothing ends it."""

import asyncio
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network

import pytest

from lcc_scrapy.apps.tracker.icp import answering_icp, bound_socket
from lcc_scrapy.apps.tracker.rules.icp import ERR, HIT, MISS, Query, Reply
from lcc_scrapy.domain.errors import ConfigurationError, StoreUnavailable, UrlRefused
from lcc_scrapy.domain.http_serving import Endpoint

HERE = (ip_network("127.0.0.0/8"),)
ELSEWHERE = (ip_network("192.0.2.0/24"),)
KNOWN = "ftp://ftp.example.org/known"


def apart(work):
    """Run a coroutine on a loop of its own: the tests' runs already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def is_known(url, _address):
    if "away" in url:
        raise StoreUnavailable("away")
    if "unforeseen" in url:
        raise KeyError(7)
    if not url.startswith("ftp://"):
        raise UrlRefused(705, "no URL")
    return url == KNOWN


def told(packets, clients=HERE):
    """Send packets and then a query; returns all answers up to the query's."""

    async def exchange():
        listening = bound_socket(Endpoint("127.0.0.1", 0))
        port = listening.getsockname()[1]
        async with answering_icp(listening, is_known, clients):
            return await asyncio.to_thread(_asked, port, packets)

    return apart(exchange())


def _asked(port, packets):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(60)
        found = []
        for number, packet in enumerate(packets):
            asking.sendto(packet, ("127.0.0.1", port))
            fence = 1_000_000 + number
            asking.sendto(bytes(Query(fence, KNOWN)), ("127.0.0.1", port))
            while (answer := asking.recv(65536)) != bytes(Reply(HIT, fence, KNOWN)):
                found.append(answer)
        return found


@pytest.mark.parametrize(
    ("url", "opcode"),
    [
        (KNOWN, HIT),
        ("ftp://ftp.example.org/other", MISS),
        ("nonsense", ERR),
        ("ftp://away/", MISS),
        ("ftp://unforeseen/", MISS),
    ],
    ids=["known", "unknown", "malformed", "away", "unforeseen"],
)
def test_a_query_gets_its_answer(url, opcode):
    packets = [bytes(Query(7, url)), b""]  # an answer may come after that of the next query
    assert bytes(Reply(opcode, 7, url)) in told([*packets, b"", b""])


def test_malformed_packets_get_no_answer_and_do_not_end_it():
    good = bytes(Query(1, KNOWN))
    cut = [good[:length] for length in range(0, len(good), 3)]
    odd = [bytes([opcode]) + good[1:] for opcode in (0, 2, 3, 4, 255)]
    noise = [os.urandom(size) for size in (1, 19, 20, 24, 25, 1000, 20_000)]
    assert told([*cut, *odd, *(b"\xff" + one for one in noise)]) == []


def test_queries_that_cannot_be_looked_up_do_not_fill_the_log(caplog):
    told([bytes(Query(number, "ftp://away/")) for number in range(50)])
    assert [one.getMessage() for one in caplog.records if "ICP" in one.getMessage()] == ["ICP: away"]


def test_strangers_get_no_answer():
    async def exchange():
        listening = bound_socket(Endpoint("127.0.0.1", 0))
        asked = []
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.setblocking(False)
            async with answering_icp(listening, lambda *one: asked.append(one) or True, ELSEWHERE):
                asking.sendto(bytes(Query(1, KNOWN)), listening.getsockname())
                for _ in range(100):  # turns of the loop: it was read long before
                    await asyncio.sleep(0)
            with pytest.raises(BlockingIOError):
                asking.recv(65536)
        assert asked == []

    apart(exchange())


def test_a_port_that_is_taken_is_one_clear_error():
    with bound_socket(Endpoint("127.0.0.1", 0)) as taken, pytest.raises(ConfigurationError) as refused:
        bound_socket(Endpoint("127.0.0.1", taken.getsockname()[1]))
    assert "LCC_TRACKER_ICP_ENDPOINT: cannot listen on 127.0.0.1:" in str(refused.value)
