"""Forms as browsers send them: of few texts, and from a page of our own."""

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from anyio import to_thread
from fastapi import Request

from lcc_scrapy.domain.errors import BadField, LccError

_FIELDS_MAX = 32
_TEXT_MAX = 4096
_LINES_MAX = 256 * 1024
"""Characters of a field that may have several lines."""

_AT_ONCE = 64 * 1024
"""Bytes of a form that are read on the event loop; those of more take a tenth of a second and longer."""

_NO_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
"""Browsers send none; a form full of them would take hundreds of megabytes."""

_UNUSABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_UNUSABLE_LINES = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class CrossSite(LccError):
    """A page of another site sent this form."""

    def __init__(self) -> None:
        super().__init__("this form was sent by a page of another site: open the page here itself")


def check_origin(request: Request) -> None:
    """Refuse what a browser sends for a page of another site; raises ``CrossSite``.

    Browsers say so in Sec-Fetch-Site, or, over plain HTTP, where a form came from in Origin.
    """
    told = request.headers.get("sec-fetch-site")
    if told is not None:
        if told not in {"same-origin", "none"}:
            raise CrossSite
        return
    origin = request.headers.get("origin")
    if origin is not None and _netloc(origin) != request.headers.get("host", "").lower():
        raise CrossSite


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


async def read_form(
    request: Request, known: frozenset[str], several: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Read a form as browsers send it; raises ``BadField``."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise BadField("Content-Type", "send application/x-www-form-urlencoded")
    body = await request.body()
    if len(body) <= _AT_ONCE:
        return form_fields(body, known, several)
    return await to_thread.run_sync(form_fields, body, known, several)


def form_fields(body: bytes, known: frozenset[str], several: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return the fields of a form; raises ``BadField``."""
    try:
        text = body.decode("ascii")
        if _NO_ESCAPE.search(text):
            raise BadField("body", "a percent sign that escapes nothing: write %25")
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS_MAX)
    except ValueError:
        raise BadField("body", "this is no form") from None
    given = dict(pairs)
    if len(given) != len(pairs):
        raise BadField("body", "a field is there twice")
    return checked(given, known, several)


def checked(
    given: Mapping[str, str], known: frozenset[str], several: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Return fields, all of them known and short; ``several`` may have lines. Raises ``BadField``."""
    for name, value in given.items():
        if name not in known:
            raise BadField(shown(name), f"there is no such field here; there are {', '.join(sorted(known))}")
        most = _LINES_MAX if name in several else _TEXT_MAX
        if len(value) > most:
            raise BadField(name, f"more than {most} characters")
        if (_UNUSABLE_LINES if name in several else _UNUSABLE).search(value):
            raise BadField(name, "write one line without control characters")
    return dict(given)


def shown(name: str) -> str:
    """Return the name of a field as it may be repeated."""
    return ascii(name)[1:-1][:60]
