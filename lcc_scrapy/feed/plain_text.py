"""The text of documents as search engines need it: all words of a page, and its title.

HTML is cut into tags and text by one regular expression, in the way of the HTML standard (section 13.2.5,
"Tokenization"): no tree is built, nothing is scanned twice, so that the time grows with the length alone,
whatever a site sends. (libxml2 compares every attribute of a tag with all others before it.)
"""

import codecs
import html
import re
from dataclasses import dataclass
from typing import IO

from w3lib.encoding import html_body_declared_encoding, read_bom

from lcc_scrapy.content.charsets import codec_of

MOST = 10_000_000
"""Bytes of a document that are read; what comes behind them cannot be found."""

_MARKUP = re.compile(
    r"text/html|application/xhtml\+xml|(?:text|application)/xml|application/(?:rss|atom)\+xml"
)
_TEXT = re.compile(r"text/.*|application/(?:json|javascript)")
_NOT_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_TOKEN = re.compile(
    r"""
    <!--.*?(?:-->|\Z)
  | <(?P<raw>script|style|title)\b(?:=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))|[^>])*+(?:>|\Z)
    (?P<content>.*?)(?:</(?P=raw)\b[^>]*+(?:>|\Z)|\Z)
  | </?(?P<name>[a-z][^\s/>]*+)(?:=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))|[^>])*+(?:>|\Z)
  | <[!?/][^>]*+(?:>|\Z)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
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


def html_of(content: IO[bytes], mimetype: str, charset: str) -> str | None:
    """Return a document as HTML, without control characters; None = it is no text.

    ``charset`` is what the site said. A byte order mark goes before it; after it come what the document
    declares, UTF-8, and windows-1252, which can read everything.
    """
    if _MARKUP.fullmatch(mimetype):
        return _characters(content.read(MOST), charset, declares=True)
    if _TEXT.fullmatch(mimetype):
        return f"<pre>{html.escape(_characters(content.read(MOST), charset), quote=False)}</pre>"
    return None


def text_of_html(page: str) -> Text:
    """Return all the text of a page, of what it hides as well, but of neither scripts nor styles."""
    titles: list[str] = []

    def cut(token: re.Match[str]) -> str:
        if (token["raw"] or "").lower() == "title":
            titles.append(token["content"])
        return "" if (token["name"] or "").lower() in _WITHIN_WORDS else " "

    text = _unescaped(_TOKEN.sub(cut, page))
    return Text(
        " ".join(_unescaped(titles[0]).split())[:_TITLE_MAX] if titles else "", " ".join(text.split())
    )


def as_ascii(page: str) -> bytes:
    """Return HTML that is the same in every charset: all that is not ASCII as character references."""
    return page.encode("ascii", "xmlcharrefreplace")


def _unescaped(text: str) -> str:
    return _NOT_TEXT.sub(" ", html.unescape(_ENDLESS_REFERENCE.sub("\ufffd", text)))


def _characters(data: bytes, charset: str, *, declares: bool = False) -> str:
    encoding, mark = read_bom(data)
    if encoding is None:
        encoding = codec_of(charset) or (codec_of(html_body_declared_encoding(data)) if declares else "")
    if not encoding:
        encoding = "utf-8" if _is_utf8(data) else "cp1252"
    return _NOT_TEXT.sub(" ", _decoded(data[len(mark or b"") :], encoding, "replace", len(data) < MOST))


def _decoded(data: bytes, encoding: str, errors: str, whole: bool) -> str:
    """Decode; of a document that is not whole, the last character may be cut off."""
    return codecs.getincrementaldecoder(encoding)(errors).decode(data, whole)


def _is_utf8(data: bytes) -> bool:
    try:
        _decoded(data, "utf-8", "strict", len(data) < MOST)
    except UnicodeDecodeError:
        return False
    return True
