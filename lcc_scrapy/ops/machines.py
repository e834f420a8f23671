"""Machines register the address of their `lcc files` (table ``machines``)."""

import time
from collections.abc import Callable, Mapping
from threading import Lock

from lcc_scrapy.db.tx import Store

KNOWN_SECONDS = 60.0
"""For so long an address is not looked up again."""


def register_address(store: Store, machine: int, address: str) -> None:
    """Note where the files of a machine are to be had (a URL without a slash at its end)."""
    with store.begin() as tx:
        if tx.machine_addresses().get(machine, "") != address:
            tx.set_machine_address(machine, address)


class MachineAddresses:
    """Addresses by the numbers of machines; ``said`` goes before what machines registered.

    It may be called by several threads at a time.
    """

    def __init__(
        self, store: Store, said: Mapping[int, str], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._said = said
        self._now = now
        self._lock = Lock()
        self._known: dict[int, str] = {}
        self._until = float("-inf")

    def __call__(self, machine: int) -> str | None:
        """Return the address of the files of a machine, None if it is unknown."""
        if machine in self._said:
            return self._said[machine]
        with self._lock:
            if self._now() >= self._until:
                with self._store.read() as tx:
                    self._known = tx.machine_addresses()
                self._until = self._now() + KNOWN_SECONDS
            return self._known.get(machine)
