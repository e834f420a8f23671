"""Rows as JSON: the columns of ``lcc select``; ``path`` is where this API has the content."""

import json
from typing import Any

from fastapi import Response
from pydantic import create_model

from lcc_scrapy.domain.directives import Owners
from lcc_scrapy.domain.selection import Change
from lcc_scrapy.feed.row_formats import TYPES, Record, record

_fields: Any = {name: (kind, ...) for name, kind in TYPES.items()}
_MEANING = """\
A document (`op` = `upsert`), a removal (`remove`), or that a document left the selection (`leave`).

What does not apply is null. Times are epoch seconds."""
Row = create_model("Row", __doc__=_MEANING, **_fields)


def json_row(change: Change, owners: Owners) -> Record:
    """Return the columns of a change."""
    return record(change, lambda *_: f"/v1/documents/{change.docid}/content", owners)


def as_json(value: Any, status: int = 200, **headers: str) -> Response:
    """Return an answer; a lone surrogate, which UTF-8 cannot hold, is written as JSON's own escape."""
    text = json.dumps(value, ensure_ascii=False)
    return Response(text.encode("utf-8", "backslashreplace"), status, headers, "application/json")
