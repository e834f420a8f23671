"""Rows as JSON: the columns of ``lcc select``; ``path`` is where this API has the content."""

import json
from typing import Any

from fastapi import Response
from pydantic import create_model

from lcc_scrapy.domain.cache import CachedUrl, UrlMeta
from lcc_scrapy.domain.directives import Owners
from lcc_scrapy.domain.selection import Change
from lcc_scrapy.feed.row_formats import TYPES, Record, record

WHOLE = ("len", "md5", "final_url", "etag", "last_modified", "confirmed_time", "origin")
ANSWER = ("status_line", "headers", "peer", "answered")

_fields: Any = {name: (kind, ...) for name, kind in TYPES.items()}
_MEANING = """\
A document (`op` = `upsert`), a removal (`remove`), or that a document left the selection (`leave`).

What does not apply is null. Times are epoch seconds."""
Row = create_model("Row", __doc__=_MEANING, **_fields)


def json_row(change: Change, owners: Owners) -> Record:
    """Return the columns of a change."""
    return record(change, lambda *_: f"/v1/documents/{change.docid}/content", owners)


def whole_row(row: CachedUrl, answer: UrlMeta | None) -> dict[str, object]:
    """Return what is kept of a document and not told in its row; ``answer`` is None where it is not known.

    ``len`` and ``md5`` are as declared. ``front/rows.py`` reads it.
    """
    kept: dict[str, object] = {name: getattr(row, name) for name in WHOLE}
    told = answer and {name: getattr(answer, name) for name in ANSWER}
    return {**kept, "answer": told}


def as_json(value: Any, status: int = 200, **headers: str) -> Response:
    """Return an answer; a lone surrogate, which UTF-8 cannot hold, is written as JSON's own escape."""
    text = json.dumps(value, ensure_ascii=False)
    return Response(text.encode("utf-8", "backslashreplace"), status, headers, "application/json")
