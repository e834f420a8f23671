"""The canonical form of a URL: one spelling for what is certainly one place (docs/links.md has the rules).

Percent-encoding and dot segments are brought into normal form by ``hyperlink`` (RFC 3986 section 6.2.2),
scheme, host, port and length by ``HttpUrl``, which is also what is fetched. References are resolved by
``domain.references``.
"""

import re
from functools import lru_cache

from hyperlink import URL, URLParseError

from lcc_scrapy.content.charsets import UTF_8, query_in
from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.references import resolve, without_blanks
from lcc_scrapy.domain.roots import URL_MAX, HttpUrl

_ODD = re.compile(r"%|/\.")
_PATH_ENDS = re.compile(r"[?#]")
_ANYWHERE = "http://x"
_HAS_PATH = re.compile(r"/?[A-Za-z0-9_.][^:]*|https?://[A-Za-z0-9].*")
"""Links of which it is certain: all else may mean the page itself."""
_SHORT = 256
"""Characters of a URL that is remembered with its canonical form; all of them take some 20 MB at most."""


def canonical(text: str, base: str = "", encoding: str = UTF_8, strip: frozenset[str] = frozenset()) -> str:
    """Return the canonical form of a link as a page writes it, seen from ``base``.

    ``encoding`` is the page's (``content/charsets.py``), in which browsers write queries; ``strip`` names
    parameters to leave out, in lower case. ``HttpUrl.parse`` takes the result and gives it back unchanged; so
    does this function. Raises ``UrlRefused`` as ``HttpUrl.parse`` does.
    """
    folder = _folder(base)
    if len(folder) + len(text) <= _SHORT and _HAS_PATH.fullmatch(text):
        return _remembered_from(folder, text, encoding, strip)
    return _seen_from(base, text, encoding, strip)


def _seen_from(base: str, text: str, encoding: str, strip: frozenset[str]) -> str:
    if len(text) > URL_MAX:
        raise UrlRefused(707, f"URL of {len(text)} characters, at most {URL_MAX}")
    joined = resolve(_with_query(without_blanks(text), encoding), base)
    return (_remembered if len(joined) <= _SHORT else _canonical)(joined, strip)


_remembered_from = lru_cache(maxsize=16384)(_seen_from)
"""Pages of one folder share most of their links."""


@lru_cache(maxsize=256)
def _folder(url: str) -> str:
    """Return a base from which links that have a path look the same as from ``url``."""
    head, slash, _ = _PATH_ENDS.split(url, maxsplit=1)[0].rpartition("/")
    return head + slash if "://" in head else url


def _canonical(text: str, strip: frozenset[str]) -> str:
    url = HttpUrl.parse(text)
    target = url.target
    if not strip and not _ODD.search(target):
        return str(url)
    target = _without(strip, target)
    if _ODD.search(target):
        target = _normal(_normal(target))  # dots may come to light only when they are decoded
    return str(HttpUrl.parse(str(HttpUrl(url.scheme, url.host, url.port, target, ""))))


_remembered = lru_cache(maxsize=16384)(_canonical)


def _with_query(link: str, encoding: str) -> str:
    if link.isascii() or encoding == UTF_8:
        return link
    link, hash_, fragment = link.partition("#")
    path, mark, query = link.partition("?")
    return path + mark + query_in(encoding, query) + hash_ + fragment


def _normal(target: str) -> str:
    """Return a path and its query in normal form; what ``hyperlink`` does not take stays as it is."""
    try:
        normal = URL.from_text(_ANYWHERE + target).normalize(fragment=False, userinfo=False)
    except (URLParseError, ValueError):
        return target
    return normal.to_text().removeprefix(_ANYWHERE)


def _without(strip: frozenset[str], target: str) -> str:
    """Leave out parameters by name, in the query (``?a=1&b=2``) and at the end of the path (``/x;a=1``)."""
    path, _, query = target.partition("?")
    path = _kept(path, ";", strip, first=1)
    query = _kept(query, "&", strip, first=0)
    return f"{path}?{query}" if query else path


def _kept(text: str, separator: str, strip: frozenset[str], first: int) -> str:
    parts = text.split(separator)
    rest = [part for part in parts[first:] if part.partition("=")[0].lower() not in strip]
    return separator.join(parts[:first] + rest)
