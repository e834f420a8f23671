# ruff: noqa: RUF001, SIM905 - look-alikes, and tables that read best as they are
"""Which addresses are of the open Internet: each row of the registries with its edges."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.domain.addresses import GLOBAL_V6, REFUSED_V4, REFUSED_V6, is_public

# IANA special-purpose address registries and address space registries, as of 2026.
IPV4 = """
0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.0.0/29
192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24
192.88.99.0/24 192.88.99.2/32 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4
240.0.0.0/4 255.255.255.255/32
""".split()
IPV6 = """
::1/128 ::/128 ::/96 ::ffff:0:0/96 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23
2001::/32 2001:1::1/128 2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28
2001:30::/28 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fd00::/8 fe80::/10 fec0::/10
ff00::/8 ::/8 200::/7 400::/6 4000::/3 6000::/3 8000::/3 a000::/3 c000::/3 e000::/4 f000::/5 f800::/6
""".split()
OUTERMOST = [*map(str, REFUSED_V4), *map(str, REFUSED_V6)]
PUBLIC = [
    "1.1.1.1", "8.8.8.8", "93.184.216.34", "172.15.255.255", "172.32.0.0", "223.255.255.255", "2000::", "2001:200::",
    "2606:4700::1111", "2a00:1450::1", "2001:4860:4860::8888", "3ffe::1",
]  # fmt: skip
NO_ADDRESS = [
    "", " ", "localhost", "127.1", "0x7f.0.0.1", "0177.0.0.1", "2130706433", "8.8.8.8.", "8.8.8", "08.8.8.8", "8.8.8.8%1",
    "[2606:4700::1]", "2606:4700::1%eth0", "2606:4700::1%", "2606:4700::/32", "８.8.8.8", "8.8.8.8\n", "8.8.8.8\0",
]  # fmt: skip
EMBEDDED = ["::{}", "::ffff:{}", "::ffff:0:{}", "64:ff9b::{}", "64:ff9b:1::{}", "fe80::5efe:{}"]


def edges(text):
    network = ip_network(text)
    return str(network[0]), str(network[-1])


@pytest.mark.parametrize("text", [*IPV4, *IPV6])
def test_the_first_and_the_last_address_of_a_special_block_are_refused(text):
    assert [is_public(address) for address in edges(text)] == [False, False]


@pytest.mark.parametrize("text", OUTERMOST)
def test_the_neighbours_of_a_row_are_public_unless_they_are_in_another_row(text):
    network = ip_network(text)
    rows = REFUSED_V4 if isinstance(network, IPv4Network) else REFUSED_V6
    for number in (int(network[0]) - 1, int(network[-1]) + 1):
        if not 0 <= number < 2**network.max_prefixlen:
            continue
        kind = IPv4Address if isinstance(network, IPv4Network) else IPv6Address
        neighbour = kind(number)
        special = any(neighbour in row for row in rows)
        outside = isinstance(neighbour, IPv6Address) and neighbour not in GLOBAL_V6
        assert is_public(str(neighbour)) is not (special or outside)


def test_every_row_has_a_public_neighbour_but_the_one_behind_multicast():
    lonely = [text for text in OUTERMOST if not any(is_public(str(near)) for near in neighbours(text))]
    assert lonely == ["240.0.0.0/4"]


def neighbours(text):
    network = ip_network(text)
    for number in (int(network[0]) - 1, int(network[-1]) + 1):
        if 0 <= number < 2**network.max_prefixlen:
            yield ip_address(number) if isinstance(network, IPv4Network) else IPv6Address(number)


def test_the_edges_of_what_was_given_out_as_ipv6_unicast():
    assert is_public("2000::")
    assert not is_public("1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")
    assert is_public("3fff:1000::")
    assert is_public("3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")
    assert not is_public("4000::")


@pytest.mark.parametrize("text", PUBLIC)
def test_a_host_of_the_open_internet_is_public(text):
    assert is_public(text)


@pytest.mark.parametrize("text", NO_ADDRESS)
def test_what_is_no_plain_address_is_not_public(text):
    assert not is_public(text)


@pytest.mark.parametrize("pattern", EMBEDDED)
@pytest.mark.parametrize("inside", ["127.0.0.1", "169.254.169.254", "8.8.8.8"])
def test_ipv4_inside_ipv6_is_refused_whether_public_or_not(pattern, inside):
    assert not is_public(pattern.format(inside))


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**80 - 1))
def test_6to4_and_teredo_are_refused_whatever_they_hold(inside, rest):
    assert not is_public(str(IPv6Address(0x2002 << 112 | inside << 80 | rest)))
    assert not is_public(str(IPv6Address(0x20010000 << 96 | inside << 64 | rest >> 16)))


@given(st.ip_addresses())
def test_whatever_the_standard_library_calls_private_is_refused(address):
    if address.is_private or address.is_multicast or address.is_reserved or not address.is_global:
        assert not is_public(str(address))


def test_the_table_holds_networks_of_the_right_kind():
    assert all(isinstance(row, IPv4Network) for row in REFUSED_V4)
    assert all(isinstance(row, IPv6Network) and row.subnet_of(GLOBAL_V6) for row in REFUSED_V6)
