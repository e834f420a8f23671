"""``/v1/acis``: what was found for the owner of a token, as JSON and as an Atom feed."""

import time
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.security import HTTPAuthorizationCredentials
from pydantic import BaseModel

from lcc_scrapy.annotation import atom
from lcc_scrapy.annotation.aci_formats import record_of
from lcc_scrapy.annotation.feed_keys import KEY_MAX, FeedKeys
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.acis import Aci
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.shares import Kind
from lcc_scrapy.domain.tokens import ANNOTATE, Refused, Token, check
from lcc_scrapy.web.access import Owner, TheLcc, bearer
from lcc_scrapy.web.own_address import needed_address, own_address
from lcc_scrapy.web.parameters import NothingElse
from lcc_scrapy.web.ports import Lcc
from lcc_scrapy.web.problems import NotThere, told
from lcc_scrapy.web.rows import as_json
from lcc_scrapy.web.sharing import visit_of
from lcc_scrapy.web.watching import Watcher

PAGE = 1000
LONGEST_WAIT = 60
FEED = "/v1/acis/atom"
_NUMBER_MAX = 2**62

Number = Annotated[int, Path(ge=1, le=_NUMBER_MAX, description="The number of an ACI.")]


class AciModel(BaseModel):
    """An ACI: that a version of a page matters to its owner. Times are epoch milliseconds."""

    number: int
    owner: str
    urd: int
    docid: str
    seq: int
    pid: int
    uri: str
    title: str
    summary: str
    relevance: int
    urgency: int
    updatetime: int
    made: int
    extension: str
    format: str
    filesize: int
    docbase: str
    expired: bool
    detail: dict[str, Any]


class AcisPage(BaseModel):
    """ACIs by rising number. Go on with `after=` `last`; `more`: there are more now."""

    acis: list[AciModel]
    last: int
    more: bool


class FeedAddress(BaseModel):
    """Where a feed reader finds this owner's alerts; who knows the address can read them."""

    url: str


def make_router(store: Store, web_url: str) -> APIRouter:
    """Return the routes; ``web_url`` is how clients see this server, "" = as each request says."""
    router = APIRouter(prefix="/v1/acis", tags=["annotation"])
    routes = _Routes(store, web_url)
    add = router.add_api_route
    add("", routes.acis, methods=["GET"], response_model=AcisPage, responses=told())
    add("/atom", routes.atom, methods=["GET"], response_class=Response, responses={**_ATOM, **told()})
    add("/feed", routes.address, methods=["GET"], response_model=FeedAddress, responses=told())
    add("/{number}", routes.aci, methods=["GET"], response_model=AciModel, responses=told(404))
    return router


_ATOM: dict[int | str, dict[str, Any]] = {
    200: {"description": "An Atom feed.", "content": {atom.MEDIA_TYPE: {"schema": {"type": "string"}}}}
}


class _Routes:
    def __init__(self, store: Store, web_url: str) -> None:
        self._store = store
        self._web_url = web_url
        self._keys = FeedKeys(store)
        self._watcher: Watcher | None = None

    async def acis(
        self,
        *,
        request: Request,
        lcc: TheLcc,
        token: Owner,
        _: NothingElse,
        after: Annotated[int, Query(ge=0, le=_NUMBER_MAX, description="Only higher numbers.")] = 0,
        limit: Annotated[int, Query(ge=1, le=PAGE, description="ACIs at most.")] = PAGE,
        wait: Annotated[
            int, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for one when there is none.")
        ] = 0,
    ) -> Response:
        """What was found for this token's owner, oldest first. Store `last`, and go on behind it."""
        end = time.monotonic() + wait
        found, seen = await to_thread.run_sync(self._after, token.label, after, limit)
        while not found and (left := end - time.monotonic()) > 0:
            visit_of(request).begin(Kind.STREAM)
            if not await self._news(request, lcc).wait(_at(seen), left):
                break
            found, seen = await to_thread.run_sync(self._after, token.label, after, limit)
        last = found[-1].number if found else max(after, seen)
        return as_json({"acis": [record_of(one) for one in found], "last": last, "more": len(found) == limit})

    def _after(self, owner: str, after: int, limit: int) -> tuple[list[Aci], int]:
        """Return ACIs, and the number up to which they were looked for, read first: none is missed."""
        with self._store.read() as tx:
            seen = tx.last_aci_number()
            return tx.acis_after(after, owner, limit), seen

    def _news(self, request: Request, lcc: Lcc) -> Watcher:
        """Return what waits for ACIs: one poll for all requests."""
        if self._watcher is None:
            self._watcher = Watcher(self._newest, lcc.bounds.poll, lcc.bounds.waiters)
            request.app.state.watchers.append(self._watcher)
        return self._watcher

    def _newest(self) -> Position:
        with self._store.read() as tx:
            return _at(tx.last_aci_number())

    def aci(self, token: Owner, number: Number) -> Response:
        """One ACI."""
        with self._store.read() as tx:
            found = tx.aci(number)
        if found is None or found.owner != token.label:
            raise NotThere(f"there is no ACI {number} of {token.label}")
        return as_json(record_of(found))

    def address(self, request: Request, token: Owner) -> Response:
        """Where a feed reader finds this owner's alerts. Revoking the token ends it."""
        base = own_address(request, self._web_url)
        return as_json({"url": feed_address(base, self._keys, token)})

    def atom(
        self,
        *,
        request: Request,
        lcc: TheLcc,
        _: NothingElse,
        credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
        # not described: no program can make one, and who has a token needs none
        key: Annotated[str, Query(max_length=KEY_MAX, include_in_schema=False)] = "",
        before: Annotated[int, Query(ge=1, le=_NUMBER_MAX, description="Only older ones.")] = _NUMBER_MAX,
        if_none_match: Annotated[str, Header(max_length=200)] = "",
    ) -> Response:
        """What was found, newest first, as an Atom feed in pages; each names the next, older one."""
        token = self._holder(lcc, credentials, key)
        with self._store.read() as tx:
            acis = tx.acis_before(before, token.label, atom.PAGE + 1)
        tag = f'W/"{acis[0].number if acis else 0}"'
        if tag == if_none_match:
            return Response(status_code=304, headers={"ETag": tag})
        base = f"{needed_address(request, self._web_url, 'LCC_WEB_URL')}{FEED}"
        written = atom.feed(
            acis[: atom.PAGE], token.label, lcc.feed.head().lcc, _links(base, key, before, acis)
        )
        return Response(written.encode("utf-8", "backslashreplace"), 200, {"ETag": tag}, atom.MEDIA_TYPE)

    def _holder(self, lcc: Lcc, credentials: HTTPAuthorizationCredentials | None, key: str) -> Token:
        now = int(lcc.now())
        if key:
            return self._keys.token(lcc.tokens, key, now)
        if credentials is None:
            raise Refused(
                "a token is needed: Authorization: Bearer …, or the address that /v1/acis/feed gives"
            )
        return check(lcc.tokens, credentials.credentials, ANNOTATE, now)


def feed_address(base: str, keys: FeedKeys, token: Token) -> str:
    """Return the address of a token's feed."""
    return f"{base}{FEED}?key={keys.key(token)}"


def _at(number: int) -> Position:
    return Position("acis", 1, number)


def _links(base: str, key: str, before: int, acis: list[Aci]) -> atom.Links:
    def address(older: int) -> str:
        given = [f"key={key}"] if key else []
        given += [f"before={older}"] if older < _NUMBER_MAX else []
        return f"{base}?{'&'.join(given)}" if given else base

    following = address(acis[atom.PAGE - 1].number) if len(acis) > atom.PAGE else ""
    return atom.Links(address(before), address(_NUMBER_MAX), following)
