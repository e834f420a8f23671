"""How often strangers may register and have proofs looked for. Everything runs on the event loop."""

import math
from collections.abc import Callable, Hashable, Iterable

from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.domain.shares import ShareUsedUp
from lcc_scrapy.domain.throttling import Buckets, KnownAddresses, Rate


class _Limit:
    """One rate for several kinds of keys, each kind with buckets of its own."""

    def __init__(self, rate: Rate, kinds: Iterable[str], clock: Callable[[], float]) -> None:
        self._buckets: dict[str, Buckets[Hashable]] = {kind: Buckets(rate) for kind in kinds}
        self._clock = clock

    def check(self, **keys: Hashable) -> float:
        """Return the time, when there is a token for each key by its kind; raises ``ShareUsedUp`` else."""
        now = self._clock()
        wait = max(self._buckets[kind].wait(key, now) for kind, key in keys.items())
        if wait:
            raise ShareUsedUp("too many registrations or proofs in so short a time", math.ceil(wait))
        return now

    def take(self, **keys: Hashable) -> None:
        """Take these tokens, or none; raises ``ShareUsedUp`` then."""
        now = self.check(**keys)
        for kind, key in keys.items():
            self._buckets[kind].take(key, now)


class Throttle:
    """The bounds of all steps. ``clock`` gives seconds and never goes back; addresses are neighbourhoods.

    Each method raises ``ShareUsedUp``, and counts nothing then.
    """

    def __init__(self, rules: RegistrationRules, clock: Callable[[], float]) -> None:
        self._addresses = _Limit(rules.per_address, ["address"], clock)
        self._hosts = _Limit(rules.per_host, ["host", "contact"], clock)
        self._proofs = _Limit(rules.proofs, ["address", "pid", "host"], clock)
        self._known = KnownAddresses()

    def greet(self, address: str) -> None:
        """Somebody says what he wants, which may be nonsense; that counts nothing."""
        self._addresses.check(address=address)

    def begin(self, address: str) -> None:
        """Somebody wants a secret."""
        self._addresses.take(address=address)

    def name(self, host: str) -> None:
        """It is for a site on this host."""
        self._hosts.take(host=host.rstrip("."))

    def mail(self, contact: str) -> None:
        """It is to be mailed to this address."""
        self._hosts.take(contact=contact.lower())

    def show(self, address: str, pid: int | None = None) -> None:
        """Somebody shows a password; ``pid`` where it may be one that people think of.

        Guesses of others use up nothing of an address from which the right one was shown.
        """
        if pid is None or self._known.has(pid, address):
            self._proofs.take(address=address)
        else:
            self._proofs.take(address=address, pid=pid)

    def remember(self, address: str, pid: int) -> None:
        """The password of a provider, which was shown, is right."""
        self._known.note(pid, address)

    def look(self, host: str) -> None:
        """A file is looked for on this host."""
        self._proofs.take(host=host.rstrip("."))
