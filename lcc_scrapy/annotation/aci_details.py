"""What the ``detail`` of an ACI says, for people: where the words were found, and what changed."""

from collections.abc import Iterator
from dataclasses import dataclass

from lcc_scrapy.annotation.aci_formats import detail_of
from lcc_scrapy.domain.acis import Aci

Pieces = tuple[tuple[str, bool], ...]
"""A text in pieces, each with whether it is to be highlighted."""

EXTRACTS_SHOWN = 10
SENTENCES_SHOWN = 20
DIFF_SHOWN = 20_000
"""Characters of a diff."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of an ACI. ``words`` are keywords with their occurrences; ``diff`` is a unified diff."""

    words: tuple[tuple[str, int], ...]
    extracts: tuple[Pieces, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    diff: str


def shown(aci: Aci) -> Shown:
    """Return what is shown of an ACI; what is not as expected is left out, for others may write details."""
    detail = detail_of(aci)
    diff = detail.get("diff")
    return Shown(
        tuple(_words(detail.get("keywords"))),
        tuple(_extracts(detail.get("extracts"))) or _summary(aci, changed="added" in detail),
        _sentences(detail.get("added")),
        _sentences(detail.get("removed")),
        diff[:DIFF_SHOWN] if isinstance(diff, str) else "",
    )


def _summary(aci: Aci, *, changed: bool) -> tuple[Pieces, ...]:
    return () if changed or not aci.summary else (((aci.summary, False),),)


def _words(found: object) -> Iterator[tuple[str, int]]:
    for one in _objects(found):
        key, count = one.get("key"), one.get("occurrences")
        if isinstance(key, str) and isinstance(count, int):
            yield key, count


def _extracts(found: object) -> Iterator[Pieces]:
    for one in _objects(found)[:EXTRACTS_SHOWN]:
        text, marks = one.get("text"), one.get("marks")
        if isinstance(text, str) and text:
            yield tuple(_pieces(text, marks if isinstance(marks, list) else []))


def _pieces(text: str, marks: list[object]) -> Iterator[tuple[str, bool]]:
    """Cut a text at its marks, [first, behind the last] each; what overlaps or leads outside is no mark."""
    at = 0
    for mark in marks:
        if not (isinstance(mark, list) and len(mark) == 2 and all(type(one) is int for one in mark)):  # noqa: PLR2004
            continue
        begin, end = mark
        if at <= begin < end <= len(text):
            if at < begin:
                yield text[at:begin], False
            yield text[begin:end], True
            at = end
    if at < len(text):
        yield text[at:], False


def _sentences(found: object) -> tuple[str, ...]:
    texts = (one for one in found if isinstance(one, str)) if isinstance(found, list) else ()
    return tuple(texts)[:SENTENCES_SHOWN]


def _objects(found: object) -> list[dict[str, object]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
