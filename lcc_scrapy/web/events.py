"""``/v1/events``: changes as they happen, as server-sent events (HTML Living Standard, section 9.2)."""

import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import StreamingResponse

from lcc_scrapy.domain.cursor import CURSOR_MAX, Position
from lcc_scrapy.domain.directives import Owners
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.selection import Change
from lcc_scrapy.domain.tokens import READ, check
from lcc_scrapy.feed.reader import Reader
from lcc_scrapy.web.access import Reading, Shown, TheLcc
from lcc_scrapy.web.parameters import Selected, Since
from lcc_scrapy.web.problems import problem_of, told
from lcc_scrapy.web.rows import json_row
from lcc_scrapy.web.sharing import streaming
from lcc_scrapy.web.watching import Watcher

MEDIA_TYPE = "text/event-stream"

HEARTBEAT = 15.0
"""Seconds without a change after which a line is sent that says nothing: proxies cut silent connections."""

AGAIN = 2000
"""Milliseconds after which a client connects again."""

LONGEST = 3600
ROWS = 100
"""Changes that are read at a time: what a client that reads slowly keeps in memory."""

router = APIRouter(prefix="/v1", tags=["feed"])


class EventStream(StreamingResponse):
    """An answer that goes on."""

    media_type = MEDIA_TYPE


_EVENT = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "event": {"enum": ["message", "problem"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
_EVENTS = {
    "description": "One event for each change: `data` is its row, `id` the cursor behind it. An event"
    " `problem` ends the stream; its `data` are problem details.",
    "content": {MEDIA_TYPE: {"schema": {}, "itemSchema": _EVENT}},
}


@router.get(
    "/events",
    response_class=StreamingResponse,  # with a type of its own FastAPI would call all of it a string
    responses={200: _EVENTS, **told(410)},
    dependencies=[Depends(streaming)],
)
async def events(
    *,
    request: Request,
    lcc: TheLcc,
    token: Reading,
    shown: Shown,
    selection: Selected,
    since: Since,
    last_event_id: Annotated[
        str | None,
        Header(
            max_length=CURSOR_MAX, description="A cursor, as `since`, and before it: that of the last event."
        ),
    ] = None,
    wait: Annotated[
        int,
        Query(
            ge=0, le=LONGEST, description="Seconds that the stream goes on; 0: it ends with what there is."
        ),
    ] = LONGEST,
) -> EventStream:
    """Changes after a cursor as they happen, oldest first, as server-sent events.

    A client that is cut connects again with the id of the last event in `Last-Event-ID`, as browsers do.
    """
    since = Position.parse(last_event_id) if last_event_id else since
    read = partial(Reader, lcc.feed, selection, rows=ROWS)
    first = await to_thread.run_sync(read, since)
    still_good = partial(check, lcc.tokens, shown, READ)
    watcher: Watcher = request.app.state.watcher
    del token
    return EventStream(
        _Stream(first, read, watcher, lambda: still_good(int(lcc.now())), time.monotonic() + wait).written(),
        headers={"X-Accel-Buffering": "no"},
    )


@dataclass
class _Stream:
    reader: Reader
    read: Callable[[Position], Reader]
    watcher: Watcher
    check: Callable[[], object]
    """Raises when the token is good no more."""
    end: float
    told: Position | None = field(default=None, init=False)
    """The last position that the client knows."""

    async def written(self) -> AsyncIterator[bytes]:
        """Yield pieces, each of whole events; what keeps it from going on is the last event."""
        yield b"retry: %d\n" % AGAIN
        try:
            yield self._position()  # who begins keeps it before the first change
            async for piece in self._pieces():
                yield piece
        except LccError as error:
            yield b"event: problem\ndata: %s\n\n" % bytes(problem_of(error).body)

    async def _pieces(self) -> AsyncIterator[bytes]:
        while True:
            looks = self.reader.looks()
            while (look := await to_thread.run_sync(self._next, looks)) is not None:
                page, owners = look
                yield b"".join(self._event(change, owners) for change in page)
            yield self._position()
            if not await self._grown():
                yield b": no change\n\n"
            if self.watcher.closed or time.monotonic() >= self.end:
                return
            await to_thread.run_sync(self.check)
            self.reader = await to_thread.run_sync(self.read, self.reader.position)

    async def _grown(self) -> bool:
        left = min(HEARTBEAT, self.end - time.monotonic())
        return left > 0 and await self.watcher.wait(self.reader.position, left)

    def _next(self, looks: Iterator[list[Change]]) -> tuple[list[Change], Owners] | None:
        page = next(looks, None)
        return None if page is None else (page, self.reader.owners(page))

    def _event(self, change: Change, owners: Owners) -> bytes:
        self.told = self.reader.at(change.seq)
        row = json.dumps(json_row(change, owners), ensure_ascii=False).encode("utf-8", "backslashreplace")
        return b"id: %s\ndata: %s\n\n" % (str(self.told).encode(), row)

    def _position(self) -> bytes:
        """Return an event that browsers tell nobody: it only moves the id, over what was not selected."""
        if self.reader.position == self.told:
            return b""
        self.told = self.reader.position
        return b"id: %s\n\n" % str(self.told).encode()
