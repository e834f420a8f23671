"""How the pages of the dashboard look: wide, light or dark as the browser wants it, without script."""

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlencode

from fastapi import Response
from markupsafe import Markup

from lcc_scrapy.apps.dashboard.access import FORM_KEY, Visitor
from lcc_scrapy.domain.printable import printable
from lcc_scrapy.domain.shown import BLANK, number
from lcc_scrapy.web import html

_STYLE = Path(__file__).with_name("style.css").read_text(encoding="ascii")
_FRAME = Markup(
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title} - LCC</title>'
    "<style>{style}</style></head><body><header>{nav}</header><main><h1>{title}</h1>{body}</main></body></html>"
)
_LAYOUT = html.Layout(_STYLE, _FRAME)
_LIVE = html.Layout(_STYLE, _FRAME, "script-src 'self'; connect-src 'self'")
"""Of the one page that a script goes on with."""

_PICTURES = html.Layout(_STYLE, _FRAME, "img-src 'self'")
"""Of the one page that has a picture."""

_HEADERS = {"X-Frame-Options": "DENY"}
_NOTHING = Markup("")
_PAGES = {
    "/dashboard/providers": "Providers",
    "/dashboard/urls": "URLs",
    "/dashboard/changes": "Changes",
    "/dashboard/audit": "Audit log",
}
_PAGES_OF_ALL = {"/dashboard": "Overview", "/dashboard/workers": "Workers"}
"""Of who sees all providers."""

FIND_MAX = 2000
"""Characters of what is looked for."""


class Name(int):
    """A number that names something: it is shown without blanks."""


def page(
    title: str,
    body: Markup,
    whose: Visitor | None,
    status: int = HTTPStatus.OK,
    *,
    live: bool = False,
    pictures: bool = False,
) -> Response:
    """Return a page for who asks; None = nobody is signed in.

    ``live``: a script of this server may run. ``pictures``: those of this server may be loaded.
    """
    layout = _LIVE if live else _PICTURES if pictures else _LAYOUT
    return layout.page(title, body, _nav(whose), status, _HEADERS)


def _nav(whose: Visitor | None) -> Markup:
    if whose is None:
        return _NOTHING
    pages = _PAGES if whose.user.pids is not None else _PAGES_OF_ALL | _PAGES
    links = Markup("").join(link(path, called) for path, called in pages.items())
    who = Markup('<span class="soft">{} ({})</span>').format(whose.user.name, whose.user.role)
    out = _NOTHING if whose.by_proxy else html.button("/dashboard/sign-out", "Sign out", form_key(whose))
    return Markup("<nav>{}</nav>{}{}").format(Markup(" ").join([links]), who, out)


def form_key(whose: Visitor) -> Markup:
    """Return the field that each form has."""
    return html.hidden(FORM_KEY, whose.form_key)


def link(path: str, called: object) -> Markup:
    """Return a link to a page of the dashboard."""
    return Markup('<a href="{}">{}</a> ').format(path, shown(called))


def link_to_url(url: str) -> Markup:
    """Return a link to what is known of a URL."""
    return link(f"/dashboard/urls?{urlencode({'url': url})}", url)


def find_form(value: str = "") -> Markup:
    """Return the form that finds a URL or a provider."""
    field = Markup(
        '<input id="q" name="q" type="search" size="40" value="{}" maxlength="{}"'
        ' placeholder="URL, docid, provider, or words">'
    ).format(value, FIND_MAX)
    return Markup(
        '<form class="search" method="get" action="/dashboard/find" role="search">{}'
        "<button>Find</button></form>"
    ).format(paired(Markup('<label for="q">Find</label>'), field))


def shown(value: object) -> str:
    """Return what others wrote as it may be shown: no character that moves others."""
    text = "" if value is None else str(value)
    return printable(text) if text.isascii() else BLANK.join(map(printable, text.split(BLANK)))


def facts(pairs: Iterable[tuple[str, object]]) -> Markup:
    """Return names with their values; what is no ``Markup`` is escaped."""
    rows = Markup("").join(
        Markup("<dt>{}</dt><dd>{}</dd>").format(name, value if isinstance(value, Markup) else shown(value))
        for name, value in pairs
    )
    return Markup("<dl>{}</dl>").format(rows)


def paired(*parts: Markup) -> Markup:
    """Return a label and its field, which stay beside each other."""
    return Markup('<span class="pair">{}</span>').format(Markup("").join(parts))


def table(columns: Sequence[object], rows: Iterable[Sequence[object]]) -> Markup:
    """Return a table; numbers stand to the right. On a narrow screen each row is a block with names."""
    made = [list(row) for row in rows]
    kinds = [_kind(value) for value in made[0]] if made else [_NOTHING] * len(columns)
    head = Markup("").join(map(Markup("<th{}>{}</th>").format, kinds, columns))
    labels = [Markup(one).striptags() if isinstance(one, Markup) else str(one) for one in columns]  # noqa: S704 - of our own
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(map(_cell, labels, row))) for row in made
    )
    return Markup('<table class="list"><thead><tr>{}</tr></thead><tbody>{}</tbody></table>').format(
        head, body
    )


def _kind(value: object) -> Markup:
    return Markup(' class="n"') if isinstance(value, int) else _NOTHING


def _cell(label: str, value: object) -> Markup:
    kind = _kind(value)
    if isinstance(value, int) and not isinstance(value, Name):
        value = number(value)
    inside = value if isinstance(value, Markup) else shown(value)
    named = Markup(' data-l="{}"').format(label) if inside != "" else _NOTHING
    return Markup("<td{}{}>{}</td>").format(kind, named, inside)
