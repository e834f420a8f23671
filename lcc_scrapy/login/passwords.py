"""Passwords of providers, kept as hashes that name how they were made.

What people think of is hashed slowly (argon2id), for it can be guessed. What was made up here has 160 random
bits, which nobody guesses however fast each guess is: one SHA-256 of it keeps it as well, and lets ten
thousand providers be added, or log in, at once.
"""

import hmac
import secrets
from hashlib import sha256

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
"""19 MiB, two passes, one lane: what OWASP's password storage advice asks for at least."""

_MADE_UP = "sha256$"
_RANDOM_BYTES = 20


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
