"""Index pages of Apache (mod_autoindex), nginx (autoindex, HTML and JSON) and lighttpd (mod_dirlisting).

All of them link each entry by its name; a slash at its end says that it is a directory. Symbolic links look
like what they lead to. Only some say exact sizes.
"""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

_TITLE = re.compile(r"<title>\s*Index of /", re.IGNORECASE)
_LINK = re.compile(r"<a\s[^<>]*>", re.IGNORECASE)
_HREF = re.compile(r"""\shref\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_DATE = r"(?:\d{4}-\d\d-\d\d|\d\d-[A-Z][a-z]{2}-\d{4}|\d{4}-[A-Z][a-z]{2}-\d\d) \d\d:\d\d(?::\d\d)?"
_SAID = re.compile(rf"({_DATE})\s+(?:(\d{{1,20}}(?:\.\d)?)\s?([KMGTPE]?)|-)")
_SCHEME = re.compile(r"(?:https?|ftp|mailto|javascript|data|news):", re.IGNORECASE)
TAIL = 4096
"""Characters behind a link that are looked at."""


class NoIndex(ValueError):
    """A page is no index page."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """One entry of an index page. ``size`` is exact, -1 = not known; ``said`` is all that the page says."""

    name: bytes
    is_dir: bool
    size: int = -1
    said: str = ""


def read(body: bytes, mimetype: str) -> list[Indexed]:
    """Return the entries of a page; raises ``NoIndex``."""
    if mimetype.partition(";")[0].strip().lower() == "application/json":
        return _of_json(body)
    text = body.decode("latin-1")
    if not _TITLE.search(text[:TAIL]):
        raise NoIndex
    found = {one.name: one for one in _of_html(text)}
    return list(found.values())


def _of_html(text: str) -> Iterator[Indexed]:
    links = list(_LINK.finditer(text))
    ends = [link.start() for link in links[1:]] + [len(text)]
    for link, end in zip(links, ends, strict=False):  # without a link there is one end too many
        href = _HREF.search(link[0])
        name = _name(html.unescape(href[1] or href[2] or "")) if href else b""
        if name:
            yield _entry(name, text[link.end() : min(end, link.end() + TAIL)])


def _name(href: str) -> bytes:
    """Return the name of an entry, with a slash behind that of a directory; empty = the link is none."""
    href = href.removeprefix("./")
    if not href or _SCHEME.match(href) or any(mark in href for mark in "?#"):
        return b""
    if "/" in href.removesuffix("/") or href in {"/", "../", ".."}:
        return b""
    return unquote_to_bytes(href.encode("latin-1", "replace"))


def _entry(name: bytes, behind: str) -> Indexed:
    said = _SAID.search(html.unescape(_TAG.sub(" ", behind)))
    is_dir = name.endswith(b"/")
    exact = said is not None and said[2] is not None and not said[3] and "." not in said[2]
    size = int(said[2]) if said and exact and not is_dir else -1
    return Indexed(name.removesuffix(b"/"), is_dir, size, said[0] if said else "")


def _of_json(body: bytes) -> list[Indexed]:
    try:
        listed: Any = json.loads(body.decode("utf-8", "surrogateescape"), strict=False)
        if not isinstance(listed, list):
            raise NoIndex
        return [one for one in map(_of_object, listed) if one is not None]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise NoIndex from None


def _of_object(one: dict[str, Any]) -> Indexed | None:
    name = one["name"].encode("utf-8", "surrogateescape")
    if one["type"] == "directory":
        return Indexed(name, is_dir=True, said=str(one.get("mtime")))
    if one["type"] != "file":
        return None
    size = one["size"]
    return Indexed(name, False, size if type(size) is int else -1, f"{one.get('mtime')} {size}")
