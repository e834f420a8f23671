"""Index pages of Apache (mod_autoindex), nginx (autoindex, HTML and JSON) and lighttpd (mod_dirlisting).

All of them link each entry by its name; a slash at its end says that it is a directory. Symbolic links look
like what they lead to. Only some say exact sizes.
"""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any
from urllib.parse import unquote_to_bytes

_TITLE = re.compile(r"<title>\s*Index of /", re.IGNORECASE)
_LINK = re.compile(r"<a\s[^<>]*>", re.IGNORECASE)
_HREF = re.compile(r"""\shref\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_DATE = r"(?:\d{4}-\d\d-\d\d|\d\d-[A-Z][a-z]{2}-\d{4}|\d{4}-[A-Z][a-z]{2}-\d\d) \d\d:\d\d(?::\d\d)?"
_SAID = re.compile(rf"({_DATE})\s+(?:(\d{{1,20}}(?:\.\d)?)\s?([KMGTPE]?)|-)")
_SCHEME = re.compile(r"(?:https?|ftp|mailto|javascript|data|news):", re.IGNORECASE)
_OBJECT = re.compile(r'[\s,]*+(\{(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+\})', re.DOTALL)
TAIL = 4096
"""Characters behind a link that are looked at."""

HREF = 4096
"""Characters of a link's address: file names have 255 bytes, and nothing longer is one."""

LINKS, OBJECT = 200_000, 65_536
"""Entries of one page, and characters of one in JSON: a page costs memory for these only."""


class NoIndex(ValueError):
    """A page is no index page; the text says why, if it is not that it does not look like one."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """One entry of an index page. ``size`` is exact, -1 = not known; ``said`` is all that the page says."""

    name: bytes
    is_dir: bool
    size: int = -1
    said: str = ""


def read(body: bytes, mimetype: str) -> list[Indexed]:
    """Return the entries of a page; raises ``NoIndex``. ``mimetype`` is as served, empty = not said."""
    if mimetype == "application/json" or (not mimetype and body.lstrip().startswith(b"[")):
        return _of_json(body)
    text = body.decode("latin-1")
    if not _TITLE.search(text[:TAIL]):
        raise NoIndex
    found = {one.name: one for one in _of_html(text)}
    return list(found.values())


def _of_html(text: str) -> Iterator[Indexed]:
    links = chain(_LINK.finditer(text), [None])
    for number, (link, following) in enumerate(pairwise(links)):
        if number >= LINKS:
            raise NoIndex(f"has more than {LINKS} links")
        assert link is not None
        end = len(text) if following is None else following.start()
        href = _HREF.search(link[0])
        reference = (href[1] or href[2] or "") if href else ""
        name = _name(html.unescape(reference)) if len(reference) <= HREF else b""
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
        return [one for one in map(_of_object, _objects(body)) if one is not None]
    except NoIndex:
        raise
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NoIndex from None


def _objects(body: bytes) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list, one after the other; there is nothing else in the listings of nginx."""
    text = body.decode("utf-8", "surrogateescape").strip()
    if not (text.startswith("[") and text.endswith("]")):
        raise NoIndex
    at, end = 1, len(text) - 1
    for _ in range(LINKS):
        found = _OBJECT.match(text, at, min(end, at + OBJECT))
        if found is None:
            break
        yield json.loads(found[1], strict=False)
        at = found.end()
    if text[at:end].strip():
        raise NoIndex(f"has more than {LINKS} entries, or others than those of nginx")


def _of_object(one: dict[str, Any]) -> Indexed | None:
    name = one["name"].encode("utf-8", "surrogateescape")
    if one["type"] == "directory":
        return Indexed(name, is_dir=True, said=str(one.get("mtime")))
    if one["type"] != "file":
        return None
    size = one["size"]
    return Indexed(name, False, size if type(size) is int else -1, f"{one.get('mtime')} {size}")
