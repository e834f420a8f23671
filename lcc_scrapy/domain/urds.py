"""Unified Resource Descriptors: who wants to know what of which pages (seed 002 section 6.1, Table 4)."""

from dataclasses import dataclass
from enum import StrEnum

EVERYTHING = "*"
"""The ``uri`` of a URD about the whole cache."""

KEYWORD_MAX = 200
"""Characters of a keyword or phrase, as written."""

KEYWORDS_MAX = 1000
"""Keywords of one URD."""

WEIGHT_MAX = 1_000_000
RULE_MAX = 16 * 1024
"""Characters of a boolean rule."""

LEVELS = (0, 1, 2)
"""Service levels (``urgency``): 0 = in the daily digest, 1 = soon, 2 = at once."""


class Method(StrEnum):
    """Who says that a page may have changed: the LCC asks every ``timing`` (pull), or its provider (push)."""

    PULL = "pull"
    PUSH = "push"


class Process(StrEnum):
    """What is done with a page in scope: keywords are looked for, a rule is asked, or versions compared."""

    FILTER = "filter"
    RULE = "rule"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class Keyword:
    """What to look for, and what each occurrence counts. Several words are a phrase."""

    key: str
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Urd:
    """One interest of one owner (tables ``urd``, ``urd_keyword``). Times are epoch milliseconds (Table 4).

    ``urdid`` 0 = not stored yet. ``uri`` is a page; a folder, if it ends in ``/``; or ``EVERYTHING``. Pages
    that links lead to from there, at most ``depth`` of them, belong to it too. ``timing`` is how often the
    page is asked for (0 = never). ``lastcheck`` 0 = not yet. ``rule`` is asked where ``processtype`` says
    so. ``threshold`` is the relevance from which a page matters. ``expires`` None = never. Each change gets
    the next ``revision`` of all URDs.
    """

    urdid: int
    owner: str
    uri: str
    timing: int = 0
    lastcheck: int = 0
    port: int = 80
    protocol: str = "http"
    method: Method = Method.PULL
    processtype: Process = Process.FILTER
    rule: str = ""
    depth: int = 0
    urgency: int = 1
    threshold: int = 1
    expires: int | None = None
    revision: int = 0
    keywords: tuple[Keyword, ...] = ()

    def has_expired(self, now: int) -> bool:
        """Tell whether it counts no more; ``now`` in epoch milliseconds."""
        return self.expires is not None and self.expires <= now

    def names(self, url: str) -> bool:
        """Tell whether a page is in scope by its URL alone; owners of directives reach more."""
        if self.uri in {EVERYTHING, url}:
            return True
        return self.uri.endswith("/") and url.startswith(self.uri)
