"""Which addresses a crawler may connect to when somebody else chose the URL.

An explicit table (IANA special-purpose address registries for IPv4 and IPv6, RFC 6890 and its successors),
because the standard library's ``is_global`` of Python 3.11 errs on NAT64, 6to4, site-local and others.
What the registries call globally reachable but is no host of anybody (anycast relays, AS112, a cloud's own)
is refused too.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address

REFUSED_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # behind a carrier's NAT
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's own, in each of its networks
        "169.254.0.0/16",  # link-local; the metadata of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # multicast relays
        "192.88.99.0/24",  # 6to4 relays, deprecated
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
GLOBAL_V6 = IPv6Network("2000::/3")
"""All that was ever given out as unicast. What lies outside is refused: loopback, mapped and compatible IPv4
(::/96, ::ffff:0:0/96), NAT64 (64:ff9b::/96, 64:ff9b:1::/48), discard (100::/64), segment routing (5f00::/16),
private (fc00::/7), link-local (fe80::/10), site-local (fec0::/10), multicast (ff00::/8)."""

REFUSED_V6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID, drones, …
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)


def is_public(text: str) -> bool:
    """Tell whether an address is one of the open Internet; what is no address, or has a zone, is not.

    IPv4 addresses inside IPv6 ones (mapped, NAT64, 6to4, Teredo) are refused as a whole, public or not.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv4Address):
        return not any(address in network for network in REFUSED_V4)
    public = address.scope_id is None and address in GLOBAL_V6
    return public and not any(address in network for network in REFUSED_V6)
