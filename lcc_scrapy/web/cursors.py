"""``/v1/cursors``: named cursors, of which the operator sees how far each of them is behind."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Body, Response
from pydantic import BaseModel

from lcc_scrapy.domain.cursor import CURSOR_MAX, Position
from lcc_scrapy.domain.named_cursors import NamedCursor
from lcc_scrapy.web.access import Reading, TheLcc
from lcc_scrapy.web.parameters import Name
from lcc_scrapy.web.problems import NotThere, told
from lcc_scrapy.web.rows import as_json

router = APIRouter(prefix="/v1/cursors", tags=["cursors"])


class Kept(BaseModel):
    """A named cursor: everything up to change `seq` was taken, as was noted `at` (epoch seconds)."""

    name: str
    cursor: str
    seq: int
    at: int


class Cursors(BaseModel):
    """The cursors that belong to the label of a token."""

    cursors: list[Kept]


def _told(one: NamedCursor) -> dict[str, str | int]:
    return {"name": one.name, "cursor": one.cursor, "seq": one.seq, "at": one.at}


@router.get("", response_model=Cursors, responses=told())
def all_cursors(lcc: TheLcc, token: Reading) -> Response:
    """All named cursors of this token's label."""
    return as_json({"cursors": [_told(one) for one in lcc.cursors.of(token.label)]})


@router.get("/{name}", response_model=Kept, responses=told(404))
def cursor(lcc: TheLcc, token: Reading, name: Name) -> Response:
    """Where this cursor is."""
    found = lcc.cursors.find(token.label, name)
    if found is None:
        raise NotThere(f"there is no cursor {name}")
    return as_json(_told(found))


@router.put("/{name}", response_model=Kept, responses=told(404, 409, 410, 413))
def move(
    lcc: TheLcc,
    token: Reading,
    name: Name,
    cursor: Annotated[str, Body(embed=True, max_length=CURSOR_MAX)],
) -> Response:
    """Note that everything up to a cursor was taken."""
    position = Position.parse(cursor)
    position.check(replace(lcc.newest.head(), selection=position.selection))
    moved = NamedCursor(token.label, name, str(position), position.seq, int(lcc.now()))
    lcc.cursors.keep(moved)
    return as_json(_told(moved))


@router.delete("/{name}", status_code=204, responses=told(404))
def drop(lcc: TheLcc, token: Reading, name: Name) -> Response:
    """Forget a cursor."""
    if not lcc.cursors.drop(token.label, name):
        raise NotThere(f"there is no cursor {name}")
    return Response(status_code=204)
