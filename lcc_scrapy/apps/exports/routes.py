"""``/v1/export``: changed documents with their contents, in one file that is written as it is read."""

from collections.abc import Iterator
from functools import partial
from typing import IO, Annotated

from anyio import from_thread
from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator

from lcc_scrapy.apps.exports.formats import FORMATS
from lcc_scrapy.apps.exports.writing import Writing
from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.selection import Change
from lcc_scrapy.feed.reader import Reader
from lcc_scrapy.web.access import TheLcc
from lcc_scrapy.web.parameters import Selected, Since
from lcc_scrapy.web.parts import ApiRoutes
from lcc_scrapy.web.ports import Lcc
from lcc_scrapy.web.problems import BINARY, as_bytes, told
from lcc_scrapy.web.streams import Threads, Written

_router = APIRouter(prefix="/v1", tags=["feed"])

_LIMIT_MAX = 10**9


def _known(name: str) -> str:
    if name not in FORMATS:
        raise ValueError(f"expected one of {', '.join(FORMATS)}")
    return name


@_router.get(
    "/export",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "The file. Its manifest ends with a line that has `op` = `end` and the cursor.",
            "content": as_bytes(),
        },
        **told(410),
    },
)
def export(
    *,
    threads: Threads,
    lcc: TheLcc,
    selection: Selected,
    since: Since,
    form: Annotated[
        str, AfterValidator(_known), Query(alias="format", json_schema_extra={"enum": list(FORMATS)})
    ],
    limit: Annotated[int, Query(ge=0, le=_LIMIT_MAX, description="Changes at most; 0 = all.")] = 0,
) -> Response:
    """What changed after a cursor, with contents, as `lcc export` writes it.

    An answer that breaks off, or has no end line in its manifest, is not complete: ask again.
    """
    reader = _ForSomebody(lcc.feed, selection, since, limit)
    return Written(
        partial(_write, lcc, reader, form),
        threads,
        media_type=BINARY,
        headers={"Content-Disposition": f'attachment; filename="lcc-export.{form}"'},
    )


class _ForSomebody(Reader):
    """Reads, in a thread, as long as the request is there that it reads for."""

    def looks(self) -> Iterator[list[Change]]:
        """Yield what each look gives."""
        for page in super().looks():
            from_thread.check_cancelled()
            yield page


def _write(lcc: Lcc, reader: Reader, form: str, out: IO[bytes]) -> None:
    Writing(out, FORMATS[form], lcc.feed, lcc.open).run(reader, lambda _seq: None)


def _api_routes(config: Config, store: Store) -> Iterator[APIRouter]:
    del config, store
    yield _router


ROUTES: ApiRoutes = _api_routes
