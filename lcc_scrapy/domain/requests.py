"""Requests: which pages are to be asked for because URDs are due (seed 002 sections 2 and 4, Figure 1)."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from lcc_scrapy.domain.directives import OWNERS_MAX, Directive
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.domain.urds import EVERYTHING, Method, Urd


@dataclass(frozen=True, slots=True)
class Request:
    """One fetch of a page for all ``urds`` that name it, at the highest ``urgency`` of these."""

    uri: str
    urgency: int
    urds: tuple[Urd, ...]

    def directives(self, link: HttpUrl) -> list[Directive]:
        """Return it as the crawler takes it: ``[link, parent, depth, {owners}]``, one for each depth."""
        deepest: dict[str, int] = {}
        for one in self.urds:
            deepest[one.owner] = max(one.depth, deepest.get(one.owner, 0))
        owners: defaultdict[int, list[str]] = defaultdict(list)
        for owner, depth in sorted(deepest.items()):
            owners[depth].append(owner)
        return [
            Directive(link, "", depth, tuple(those[at : at + OWNERS_MAX]))
            for depth, those in sorted(owners.items(), reverse=True)
            for at in range(0, len(those), OWNERS_MAX)
        ]


def is_asked_for(urd: Urd, now: int) -> bool:
    """Tell whether the LCC asks for the page of a URD at all; ``now`` in epoch milliseconds."""
    names_page = urd.uri != EVERYTHING
    return names_page and urd.method is Method.PULL and urd.timing > 0 and not urd.has_expired(now)


def asks_for_less(before: Urd, after: Urd) -> bool:
    """Tell whether a change of a URD may leave pages that are not reached for it any more."""
    asked = is_asked_for(before, 0)
    return asked and (not is_asked_for(after, 0) or before.uri != after.uri or before.depth > after.depth)


def requests(urds: Iterable[Urd], now: int) -> list[Request]:
    """Return the requests for due URDs and all others with the same ``uri``, most urgent first.

    All of them count as checked then, so a page is asked for at the smallest ``timing`` of its URDs.
    """
    by_uri: defaultdict[str, dict[int, Urd]] = defaultdict(dict)
    for one in urds:
        if is_asked_for(one, now):
            by_uri[one.uri][one.urdid] = one
    found = [
        Request(uri, max(one.urgency for one in its.values()), tuple(its.values()))
        for uri, its in by_uri.items()
    ]
    return sorted(found, key=lambda one: (-one.urgency, min(urd.urdid for urd in one.urds)))
