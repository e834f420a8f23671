"""How alerts are written: subject, text, HTML, XML and JSON. What sites wrote is escaped and shortened."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup

from lcc_scrapy.annotation.aci_details import Pieces, shown
from lcc_scrapy.annotation.aci_formats import record_of, xml_of
from lcc_scrapy.domain.acis import Aci
from lcc_scrapy.domain.alerts import Format
from lcc_scrapy.domain.printable import printable

MEDIA_TYPES = {
    Format.HTML: "text/html; charset=utf-8",
    Format.TEXT: "text/plain; charset=utf-8",
    Format.XML: "application/xml",
    Format.JSON: "application/json",
}

_URL_MAX = 300
_TITLE_MAX = 120
_WORDS_SHOWN = 10
_NO_STYLE = Markup("")
_STYLE = "font:16px/1.5 sans-serif;color:#111;background:#fff;max-width:42em;margin:0 auto;padding:0 1em"


@dataclass(frozen=True, slots=True)
class Around:
    """What stands around alerts: whose they are, where all of them are, how to end them ("" = not said)."""

    owner: str
    pages: str = ""
    ending: str = ""
    operator: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """One message in one format; for mail in HTML, ``text`` says the same."""

    subject: str
    text: str
    body: str


def written(acis: Sequence[Aci], around: Around, form: str, *, digest: bool) -> Written:
    """Word alerts about some ACIs of one owner."""
    body = {
        Format.HTML: lambda: html(acis, around),
        Format.TEXT: lambda: text(acis, around),
        Format.XML: lambda: xml(acis, around),
        Format.JSON: lambda: as_json(acis, around, digest=digest),
    }[Format(form)]()
    return Written(subject(acis, digest=digest), text(acis, around), body)


def subject(acis: Sequence[Aci], *, digest: bool) -> str:
    """Return a subject in one line."""
    first = title_of(acis[0])
    if len(acis) == 1 and not digest:
        return first
    count = "1 page" if len(acis) == 1 else f"{len(acis)} pages"
    return f"{count}: {first}"


def title_of(aci: Aci) -> str:
    """Return what a page is called, in one short line."""
    return _short(" ".join(aci.title.split()) or aci.uri, _TITLE_MAX)


# --- text ----------------------------------------------------------------------------------------


def text(acis: Sequence[Aci], around: Around) -> str:
    """Return the plain text."""
    lines = [line for aci in acis for line in (*_text_of(aci), "")]
    return "\n".join([*lines, *_foot(around), ""])


def _text_of(aci: Aci) -> Iterator[str]:
    found = shown(aci)
    yield printable(title_of(aci))
    yield address(aci)
    yield facts(aci)
    for extract in found.extracts:
        yield "  " + printable("".join(f"*{part}*" if marked else part for part, marked in extract))
    for sign, sentences in (("+", found.added), ("-", found.removed)):
        for one in sentences:
            yield f"  {sign} {printable(one)}"


def facts(aci: Aci) -> str:
    """Say how much a page matters, when it was fetched, and which words were found."""
    found = shown(aci).words[:_WORDS_SHOWN]
    words = ", ".join(f"{printable(key)} ({count})" for key, count in found)
    return (
        f"Relevance {aci.relevance}, fetched {moment(aci.updatetime)}{f'. Found: {words}' if words else ''}"
    )


def moment(at: int) -> str:
    """Show epoch milliseconds in UTC."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _foot(around: Around) -> Iterator[str]:
    yield "-- "
    yield f"You get this as a recipient of {printable(around.owner)} of a Local Content Cache."
    if around.pages:
        yield f"All alerts: {around.pages}"
    if around.ending:
        yield f"To get no more of these mails, open this page: {around.ending}"
    if around.operator:
        yield f"The operator: {printable(around.operator)}"


def _short(said: str, most: int) -> str:
    cut = printable(said[: 2 * most])
    return cut if len(cut) <= most else f"{cut[:most]}..."


# --- HTML ----------------------------------------------------------------------------------------


def html(acis: Sequence[Aci], around: Around) -> str:
    """Return a page for mail programs: no script, no image, nothing that is loaded from elsewhere."""
    articles = Markup("").join(map(article, acis))
    foot = Markup("<br>").join(line for line in _foot(around) if line != "-- ")
    page = Markup(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
        '<body style="{style}">{articles}<hr><p style="color:#444;font-size:.85em">{foot}</p></body></html>'
    )
    return str(page.format(title=title_of(acis[0]), style=_STYLE, articles=articles, foot=foot))


def article(aci: Aci) -> Markup:
    """Return one alert, with styles of its own: mail programs and feed readers take no other."""
    found = shown(aci)
    parts = [
        Markup('<h2 style="font-size:1.15em;margin:1.2em 0 0;overflow-wrap:anywhere">{}</h2>').format(
            heading(aci)
        ),
        Markup('<p style="margin:0;color:#444;font-size:.85em;overflow-wrap:anywhere">{}<br>{}</p>').format(
            address(aci), facts(aci)
        ),
        *(Markup("<p>{}</p>").format(highlighted(one)) for one in found.extracts),
        sentences(found.added, "+", "ins", Markup(' style="color:#0a6b2d"')),
        sentences(found.removed, "-", "del", Markup(' style="color:#b00020"')),
    ]
    return Markup('<div style="margin-bottom:1.5em">{}</div>').format(Markup("").join(parts))


def address(aci: Aci) -> str:
    """Return the URL of a page, in one short line."""
    return _short(aci.uri, _URL_MAX)


def heading(aci: Aci) -> Markup:
    """Return the title, as a link where its URL is one that a browser may open."""
    if not aci.uri.startswith(("https://", "http://")):
        return Markup("{}").format(title_of(aci))
    return Markup('<a href="{}" rel="noreferrer noopener nofollow">{}</a>').format(aci.uri, title_of(aci))


def highlighted(pieces: Pieces) -> Markup:
    """Return an extract with its keywords marked."""
    return Markup("").join(
        Markup("<mark>{}</mark>").format(printable(part)) if marked else Markup("{}").format(printable(part))
        for part, marked in pieces
    )


def sentences(found: Sequence[str], sign: str, tag: str, style: Markup = _NO_STYLE) -> Markup:
    """Return changed sentences, one a line."""
    line = Markup("<p>{sign} <{tag}{style}>{one}</{tag}></p>")
    return Markup("").join(
        line.format(sign=sign, tag=Markup(tag), style=style, one=printable(one))  # noqa: S704 - of our own
        for one in found
    )


# --- for programs --------------------------------------------------------------------------------


def xml(acis: Sequence[Aci], around: Around) -> str:
    """Return the ACIs in one element, as Table 6 has each of them."""
    del around
    inner = "".join(map(xml_of, acis))
    return f'<?xml version="1.0" encoding="utf-8"?>\n<acis>\n{inner}</acis>\n'


def as_json(acis: Sequence[Aci], around: Around, *, digest: bool) -> str:
    """Return an object as Standard Webhooks has it: ``type``, ``timestamp`` and ``data``.

    The timestamp is that of the newest ACI, so that a repetition says the same.
    """
    newest = datetime.fromtimestamp(max(one.made for one in acis) / 1000, UTC)
    said = {
        "type": "alert.digest" if digest else "alert",
        "timestamp": newest.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "data": {"owner": around.owner, "acis": [record_of(one) for one in acis]},
    }
    return json.dumps(said, ensure_ascii=True)
