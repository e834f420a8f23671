"""``/v1/confirmations``: which documents were found unchanged at their sites."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, create_model

from lcc_scrapy.feed.confirmations import TYPES, Confirmations, records
from lcc_scrapy.feed.reader import PAGE
from lcc_scrapy.web.access import TheLcc
from lcc_scrapy.web.changes import read_on
from lcc_scrapy.web.parameters import Selected, Since
from lcc_scrapy.web.problems import told
from lcc_scrapy.web.rows import as_json

router = APIRouter(prefix="/v1", tags=["feed"])

_types: Any = {name: (kind, ...) for name, kind in TYPES.items()}
Confirmation = create_model(
    "Confirmation",
    __doc__="A document whose site was asked and that was unchanged; `seq` is its place among these.",
    **_types,
)


class ConfirmationsPage(BaseModel):
    """Confirmations in the order of commits. `more`: there are more now, ask again with the cursor."""

    confirmations: list[Confirmation]  # type: ignore[valid-type] # made of the columns
    cursor: str
    more: bool


@router.get("/confirmations", response_model=ConfirmationsPage, responses=told(410))
def confirmations(
    *,
    lcc: TheLcc,
    selection: Selected,
    since: Since,
    limit: Annotated[
        int, Query(ge=0, le=PAGE, description="Confirmations at most; 0: only the cursor to begin with.")
    ] = PAGE,
) -> Response:
    """What was confirmed after a cursor of this path, each document once, at its newest place."""
    found = read_on(Confirmations(lcc.feed, selection, since, limit), limit, records)
    return as_json({"confirmations": found.rows, "cursor": str(found.position), "more": found.more})
