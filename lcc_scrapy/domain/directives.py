"""Crawling directives: somebody asks for a URL, and for what can be reached from there (seed 002 section 4).

"These requests have the following format: [Link, ParentLink, Depth, {owners}]".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lcc_scrapy.domain.errors import UrlRefused
from lcc_scrapy.domain.roots import HttpUrl, Root

DEPTH_MAX = 100
OWNERS_MAX = 100
"""Owners of one directive; there is no limit to those of a URL."""

OWNER_MAX = 64
"""Characters of an owner."""

_NOT_IN_OWNERS = frozenset(" ,{}[]<>\"'&")
NOBODY = ""
"""The owner of what a directive without owners asks for."""

Owners = Mapping[bytes, Sequence[str]]
"""The owners of documents by key, by name; those without any are left out."""

NO_OWNERS: Owners = {}


@dataclass(frozen=True, slots=True)
class Directive:
    """A request for ``link``, which stands in the page ``parent`` ("" = not said), by ``owners``.

    ``depth``: how many links to follow from there; 0 = the page itself only.
    """

    link: HttpUrl
    parent: str
    depth: int
    owners: tuple[str, ...]


def directive(link: str, parent: str, depth: str | int, owners: Iterable[str]) -> Directive:
    """Check what was written; raises ``ValueError`` with what is wrong in one line."""
    return Directive(
        _url("link", link), str(_url("parent link", parent)) if parent else "", _depth(depth), _owners(owners)
    )


def _url(what: str, text: str) -> HttpUrl:
    try:
        return HttpUrl.parse(text)
    except UrlRefused as refused:
        raise ValueError(f"{what} {text[:80]!r}: {refused.detail}") from None


def _depth(said: str | int) -> int:
    text = str(said)
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(DEPTH_MAX))) or int(text) > DEPTH_MAX:
        raise ValueError(f"depth {text[:20]!r}, expected a whole number from 0 to {DEPTH_MAX}")
    return int(text)


def _owners(names: Iterable[str]) -> tuple[str, ...]:
    owners = tuple(dict.fromkeys(names))
    if len(owners) > OWNERS_MAX:
        raise ValueError(f"{len(owners)} owners, at most {OWNERS_MAX}")
    for owner in owners:
        checked_owner(owner)
    return owners


def checked_owner(name: str) -> str:
    """Return the name of an owner; raises ``ValueError`` with what is wrong in one line."""
    if not 0 < len(name) <= OWNER_MAX or not name.isprintable() or not _NOT_IN_OWNERS.isdisjoint(name):
        raise ValueError(
            f"owner {name[:OWNER_MAX]!r}, expected 1 to {OWNER_MAX} characters without blanks, commas,"
            " brackets and quotes"
        )
    return name


class Territories:
    """Which providers may have a URL fetched, by the roots of all of them; ``roots`` are pairs with pids."""

    def __init__(self, roots: Iterable[tuple[int, Root]]) -> None:
        self._of_host: dict[str, list[tuple[int, Root]]] = {}
        for pid, root in roots:
            self._of_host.setdefault(root.url.host, []).append((pid, root))

    def whose(self, url: HttpUrl) -> int:
        """Return the one provider that may have a URL fetched; raises ``ValueError`` when it is not one."""
        near = self._of_host.get(url.host, ())
        pids = sorted({pid for pid, root in near if root.covers(url)})
        if not pids:
            raise ValueError(f"{url} lies inside the roots of no provider that is asked")
        if len(pids) > 1:
            which = ", ".join(map(str, pids))
            raise ValueError(f"{url} lies inside the roots of providers {which}: say which, with --provider")
        return pids[0]

    def nearest(self, url: HttpUrl) -> int | None:
        """Return the first provider that may have a URL fetched, by number; None when there is none."""
        near = self._of_host.get(url.host, ())
        return min((pid for pid, root in near if root.covers(url)), default=None)
