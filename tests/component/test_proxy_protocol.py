"""Connections that a proxy passes on: whom the UNS believes, and when a conversation begins."""

from ipaddress import ip_network

import pytest
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport

from lcc_scrapy.listeners.proxy_protocol import ProxyProtocol, ProxyRules

HEADER = b"PROXY TCP4 192.0.2.1 127.0.0.1 4711 9000\r\n"
PROXY = IPv4Address("TCP", "127.0.0.1", 4000)


class Conversation(Protocol):
    def __init__(self, peer):
        self.peer = peer
        self.heard = b""

    def dataReceived(self, data):
        assert self.transport is not None
        self.heard += data


class House:
    def __init__(self, proxies="127.0.0.0/8", most=3):
        self.clock = Clock()
        self.begun = []
        self.full = False
        rules = ProxyRules([ip_network(proxies)], most, 10.0)
        self.proxy_protocol = ProxyProtocol(self.converse, lambda: rules, self.clock)

    def converse(self, peer):
        if self.full:
            return None
        self.begun.append(Conversation(peer))
        return self.begun[-1]

    def arrive(self, address=PROXY):
        arrival = self.proxy_protocol.buildProtocol(address)
        if arrival is None:
            return None
        transport = StringTransport(peerAddress=address)
        transport.protocol = arrival
        arrival.makeConnection(transport)
        return transport


def test_a_conversation_begins_when_its_peer_is_known_with_what_came_after_the_header():
    house = House()
    transport = house.arrive()
    for byte in HEADER:
        assert house.begun == []
        transport.protocol.dataReceived(bytes([byte]))
    (conversation,) = house.begun
    assert (conversation.peer, conversation.heard) == ("192.0.2.1", b"")
    transport.protocol.dataReceived(b"<init")
    assert conversation.heard == b"<init"
    house.arrive().protocol.dataReceived(HEADER + b"<init")
    assert house.begun[1].heard == b"<init"


def test_a_proxy_that_speaks_for_itself_is_the_peer():
    house = House()
    house.arrive().protocol.dataReceived(b"PROXY UNKNOWN\r\n")
    assert house.begun[0].peer == "127.0.0.1"


@pytest.mark.parametrize(
    "address",
    [
        IPv4Address("TCP", "192.0.2.99", 4000),
        IPv6Address("TCP", "2001:db8::99", 4000),
        IPv6Address("TCP", "::ffff:192.0.2.99", 4000),
    ],
)
def test_who_is_not_a_proxy_of_ours_is_cut_before_it_says_anything(address):
    house = House()
    assert house.arrive(address) is None
    assert not house.proxy_protocol.waiting


def test_an_ipv4_proxy_is_known_also_on_an_ipv6_socket():
    assert House().arrive(IPv6Address("TCP", "::ffff:127.0.0.1", 4000)) is not None


def test_who_may_open_the_unix_socket_is_trusted():
    house = House()
    house.arrive(UNIXAddress(None)).protocol.dataReceived(HEADER)
    assert house.begun[0].peer == "192.0.2.1"


def test_no_header_is_no_conversation():
    house = House()
    transport = house.arrive()
    transport.protocol.dataReceived(b"<?xml version='1.0'?>")
    assert transport.disconnected
    assert house.begun == []


def test_a_header_that_does_not_come_is_waited_for_a_while():
    house = House()
    transport = house.arrive()
    transport.protocol.dataReceived(HEADER[:10])
    house.clock.advance(9)
    assert not transport.disconnected
    house.clock.advance(1)
    assert transport.disconnected


def test_a_conversation_that_began_is_not_cut_by_the_wait_for_its_header():
    house = House()
    transport = house.arrive()
    transport.protocol.dataReceived(HEADER)
    house.clock.advance(100)
    assert not transport.disconnected
    assert house.clock.getDelayedCalls() == []


def test_only_so_many_are_waited_for_at_a_time():
    house = House(most=2)
    first = house.arrive()
    assert house.arrive()
    assert house.arrive() is None
    first.protocol.connectionLost()
    assert house.arrive()


def test_when_nobody_else_can_be_talked_to_the_connection_is_cut():
    house = House()
    house.full = True
    transport = house.arrive()
    transport.protocol.dataReceived(HEADER)
    assert transport.disconnected


def test_closing_cuts_those_of_whom_nothing_is_known():
    house = House()
    waiting, known = house.arrive(), house.arrive()
    known.protocol.dataReceived(HEADER)
    house.proxy_protocol.close()
    assert waiting.disconnected
    assert not known.disconnected
