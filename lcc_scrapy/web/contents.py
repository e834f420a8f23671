"""Answers with a content: conditions, one range of bytes, and headers that no browser acts upon."""

import base64
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO, Annotated, Any

from fastapi import Depends, Header, Request, Response
from fastapi.responses import StreamingResponse

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.selection import is_pattern
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.web import ranges
from lcc_scrapy.web.ports import Lcc
from lcc_scrapy.web.problems import BINARY, as_bytes, problem, told
from lcc_scrapy.web.streams import pieces

Conditions = Annotated[str | None, Header()]

_CONTENT = {
    "description": "The content as its site served it, decoded, as an attachment. `ETag` is its SHA-256.",
    "content": as_bytes("*/*"),
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: _CONTENT,
    206: {**_CONTENT, "description": "A part of the content."},
    304: {"description": "Not modified"},
    **told(404, 410, 412, 416, 500),
}
"""Of GET; ``HEAD`` of the other method."""

REDIRECTED: dict[int | str, dict[str, Any]] = {
    302: {
        "description": "The content is at `Location`, in object storage, for a short time. Do not send the"
        " token there. Only if `LCC_CONTENT_REDIRECT` is set."
    },
    **ANSWERS,
}
"""Of GET, where contents may lie in object storage."""

HEAD: dict[int | str, dict[str, Any]] = {
    200: {"description": "All but the content itself."},
    **{
        status: {"description": told["description"]}
        for status, told in ANSWERS.items()
        if status not in {200, 206}
    },
}


_CONDITIONS = {"if-match", "if-range", "if-modified-since", "if-unmodified-since"}


@dataclass(frozen=True, slots=True)
class _Asked:
    """What of a content is asked for, and on which conditions, as headers tell."""

    wanted: str | None
    if_range: str | None
    if_match: str | None
    if_none_match: str | None


def _asked(
    wanted: Annotated[str | None, Header(alias="Range")] = None,
    if_range: Conditions = None,
    if_match: Conditions = None,
    if_none_match: Conditions = None,
) -> _Asked:
    return _Asked(wanted, if_range, if_match, if_none_match)


Asked = Annotated[_Asked, Depends(_asked)]


def answer(
    request: Request, asked: _Asked, row: CachedUrl | Version, stream: IO[bytes], filename: str
) -> Response:
    """Answer with what is asked of a content that is open; the stream is closed with the answer."""
    headers, tag = _headers(row, filename), f'"{row.sha256}"'
    if asked.if_match and not ranges.is_named(asked.if_match, tag, weakly=False):
        stream.close()
        return problem(HTTPStatus.PRECONDITION_FAILED, "the document has another content now", "changed")
    if asked.if_none_match and not asked.if_match and ranges.is_named(asked.if_none_match, tag, weakly=True):
        stream.close()
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    whole = range(row.fetched_len)
    if request.method == "HEAD":
        stream.close()
        return Response(headers=headers | _of_part(row, whole, None))
    try:
        ranged = asked.wanted if asked.if_range in {None, tag} else None
        part = ranges.part(ranged, len(whole)) if ranged else None
    except ranges.Unsatisfiable:
        stream.close()
        bounds = {"Content-Range": f"bytes */{len(whole)}"}
        detail = f"the content has {len(whole)} bytes"
        return problem(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, detail, "no-such-range", bounds)
    status = HTTPStatus.OK if part is None else HTTPStatus.PARTIAL_CONTENT
    sent = pieces(stream, whole if part is None else part)
    return StreamingResponse(sent, status, headers | _of_part(row, whole, part))


def redirect(request: Request, lcc: Lcc, asked: _Asked, row: CachedUrl | Version) -> Response | None:
    """Answer that a content is in object storage, for a short time; None = it is to be opened.

    A client repeats its headers there. So whoever sends conditions stays here, and who asks for a range that
    we ignore; a tag that is not ours may be one that the storage gave.
    """
    if request.method == "HEAD" or not _CONDITIONS.isdisjoint(request.headers.keys()):
        return None
    if not _means_the_same_there(asked, row):
        return None
    address = lcc.address(row)
    if address is None:
        return None
    # The URL is as good as a token, as long as it lasts.
    return Response(status_code=HTTPStatus.FOUND, headers={"Location": address, "Cache-Control": "no-store"})


def _means_the_same_there(asked: _Asked, row: CachedUrl | Version) -> bool:
    """Tell whether object storage answers as we do to what is asked for."""
    if asked.if_none_match and ranges.is_named(asked.if_none_match, f'"{row.sha256}"', weakly=True):
        return False
    try:
        return not asked.wanted or ranges.part(asked.wanted, row.fetched_len) is not None
    except ranges.Unsatisfiable:
        return False


def _of_part(row: CachedUrl | Version, whole: range, part: range | None) -> dict[str, str]:
    """Return what holds for a part of a content, None = all of it."""
    headers = {"Accept-Ranges": "bytes", "Content-Type": _type(row)}
    if part is None:
        return headers | {"Content-Length": str(len(whole)), "Content-Digest": _digest(row)}
    where = f"bytes {part.start}-{part.stop - 1}/{len(whole)}"
    return headers | {"Content-Length": str(len(part)), "Content-Range": where}


def _headers(row: CachedUrl | Version, filename: str) -> dict[str, str]:
    """Return what holds for every answer about a content; nothing in it is a site's or provider's word."""
    return {
        "ETag": f'"{row.sha256}"',
        "Repr-Digest": _digest(row),
        "Content-Disposition": f'attachment; filename="{filename}"',
    }


def _digest(row: CachedUrl | Version) -> str:
    return f"sha-256=:{base64.b64encode(bytes.fromhex(row.sha256)).decode()}:"


def _type(row: CachedUrl | Version) -> str:
    """Return the type that the site gave, if it is one; it is told and not meant to be acted upon."""
    return row.served_type if is_pattern(row.served_type) and "*" not in row.served_type else BINARY
