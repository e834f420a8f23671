"""Passwords that were right lately, so that a client which pushes often is not hashed slowly each time.

Kept is an HMAC under a key that only this process knows, by the hash that the password was checked against:
with another password a provider has another hash, and what was kept means nothing.
"""

import hmac
import secrets
from collections import OrderedDict
from hashlib import sha256

MOST = 1000
"""Passwords; beyond, the one that was not used for longest is checked in full again."""

SECONDS = 600.0
"""After which a password is checked in full again."""


class RightPasswords:
    """Remembers right passwords, never a wrong one. Times are seconds of one clock that never goes back."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._right: OrderedDict[str, tuple[bytes, float]] = OrderedDict()

    def note(self, known: str, password: str, now: float) -> None:
        """Remember that a password is the one that the hash ``known`` was made from."""
        self._right[known] = (self._mac(password), now + SECONDS)
        self._right.move_to_end(known)
        if len(self._right) > MOST:
            self._right.popitem(last=False)

    def has(self, known: str, password: str, now: float) -> bool:
        """Tell whether it was so within ``SECONDS``."""
        mac, until = self._right.get(known, (b"", 0.0))
        return now < until and hmac.compare_digest(mac, self._mac(password))

    def _mac(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode("utf-8", "surrogatepass"), sha256)
