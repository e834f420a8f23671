"""Which URDs of an index a page matters to, how much, and why: the last steps of the pipe."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lcc_scrapy.annotation.index import Counts, Index
from lcc_scrapy.annotation.pages import PageInWork
from lcc_scrapy.domain.acis import SUMMARY_MAX
from lcc_scrapy.domain.boolean_rules import ParsedRule
from lcc_scrapy.domain.changes import Changes
from lcc_scrapy.domain.relevance import score
from lcc_scrapy.domain.urds import Process, Urd

KEYWORDS_SHOWN = 50
EXTRACTS_SHOWN = 5
"""Of one finding, those that count most."""

SENTENCES_SHOWN = 20
SENTENCE_SHOWN = 300
"""Of one finding, of those added and of those removed; characters of each."""


@dataclass(frozen=True, slots=True)
class Finding:
    """That a page matters to the owner of a URD; ``detail`` can be written as JSON (docs/annotation.md)."""

    urd: Urd
    relevance: int
    title: str
    summary: str
    detail: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Found:
    """A keyword that occurs, or a word of a rule, with weight 0."""

    key: str
    weight: int
    occurrences: int

    @property
    def score(self) -> int:
        return score(self.weight, self.occurrences)


InScope = Callable[[Urd], bool]


def findings_in(index: Index, page: PageInWork, owners: Collection[str], in_scope: InScope) -> list[Finding]:
    """Return what the URDs of an index find, in no order; ``in_scope`` decides last, as it is asked least."""
    found: list[Finding] = []
    wider = index.whatever_is_in_it(page.page.url, owners)
    if page.text is not None:
        found += _by_words(index, page, wider, in_scope)
    changed = [slot for slot in wider if index.urds[slot].processtype is Process.CHANGE]
    if changed and page.has_changed:
        found += _by_changes(index, page, changed, in_scope)
    return found


# --- keywords and rules --------------------------------------------------------------------------


def _by_words(index: Index, page: PageInWork, wider: Sequence[int], in_scope: InScope) -> Iterator[Finding]:
    counts = index.counts(page.stream.characters)
    scores = index.scores(counts)
    for slot in {*index.enough(scores), *wider}:
        urd = index.urds[slot]
        if urd.processtype is not Process.CHANGE and in_scope(urd):
            found = _occurring(index, slot, counts)
            relevance = _relevance(urd, scores.get(slot, 0), index.rules.get(slot), found, page)
            if relevance is not None:
                yield _finding(urd, relevance, found, page)


def _relevance(
    urd: Urd, relevance: int, rule: ParsedRule | None, found: Sequence[_Found], page: PageInWork
) -> int | None:
    """Return the relevance, None where it is too little. A rule without keywords decides alone."""
    if urd.processtype is Process.RULE:
        if rule is None or not rule.rule.holds(_Text(found, page)):
            return None
        if not urd.keywords:
            return max(1, urd.threshold)
    return relevance if relevance >= urd.threshold else None


class _Text:
    """What a rule asks (``Occurrences``)."""

    def __init__(self, found: Sequence[_Found], page: PageInWork) -> None:
        self._has = {one.key for one in found if not one.weight}
        self._page = page

    def has(self, term: str) -> bool:
        return term in self._has

    def places(self, term: str) -> Sequence[int]:
        return self._page.places(f" {term} ")


def _occurring(index: Index, slot: int, counts: Counts) -> list[_Found]:
    """Return the keywords that occur, and behind them the terms of the rule that do."""
    urd, rule = index.urds[slot], index.rules.get(slot)
    keys = [(one.key, one.weight) for one in urd.keywords] + [
        (key, 0) for key in (rule.terms if rule else ())
    ]
    occurrences = index.occurrences(slot, counts)
    return [
        _Found(key, weight, count) for (key, weight), count in zip(keys, occurrences, strict=True) if count
    ]


def _finding(urd: Urd, relevance: int, found: Sequence[_Found], page: PageInWork) -> Finding:
    best = sorted(found, key=lambda one: -one.score)
    places = [page.first_place(one.key) for one in best[: 2 * EXTRACTS_SHOWN]]
    extracts = page.stream.extracts(filter(None, places), EXTRACTS_SHOWN)
    summary = " ".join(f"{number}) {one.text}" for number, one in enumerate(extracts, 1))
    detail: dict[str, Any] = {"keywords": _keywords(best)}
    detail["extracts"] = [{"text": one.text, "marks": [list(mark) for mark in one.marks]} for one in extracts]
    return Finding(urd, relevance, page.title, summary[:SUMMARY_MAX], detail)


def _keywords(found: Sequence[_Found]) -> list[dict[str, Any]]:
    return [
        {"key": one.key, "weight": one.weight, "occurrences": one.occurrences}
        for one in found[:KEYWORDS_SHOWN]
    ]


# --- changes -------------------------------------------------------------------------------------


def _by_changes(index: Index, page: PageInWork, slots: Sequence[int], in_scope: InScope) -> Iterator[Finding]:
    counts: Mapping[int, int] | None = None
    shown = _shown(page.changes) if page.changes else None
    for slot in slots:
        urd = index.urds[slot]
        if not in_scope(urd):
            continue
        if not urd.keywords:
            yield _changed(urd, max(1, urd.threshold), (), page, shown)
        elif shown is not None:
            counts = index.counts(page.changed_words.characters) if counts is None else counts
            found = _occurring(index, slot, counts)
            relevance = sum(one.score for one in found)
            if found and relevance >= urd.threshold:
                yield _changed(urd, relevance, found, page, shown)


@dataclass(frozen=True, slots=True)
class _Shown:
    summary: str
    detail: dict[str, Any]


def _shown(changes: Changes) -> _Shown:
    added, removed = _cut(changes.added), _cut(changes.removed)
    lines = [f"+ {one}" for one in added] + [f"- {one}" for one in removed]
    cut = changes.cut or max(len(changes.added), len(changes.removed)) > SENTENCES_SHOWN
    detail = {"added": added, "removed": removed, "diff": changes.diff, "cut": cut}
    return _Shown("\n".join(lines)[:SUMMARY_MAX], detail)


def _cut(sentences: Sequence[str]) -> list[str]:
    return [
        one if len(one) <= SENTENCE_SHOWN else f"{one[: SENTENCE_SHOWN - 1]}\u2026"
        for one in sentences[:SENTENCES_SHOWN]
    ]


def _changed(
    urd: Urd, relevance: int, found: Sequence[_Found], page: PageInWork, shown: _Shown | None
) -> Finding:
    keywords = _keywords(sorted(found, key=lambda one: -one.score))
    if shown is None:
        assert page.page.previous is not None
        summary = f"other content: {len(page.page.previous)} bytes before, {len(page.page.body)} now"
        return Finding(urd, relevance, page.title, summary, {"keywords": keywords})
    return Finding(urd, relevance, page.title, shown.summary, {"keywords": keywords, **shown.detail})
