"""The text of documents as search engines need it: all words of a page, and its title.

HTML is cut into tags and text by one regular expression, in the way of the HTML standard (section 13.2.5,
"Tokenization"): no tree is built, nothing is scanned twice, so that the time grows with the length alone,
whatever a site sends. (libxml2 compares every attribute of a tag with all others before it.)
"""

import html
import re
from dataclasses import dataclass
from typing import IO

from lcc_scrapy.content.charsets import decoded
from lcc_scrapy.content.declared_charset import encoding_of_text

MOST = 10_000_000
"""Bytes of a document that are read; what comes behind them cannot be found."""

_MARKUP = re.compile(
    r"text/(?:x-rendered-)?html|application/xhtml\+xml|(?:text|application)/xml|application/(?:rss|atom)\+xml"
)
_TEXT = re.compile(r"text/.*|application/(?:json|javascript)")
_OTHER_TEXT = re.compile(r"[^;]*\+(?:xml|json)")
_NOT_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_REST_OF_TAG = r"""(?:=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))|[^>])*+(?:>|\Z)"""
_NOT_SHOWN = rf"""
    <!--.*?(?:-->|\Z)
  | <(?P<raw>script|style|title)\b{_REST_OF_TAG}
    (?P<content>.*?)(?:</(?P=raw)\b[^>]*+(?:>|\Z)|\Z)
"""
_TOKEN = re.compile(
    rf"{_NOT_SHOWN} | </?(?P<name>[a-z][^\s/>]*+){_REST_OF_TAG} | <[!?/][^>]*+(?:>|\Z)",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_LINK = re.compile(
    rf"{_NOT_SHOWN} | (?P<link><a(?=[\s/>]){_REST_OF_TAG}) [^<]*+(?:<(?!/?a[\s/>])[^<]*+)*",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)  # the last repeat is not possessive: before 3.11.5, CPython stays behind what a lookahead in one has read
_HREF = re.compile(r"\shref\b", re.IGNORECASE)
_PREFORMATTED = re.compile(r"<pre\b.*?(?:</pre\b|\Z)", re.DOTALL | re.IGNORECASE)
_BREAK = "\u2029"
"""A paragraph ends. It counts as a blank for all that looks for blanks."""

_WITHIN_WORDS = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins"}
    | {"kbd", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "tt", "u", "var", "wbr"}
)
_ENDLESS_REFERENCE = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
_TITLE_MAX = 1000


@dataclass(frozen=True, slots=True)
class Text:
    """The words of a document, without markup; ``title`` is empty where there is none."""

    title: str
    text: str


def is_text(mimetype: str) -> bool:
    """Tell whether documents of a mimetype have a text, for ``html_of``."""
    kind = mimetype.partition(";")[0].strip().lower()
    return bool(_MARKUP.fullmatch(kind) or _TEXT.fullmatch(kind))


def html_of(content: IO[bytes], mimetype: str, charset: str, most: int = 0) -> str | None:
    """Return a document as HTML, without control characters; None = it is no text.

    ``charset`` is what the site said. A byte order mark goes before it; after it come what the document
    declares, UTF-8, and windows-1252, which can read everything. ``most`` bytes are read,
    0 = ``MOST``.
    """
    most = most or MOST
    if _MARKUP.fullmatch(mimetype):
        return _characters(content.read(most), charset, mimetype, most)
    if _TEXT.fullmatch(mimetype):
        characters = _characters(content.read(most), charset, mimetype, most)
        return f"<pre>{html.escape(characters, quote=False)}</pre>"
    return None


def characters_of(content: IO[bytes], mimetype: str, charset: str, most: int) -> str | None:
    """Return a document as its characters, with markup and all; None = it is no text.

    Charsets are as for ``html_of``; ``most`` bytes are read.
    """
    if not any(kind.fullmatch(mimetype) for kind in (_MARKUP, _TEXT, _OTHER_TEXT)):
        return None
    return _as_served(content.read(most), charset, mimetype, most)


@dataclass(frozen=True, slots=True)
class Paragraphs:
    """The words of a document by the paragraphs, cells, items and lines in which they are shown."""

    title: str
    paragraphs: tuple[str, ...]


def text_of_html(page: str) -> Text:
    """Return all the text of a page, of what it hides as well, but of neither scripts nor styles."""
    title, text = _title_and_text(page)
    return Text(title, " ".join(text.split()))


def paragraphs_of_html(page: str, *, link_texts: bool = True) -> Paragraphs:
    """Return the same by paragraphs; ``link_texts``: also what links (``<a href>``) show."""
    page = _PREFORMATTED.sub(lambda pre: pre[0].replace("\n", _BREAK), page)
    title, text = _title_and_text(page if link_texts else _LINK.sub(_without_link, page))
    lines = (" ".join(line.split()) for line in text.split(_BREAK))
    return Paragraphs(title, tuple(filter(None, lines)))


def _without_link(link: re.Match[str]) -> str:
    return " " if _HREF.search(link["link"] or "") else link[0]


def _title_and_text(page: str) -> tuple[str, str]:
    """Return title and text; blocks end in ``_BREAK``, and blanks are as they come."""
    titles: list[str] = []

    def cut(token: re.Match[str]) -> str:
        if (token["raw"] or "").lower() == "title":
            titles.append(token["content"])
        name = (token["name"] or "").lower()
        return "" if name in _WITHIN_WORDS else _BREAK if name else " "

    text = _unescaped(_TOKEN.sub(cut, page))
    return " ".join(_unescaped(titles[0]).split())[:_TITLE_MAX] if titles else "", text


def as_ascii(page: str) -> bytes:
    """Return HTML that is the same in every charset: all that is not ASCII as character references."""
    return page.encode("ascii", "xmlcharrefreplace")


def _unescaped(text: str) -> str:
    return _NOT_TEXT.sub(" ", html.unescape(_ENDLESS_REFERENCE.sub("\ufffd", text)))


def _characters(data: bytes, charset: str, mimetype: str, most: int) -> str:
    return _NOT_TEXT.sub(" ", _as_served(data, charset, mimetype, most))


def _as_served(data: bytes, charset: str, mimetype: str, most: int) -> str:
    """Decode what was read of a document; where that is ``most`` bytes, its last character may be cut off."""
    whole = len(data) < most
    return decoded(data, encoding_of_text(data, charset, mimetype, whole=whole), whole=whole)
