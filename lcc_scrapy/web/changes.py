"""``/v1/changes`` and ``/v1/ids``: the feed, and what is there now."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.directives import Owners
from lcc_scrapy.domain.front_moves import Came
from lcc_scrapy.domain.named_cursors import NAME, NAME_MAX, NamedCursor
from lcc_scrapy.domain.selection import Change, Selection
from lcc_scrapy.domain.shares import Kind
from lcc_scrapy.domain.tokens import Token
from lcc_scrapy.feed.reader import PAGE, Feed, Inventory, Reader
from lcc_scrapy.web.access import Reading, TheLcc
from lcc_scrapy.web.parameters import Selected, Since
from lcc_scrapy.web.ports import Lcc
from lcc_scrapy.web.problems import as_bytes, told
from lcc_scrapy.web.rows import Row, as_json, json_row, whole_row
from lcc_scrapy.web.sharing import streaming, visit_of
from lcc_scrapy.web.streams import unless_broken
from lcc_scrapy.web.watching import Watcher

LONGEST_WAIT = 60
READING = 5.0
"""Seconds that one answer reads on where little of the feed is selected; then its cursor tells how far."""

NDJSON = "application/x-ndjson"

router = APIRouter(prefix="/v1", tags=["feed"])


class ChangesPage(BaseModel):
    """Changes by rising seq. `more`: there are more now, ask again with `since=` the cursor.

    `moved`, for those who ask for it: by the seqs of rows, [move, seq before] for each move between sub-LCCs.
    With `whole`, documents have an object `whole` too: the columns and the answer that rows leave out.
    """

    changes: list[Row]
    cursor: str
    more: bool
    moved: dict[int, list[tuple[int, int]]] | None = None


@dataclass(frozen=True, slots=True)
class Found:
    rows: list[Mapping[str, object]]
    position: Position
    more: bool


@router.get("/changes", response_model=ChangesPage, responses=told(409, 410))
async def changes(
    *,
    request: Request,
    lcc: TheLcc,
    token: Reading,
    selection: Selected,
    since: Since,
    limit: Annotated[
        int, Query(ge=0, le=PAGE, description="Changes at most; 0: only the cursor to begin with.")
    ] = PAGE,
    wait: Annotated[
        int, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for a change when there is none.")
    ] = 0,
    name: Annotated[
        str | None,
        Query(
            pattern=f"^{NAME}$",
            max_length=NAME_MAX,
            description="A cursor that the LCC keeps: where to begin without `since`. It is made when it is"
            " not there, and moved by PUT /v1/cursors/{name} only.",
        ),
    ] = None,
    moves: Annotated[
        bool, Query(description="Tell which rows came from another sub-LCC: `moved`, for a front.")
    ] = False,
    whole: Annotated[
        bool,
        Query(description="Tell of documents all that is kept, and the answer of their site, for a front."),
    ] = False,
) -> Response:
    """What changed after a cursor, oldest change first, each document once with its newest state.

    Answers 410 when the cursor cannot be followed: read without one, or reconcile with `/v1/ids`.
    """
    since = await to_thread.run_sync(_beginning, lcc, token, selection, since, name)
    end = time.monotonic() + wait
    watcher: Watcher = request.app.state.watcher
    found = await to_thread.run_sync(_read, lcc.feed, selection, since, limit, whole)
    while limit and not found.rows and (left := end - time.monotonic()) > 0:
        visit_of(request).begin(Kind.STREAM)
        if not found.more and not await watcher.wait(found.position, left):
            break
        found = await to_thread.run_sync(_read, lcc.feed, selection, found.position, limit, whole)
    moved = {"moved": await to_thread.run_sync(_moved, lcc.feed, found)} if moves else {}
    return as_json({"changes": found.rows, "cursor": str(found.position), "more": found.more, **moved})


def _moved(feed: Feed, found: Found) -> Mapping[int, Came]:
    return feed.moved([seq for row in found.rows if type(seq := row["seq"]) is int])


def _beginning(
    lcc: Lcc, token: Token, selection: Selection, since: Position | None, name: str | None
) -> Position | None:
    """Return where to begin. Without a cursor, the beginning is stored before the first row is sent."""
    if since is not None or name is None:
        return since
    known = lcc.cursors.find(token.label, name)
    if known is not None:
        return Position.parse(known.cursor)
    begun = Reader(lcc.feed, selection).position
    lcc.cursors.keep(NamedCursor(token.label, name, str(begun), begun.seq, int(lcc.now())))
    return begun


def _read(feed: Feed, selection: Selection, since: Position | None, limit: int, whole: bool) -> Found:
    told = partial(_told_whole, feed) if whole else _told
    return read_on(Reader(feed, selection, since, limit), limit, told)


def _told(page: Sequence[Change], owners: Owners) -> Iterator[Mapping[str, object]]:
    return (json_row(change, owners) for change in page)


def _told_whole(feed: Feed, page: Sequence[Change], owners: Owners) -> Iterator[Mapping[str, object]]:
    answers = feed.answers([change for change in page if isinstance(change, CachedUrl)])
    for change, row in zip(page, _told(page, owners), strict=True):
        more = (
            {"whole": whole_row(change, answers.get(change.urlkey))} if isinstance(change, CachedUrl) else {}
        )
        yield {**row, **more}


def read_on(
    reader: Reader, limit: int, told: Callable[[Sequence[Change], Owners], Iterable[Mapping[str, object]]]
) -> Found:
    """Read until there is enough, or it takes too long; ``limit`` = 0: only where it would begin."""
    found: list[Mapping[str, object]] = []
    end = time.monotonic() + READING
    for page in reader.looks() if limit else ():
        found += told(page, reader.owners(page))
        if time.monotonic() > end:
            break
    return Found(found, reader.reached, more=reader.reached.seq < reader.end.seq)


@router.get(
    "/ids",
    dependencies=[Depends(streaming)],
    response_class=StreamingResponse,
    responses={
        200: {"description": "One object a line; the last one has the cursor.", "content": as_bytes(NDJSON)},
        **told(),
    },
)
def ids(lcc: TheLcc, selection: Selected) -> StreamingResponse:
    """Docid and seq of what is there now, by rising docid: to reconcile with after a 410.

    The last line has `op` = `end` and the cursor to go on from. Without it the list is not complete.
    """
    lines = _listed(Inventory(lcc.feed, selection))
    return StreamingResponse(unless_broken(lines), media_type=NDJSON)


def _listed(inventory: Inventory) -> Iterator[bytes]:
    count = 0
    for page in inventory.looks():  # empty ones, too: between them the client is looked after
        count += len(page)
        yield b"".join(b'{"docid": "%s", "seq": %d}\n' % (row.docid.encode(), row.seq) for row in page)
    last = {"op": "end", "cursor": str(inventory.position), "documents": count}
    yield json.dumps(last).encode() + b"\n"
