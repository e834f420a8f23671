"""Addresses of feeds for feed readers, which can send no token: a key in the URL, made of a token.

The key names a token by its SHA-256, which is no token, and has an HMAC with a secret of the LCC. It is good
for the feed of this token's owner alone, and as long as the token is.
"""

import hmac
import re

from lcc_scrapy.db.secret_facts import secret_fact
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.tokens import ANNOTATE, Refused, Token, Tokens, check_known

KEY_MAX = 120
_FACT = "feedkey"
_KEY = re.compile(r"(?P<digest>[0-9a-f]{64})-(?P<proof>[0-9a-f]{40})", re.ASCII)
_PROOF_CHARACTERS = 40


class FeedKeys:
    """Makes and honours keys. Blocking; it asks the database for the secret once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._secret = b""

    def key(self, token: Token) -> str:
        """Return the key of a token."""
        return f"{token.digest}-{self._proof(token.digest)}"

    def token(self, tokens: Tokens, key: str, now: int) -> Token:
        """Return the token of a key; raises ``Refused``, or ``NotAllowed`` as for the token itself."""
        match = _KEY.fullmatch(key)
        if match is None or not hmac.compare_digest(self._proof(match["digest"]), match["proof"]):
            raise Refused("this address of a feed is not valid: take the one that the page of alerts shows")
        return check_known(tokens, tokens.find(match["digest"]), ANNOTATE, now)

    def _proof(self, digest: str) -> str:
        self._secret = self._secret or secret_fact(self._store, _FACT)
        return hmac.digest(self._secret, f"feed {digest}".encode(), "sha256").hex()[:_PROOF_CHARACTERS]
