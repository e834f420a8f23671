"""Tokens for the HTTP API of a front, kept in its database."""

from collections.abc import Sequence
from contextlib import suppress

from lcc_scrapy.domain.errors import LccError, StoreUnavailable
from lcc_scrapy.domain.tokens import Token
from lcc_scrapy.feed.tokens import USES_APART
from lcc_scrapy.front.directory import Directory


class FrontTokens:
    """The ``domain.tokens.Tokens`` of a front."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def find(self, digest: str) -> Token | None:
        """Return what is known of a token."""
        return self._directory.find_token(digest)

    def note_use(self, token: Token, now: int) -> None:
        """Keep when a token was used, unless that was noted just now or the database is busy."""
        if now - token.used >= USES_APART:
            with suppress(StoreUnavailable):
                self._directory.note_token(token.digest, now)

    def add(self, token: Token) -> None:
        """Let a token be known."""
        self._directory.add_token(token)

    def all(self) -> Sequence[Token]:
        """Return all tokens, oldest first."""
        return self._directory.tokens()

    def revoke(self, tokenid: str) -> Token:
        """Forget a token named by its id; raises ``LccError`` when there is none."""
        found = next((one for one in self.all() if one.tokenid == tokenid), None)
        if found is None:
            raise LccError(f"there is no token {tokenid}; `lcc token list --front` shows all")
        self._directory.drop_token(found.digest)
        return found
