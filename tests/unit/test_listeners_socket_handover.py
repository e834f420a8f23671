"""Listening sockets that a supervisor keeps for its server."""

import os
import socket

import pytest

from lcc_scrapy.listeners.socket_handover import KEPT, KeptSockets, give, kept_for_us


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        yield one, other


@pytest.fixture
def kept():
    made = KeptSockets()
    yield made
    made.close()


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_clients_are_not_refused_between_two_lives_of_a_server(kept, listening) -> None:
    server, _ = listening
    port = server.getsockname()[1]
    give(kept.environment(), ["tcp:9000"], [server.fileno()])
    kept.collect()
    server.close()
    assert accepts(port)
    found = kept_for_us(kept.environment())
    assert list(found) == ["tcp:9000"]
    assert found["tcp:9000"] in kept.descriptors()
    with socket.socket(fileno=os.dup(found["tcp:9000"])) as next_server:
        client, _ = next_server.accept()
        client.close()


def test_what_is_dropped_refuses_clients(kept, listening) -> None:
    server, _ = listening
    port = server.getsockname()[1]
    give(kept.environment(), ["tcp:9000"], [server.fileno()])
    kept.collect()
    server.close()
    kept.drop()
    assert not accepts(port)
    assert not kept.any()
    assert kept_for_us(kept.environment()) == {}


def test_a_newer_list_of_sockets_replaces_the_older_one(kept, listening) -> None:
    one, other = listening
    give(kept.environment(), ["a", "b"], [one.fileno(), other.fileno()])
    give(kept.environment(), ["b"], [other.fileno()])
    kept.collect()
    port = one.getsockname()[1]
    one.close()
    assert not accepts(port)
    assert list(kept_for_us(kept.environment())) == ["b"]


def test_without_a_supervisor_nothing_is_kept_or_given(listening) -> None:
    give({}, ["tcp:9000"], [listening[0].fileno()])
    assert kept_for_us({}) == {}
    assert KEPT not in os.environ
