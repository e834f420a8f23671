"""``/v1/urds``: what interests the owner of a token. The label of the token is the owner's name."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from lcc_scrapy.annotation.interests import Interests
from lcc_scrapy.annotation.try_out import Tried, TryOut
from lcc_scrapy.annotation.urd_formats import record_of
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.directives import DEPTH_MAX
from lcc_scrapy.domain.errors import MissingExtra
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.domain.urd_rules import THRESHOLD_MAX, TIME_MAX, TIMING_MAX, URDS_MAX
from lcc_scrapy.domain.urds import (
    KEYWORD_MAX,
    KEYWORDS_MAX,
    LEVELS,
    RULE_MAX,
    WEIGHT_MAX,
    Keyword,
    Method,
    Process,
    Urd,
)
from lcc_scrapy.web.access import Owner, TheLcc
from lcc_scrapy.web.parameters import NothingElse
from lcc_scrapy.web.problems import problem, told
from lcc_scrapy.web.rows import as_json

BODY_BYTES = 512 * 1024
"""Of a URD: its keywords and its rule may be as long as they may, and be written with escapes."""

TRIES = 2
"""URDs that are tried at a time: each takes a processor."""

PAGE = 1000
_ID_MAX = 2**63 - 1
_SAID_BY_THE_LCC = "Said by the LCC; ignored when it is sent."

Id = Annotated[int, Path(ge=1, le=_ID_MAX, description="The number of a URD.")]


class KeywordModel(BaseModel):
    """A word or a phrase, and what each occurrence of it counts."""

    model_config = ConfigDict(extra="forbid")

    key: str = Field(min_length=1, max_length=KEYWORD_MAX)
    weight: int = Field(1, ge=1, le=WEIGHT_MAX)


class UrdModel(BaseModel):
    """An interest: which pages, and what in them. Times are epoch milliseconds.

    `uri` is a page, a folder if it ends in `/`, or `*` for the whole cache. `timing` is how often the page is
    asked for, in milliseconds; 0 = never. `expires`: null = never.
    """

    model_config = ConfigDict(extra="forbid")

    id: int | None = Field(None, description=_SAID_BY_THE_LCC)
    owner: str | None = Field(None, description=_SAID_BY_THE_LCC)
    uri: str = Field(max_length=URL_MAX)
    timing: int = Field(0, ge=0, le=TIMING_MAX)
    lastcheck: int | None = Field(None, description=_SAID_BY_THE_LCC)
    port: int | None = Field(None, description=_SAID_BY_THE_LCC)
    protocol: str | None = Field(None, description=_SAID_BY_THE_LCC)
    method: Method = Method.PULL
    processtype: Process = Process.FILTER
    rule: str = Field("", max_length=RULE_MAX)
    depth: int = Field(0, ge=0, le=DEPTH_MAX)
    urgency: int = Field(1, ge=LEVELS[0], le=LEVELS[-1])
    threshold: int = Field(1, ge=0, le=THRESHOLD_MAX)
    expires: int | None = Field(None, ge=1, le=TIME_MAX)
    revision: int | None = Field(None, description=_SAID_BY_THE_LCC)
    keywords: list[KeywordModel] = Field([], max_length=KEYWORDS_MAX)

    def urd(self, owner: str, before: Urd | None = None) -> Urd:
        """Return what was sent, as a URD of an owner; ``before`` is the one that it replaces."""
        return Urd(
            before.urdid if before else 0,
            owner,
            self.uri,
            self.timing,
            before.lastcheck if before else 0,
            method=self.method,
            processtype=self.processtype,
            rule=self.rule,
            depth=self.depth,
            urgency=self.urgency,
            threshold=self.threshold,
            expires=self.expires,
            keywords=tuple(Keyword(one.key, one.weight) for one in self.keywords),
        )


class UrdsPage(BaseModel):
    """URDs by rising id. `more`: there are more, ask again with `after=` the last id."""

    urds: list[UrdModel]
    more: bool


class FoundModel(BaseModel):
    """What a URD would have said of a page."""

    docid: str
    uri: str
    fetched_time: int
    relevance: int
    title: str
    summary: str


class TriedModel(BaseModel):
    """What a URD would have found in `pages`, the newest in scope. `complete`: there are no others."""

    pages: int
    complete: bool
    found: list[FoundModel]


def as_told(urd: Urd) -> dict[str, Any]:
    """Return a URD as JSON tells it."""
    return {**record_of(urd), "revision": urd.revision}


def make_router(store: Store) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1/urds", tags=["annotation"], max_body_size=BODY_BYTES)
    routes = _Routes(Interests(store), CapacityLimiter)
    add = router.add_api_route
    add("", routes.all_urds, methods=["GET"], response_model=UrdsPage, responses=told())
    add(
        "",
        routes.add,
        methods=["POST"],
        status_code=201,
        response_model=UrdModel,
        responses=told(400, 409, 413),
    )
    add("/try", routes.try_out, methods=["POST"], response_model=TriedModel, responses=told(400, 413, 501))
    add("/{urdid}", routes.urd, methods=["GET"], response_model=UrdModel, responses=told(404))
    add("/{urdid}", routes.change, methods=["PUT"], response_model=UrdModel, responses=told(400, 404, 413))
    add("/{urdid}", routes.remove, methods=["DELETE"], status_code=204, responses=told(404))
    return router


class _Routes:
    def __init__(self, interests: Interests, limiter: Callable[[int], CapacityLimiter]) -> None:
        self._interests = interests
        self._trying: CapacityLimiter | None = None
        self._make_limiter = limiter

    def all_urds(
        self,
        token: Owner,
        _: NothingElse,
        after: Annotated[int, Query(ge=0, le=_ID_MAX, description="Only URDs with a higher id.")] = 0,
        limit: Annotated[int, Query(ge=1, le=PAGE, description="URDs at most.")] = PAGE,
    ) -> Response:
        """The URDs of this token's owner."""
        found = self._interests.of(token.label, after, limit + 1)
        urds = [as_told(one) for one in found[:limit]]
        return as_json({"urds": urds, "more": len(found) > limit})

    def urd(self, token: Owner, urdid: Id) -> Response:
        """One URD."""
        return as_json(as_told(self._interests.get(urdid, token.label)))

    def add(self, token: Owner, urd: UrdModel) -> Response:
        """Add a URD. It is compared with the pages that are cached already, and with each that comes."""
        made = self._interests.add(urd.urd(token.label), URDS_MAX)
        return as_json(as_told(made), HTTPStatus.CREATED, Location=f"/v1/urds/{made.urdid}")

    def change(self, token: Owner, urdid: Id, urd: UrdModel) -> Response:
        """Replace a URD. What is not sent gets its default."""
        changed = self._interests.change(urdid, lambda before: urd.urd(token.label, before), token.label)
        return as_json(as_told(changed))

    def remove(self, token: Owner, urdid: Id) -> Response:
        """Remove a URD."""
        self._interests.remove([urdid], token.label)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    async def try_out(self, lcc: TheLcc, token: Owner, urd: UrdModel) -> Response:
        """What a URD would have found among the newest 50 cached pages in its scope. Nothing is kept."""
        if self._trying is None:
            self._trying = self._make_limiter(TRIES)  # it belongs to the loop that runs
        trying, now = TryOut(lcc.feed, lcc.open), int(lcc.now() * 1000)
        try:
            tried = await to_thread.run_sync(trying.run, urd.urd(token.label), now, limiter=self._trying)
        except MissingExtra as error:
            return problem(HTTPStatus.NOT_IMPLEMENTED, str(error))
        return as_json(_as_told(tried))


def _as_told(tried: Tried) -> dict[str, Any]:
    found = [
        {
            "docid": row.docid,
            "uri": row.furl,
            "fetched_time": row.fetched_time,
            "relevance": one.relevance,
            "title": one.title,
            "summary": one.summary,
        }
        for row, one in tried.found
    ]
    return {"pages": tried.pages, "complete": tried.complete, "found": found}
