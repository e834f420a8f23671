"""Addresses of those who connect."""

import ipaddress

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
