"""``/v1/documents``: one row, and its content, which no browser is to render."""

from http import HTTPStatus
from typing import IO, Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.tokens import Token
from lcc_scrapy.feed.content import ContentGone
from lcc_scrapy.feed.names import name_of
from lcc_scrapy.web import contents, ranges
from lcc_scrapy.web.access import Reading, TheLcc
from lcc_scrapy.web.contents import Asked, Conditions
from lcc_scrapy.web.parameters import DocId
from lcc_scrapy.web.ports import Lcc
from lcc_scrapy.web.problems import NotThere, told
from lcc_scrapy.web.rows import Row, as_json, json_row, whole_row
from lcc_scrapy.web.sharing import streaming

router = APIRouter(prefix="/v1/documents", tags=["documents"])

_TRIES = 3
"""Looks at a document that is replaced at this moment, again and again."""


@router.get("/{docid}", response_model=Row, responses={304: {"description": "Not modified"}, **told(404)})
def document(
    *,
    lcc: TheLcc,
    token: Reading,
    docid: DocId,
    if_none_match: Conditions = None,
    whole: Annotated[bool, Query(description="Tell all that is kept of it, for a front.")] = False,
) -> Response:
    """The row of a document as it is now."""
    row = found(lcc, token, docid)
    tag = f'"{row.seq}"'
    if if_none_match and ranges.is_named(if_none_match, tag, weakly=True):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": f"W/{tag}"})
    more = {"whole": whole_row(row, None)} if whole else {}
    return as_json({**json_row(row, lcc.feed.owners([row])), **more}, ETag=f"W/{tag}")


@router.head(
    "/{docid}/content", response_class=Response, responses=contents.HEAD, dependencies=[Depends(streaming)]
)
@router.get(
    "/{docid}/content",
    response_class=StreamingResponse,
    responses=contents.REDIRECTED,
    dependencies=[Depends(streaming)],
)
def content(*, request: Request, lcc: TheLcc, token: Reading, docid: DocId, asked: Asked) -> Response:
    """The content of a document, or a part of it (one range of bytes)."""
    row = found(lcc, token, docid)
    redirect = contents.redirect(request, lcc, asked, row)
    if redirect is not None:
        return redirect
    row, stream = _opened(lcc, token, row)
    return contents.answer(request, asked, row, stream, name_of(row).rpartition("/")[2])


def found(lcc: Lcc, token: Token, docid: str) -> CachedUrl:
    """Return the row of a document; raises ``NotThere``, also where the token is not for it."""
    key = bytes.fromhex(docid)
    row = lcc.feed.rows([key]).get(key)
    if row is None or not token.admits(row):
        raise NotThere(f"there is no document {docid}: it was removed, which the feed tells, or never there")
    return row


def _opened(lcc: Lcc, token: Token, row: CachedUrl) -> tuple[CachedUrl, IO[bytes]]:
    for _ in range(_TRIES):
        try:
            return row, lcc.open(row)
        except ContentGone as error:
            gone = error
        row = found(lcc, token, row.docid)  # replaced since its row was read: there is another row now
    raise gone
