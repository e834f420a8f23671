"""How often a login may fail: a delay for whoever guesses, no lock-out of the provider guessed at.

Failed logins take tokens from buckets. A caller that is *known*, because its provider has logged in from
its address before, has a bucket of its own; strangers share that of their address and that of the id they
name. So nobody else can use up what lets a provider in from where it always comes from, and a stranger
hears the same whether the id exists or not.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

KEYS = 10_000
"""Buckets of one kind, and providers whose addresses are remembered."""
ADDRESSES_OF_A_PROVIDER = 8
"""Remembered of each: the newest."""

_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Rate:
    """``count`` at once after a rest of ``seconds``, and ``count`` in every ``seconds`` after that."""

    count: int
    seconds: float

    @property
    def interval(self) -> float:
        """Seconds in which one more is granted."""
        return self.seconds / self.count


class Buckets(Generic[Key]):
    """One token bucket per key; times are seconds of one clock that never goes back.

    A bucket is kept as the moment at which it is full again (the virtual scheduling of ITU-T I.371), and
    one that is full need not be kept. Beyond ``most`` the one not taken from for longest counts as full.
    """

    def __init__(self, rate: Rate, most: int = KEYS) -> None:
        self.rate = rate
        """May be changed; what was taken at the old one stays taken."""
        self._most = most
        self._full_at: OrderedDict[Key, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._full_at)

    def wait(self, key: Key, now: float) -> float:
        """Return the seconds until the bucket holds a token; 0 = it does."""
        missing = self._full_at.get(key, now) - now + self.rate.interval - self.rate.seconds
        return missing if missing > _ROUNDING else 0.0

    def take(self, key: Key, now: float) -> None:
        """Take a token; an empty bucket goes into debt."""
        self._full_at[key] = max(self._full_at.get(key, now), now) + self.rate.interval
        self._full_at.move_to_end(key)
        if len(self._full_at) > self._most:
            self._full_at.popitem(last=False)

    def give_back(self, key: Key) -> None:
        """Put back a token that was taken."""
        if key in self._full_at:
            self._full_at[key] -= self.rate.interval


@dataclass(frozen=True, slots=True)
class Caller:
    """Who wants to log in: from which neighbourhood, as which provider (None = no number at all).

    In the dashboard, ``pid`` is the name of a user.
    """

    address: str
    pid: int | str | None
    known: bool = False


class KnownAddresses:
    """From where providers have logged in lately; at the bounds the oldest are forgotten."""

    def __init__(self, providers: int = KEYS, each: int = ADDRESSES_OF_A_PROVIDER) -> None:
        self._providers = providers
        self._each = each
        self._known: OrderedDict[int | str, tuple[str, ...]] = OrderedDict()

    def note(self, pid: int | str, address: str) -> None:
        """Remember an address from which a provider logged in."""
        others = [other for other in self._known.get(pid, ()) if other != address]
        self._known[pid] = (address, *others)[: self._each]
        self._known.move_to_end(pid)
        if len(self._known) > self._providers:
            self._known.popitem(last=False)

    def has(self, pid: int | str | None, address: str) -> bool:
        """Tell whether a provider has been there."""
        return pid is not None and address in self._known.get(pid, ())


class LoginThrottle:
    """All buckets. A token is taken when a password is looked at, and put back when it was right."""

    def __init__(self, per_address: Rate, per_id: Rate) -> None:
        self._known = KnownAddresses()
        self._addresses: Buckets[str] = Buckets(per_address)
        self._ids: Buckets[int | str | None] = Buckets(per_id)
        self._homes: Buckets[Caller] = Buckets(per_id)

    def change(self, per_address: Rate, per_id: Rate) -> None:
        """Go by other rates from now on."""
        self._addresses.rate = per_address
        self._ids.rate = self._homes.rate = per_id

    def caller(self, address: str, pid: int | str | None) -> Caller:
        """Say who somebody is, as far as it is remembered here."""
        return Caller(address, pid, self._known.has(pid, address))

    def remember(self, caller: Caller) -> Caller:
        """Take note that a caller's provider logged in from its address."""
        assert caller.pid is not None
        self._known.note(caller.pid, caller.address)
        return Caller(caller.address, caller.pid, known=True)

    def address_wait(self, caller: Caller, now: float) -> float:
        """Return the seconds that a stranger has to wait whatever id it names; 0 for known callers."""
        return 0.0 if caller.known else self._addresses.wait(caller.address, now)

    def wait(self, caller: Caller, now: float) -> float:
        """Return the seconds until a password of this caller may be looked at; 0 = now."""
        if caller.known:
            return self._homes.wait(caller, now)
        return max(self._addresses.wait(caller.address, now), self._ids.wait(caller.pid, now))

    def take(self, caller: Caller, now: float) -> None:
        """A password is about to be looked at."""
        if caller.known:
            self._homes.take(caller, now)
        else:
            self._addresses.take(caller.address, now)
            self._ids.take(caller.pid, now)

    def give_back(self, caller: Caller) -> None:
        """The password that was looked at was right."""
        if caller.known:
            self._homes.give_back(caller)
        else:
            self._addresses.give_back(caller.address)
            self._ids.give_back(caller.pid)

    def charge(self, caller: Caller, now: float) -> None:
        """A stranger asked for an id that is being guessed at: that costs its address a token, too."""
        self._addresses.take(caller.address, now)
