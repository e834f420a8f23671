"""Tokens: who may read over the network, and what.

A token is ``lcc_`` and 32 characters of URL-safe base64: 192 random bits. What is kept of it is its SHA-256,
which is enough for a secret that nobody can guess, and cheap enough for every request.
"""

import hashlib
import re
import secrets
from dataclasses import dataclass, replace
from typing import Protocol

from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.entries import accepts
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.selection import Selection

READ, METRICS, FILES, PUSH, ANNOTATE = "read", "metrics", "files", "push", "annotate"
"""What tokens are good for: the feed and documents, the metrics, the content files of a machine, pushing as
one provider, and the interests and alerts of the owner that the label names."""

SCOPES = (READ, METRICS, FILES, PUSH, ANNOTATE)
LABEL_MAX = 64
RESTRICTION_MAX = 1000
"""Characters of all providers, or all mimetypes, that one token is for."""

_PREFIX = "lcc_"
_RANDOM_BYTES = 24
_TOKEN = re.compile(r"lcc_[A-Za-z0-9_-]{32}")
_ID_DIGITS = 12


class Refused(LccError):
    """No token, or none that is good now."""


class NotAllowed(LccError):
    """A good token, and more was asked for than it is good for."""


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token (table ``tokens``). Times are epoch seconds.

    ``label`` says whose it is; several tokens may have the same, to change one for another. ``scopes``,
    ``providers`` and ``mimetypes`` are separated by blanks; the last two restrict what of the LCC is there
    for its holder, empty = everything. ``expires`` = 0: never; ``used`` = 0: not yet.
    """

    digest: str
    label: str
    scopes: str
    providers: str
    mimetypes: str
    created: int
    expires: int = 0
    used: int = 0

    @property
    def tokenid(self) -> str:
        """What names it in commands and logs; nothing can be got with it."""
        return self.digest[:_ID_DIGITS]

    def has_expired(self, now: int) -> bool:
        """Tell whether it is not good any more."""
        return 0 < self.expires <= now

    @property
    def is_narrow(self) -> bool:
        """Tell whether it is for some documents only: then it is good for reading, or pushing, only."""
        return bool(self.providers or self.mimetypes)

    def admits(self, row: CachedUrl | Tombstone) -> bool:
        """Tell whether its holder may see a document, or its removal."""
        pids, patterns = self._pids(), tuple(self.mimetypes.split())
        return (not pids or row.pid in pids) and (not patterns or accepts(patterns, row.mimetype))

    def narrowed(self, selection: Selection) -> Selection:
        """Return a selection of what its holder may see; raises ``NotAllowed`` when more was asked for."""
        pids, patterns = self._pids(), tuple(self.mimetypes.split())
        if pids and not set(selection.providers) <= set(pids):
            raise NotAllowed(f"this token is for provider {', '.join(map(str, pids))} only")
        if patterns and not all(accepts(patterns, wanted) for wanted in selection.mimetypes):
            raise NotAllowed(f"this token is for {', '.join(patterns)} only")
        return replace(
            selection,
            providers=selection.providers or pids,
            mimetypes=selection.mimetypes or patterns,
        )

    @property
    def provider(self) -> int:
        """The provider that its holder pushes as."""
        return self._pids()[0]

    def _pids(self) -> tuple[int, ...]:
        return tuple(map(int, self.providers.split()))


class Tokens(Protocol):
    """Where tokens are known. Calls block."""

    def find(self, digest: str) -> Token | None:
        """Return what is known of a token."""

    def note_use(self, token: Token, now: int) -> None:
        """Keep when a token was used; about once a minute is enough."""


def new_secret() -> str:
    """Make a token."""
    return _PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def is_token(text: str) -> bool:
    """Tell whether a text looks like a token."""
    return _TOKEN.fullmatch(text) is not None


def digest_of(secret: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def check(tokens: Tokens, secret: str, scope: str, now: int) -> Token:
    """Return the token that somebody shows; raises ``Refused``, or ``NotAllowed`` for another scope."""
    token = tokens.find(digest_of(secret)) if is_token(secret) else None
    return check_known(tokens, token, scope, now)


def check_known(tokens: Tokens, token: Token | None, scope: str, now: int) -> Token:
    """Return a token that was found, None = it was not; raises as ``check`` does."""
    if token is None:
        raise Refused("this token is not known here")
    if token.has_expired(now):
        raise Refused("this token has expired: ask the operator for another one")
    if scope not in token.scopes.split():
        raise NotAllowed(f"this token is not for `{scope}`")
    if scope not in {READ, PUSH} and token.is_narrow:
        raise NotAllowed(f"this token is for some documents only, and `{scope}` is about all of them")
    tokens.note_use(token, now)
    return token
