"""Who is connected: counts for 104, and the logins that may still bring a set."""

import ipaddress
from collections import Counter

_NO_ADDRESS = "local"


def plain_address(host: str | None) -> str:
    """Write a peer's address in one way: IPv4 inside IPv6 unpacked, no zone; ``local`` for none."""
    if not host:
        return _NO_ADDRESS
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return ascii(host)[1:-1][:64]
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def _neighbourhood(address: str) -> str:
    """Count an IPv6 site, which has 2^64 addresses, as one."""
    if ":" not in address:
        return address
    return str(ipaddress.ip_network(f"{address}/64", strict=False))


class Conversations:
    """Counts connections per address and in all, and knows which logins may still bring a set."""

    def __init__(self, per_address: int, in_all: int) -> None:
        self._per_address = per_address
        self._in_all = in_all
        self._addresses: Counter[str] = Counter()
        self._open: dict[int, set[int]] = {}

    def allow(self, per_address: int, in_all: int) -> None:
        """Set other bounds; who is connected stays so."""
        self._per_address = per_address
        self._in_all = in_all

    def __len__(self) -> int:
        return self._addresses.total()

    def arrive(self, address: str) -> bool:
        """Count a connection; False when it is one too many (it counts until ``leave`` all the same)."""
        self._addresses[_neighbourhood(address)] += 1
        return self._addresses[_neighbourhood(address)] <= self._per_address and len(self) <= self._in_all

    def leave(self, address: str) -> None:
        """A connection is gone."""
        self._addresses[_neighbourhood(address)] -= 1
        self._addresses += Counter()

    @property
    def crowded(self) -> bool:
        """Tell whether not even a refusal can be afforded any more."""
        return len(self) >= 2 * self._in_all

    def begin(self, pid: int, seq: int) -> None:
        """A login has been granted: it may bring a set."""
        self._open.setdefault(pid, set()).add(seq)

    def end(self, pid: int, seq: int) -> bool:
        """A login can bring no set any more; False when that was known already."""
        seqs = self._open.get(pid, set())
        if seq not in seqs:
            return False
        seqs.remove(seq)
        if not seqs:
            del self._open[pid]
        return True

    def is_open(self, pid: int, seq: int) -> bool:
        """Tell whether a login may still bring a set."""
        return seq in self._open.get(pid, ())
