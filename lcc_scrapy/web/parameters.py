"""Query parameters: filters, cursors and limits."""

from typing import Annotated

from fastapi import Depends, Path, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError

from lcc_scrapy.domain.cursor import CURSOR_MAX, Position
from lcc_scrapy.domain.entries import SUBTYPE_MAX
from lcc_scrapy.domain.named_cursors import NAME, NAME_MAX
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.web.access import Reading

_SEVERAL = 100
_PID_MAX = 10**18 - 1
_TIME_MAX = 2**53
_PATTERN = r"^(\*/\*|[a-z0-9!#$&^_.+-]+/(\*|[a-z0-9!#$&^_.+-]+))$"

Pid = Annotated[int, Query(ge=1, le=_PID_MAX)]
Pattern = Annotated[str, Query(pattern=_PATTERN, max_length=255)]
Subtype = Annotated[str, Query(max_length=SUBTYPE_MAX)]
Prefix = Annotated[str, Query(max_length=URL_MAX)]
DocId = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="32 lower-case hex digits.")]
Name = Annotated[str, Path(pattern=f"^{NAME}$", max_length=NAME_MAX)]


def _names(asked: Dependant) -> set[str]:
    """Return which parameters a route, or what it depends on, takes."""
    return {one.alias for one in asked.query_params}.union(*map(_names, asked.dependencies))


def known_only(request: Request) -> None:
    """Refuse unknown parameters: a misspelt filter would otherwise select everything."""
    unknown = request.query_params.keys() - _names(request.scope["route"].dependant)
    if unknown:
        raise RequestValidationError(
            [{"loc": ("query", name), "msg": "no such parameter"} for name in sorted(unknown)]
        )


def _selection(
    *,
    _: Annotated[None, Depends(known_only)],
    token: Reading,
    provider: Annotated[
        list[Pid], Query(max_length=_SEVERAL, description="Only these providers' documents.")
    ] = [],  # noqa: B006 - FastAPI makes a new list of it every time
    mimetype: Annotated[
        list[Pattern], Query(max_length=_SEVERAL, description="Only these, for example `text/*`.")
    ] = [],  # noqa: B006
    subtype: Annotated[
        list[Subtype],
        Query(max_length=_SEVERAL, description="Only these; `lang:*` stands for all that begin so."),
    ] = [],  # noqa: B006
    url_prefix: Annotated[
        list[Prefix], Query(max_length=_SEVERAL, description="Only documents whose curl begins so.")
    ] = [],  # noqa: B006
    since_time: Annotated[
        int | None,
        Query(ge=0, le=_TIME_MAX, description="Only what was fetched or removed later (epoch seconds)."),
    ] = None,
) -> Selection:
    """Return what is wanted, within what the token is for."""
    asked = Selection(tuple(provider), tuple(mimetype), tuple(subtype), tuple(url_prefix), since_time)
    return token.narrowed(asked)


def _since(
    since: Annotated[
        str | None,
        Query(
            max_length=CURSOR_MAX,
            description="A cursor: only what changed after it; without it, everything.",
        ),
    ] = None,
) -> Position | None:
    return None if since is None else Position.parse(since)


NothingElse = Annotated[None, Depends(known_only)]
Selected = Annotated[Selection, Depends(_selection)]
Since = Annotated[Position | None, Depends(_since)]
