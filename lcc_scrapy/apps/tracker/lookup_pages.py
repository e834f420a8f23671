"""The page of the mirror tracker: a form, what was found, and how to ask from elsewhere."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from fastapi.responses import HTMLResponse
from markupsafe import Markup

from lcc_scrapy.apps.tracker.lookup import Found, Replica
from lcc_scrapy.apps.tracker.rules.questions import Question
from lcc_scrapy.web import html

TITLE = "Mirror tracker"

_PLAIN_URL = re.compile(r"https?://[A-Za-z0-9._~:/\[\]-]+")
_HEADERS = {"Referrer-Policy": "no-referrer"}
_NAV = Markup('<a href="./">Find mirrors</a>')
_FORM = Markup(
    '<form method="get" action="./">{fields}<input type="hidden" name="format" value="html">'
    '<button type="submit">Find mirrors</button></form>'
)
_TABLE = Markup("<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>")
_ROW = Markup(
    '<tr><td>{where}</td><td title="Domain">{domain}</td><td title="Listed (UTC)">{listed}</td></tr>'
)
_LINK = Markup('<a href="{url}" rel="noreferrer">{url}</a>')
_NO_LINK = Markup("<code>{url}</code>")
_HEADS = Markup("").join(Markup("<th>{}</th>").format(one) for one in ("Mirror", "Domain", "Listed (UTC)"))
_FORMATS = (
    'The same <a href="./?{query}&amp;format=json">as JSON</a>, or go'
    ' <a href="./redirect?{query}">to the first of them</a>.'
)
_METALINK = (
    'For programs that fetch from several mirrors: <a href="./?{query}&amp;format=meta4">as Metalink</a>.'
)
_BUTTON = (
    'Drag this link to your bookmarks: <a href="{script}">Mirrors?</a> When you are at a file or directory,'
    " press it there."
)


def form_page(base: str, question: Question, error: str = "") -> HTMLResponse:
    """Return the form; ``base`` is the URL of this tracker, ``error`` why a question was refused."""
    parts = [html.alert(error) if error else Markup(""), _form(question), _elsewhere(base)]
    return html.page(TITLE, Markup("").join(parts), _NAV, 422 if error else 200, _HEADERS)


def found_page(base: str, question: Question, found: Found) -> HTMLResponse:
    """Return what was found; 404 where that is nothing."""
    parts = [_result(question, found), _form(question), _elsewhere(base)]
    status = 200 if found.replicas else 404
    return html.page(TITLE, Markup("").join(parts), _NAV, status, _HEADERS)


def list_page(name: str, replicas: Iterable[Replica]) -> HTMLResponse:
    """Return the directories that a URN names."""
    body = html.paragraph("Directories with the name <code>{name}</code>:", name=name) + _table(replicas)
    return html.page(TITLE, body, Markup('<a href="../">Find mirrors</a>'), 200, _HEADERS)


def _form(question: Question) -> Markup:
    example = "For example ftp://ftp.example.org/pub/app/1.0/. The URL of a directory ends with a slash."
    url = html.field("url", "URL of a file or directory", example, question.url, required=True)
    tlds = question.tld or ("",)
    domain = html.field("tld", "Only mirrors in this domain (optional)", "For example de.", tlds[0])
    more = Markup("").join(html.hidden("tld", one) for one in tlds[1:])
    return _FORM.format(fields=url + domain + more)


def _result(question: Question, found: Found) -> Markup:
    if not found.known:
        return html.alert("no server that this tracker lists has this URL") + _asked(question)
    if not found.replicas:
        return html.alert("no exact replicas of this are known") + _asked(question)
    number = len(found.replicas)
    parts = [
        html.good(f"{number} {'mirrors have' if number > 1 else 'mirror has'} exactly this:"),
        _asked(question),
        _table(found.replicas),
        html.paragraph(_FORMATS, query=str(question)),
        Markup("") if found.is_directory else html.paragraph(_METALINK, query=str(question)),
    ]
    return Markup("").join(parts)


def _asked(question: Question) -> Markup:
    return html.paragraph("<code>{url}</code>", url=question.url)


def _table(replicas: Iterable[Replica]) -> Markup:
    return _TABLE.format(heads=_HEADS, rows=Markup("").join(map(_row, replicas)))


def _row(one: Replica) -> Markup:
    shown = _NO_LINK if one.url.startswith("rsync:") else _LINK
    listed = f"{datetime.fromtimestamp(one.scanned, UTC):%Y-%m-%d %H:%M}"
    return _ROW.format(where=shown.format(url=one.url), domain=one.domain, listed=listed)


def _elsewhere(base: str) -> Markup:
    """Return how to ask from other pages; nothing where the tracker's own URL is not known for certain."""
    if not _PLAIN_URL.fullmatch(base):
        return Markup("")
    script = f"javascript:location.href='{base}/?url='+encodeURIComponent(location.href)"
    link = f'<a href="{base}/?url=ftp://ftp.example.org/pub/app/">mirrors</a>'
    return Markup("").join(
        [
            Markup("<h2>From any page</h2>"),
            html.paragraph(_BUTTON, script=script),
            Markup("<h2>From your own page</h2>"),
            html.paragraph("Link to the mirrors of what you offer:"),
            html.literal(link),
        ]
    )
