"""Listening sockets that outlive the process which listens.

A supervisor keeps a copy of each listening socket of its server. While the server is started again, clients
wait in the kernel's backlog instead of being refused. Server and supervisor talk over a Unix socket whose
descriptor the server finds in its environment; each message is a JSON list of endpoint strings with as many
descriptors (SCM_RIGHTS).
"""

import json
import os
import socket
from collections.abc import Mapping, Sequence

KEEPER, KEPT = "LISTEN_KEEPER_FD", "LISTEN_KEPT_FDS"
"""Variables of the server's environment: where to give sockets to, and those kept for it (JSON)."""

_MESSAGE = 64 * 1024
_MOST = 64
"""Sockets in one message; the kernel takes 253."""


class KeptSockets:
    """The supervisor's side; ``environment`` and ``descriptors`` are what a server is started with."""

    def __init__(self) -> None:
        self._here, self._there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._here.setblocking(False)
        self._kept: dict[str, int] = {}

    def environment(self) -> dict[str, str]:
        """Return what the server finds in its environment."""
        self.collect()
        return {KEEPER: str(self._there.fileno()), KEPT: json.dumps(self._kept)}

    def descriptors(self) -> list[int]:
        """Return what the server inherits."""
        return [self._there.fileno(), *self._kept.values()]

    def any(self) -> bool:
        """Tell whether the server has listened by now, and its sockets are kept."""
        return bool(self._kept)

    def collect(self) -> None:
        """Take what the server has given by now; a newer list replaces an older one."""
        while True:
            try:
                message, descriptors, _, _ = socket.recv_fds(self._here, _MESSAGE, _MOST)
            except BlockingIOError:
                return
            names = json.loads(message)
            self.drop()
            self._kept = dict(zip(names, descriptors, strict=True))

    def close(self) -> None:
        """Keep nothing, now and later."""
        self.drop()
        self._here.close()
        self._there.close()

    def drop(self) -> None:
        """Keep nothing more: clients are refused from when the server has closed its own copies."""
        for descriptor in self._kept.values():
            os.close(descriptor)
        self._kept = {}


def kept_for_us(environment: Mapping[str, str]) -> dict[str, int]:
    """Return the sockets that were kept for this process, by endpoint string."""
    kept: dict[str, int] = json.loads(environment.get(KEPT, "{}"))
    return kept


def give(environment: Mapping[str, str], endpoints: Sequence[str], descriptors: Sequence[int]) -> None:
    """Give copies of the listening sockets to the supervisor, if there is one that keeps them."""
    keeper = environment.get(KEEPER)
    if keeper is None or not endpoints:
        return
    with socket.socket(fileno=os.dup(int(keeper))) as channel:  # noqa: TID251 - to our own supervisor
        socket.send_fds(channel, [json.dumps(list(endpoints)).encode()], list(descriptors))
