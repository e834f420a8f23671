"""Passwords of providers, kept as hashes that name how they were made.

What people think of is hashed slowly (argon2id), for it can be guessed. What was made up here has 160 random
bits, which nobody guesses however fast each guess is: one SHA-256 of it keeps it as well, and lets ten
thousand providers be added, or log in, at once.
"""

import hmac
import secrets
from collections import OrderedDict
from hashlib import sha256

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
"""19 MiB, two passes, one lane: what OWASP's password storage advice asks for at least."""

_MADE_UP = "sha256$"
_RANDOM_BYTES = 20

REMEMBERED = 1000
"""Right passwords; beyond, the one that was not used for longest is checked in full again."""

REMEMBERED_SECONDS = 600.0
"""After which a password is checked in full again."""


def hash_password(password: str) -> str:
    """Return the hash to keep; it takes some 20 ms on purpose."""
    return _HASHER.hash(_bytes(password))


def made_up() -> str:
    """Return a new password that cannot be guessed."""
    return secrets.token_hex(_RANDOM_BYTES)


def hash_made_up(password: str) -> str:
    """Return the hash to keep of what ``made_up`` returned, and of nothing else."""
    return _MADE_UP + sha256(_bytes(password)).hexdigest()


def verify_password(known: str, password: str) -> bool:
    """Tell whether ``password`` is the one ``known`` was made from; an unusable hash never matches.

    A wrong one takes as long whatever the hash: how long it takes must not tell which providers there are.
    """
    if known.startswith(_MADE_UP):
        right = hmac.compare_digest(known, hash_made_up(password))
        return right or _verify_slowly(DUMMY, password)
    return _verify_slowly(known, password)


def _verify_slowly(known: str, password: str) -> bool:
    try:
        return _HASHER.verify(known, _bytes(password))
    except (VerificationError, InvalidHashError):
        return False


def _bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")


DUMMY = hash_password(secrets.token_hex(16))
"""Matches nothing: checked for unknown ids, so that they take as long as wrong passwords."""


class RightPasswords:
    """Remembers right passwords, so that a client which pushes often is not hashed slowly each time.

    Kept is an HMAC under a key that only this process knows, by the hash that the password was checked
    against: with another password a provider has another hash, and what was kept means nothing. Times are
    seconds of one clock that never goes back.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._right: OrderedDict[str, tuple[bytes, float]] = OrderedDict()

    def note(self, known: str, password: str, now: float) -> None:
        """Remember that a password is the one that the hash ``known`` was made from."""
        self._right[known] = (self._mac(password), now + REMEMBERED_SECONDS)
        self._right.move_to_end(known)
        if len(self._right) > REMEMBERED:
            self._right.popitem(last=False)

    def has(self, known: str, password: str, now: float) -> bool:
        """Tell whether it was so within ``REMEMBERED_SECONDS``."""
        mac, until = self._right.get(known, (b"", 0.0))
        return now < until and hmac.compare_digest(mac, self._mac(password))

    def _mac(self, password: str) -> bytes:
        return hmac.digest(self._key, _bytes(password), sha256)
