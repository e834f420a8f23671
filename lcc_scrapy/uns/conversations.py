"""Open conversations: their number by address and provider (104), and logins that may still bring a set."""

from collections import Counter, OrderedDict

from lcc_scrapy.listeners.peers import neighbourhood

HOMES = 10_000
"""Addresses that are remembered; the one not logged in from for longest is forgotten first."""


class Conversations:
    """Counts connections per address and in all, and knows which logins may still bring a set.

    A fifth of all connections is kept for *homes*: addresses from which a provider has logged in.
    """

    def __init__(self, per_address: int, in_all: int, per_provider: int = 10) -> None:
        self.allow(per_address, in_all, per_provider)
        self._served = 0
        self._addresses: Counter[str] = Counter()
        self._homes: OrderedDict[str, None] = OrderedDict()
        self._open: dict[int, dict[int, bool]] = {}

    def allow(self, per_address: int, in_all: int, per_provider: int) -> None:
        """Set bounds; open conversations go on."""
        self._per_address = per_address
        self._in_all = in_all
        self._per_provider = per_provider
        self._kept = in_all // 5

    def __len__(self) -> int:
        return self._addresses.total()

    def arrive(self, address: str) -> bool:
        """Count a connection; False when it is one too many, to be refused and then to ``leave`` like all."""
        place = neighbourhood(address)
        self._addresses[place] += 1
        within = self._addresses[place] <= self._per_address
        served = within and self._served < self._in_all - self._kept_from(place)
        self._served += served
        return served

    def leave(self, address: str, *, served: bool) -> None:
        """A connection is gone; ``served`` is what ``arrive`` said of it."""
        self._addresses[neighbourhood(address)] -= 1
        self._addresses += Counter()
        self._served -= served

    def crowded(self, address: str) -> bool:
        """Tell whether not even a refusal can be afforded any more."""
        return len(self) >= 2 * self._in_all - self._kept_from(neighbourhood(address))

    def _kept_from(self, place: str) -> int:
        return 0 if place in self._homes else self._kept

    def note_home(self, address: str) -> None:
        """A provider has logged in from an address."""
        place = neighbourhood(address)
        self._homes[place] = None
        self._homes.move_to_end(place)
        if len(self._homes) > HOMES:
            self._homes.popitem(last=False)

    def begin(self, pid: int, seq: int, address: str) -> bool:
        """A login has been granted; False when it is one too many (it counts until ``end`` all the same)."""
        self.note_home(address)
        seqs = self._open.setdefault(pid, {})
        seqs[seq] = False
        return len(seqs) <= self._per_provider

    def set_begins(self, pid: int, seq: int) -> None:
        """A login brings a set now."""
        self._open[pid][seq] = True

    def end(self, pid: int, seq: int) -> bool:
        """A login can bring no set any more; False when that was known already."""
        seqs = self._open.get(pid, {})
        if seq not in seqs:
            return False
        del seqs[seq]
        if not seqs:
            del self._open[pid]
        return True

    def is_open(self, pid: int, seq: int) -> bool:
        """Tell whether a login may still bring a set."""
        return seq in self._open.get(pid, ())

    def sending_before(self, pid: int, seq: int) -> bool:
        """Tell whether a login of a provider before ``seq`` is bringing a set."""
        return any(sending for one, sending in self._open.get(pid, {}).items() if one < seq)

    def logged_in(self) -> dict[tuple[int, int], bool]:
        """Return all logins that may still bring a set, and whether they have begun to."""
        return {(pid, seq): sending for pid, seqs in self._open.items() for seq, sending in seqs.items()}
