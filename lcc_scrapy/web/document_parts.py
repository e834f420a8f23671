"""``/v1/documents/{docid}/…``: what there is of a document beside its row and its content.

Versions and owners are there as well of a document that is gone, as long as its removal is known.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, create_model

from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.directives import OWNER_MAX
from lcc_scrapy.domain.tokens import Token
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.meta_information import FACTS, MetaInfo, facts
from lcc_scrapy.feed.names import name_of
from lcc_scrapy.feed.reader import PAGE
from lcc_scrapy.feed.row_formats import VERSION_TYPES, Facts, version_record
from lcc_scrapy.web import contents
from lcc_scrapy.web.access import Reading, TheLcc
from lcc_scrapy.web.contents import Asked
from lcc_scrapy.web.documents import found
from lcc_scrapy.web.parameters import DocId, known_only
from lcc_scrapy.web.ports import Lcc
from lcc_scrapy.web.problems import NotThere, told
from lcc_scrapy.web.rows import as_json
from lcc_scrapy.web.sharing import streaming

router = APIRouter(prefix="/v1/documents", tags=["documents"], dependencies=[Depends(known_only)])

_SEQ_MAX = 2**63 - 1
Limit = Annotated[int, Query(ge=1, le=PAGE, description="At most so many.")]
_types: Any = {name: (kind, ...) for name, kind in VERSION_TYPES.items()}
_facts: Any = {name: (kind, ...) for name, kind in FACTS.items()}

Kept = create_model("Version", __doc__="An earlier content. Times are epoch seconds.", **_types)


class Link(BaseModel):
    """A link of a document, as a spider read it. `relation` is how the page names it."""

    position: int
    url: str
    relation: str
    nofollow: bool


class Links(BaseModel):
    """Links in the order of the page. `more`: ask again with `after=` the last position."""

    links: list[Link]
    more: bool


class Versions(BaseModel):
    """Earlier contents, newest first. `more`: ask again with `before=` the last seq."""

    versions: list[Kept]  # type: ignore[valid-type] # made of the columns
    more: bool


class OwnersPage(BaseModel):
    """Owners by name. `more`: ask again with `after=` the last one."""

    owners: list[str]
    more: bool


Meta = create_model(
    "Meta",
    __doc__="What the site answered, and where the document lies. What is not known is null.",
    **_facts,
    header=(list[str], ...),
)


@router.get("/{docid}/links", response_model=Links, responses=told(404))
def links(
    *,
    lcc: TheLcc,
    token: Reading,
    docid: DocId,
    after: Annotated[int, Query(ge=0, le=_SEQ_MAX, description="Links behind this position.")] = 0,
    limit: Limit = PAGE,
) -> Response:
    """What a document links to, as far as a spider read it."""
    row = found(lcc, token, docid)
    page = lcc.feed.links(row.urlkey)[after : after + limit + 1]
    shown = [
        {"position": place, "url": one.url, "relation": one.relation, "nofollow": one.nofollow}
        for place, one in enumerate(page[:limit], after + 1)
    ]
    return as_json({"links": shown, "more": len(page) > limit})


@router.get("/{docid}/meta", response_model=Meta, responses=told(404))
def meta(lcc: TheLcc, token: Reading, docid: DocId) -> Response:
    """What its site answered with a document: status, headers, address, validators."""
    row = found(lcc, token, docid)
    known = MetaInfo(row, lcc.feed.answers([row]).get(row.urlkey))
    path = f"/v1/documents/{docid}/content"
    return as_json({**facts(known, lambda *_: path), "header": known.header})


@router.get("/{docid}/versions", response_model=Versions, responses=told(404))
def versions(
    *,
    lcc: TheLcc,
    token: Reading,
    docid: DocId,
    before: Annotated[int, Query(ge=0, le=_SEQ_MAX, description="Versions with a lower seq; 0: all.")] = 0,
    limit: Limit = PAGE,
) -> Response:
    """The earlier contents of a document that are kept."""
    kept = _versions(lcc, _known(lcc, token, docid))
    page = [one for one in kept if not before or one.seq < before][: limit + 1]
    return as_json({"versions": [_shown(one) for one in page[:limit]], "more": len(page) > limit})


Seq = Annotated[int, Path(ge=1, le=_SEQ_MAX, description="`seq` of the version.")]


@router.head(
    "/{docid}/versions/{seq}/content",
    response_class=Response,
    responses=contents.HEAD,
    dependencies=[Depends(streaming)],
)
@router.get(
    "/{docid}/versions/{seq}/content",
    response_class=StreamingResponse,
    responses=contents.REDIRECTED,
    dependencies=[Depends(streaming)],
)
def version_content(
    *, request: Request, lcc: TheLcc, token: Reading, docid: DocId, seq: Seq, asked: Asked
) -> Response:
    """An earlier content of a document, or a part of it (one range of bytes)."""
    row = _known(lcc, token, docid)
    version = next((one for one in _versions(lcc, row) if one.seq == seq), None)
    if version is None:
        raise NotThere(f"there is no version {seq} of document {docid}: it is not kept, or never was there")
    redirect = contents.redirect(request, lcc, asked, version)
    if redirect is not None:
        return redirect
    return contents.answer(request, asked, version, lcc.open(version), name_of(row).rpartition("/")[2])


@router.get("/{docid}/owners", response_model=OwnersPage, responses=told(404))
def owners(
    *,
    lcc: TheLcc,
    token: Reading,
    docid: DocId,
    after: Annotated[str, Query(max_length=OWNER_MAX, description="Owners behind this name.")] = "",
    limit: Limit = PAGE,
) -> Response:
    """Who asked for a document with a directive, or for one that leads to it."""
    page = lcc.feed.owners_behind(_known(lcc, token, docid), after, limit + 1)
    return as_json({"owners": page[:limit], "more": len(page) > limit})


def _known(lcc: Lcc, token: Token, docid: str) -> CachedUrl | Tombstone:
    """Return the row of a document, or what tells of its removal; raises ``NotThere``."""
    key = bytes.fromhex(docid)
    gone = None if lcc.feed.rows([key]) else lcc.feed.tombstones([key]).get(key)
    return gone if gone is not None and token.admits(gone) else found(lcc, token, docid)


def _versions(lcc: Lcc, row: CachedUrl | Tombstone) -> list[Version]:
    return lcc.feed.versions([row.urlkey]).get(row.urlkey, [])


def _shown(one: Version) -> Facts:
    return version_record(one, lambda *_: f"/v1/documents/{one.docid}/versions/{one.seq}/content")
