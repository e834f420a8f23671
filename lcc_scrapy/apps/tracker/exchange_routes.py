"""What other trackers fetch: ``GET /exchange/NAME``, the files of an export, and ``GET /trackers``."""

import os
from contextlib import suppress
from http import HTTPStatus
from stat import S_ISREG
from typing import IO, Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.responses import StreamingResponse

from lcc_scrapy.apps.tracker.exchange import is_file_name
from lcc_scrapy.apps.tracker.exporting import Exports
from lcc_scrapy.apps.tracker.store import rows_in
from lcc_scrapy.web import ranges
from lcc_scrapy.web.problems import NotThere, problem
from lcc_scrapy.web.sharing import streaming
from lcc_scrapy.web.streams import pieces

Conditions = Annotated[str | None, Header()]
HERE = "./"
"""This tracker, relative to the URL of the answer."""

_JSON = {"Content-Type": "application/json"}
_GZIP = {"Content-Type": "application/gzip", "Accept-Ranges": "bytes"}


def make_router(exports: Exports, url: str) -> APIRouter:
    """Return the routes; ``url`` is that of this tracker, empty = relative to the answer."""
    router = APIRouter()

    @router.api_route("/exchange/{name}", methods=["GET", "HEAD"], dependencies=[Depends(streaming)])
    def file(
        request: Request,
        name: str,
        wanted: Annotated[str | None, Header(alias="Range")] = None,
        if_range: Conditions = None,
        if_none_match: Conditions = None,
    ) -> Response:
        opened = _opened(exports, name)
        size, tag = _described(opened)
        headers = _GZIP | {"ETag": tag}
        if name.endswith(".json"):  # it may be sent compressed, and then has other bytes
            headers, wanted = _JSON | {"ETag": f"W/{tag}"}, None
        if if_none_match and ranges.is_named(if_none_match, tag, weakly=True):
            opened.close()
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
        if request.method == "HEAD":
            opened.close()
            return Response(headers=headers | {"Content-Length": str(size)})
        return _part(opened, size, headers, wanted if if_range in {None, tag} else None)

    @router.get("/trackers")
    def trackers() -> list[dict[str, Any]]:
        return [{"url": url or HERE, "domains": _own(exports)}, *_others(exports)]

    return router


def _opened(exports: Exports, name: str) -> IO[bytes]:
    """Open a file of an export; raises ``NotThere``, also for names of other files."""
    if is_file_name(name):
        with suppress(OSError):
            descriptor = os.open(exports.folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            if S_ISREG(os.fstat(descriptor).st_mode):
                return os.fdopen(descriptor, "rb")
            os.close(descriptor)
    raise NotThere("there is no such file: see /trackers")


def _described(opened: IO[bytes]) -> tuple[int, str]:
    """Return size and ETag of a file: one that replaces it has another number and time."""
    found = os.fstat(opened.fileno())
    return found.st_size, f'"{found.st_mtime_ns:x}-{found.st_ino:x}-{found.st_size:x}"'


def _part(opened: IO[bytes], size: int, headers: dict[str, str], wanted: str | None) -> Response:
    try:
        part = ranges.part(wanted, size) if wanted else None
    except ranges.Unsatisfiable:
        opened.close()
        bounds = {"Content-Range": f"bytes */{size}"}
        told = f"the file has {size} bytes"
        return problem(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, told, "no-such-range", bounds)
    if part is None:
        return StreamingResponse(pieces(opened, range(size)), headers=headers | {"Content-Length": str(size)})
    headers |= {
        "Content-Length": str(len(part)),
        "Content-Range": f"bytes {part.start}-{part.stop - 1}/{size}",
    }
    return StreamingResponse(pieces(opened, part), HTTPStatus.PARTIAL_CONTENT, headers)


def _own(exports: Exports) -> list[dict[str, Any]]:
    return [
        {"domain": one.domain, "generation": one.generation, "made": one.made} for one in exports.manifests()
    ]


def _others(exports: Exports) -> list[dict[str, Any]]:
    """Return the trackers that domains here come from, with what is here of each."""
    by_url: dict[str, list[dict[str, Any]]] = {}
    with exports.store.read() as tx:
        known = [one for one in rows_in(tx).tracked_domains() if one.peer]
    for one in known:
        facts = {"domain": one.domain, "generation": one.generation, "checked": one.checked}
        by_url.setdefault(one.peer, []).append(facts)
    return [{"url": url, "domains": domains} for url, domains in sorted(by_url.items())]
