"""Rows as JSON: the columns of ``lcc select``; ``path`` is where this API has the content."""

import json
from typing import Any

from fastapi import Response
from pydantic import BaseModel

from lcc_scrapy.domain.selection import Change
from lcc_scrapy.feed.row_formats import Record, record


class Row(BaseModel):
    """A document (`op` = `upsert`), a removal (`remove`), or that a document left the selection (`leave`).

    What does not apply is null. Times are epoch seconds.
    """

    op: str
    docid: str
    seq: int
    pid: int
    curl: str
    furl: str
    burl: str | None
    mimetype: str
    subtype: str | None
    fetched_time: int | None
    fetched_machineid: int | None
    fetched_fileid: int | None
    path: str | None
    len: int | None
    md5: str | None
    sha256: str | None
    mtime: int | None
    served_type: str | None
    served_charset: str | None
    removed_time: int | None
    reason: str | None
    file_encoding: str | None


def json_row(change: Change) -> Record:
    """Return the columns of a change."""
    return record(change, lambda *_: f"/v1/documents/{change.docid}/content")


def as_json(value: Any, status: int = 200, **headers: str) -> Response:
    """Return an answer; a lone surrogate, which UTF-8 cannot hold, is written as JSON's own escape."""
    text = json.dumps(value, ensure_ascii=False)
    return Response(text.encode("utf-8", "backslashreplace"), status, headers, "application/json")
