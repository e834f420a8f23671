"""The content files of one machine, for `lcc web` on another: as they are stored, to holders of a token.

``GET /v1/files/{machine}/{file}`` gives the bytes of a file. A file never changes, and a number is never used
again, so there is nothing to ask about it but whether it is there.
"""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path as Folder
from typing import IO, Annotated

from anyio import to_thread
from fastapi import APIRouter, Depends, FastAPI, Path, Response
from fastapi.responses import StreamingResponse

from lcc_scrapy import __version__
from lcc_scrapy.content.files import relative_path
from lcc_scrapy.users.tokens import FILES, Token, Tokens, check
from lcc_scrapy.users.web import problems
from lcc_scrapy.users.web.access import Shown
from lcc_scrapy.users.web.app import THREADS
from lcc_scrapy.users.web.guards import Guards
from lcc_scrapy.users.web.problems import NotThere
from lcc_scrapy.users.web.streams import pieces

Number = Annotated[int, Path(ge=1, le=2**63 - 1)]


def make_app(folder: Folder, tokens: Tokens, *, silence: float, now: Callable[[], float]) -> FastAPI:
    """Return the application for a content folder; ``silence`` in seconds, as ``ports.Bounds`` has it."""

    def holder(shown: Shown) -> Token:
        return check(tokens, shown, FILES, int(now()))

    router = APIRouter(prefix="/v1/files", dependencies=[Depends(holder)])

    @router.get("/{machine}/{file}")
    def content_file(machine: Number, file: Number) -> Response:
        stream, size = _opened(folder, machine, file)
        headers = {"Content-Length": str(size), "Content-Disposition": f'attachment; filename="{file}"'}
        return StreamingResponse(
            pieces(stream, range(size)), headers=headers, media_type="application/octet-stream"
        )

    app = FastAPI(
        title="LCC content files", version=__version__, openapi_url=None, max_body_size=0, lifespan=_living
    )
    app.include_router(router)
    problems.install(app)
    app.add_middleware(Guards, silence=silence)
    return app


@asynccontextmanager
async def _living(_app: FastAPI) -> AsyncIterator[None]:
    to_thread.current_default_thread_limiter().total_tokens = THREADS
    yield


def _opened(folder: Folder, machine: int, file: int) -> tuple[IO[bytes], int]:
    try:
        stream = (folder / relative_path(machine, file)).open("rb")
    except FileNotFoundError:
        raise NotThere(f"there is no file {file} of machine {machine}") from None
    return stream, os.fstat(stream.fileno()).st_size
