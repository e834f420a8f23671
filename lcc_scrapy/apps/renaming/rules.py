"""A root that moves: which URLs get which other names (``lcc provider rename-root``).

A URL that begins with the old root begins with the new one afterwards; what follows stays, character for
character. So do conceptual URLs, which are what the provider wrote: one that is relative, or a name of its
own, stays, and the key with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.entries import urlkey
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.queue import QueuedUrl
from lcc_scrapy.domain.roots import URL_MAX, HttpUrl, Root
from lcc_scrapy.domain.sent import as_sent, form_of, values_of

NAMED = 3
"""URLs that a refusal names."""


class RenameRefused(LccError):
    """A root cannot be renamed so; nothing has changed."""


@dataclass(frozen=True, slots=True)
class Renaming:
    """``old`` becomes ``new``; ``begins`` has what URLs begin with, and what they begin with afterwards.

    An http root covers https of its host too, so there are two of them then.
    """

    old: Root
    new: Root
    begins: tuple[tuple[str, str], ...]

    @classmethod
    def between(cls, old: Root, new: Root) -> "Renaming":
        """Return how URLs are renamed; raises ``RenameRefused`` where one could be renamed twice."""
        before, after = str(old), str(new)
        if before == after:
            raise RenameRefused(f"{after} is the same root")
        if before.endswith("/") != after.endswith("/"):
            raise RenameRefused(f"{before} and {after}: let both end in a slash, or none")
        if _overlap(before, after):
            raise RenameRefused(f"{before} and {after} lie within each other: name a root beside it")
        begins = [(before, after)]
        upgraded, to = _upgraded(old), _upgraded(new) or after
        if upgraded and not _overlap(upgraded, after) and not _overlap(upgraded, to):
            begins.append((upgraded, to))
        return cls(old, new, tuple(begins))

    def url(self, text: str) -> str:
        """Return the name that a URL has afterwards: its own, unless it begins with the old root."""
        return next((other for _, other in self._matches(text) if len(other) <= URL_MAX), text)

    def is_too_long(self, text: str) -> bool:
        """Tell whether a URL cannot be renamed because it would be too long."""
        return any(len(other) > URL_MAX for _, other in self._matches(text))

    def alike(self, text: str) -> list[str]:
        """Return the other URLs that would get the same name as this one."""
        name = self.url(text)
        ways = ((begin, to) for begin, to in self.begins if name != text and name.startswith(to))
        return [other for begin, to in ways if (other := begin + name[len(to) :]) != text]

    def _matches(self, text: str) -> list[tuple[str, str]]:
        """Return what a URL begins with, and what it would be called then."""
        spelt = _with_plain_host(text)
        return [(begin, to + spelt[len(begin) :]) for begin, to in self.begins if _lies_below(spelt, begin)]

    def document(self, row: CachedUrl) -> CachedUrl:
        """Return a document under its new name, not told yet; the same one if it keeps all its URLs."""
        curl = self.url(row.curl)
        return replace(
            row,
            urlkey=urlkey(row.pid, curl, row.mimetype),
            curl=curl,
            burl=self.optional(row.burl),
            furl=self.url(row.furl),
            final_url=self.url(row.final_url),
        )

    def waiting(self, row: QueuedUrl) -> QueuedUrl:
        """Return a waiting URL under its new name; its provider is told of it as it was sent."""
        curl = self.url(row.curl)
        named = replace(
            row,
            urlkey=urlkey(row.pid, curl, row.mimetype),
            curl=curl,
            burl=self.optional(row.burl),
            furl=self.url(row.furl),
        )
        if named == row or row.sent is None:
            return named
        return replace(named, sent=form_of(as_sent(row.sent, values_of(row)), values_of(named), ""))

    def optional(self, text: str | None) -> str | None:
        """Return the name that a URL has afterwards, if there is one."""
        return None if text is None else self.url(text)


def _overlap(one: str, other: str) -> bool:
    return _lies_below(one, other) or _lies_below(other, one)


def _lies_below(url: str, begin: str) -> bool:
    """Tell whether a URL plainly lies below a root, as it is written."""
    if not url.startswith(begin):
        return False
    return begin.endswith("/") or url[len(begin) : len(begin) + 1] in {"", "/", "?"}


def _upgraded(root: Root) -> str:
    """Return an http root as https, "" where it does not cover that."""
    if root.url.scheme != "http" or not root.url.has_default_port:
        return ""
    return str(HttpUrl("https", root.url.host, 443, root.url.path, root.url.query))


def _with_plain_host(text: str) -> str:
    """Return a URL with scheme and host in lower case, in which they are compared."""
    scheme, colon, rest = text.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}{colon}{host.lower()}{slash}{path}" if colon else text


def some_of(urls: Sequence[str], count: int) -> str:
    """Name some URLs in a refusal, of so many."""
    more = count - len(urls)
    return ", ".join(urls) + (f" and {more} more" if more > 0 else "")
