"""The content of a document as it is stored: its characters, or a picture. Off until somebody asks for it.

Markup is shown as characters, in no frame: what stands in a frame lets browsers connect elsewhere, also in
one that is sandboxed and whose policy permits nothing. A picture is of a kind that holds no markup and no
script, told by its first bytes, whatever its site calls it.
"""

from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO

from fastapi import Response
from markupsafe import Markup, escape

from lcc_scrapy.apps.dashboard.answers import NoSuchPage
from lcc_scrapy.apps.dashboard.content_page import Open, head, opening
from lcc_scrapy.apps.dashboard.layout import shown
from lcc_scrapy.apps.dashboard.rules.pictures import Picture, picture_of
from lcc_scrapy.domain.entries import plain_mimetype
from lcc_scrapy.domain.shown import number
from lcc_scrapy.domain.versions import Version
from lcc_scrapy.feed.plain_text import characters_of

READ = 100_000
"""Bytes of a content that are read to be shown as characters."""

PAGE_BYTES = 80_000
"""Of what is shown, with its character references."""

PICTURE_BYTES = 4_000_000
PICTURE_SIDE, PICTURE_PIXELS = 20_000, 40_000_000
"""Of the largest picture that a browser is given to unpack: pixels of a side, pixels of all."""

_PIECE = 500
"""Characters that are shown or left out together."""

_TAB = "    "
_POLICY = "default-src 'none'; sandbox; frame-ancestors 'none'"
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True, slots=True)
class Stored:
    """What is shown of a content: a picture, or characters (None = it has none), perhaps cut."""

    picture: Picture | None
    text: str | None
    cut: bool = False


def read(one: Version, opened: Open) -> Stored:
    """Read the beginning of a content."""
    with opening(one, opened) as content:
        start = content.read(READ)
    picture = picture_of(start)
    if picture is not None:
        return Stored(picture, None)
    text = characters_of(BytesIO(start), plain_mimetype(one.served_type), one.served_charset, READ)
    return Stored(None, text, one.fetched_len > READ)


def body(url: str, one: Version, stored: Stored) -> Markup:
    """Return the page."""
    return head(url, one, "content") + (
        _picture(one, stored.picture) if stored.picture else _text(one, stored)
    )


def _picture(one: Version, its: Picture) -> Markup:
    told = f"{its.kind}, {number(its.width)} by {number(its.height)} pixels"
    if not _is_shown(one, its):
        return Markup("<p>A picture that is too large to be shown: {}.</p>").format(told)
    href = f"/dashboard/urls/{one.docid}/picture" + (f"?version={one.seq}" if one.replaced_time else "")
    return Markup('<p>{}.</p><p><img class="stored" src="{}" alt="The stored picture"></p>').format(
        told, href
    )


def _is_shown(one: Version, its: Picture) -> bool:
    side, pixels = max(its.width, its.height), its.width * its.height
    return one.fetched_len <= PICTURE_BYTES and 0 < pixels <= PICTURE_PIXELS and side <= PICTURE_SIDE


def _text(one: Version, stored: Stored) -> Markup:
    if stored.text is None:
        return Markup("<p>It is neither text nor a picture that can be shown: it is {}.</p>").format(
            shown(one.served_type)
        )
    lines, is_whole = _fitting(stored.text)
    cut = Markup("") if is_whole and not stored.cut else Markup("<p>This is the beginning.</p>")
    return Markup("<pre>{}</pre>").format(lines) + cut


def _fitting(text: str) -> tuple[Markup, bool]:
    """Return as much of a text as fits the page, and whether that is all."""
    text = text.replace("\r\n", "\n").replace("\t", _TAB)
    made: list[Markup] = []
    room = PAGE_BYTES
    for start in range(0, len(text), _PIECE):
        lines = text[start : start + _PIECE].split("\n")
        piece = escape("\n".join(map(shown, lines)))
        room -= len(piece.encode())
        if room < 0:
            break
        made.append(piece)
    return Markup("").join(made), room >= 0


def picture(one: Version, opened: Open) -> Response:
    """Return a picture for its page; raises ``NoSuchPage`` where it is none, or too large."""
    with opening(one, opened) as content:
        data = content.read(PICTURE_BYTES + 1)
    its = picture_of(data[:READ])
    if its is None or not _is_shown(one, its) or len(data) > PICTURE_BYTES:
        raise NoSuchPage
    kind = its.kind.removeprefix("image/")
    named = {"Content-Disposition": f'attachment; filename="{one.docid}.{kind}"'}
    return Response(data, HTTPStatus.OK, _HEADERS | named, its.kind)
