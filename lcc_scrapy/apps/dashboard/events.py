"""``/dashboard/changes/events``: changes as they happen, as server-sent events for the page of changes."""

from collections.abc import Sequence
from http import HTTPStatus

from anyio import to_thread
from fastapi import Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from lcc_scrapy.apps.dashboard.access import Access, NotPrivate, NotSignedIn, session_digest
from lcc_scrapy.apps.dashboard.live import Live, Viewer
from lcc_scrapy.db.records import FEED
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.shares import Kind
from lcc_scrapy.web.access import lcc_of
from lcc_scrapy.web.events import MEDIA_TYPE
from lcc_scrapy.web.sharing import visit_of

_DIGITS_MAX = 18


class Events:
    """Tells viewers of changes, all of them from one reader of the feed."""

    def __init__(self, store: Store, access: Access) -> None:
        self._store = store
        self._access = access
        self._live: Live | None = None

    async def answer(self, request: Request) -> Response:
        """Begin a stream; the script takes any other answer for the end."""
        try:
            now = int(lcc_of(request).now())
            whose = await to_thread.run_sync(self._access.visitor, request, now)
            visit_of(request).begin(Kind.STREAM)
            live = self._live_of(request)
            live.check_room()
        except (NotSignedIn, NotPrivate) as error:
            return PlainTextResponse(str(error), HTTPStatus.FORBIDDEN)
        except LccError as error:
            return PlainTextResponse(str(error), HTTPStatus.SERVICE_UNAVAILABLE)
        viewer = Viewer(whose.user, session_digest(request, whose))
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(live.told(viewer, _after(request)), media_type=MEDIA_TYPE, headers=headers)

    def _live_of(self, request: Request) -> Live:
        """Return the reader for all viewers, which belongs to the loop that runs."""
        if self._live is None:
            lcc = lcc_of(request)

            def check(viewers: Sequence[Viewer]) -> list[bool]:
                seen = [(one.user, one.digest) for one in viewers]
                return self._access.still_good(seen, int(lcc.now()))

            self._live = Live(self._look, check, lcc.bounds.poll, lcc.bounds.waiters)
            request.app.state.watchers.append(self._live)
        return self._live

    def _look(self, after: int, limit: int) -> tuple[Sequence[CachedUrl | Tombstone], int]:
        with self._store.read() as tx:
            head = tx.peek(FEED)
            return (tx.changes(after, limit, upto=head) if head > after else []), head


def _after(request: Request) -> int:
    """Return the last change that a viewer knows; 0 = it does not say."""
    given = request.headers.get("last-event-id") or request.query_params.get("after", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) <= _DIGITS_MAX else 0
