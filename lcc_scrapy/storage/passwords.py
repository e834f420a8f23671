"""Passwords of providers: argon2id, kept as a hash that names its own parameters."""

import secrets

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
"""19 MiB, two passes, one lane: what OWASP's password storage advice asks for at least."""


def hash_password(password: str) -> str:
    """Return the hash to keep; it takes some 20 ms on purpose."""
    return _HASHER.hash(_bytes(password))


def verify_password(known: str, password: str) -> bool:
    """Tell whether ``password`` is the one ``known`` was made from; an unusable hash never matches."""
    try:
        return _HASHER.verify(known, _bytes(password))
    except (VerificationError, InvalidHashError):
        return False


def _bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")


DUMMY = hash_password(secrets.token_hex(16))
"""Matches nothing: checked for unknown ids, so that they take as long as wrong passwords."""
