"""The PROXY header, versions 1 and 2, whole, in pieces, and hostile."""

import struct
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.listeners.peers import plain_address
from lcc_scrapy.listeners.proxy_header import (
    LONGEST,
    Introduced,
    NotIntroduced,
    header_for,
    read_header,
)

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
REST = b"<?xml version='1.0'?>"


def v2(command: int, family: int, content: bytes) -> bytes:
    return SIGNATURE + bytes([command, family]) + struct.pack("!H", len(content)) + content


def addresses(source: str, destination: str) -> bytes:
    return ip_address(source).packed + ip_address(destination).packed + struct.pack("!HH", 4711, 9000)


GOOD = {
    "v1 over IPv4": (b"PROXY TCP4 192.0.2.1 198.51.100.2 4711 9000\r\n", "192.0.2.1"),
    "v1 over IPv6": (b"PROXY TCP6 2001:db8::1 2001:db8::2 4711 9000\r\n", "2001:db8::1"),
    "v1 over IPv4 in IPv6": (b"PROXY TCP6 ::ffff:192.0.2.1 ::ffff:198.51.100.2 4711 9000\r\n", "192.0.2.1"),
    "v1 with a zone": (b"PROXY TCP6 fe80::1%eth0 fe80::2 4711 9000\r\n", "fe80::1"),
    "v1 of the proxy itself": (b"PROXY UNKNOWN\r\n", ""),
    "v1 unknown, with words": (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", ""),
    "v2 over IPv4": (v2(0x21, 0x11, addresses("192.0.2.1", "198.51.100.2")), "192.0.2.1"),
    "v2 over IPv6": (v2(0x21, 0x21, addresses("2001:db8::1", "2001:db8::2")), "2001:db8::1"),
    "v2 over IPv4 in IPv6": (
        v2(0x21, 0x21, addresses("::ffff:192.0.2.1", "::ffff:198.51.100.2")),
        "192.0.2.1",
    ),
    "v2 with extensions": (
        v2(0x21, 0x11, addresses("192.0.2.1", "198.51.100.2") + b"\x04\0\x01\0"),
        "192.0.2.1",
    ),
    "v2 of the proxy itself": (v2(0x20, 0x00, b""), ""),
    "v2 of an unspecified family": (v2(0x21, 0x00, b"abc"), ""),
}
BAD = {
    "a provider that comes without a proxy": REST,
    "HTTP": b"GET / HTTP/1.0\r\n\r\n",
    "v1 with no end": b"PROXY TCP4 " + b"1" * 200,
    "v1 whose end comes too late": b"PROXY UNKNOWN " + b"x" * 100 + b"\r\n",
    "v1 with a name": b"PROXY TCP4 localhost 198.51.100.2 4711 9000\r\n",
    "v1 with the wrong family": b"PROXY TCP4 2001:db8::1 2001:db8::2 4711 9000\r\n",
    "v1 without ports": b"PROXY TCP4 192.0.2.1 198.51.100.2\r\n",
    "v1 of UDP": b"PROXY UDP4 192.0.2.1 198.51.100.2 4711 9000\r\n",
    "v1 that is not ASCII": b"PROXY TCP4 \xff\xfe 198.51.100.2 4711 9000\r\n",
    "v2 of another version": v2(0x31, 0x11, addresses("192.0.2.1", "198.51.100.2")),
    "v2 of an unknown command": v2(0x2F, 0x11, addresses("192.0.2.1", "198.51.100.2")),
    "v2 of an unknown family": v2(0x21, 0x55, addresses("192.0.2.1", "198.51.100.2")),
    "v2 that is too short for its family": v2(0x21, 0x21, addresses("192.0.2.1", "198.51.100.2")),
    "v2 of a Unix socket": v2(0x21, 0x31, bytes(216)),
    "v2 that is too long": SIGNATURE + bytes([0x21, 0x11]) + struct.pack("!H", LONGEST),
}


@pytest.mark.parametrize(("header", "peer"), GOOD.values(), ids=GOOD)
def test_a_header_is_read_when_its_last_byte_is_there(header, peer):
    for length in range(len(header)):
        assert read_header(header[:length]) is None
    assert read_header(header) == read_header(header + REST) == Introduced(peer, len(header))


@pytest.mark.parametrize("header", BAD.values(), ids=BAD)
def test_what_is_no_header_is_refused(header):
    with pytest.raises(NotIntroduced):
        read_header(header)


@given(st.one_of(st.binary(max_size=300), st.sampled_from([b"PROXY ", SIGNATURE]).flatmap(
    lambda start: st.binary(max_size=300).map(lambda rest: start + rest)
)))  # fmt: skip
def test_whatever_comes_is_read_refused_or_waited_for(data):
    try:
        introduced = read_header(data)
    except NotIntroduced:
        return
    if introduced is None:
        assert len(data) < LONGEST
    else:
        assert introduced.size <= len(data)
        assert not introduced.peer or ip_address(introduced.peer)


@given(st.ip_addresses().map(str))
def test_a_header_that_is_written_names_the_client_when_it_is_read(peer: str) -> None:
    header = header_for(peer)
    assert read_header(header + REST) == Introduced(plain_address(peer), len(header))


@pytest.mark.parametrize("peer", ["", "a Unix socket"])
def test_a_client_without_an_address_is_passed_on_unnamed(peer: str) -> None:
    header = header_for(peer)
    assert read_header(header) == Introduced("", len(header))
