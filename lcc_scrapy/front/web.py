"""The HTTP API of a front: what changed in all sub-LCCs, and contents, as ``lcc web`` has them of one LCC."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from lcc_scrapy import __version__
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.front_cursor import FRONT_CURSOR_MAX, PARTS_MAX, FrontPosition
from lcc_scrapy.domain.http_serving import Bounds
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.domain.tokens import Tokens
from lcc_scrapy.feed.content import ContentElsewhere
from lcc_scrapy.feed.names import name_of
from lcc_scrapy.feed.row_formats import Record
from lcc_scrapy.front.feed import FrontFeed, FrontReader
from lcc_scrapy.front.silent import Silent
from lcc_scrapy.front.sub_http import SubFailed
from lcc_scrapy.web import contents, problems
from lcc_scrapy.web.access import Reading
from lcc_scrapy.web.app import BODY_BYTES, THREADS
from lcc_scrapy.web.contents import Asked
from lcc_scrapy.web.guards import CompressText, Guards
from lcc_scrapy.web.own_address import take_either_spelling
from lcc_scrapy.web.parameters import DocId, Selected
from lcc_scrapy.web.problems import NotThere, told
from lcc_scrapy.web.rows import Row, as_json
from lcc_scrapy.web.sharing import ShareOut, streaming

ROWS = 1000
_PID_MAX = 10**18 - 1

router = APIRouter(prefix="/v1", tags=["feed"])


@dataclass(frozen=True, slots=True)
class Front:
    """What the API stands on. All calls block; they come from several threads at a time."""

    feed: FrontFeed
    tokens: Tokens
    bounds: Bounds
    now: Callable[[], float] = time.time
    silent: Silent = field(default_factory=Silent)


def _front_of(request: Request) -> Front:
    found: Front = request.app.state.lcc
    return found


Provider = Annotated[int, Path(ge=1, le=_PID_MAX)]
TheFront = Annotated[Front, Depends(_front_of)]


class FrontPage(BaseModel):
    """Changes of all sub-LCCs. `more`: there may be more now, ask again with `since=` the cursor.

    `failed`: names of sub-LCCs that did not answer; their changes come later. `start_over`: names of those
    that cannot go on from the cursor; give them as `anew`.
    """

    changes: list[Row]
    cursor: str
    more: bool
    failed: list[str]
    start_over: list[str]


@router.get("/changes", response_model=FrontPage, responses=told(410))
async def changes(
    *,
    front: TheFront,
    selection: Selected,
    since: Annotated[
        str | None,
        Query(max_length=FRONT_CURSOR_MAX, description="A cursor of the front: only what changed after it."),
    ] = None,
    limit: Annotated[int, Query(ge=0, le=ROWS, description="Changes at most; 0: only the cursor.")] = ROWS,
    anew: Annotated[
        list[str], Query(max_length=PARTS_MAX, description="Sub-LCCs to be read from their starts.")
    ] = [],  # noqa: B006 - FastAPI makes a new list of it every time
) -> Response:
    """What changed after a cursor, of each sub-LCC its oldest change first.

    Answers 410 when the cursor is of another front.
    """
    position = None if since is None else FrontPosition.parse(since)
    return await to_thread.run_sync(_read, front, selection, position, limit, anew)


def _read(
    front: Front, selection: Selection, since: FrontPosition | None, limit: int, anew: list[str]
) -> Response:
    try:
        reader = FrontReader(front.feed, selection, since, limit, anew=anew)
    except ConfigurationError as error:
        raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None
    found: list[Record] = []
    for page in reader.pages() if limit else ():
        found += ({**one, "path": _path(one)} for one in reader.records(page))
    front.silent.note(reader.failed)
    return as_json(
        {
            "changes": found,
            "cursor": str(reader.position),
            "more": 0 < limit == len(found),
            "failed": sorted(reader.failed),
            "start_over": sorted(reader.start_over),
        }
    )


def _path(one: Record) -> str | None:
    return f"/v1/providers/{one['pid']}/documents/{one['docid']}/content" if one["path"] else None


@router.get(
    "/providers/{pid}/documents/{docid}/content",
    response_class=StreamingResponse,
    responses=contents.ANSWERS,
    dependencies=[Depends(streaming)],
)
def content(
    *, request: Request, front: TheFront, token: Reading, pid: Provider, docid: DocId, asked: Asked
) -> Response:
    """The content of a document, or a part of it (one range of bytes), from its provider's sub-LCC."""
    try:
        row = front.feed.document(pid, docid)
    except SubFailed as error:
        raise ContentElsewhere(str(error)) from None
    if row is None or not token.admits(row):
        raise NotThere(f"provider {pid} has no document {docid}: it was removed, or never there")
    return contents.answer(request, asked, row, front.feed.open(row), name_of(row).rpartition("/")[2])


def make_app(front: Front) -> FastAPI:
    """Return the application."""
    app = FastAPI(
        title="Front of Local Content Caches",
        version=__version__,
        description="What changed in all sub-LCCs, and the content of it. Each request needs a token.",
        docs_url=None,
        redoc_url=None,
        lifespan=_living,
        max_body_size=BODY_BYTES,
    )
    app.state.lcc = front
    app.include_router(router)
    problems.install(app, [router])
    app.add_middleware(CompressText)
    app.add_middleware(ShareOut, bounds=front.bounds)
    app.add_middleware(Guards, bounds=front.bounds)
    take_either_spelling(app)
    return app


@asynccontextmanager
async def _living(_app: FastAPI) -> AsyncIterator[None]:
    to_thread.current_default_thread_limiter().total_tokens = THREADS
    yield
