"""What is known of a site that asks for a password by HTTP Digest: its last nonce, and its uses so far."""

import secrets
from collections.abc import Iterable

from lcc_scrapy.domain.digest import Challenge, Login, challenge_in


class DigestSession:
    """Answers the challenges of one origin for one provider; after the first, requests do so in advance."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._asked: Challenge | None = None
        self._count = 0

    def __repr__(self) -> str:
        return "***"

    def answer(self, method: str, target: str) -> bytes:
        """Return the Authorization of the next request; empty before the first challenge."""
        if self._asked is None:
            return b""
        self._count += 1
        return self._login.answer(self._asked, method, target, self._count, secrets.token_urlsafe(24))

    def hear(self, fields: Iterable[tuple[bytes, bytes]]) -> bool:
        """Note the challenge among the header fields of a 401; returns whether it is answered.

        One with a weaker algorithm than before is not.
        """
        challenges = (value for name, value in fields if name.lower() == b"www-authenticate")
        asked = challenge_in(challenges, self._asked)
        if asked is None:
            return False
        if self._asked is None or asked.nonce != self._asked.nonce:
            self._count = 0
        self._asked = asked
        return True
