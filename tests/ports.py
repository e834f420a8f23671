"""Ports for tests: one that was given out is given to no other test of this machine, whatever runs beside it."""

import random
import socket
from collections import deque
from pathlib import Path

FIRST = 12_000
HELD = 250
"""How many ports one process keeps to itself, the newest ones; each holds a file descriptor."""

_claims: deque[socket.socket] = deque()
_chance = random.SystemRandom()
"""Not the random numbers of the tests, which start at the same seed in every process."""


def free_port() -> int:
    """Return a port to listen at, below those that the kernel gives to outgoing connections."""
    end = min(_ephemeral(), 32_768)
    start = _chance.randrange(FIRST, end)
    for port in (*range(start, end), *range(FIRST, start)):
        claim = _claimed(port)
        if claim is None:
            continue
        if _is_free(port):
            _keep(claim)
            return port
        claim.close()
    raise AssertionError(f"no port of {FIRST} to {end} is free")


def _keep(claim: socket.socket) -> None:
    _claims.append(claim)
    if len(_claims) > HELD:
        _claims.popleft().close()


def _ephemeral() -> int:
    return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])


def _claimed(port: int) -> socket.socket | None:
    """Claim a port by a name that the kernel gives to one process only, and takes back when that ends."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0lcc-test-port-{port}")
    except OSError:
        claim.close()
        return None
    return claim


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
