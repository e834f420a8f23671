"""Addresses of clients."""

import ipaddress
from collections.abc import Sequence

Networks = Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]

LOCAL = "local"
"""Who has no address: a Unix socket."""


def plain_address(host: str | None) -> str:
    """Write a peer's address in one way: IPv4 inside IPv6 unpacked, no zone; ``local`` for none."""
    if not host:
        return LOCAL
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ascii(host)[1:-1][:64]
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def neighbourhood(address: str) -> str:
    """Return what counts as one: an IPv6 site, which has 2^64 addresses, or an address in plain form."""
    if ":" not in address:
        return address
    return str(ipaddress.ip_network(f"{address}/64", strict=False))


def is_address(text: str) -> bool:
    """Tell whether a text is an address of the Internet."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_among(address: str, networks: Networks) -> bool:
    """Tell whether an address lies in one of the networks."""
    return is_address(address) and any(ipaddress.ip_address(address) in network for network in networks)


def is_here(address: str) -> bool:
    """Tell whether an address, in plain form, is of this machine."""
    return address == LOCAL or (is_address(address) and ipaddress.ip_address(address).is_loopback)
