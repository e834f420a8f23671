"""Tokens and named cursors of content users, kept in the database."""

from collections.abc import Sequence
from contextlib import suppress

from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.errors import LccError, StoreUnavailable
from lcc_scrapy.domain.tokens import Token

USES_APART = 60
"""Seconds between two notes of a token's use: reading must not mean writing every time."""


class StoreTokens:
    """The ``domain.tokens.Tokens`` of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, digest: str) -> Token | None:
        """Return what is known of a token."""
        with self._store.read() as tx:
            return tx.token(digest)

    def note_use(self, token: Token, now: int) -> None:
        """Keep when a token was used, unless that was noted just now or the database is busy."""
        if now - token.used < USES_APART:
            return
        with suppress(StoreUnavailable), self._store.begin() as tx:
            tx.note_token_use(token.digest, now)

    def add(self, token: Token) -> None:
        """Let a token be known."""
        with self._store.begin() as tx:
            tx.insert_token(token)

    def all(self) -> Sequence[Token]:
        """Return all tokens, oldest first."""
        with self._store.read() as tx:
            return tx.tokens()

    def revoke(self, tokenid: str) -> Token:
        """Forget a token named by its id; raises ``LccError`` when there is none."""
        with self._store.begin() as tx:
            found = [token for token in tx.tokens() if token.tokenid == tokenid]
            if not found:
                raise LccError(f"there is no token {tokenid}; `lcc token list` shows all")
            tx.delete_token(found[0].digest)
        return found[0]
