"""Access: the token of a request, from its ``Authorization`` header and from nowhere else."""

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from lcc_scrapy.domain.tokens import ANNOTATE, METRICS, READ, Refused, Token, check
from lcc_scrapy.web.ports import Lcc

bearer = HTTPBearer(auto_error=False, description="A token that `lcc token add` made.")


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

    def token_of(lcc: Annotated[Lcc, Depends(lcc_of)], shown: Shown) -> Token:
        return check(lcc.tokens, shown, scope, int(lcc.now()))

    return token_of


TheLcc = Annotated[Lcc, Depends(lcc_of)]
Reading = Annotated[Token, Depends(holder(READ))]
Measuring = Annotated[Token, Depends(holder(METRICS))]
Owner = Annotated[Token, Depends(holder(ANNOTATE))]
"""The label of this token is the owner whose interests and alerts it is good for."""
