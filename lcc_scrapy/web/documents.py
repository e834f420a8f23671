"""``/v1/documents``: one row, and its content, which no browser is to render."""

import base64
from http import HTTPStatus
from typing import IO, Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.responses import StreamingResponse

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.selection import is_pattern
from lcc_scrapy.domain.tokens import Token
from lcc_scrapy.feed.content import ContentGone
from lcc_scrapy.feed.exports.names import name_of
from lcc_scrapy.web import ranges
from lcc_scrapy.web.access import Reading, TheLcc
from lcc_scrapy.web.parameters import DocId
from lcc_scrapy.web.ports import Lcc
from lcc_scrapy.web.problems import BINARY, NotThere, as_bytes, problem, told
from lcc_scrapy.web.rows import Row, as_json, json_row
from lcc_scrapy.web.sharing import streaming
from lcc_scrapy.web.streams import pieces

router = APIRouter(prefix="/v1/documents", tags=["documents"])

_TRIES = 3
"""Looks at a document that is replaced at this moment, again and again."""

Conditions = Annotated[str | None, Header()]


@router.get("/{docid}", response_model=Row, responses={304: {"description": "Not modified"}, **told(404)})
def document(lcc: TheLcc, token: Reading, docid: DocId, if_none_match: Conditions = None) -> Response:
    """The row of a document as it is now."""
    row = _found(lcc, token, docid)
    tag = f'"{row.seq}"'
    if if_none_match and ranges.is_named(if_none_match, tag, weakly=True):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": f"W/{tag}"})
    return as_json(json_row(row), ETag=f"W/{tag}")


_CONTENT = {
    "description": "The content as its site served it, decoded, as an attachment. `ETag` is its SHA-256.",
    "content": as_bytes("*/*"),
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: _CONTENT,
    206: {**_CONTENT, "description": "A part of the content."},
    304: {"description": "Not modified"},
    **told(404, 410, 412, 416, 500),
}

_HEAD = {
    status: {"description": told["description"]}
    for status, told in _ANSWERS.items()
    if status not in {200, 206}
}


@router.head(
    "/{docid}/content",
    response_class=Response,
    responses={200: {"description": "All but the content itself."}, **_HEAD},
    dependencies=[Depends(streaming)],
)
@router.get(
    "/{docid}/content",
    response_class=StreamingResponse,
    responses=_ANSWERS,
    dependencies=[Depends(streaming)],
)
def content(
    *,
    request: Request,
    lcc: TheLcc,
    token: Reading,
    docid: DocId,
    wanted: Annotated[str | None, Header(alias="Range")] = None,
    if_range: Conditions = None,
    if_match: Conditions = None,
    if_none_match: Conditions = None,
) -> Response:
    """The content of a document, or a part of it (one range of bytes)."""
    row, stream = _opened(lcc, token, docid)
    headers, tag = _headers(row), f'"{row.sha256}"'
    if if_match and not ranges.is_named(if_match, tag, weakly=False):
        stream.close()
        return problem(HTTPStatus.PRECONDITION_FAILED, "the document has another content now", "changed")
    if if_none_match and not if_match and ranges.is_named(if_none_match, tag, weakly=True):
        stream.close()
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    whole = range(row.fetched_len)
    if request.method == "HEAD":
        stream.close()
        return Response(headers=headers | _of_part(row, whole, None))
    try:
        asked = ranges.part(wanted, len(whole)) if wanted and if_range in {None, tag} else None
    except ranges.Unsatisfiable:
        stream.close()
        bounds = {"Content-Range": f"bytes */{len(whole)}"}
        detail = f"the content has {len(whole)} bytes"
        return problem(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, detail, "no-such-range", bounds)
    return _answer(row, stream, whole, asked, headers)


def _answer(
    row: CachedUrl, stream: IO[bytes], whole: range, asked: range | None, headers: dict[str, str]
) -> Response:
    status = HTTPStatus.OK if asked is None else HTTPStatus.PARTIAL_CONTENT
    sent = pieces(stream, whole if asked is None else asked)
    return StreamingResponse(sent, status, headers | _of_part(row, whole, asked))


def _of_part(row: CachedUrl, whole: range, asked: range | None) -> dict[str, str]:
    """Return what holds for a part of a content, None = all of it."""
    headers = {"Accept-Ranges": "bytes", "Content-Type": _type(row)}
    if asked is None:
        return headers | {"Content-Length": str(len(whole)), "Content-Digest": _digest(row)}
    where = f"bytes {asked.start}-{asked.stop - 1}/{len(whole)}"
    return headers | {"Content-Length": str(len(asked)), "Content-Range": where}


def _found(lcc: Lcc, token: Token, docid: str) -> CachedUrl:
    key = bytes.fromhex(docid)
    row = lcc.feed.rows([key]).get(key)
    if row is None or not token.admits(row):
        raise NotThere(f"there is no document {docid}: it was removed, which the feed tells, or never there")
    return row


def _opened(lcc: Lcc, token: Token, docid: str) -> tuple[CachedUrl, IO[bytes]]:
    for _ in range(_TRIES):
        row = _found(lcc, token, docid)
        try:
            return row, lcc.open(row)
        except ContentGone as error:
            gone = error  # replaced since its row was read: there is another row now
    raise gone


def _headers(row: CachedUrl) -> dict[str, str]:
    """Return what holds for every answer about a content; nothing in it is a site's or provider's word."""
    return {
        "ETag": f'"{row.sha256}"',
        "Repr-Digest": _digest(row),
        "Content-Disposition": f'attachment; filename="{name_of(row).rpartition("/")[2]}"',
    }


def _digest(row: CachedUrl) -> str:
    return f"sha-256=:{base64.b64encode(bytes.fromhex(row.sha256)).decode()}:"


def _type(row: CachedUrl) -> str:
    """Return the type that the site gave, if it is one; it is told and not meant to be acted upon."""
    return row.served_type if is_pattern(row.served_type) and "*" not in row.served_type else BINARY
