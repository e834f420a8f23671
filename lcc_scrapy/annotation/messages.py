"""What ``lcc annotate`` and its processors say to each other, in messages of ``machine.framed_pipes``.

    ["urds", URDs, removed numbers]             (no answer: more of them may follow)
    ["renew", whether to forget others]         → ["ready", how many there are]
    ["page", url, mimetype, charset, owners, now, numbers, exactly], body, previous or nothing
                                                → ["found", findings, seconds of CPU]
                                                → ["failed", why]

Bodies are parts; all else is JSON of simple values. While many URDs are being indexed, a page is compared
with those before, unless it wants to be ``exactly``: then it waits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from lcc_scrapy.annotation.annotating import Finding
from lcc_scrapy.domain.urds import Keyword, Method, Process, Urd

URDS, RENEW, READY, PAGE, FOUND, FAILED = "urds", "renew", "ready", "page", "found", "failed"

_NAMES = tuple(field.name for field in fields(Urd) if field.name != "keywords")
_values: Any = attrgetter(*_NAMES)


@dataclass(frozen=True, slots=True)
class Found:
    """A finding by the number and revision of its URD: what became of that meanwhile is in the database."""

    urdid: int
    revision: int
    relevance: int
    title: str
    summary: str
    detail: dict[str, Any]


def said_urds(urds: Iterable[Urd]) -> list[Any]:
    """Return URDs as lists."""
    return [[*_values(urd), [[word.key, word.weight] for word in urd.keywords]] for urd in urds]


def urds_of(said: Iterable[Sequence[Any]]) -> list[Urd]:
    """Make URDs of what ``said_urds`` returned."""
    return [_urd(one) for one in said]


def _urd(said: Sequence[Any]) -> Urd:
    values = dict(zip(_NAMES, said[:-1], strict=True))
    values["method"], values["processtype"] = Method(values["method"]), Process(values["processtype"])
    return Urd(**values, keywords=tuple(Keyword(key, weight) for key, weight in said[-1]))


def said_findings(findings: Iterable[Finding]) -> list[Any]:
    """Return findings as lists."""
    return [
        [one.urd.urdid, one.urd.revision, one.relevance, one.title, one.summary, one.detail]
        for one in findings
    ]


def findings_of(said: Iterable[Sequence[Any]]) -> tuple[Found, ...]:
    """Make findings of what ``said_findings`` returned."""
    return tuple(Found(*one) for one in said)
