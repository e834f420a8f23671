"""Access: the token of a request, from its ``Authorization`` header and from nowhere else."""

from collections.abc import Callable
from typing import Annotated, Protocol

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from lcc_scrapy.domain.tokens import ANNOTATE, METRICS, READ, Refused, Token, Tokens, check
from lcc_scrapy.web.ports import Lcc

bearer = HTTPBearer(auto_error=False, description="A token that `lcc token add` made.")


class Guarded(Protocol):
    """What an application of this API stands on, an LCC or a front, as far as tokens go."""

    @property
    def tokens(self) -> Tokens:
        """Return where tokens are known."""

    @property
    def now(self) -> Callable[[], float]:
        """Return the clock (epoch seconds)."""


def _guarded(request: Request) -> Guarded:
    found: Guarded = request.app.state.lcc
    return found


def lcc_of(request: Request) -> Lcc:
    """Return what the application stands on."""
    found = request.app.state.lcc
    assert isinstance(found, Lcc)
    return found


def _shown(
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> str:
    """Return the token that a request shows; raises ``Refused`` when it shows none."""
    if credentials is None:
        raise Refused("a token is needed: Authorization: Bearer …")
    return credentials.credentials


Shown = Annotated[str, Depends(_shown)]


def holder(scope: str) -> Callable[..., Token]:
    """Return a dependency: the token of a request, good for a scope."""

    def token_of(guarded: Annotated[Guarded, Depends(_guarded)], shown: Shown) -> Token:
        return check(guarded.tokens, shown, scope, int(guarded.now()))

    return token_of


TheLcc = Annotated[Lcc, Depends(lcc_of)]
Reading = Annotated[Token, Depends(holder(READ))]
Measuring = Annotated[Token, Depends(holder(METRICS))]
Owner = Annotated[Token, Depends(holder(ANNOTATE))]
"""The label of this token is the owner whose interests and alerts it is good for."""
