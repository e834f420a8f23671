"""Which addresses a crawler may connect to when somebody else chose the URL.

An explicit table (IANA special-purpose registries, RFC 6890 and its successors), because the standard
library's ``is_global`` of Python 3.11 errs on NAT64, 6to4, site-local and others.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_REFUSED_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_ONLY_V6 = IPv6Network("2000::/3")
_REFUSED_V6 = tuple(
    IPv6Network(text)
    for text in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")
)


def is_public(text: str) -> bool:
    """Tell whether an address (as text, a zone index is ignored) is one of the open Internet.

    IPv4 addresses inside IPv6 ones (mapped, NAT64, 6to4, Teredo) are refused as a whole: a public host
    is reachable without them.
    """
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return _public_v4(address) if isinstance(address, IPv4Address) else _public_v6(address)


def _public_v4(address: IPv4Address) -> bool:
    return not any(address in network for network in _REFUSED_V4)


def _public_v6(address: IPv6Address) -> bool:
    if address.ipv4_mapped is not None:
        return _public_v4(address.ipv4_mapped)
    return address in _ONLY_V6 and not any(address in network for network in _REFUSED_V6)
