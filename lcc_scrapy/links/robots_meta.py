"""What a page tells robots: meta robots and the X-Robots-Tag header."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_WITH_VALUE = frozenset({"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"})
_SEPARATOR = re.compile(r"[,;]")


@dataclass(frozen=True, slots=True)
class Directives:
    """Whether a document may be kept, and whether its links may be followed."""

    index: bool = True
    follow: bool = True

    def and_(self, words: Iterable[str]) -> "Directives":
        """Return what holds with these words too: who forbids wins."""
        said = {word.strip().lower() for word in words}
        return Directives(
            self.index and not said & {"noindex", "none"}, self.follow and not said & {"nofollow", "none"}
        )

    def both(self, other: "Directives") -> "Directives":
        """Return what holds with those of another place."""
        return Directives(self.index and other.index, self.follow and other.follow)


def words_of(content: str) -> list[str]:
    """Return the directives of a meta element's ``content``."""
    return _SEPARATOR.split(content)


def of_headers(headers: Iterable[tuple[str, str]], agent: str) -> Directives:
    """Return what the X-Robots-Tag headers say to any robot and to ``agent`` (a product token)."""
    found = Directives()
    for name, value in headers:
        if name.lower() == "x-robots-tag":
            found = found.and_(_addressed(value, agent.lower()))
    return found


def _addressed(value: str, agent: str) -> Iterator[str]:
    """Yield the directives for us: ``name:`` addresses those up to the next name to one robot."""
    for_us = True
    for part in value.split(","):
        name, colon, rest = part.partition(":")
        if colon and name.strip().lower() not in _WITH_VALUE:
            for_us = name.strip().lower() in {agent, "*"}
            part = rest  # noqa: PLW2901
        if for_us:
            yield part
