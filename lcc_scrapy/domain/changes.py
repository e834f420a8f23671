"""What changed between two versions of a text: sentences added and removed, and a unified diff.

The time grows with the length of both alone. ``difflib`` is quadratic at best for what strangers may send, so
lines are aligned as "patience diff" does in one step: by those that stand once in each version.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

DIFF_MAX = 20_000
"""Characters of a diff."""

LINE_SHOWN = 300
"""Characters of a sentence in a diff."""

CONTEXT = 2
"""Unchanged sentences around changed ones in a diff."""

_END = re.compile(r"(?<=[.!?\u2026]) +|(?<=[\u3002\uff01\uff1f]) *")


@dataclass(frozen=True, slots=True)
class Changes:
    """Sentences that only one version has, in their order. ``cut``: the diff is not whole."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    diff: str
    cut: bool


@dataclass(frozen=True, slots=True)
class _Gap:
    """Lines ``old_at`` to ``old_end`` of the old version became ``new_at`` to ``new_end`` of the new one."""

    old_at: int
    old_end: int
    new_at: int
    new_end: int


def sentences_of(paragraphs: Iterable[str]) -> list[str]:
    """Return the sentences of a text; each paragraph ends one."""
    return [one for paragraph in paragraphs for one in _END.split(paragraph) if one]


def changes_between(old: Sequence[str], new: Sequence[str]) -> Changes | None:
    """Compare the sentences of two versions; None = no other sentences, at most in another order."""
    added, removed = _without(new, old), _without(old, new)
    if not added and not removed:
        return None
    diff, cut = _unified(old, new)
    return Changes(added, removed, diff, cut)


def _without(these: Sequence[str], those: Sequence[str]) -> tuple[str, ...]:
    """Return sentences that stand in ``these`` more often than in ``those``: the last ones of each."""
    left = Counter(those)
    found = []
    for one in these:
        if left[one]:
            left[one] -= 1
        else:
            found.append(one)
    return tuple(found)


# --- alignment -----------------------------------------------------------------------------------


def _gaps(old: Sequence[str], new: Sequence[str]) -> Iterator[_Gap]:
    """Yield what lies between aligned lines, in order."""
    at, to = 0, 0
    for old_end, new_end in [*_anchors(old, new), (len(old), len(new))]:
        while at < old_end and to < new_end and old[at] == new[to]:
            at, to = at + 1, to + 1
        last, until = old_end, new_end
        while last > at and until > to and old[last - 1] == new[until - 1]:
            last, until = last - 1, until - 1
        if last > at or until > to:
            yield _Gap(at, last, to, until)
        at, to = old_end, new_end


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest rising sequence of (old, new) places of lines that stand once in each version."""
    places = dict(_once(new))
    pairs = [(at, places[line]) for line, at in _once(old) if line in places]
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, to) in enumerate(pairs):
        length = bisect_left(ends, to)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [to]
        last[length : length + 1] = [number]
    return _followed(pairs, before, last[-1] if last else -1)


def _followed(pairs: Sequence[tuple[int, int]], before: Sequence[int], number: int) -> list[tuple[int, int]]:
    found = []
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _once(lines: Sequence[str]) -> Iterator[tuple[str, int]]:
    counted = Counter(lines)
    return ((line, at) for at, line in enumerate(lines) if counted[line] == 1)


# --- unified diff --------------------------------------------------------------------------------


def _unified(old: Sequence[str], new: Sequence[str]) -> tuple[str, bool]:
    """Return a diff, and whether it is cut at ``DIFF_MAX``."""
    lines = ["--- before", "+++ after"]
    left = DIFF_MAX - sum(len(line) + 1 for line in lines)
    for line in _lines(old, new):
        left -= len(line) + 1
        if left < 0:
            return "\n".join(lines) + "\n", True
        lines.append(line)
    return "\n".join(lines) + "\n", False


def _lines(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for hunk in _hunks(_gaps(old, new)):
        first, last = hunk[0], hunk[-1]
        before = min(CONTEXT, first.old_at)
        after = min(CONTEXT, len(old) - last.old_end)
        span = (
            range(first.old_at - before, last.old_end + after),
            range(first.new_at - before, last.new_end + after),
        )
        yield f"@@ -{_counted(span[0])} +{_counted(span[1])} @@"
        yield from _shown(hunk, old, new, span[0])


def _shown(hunk: Sequence[_Gap], old: Sequence[str], new: Sequence[str], span: range) -> Iterator[str]:
    at = span.start
    for gap in hunk:
        yield from (" " + _cut(old[line]) for line in range(at, gap.old_at))
        yield from ("-" + _cut(old[line]) for line in range(gap.old_at, gap.old_end))
        yield from ("+" + _cut(new[line]) for line in range(gap.new_at, gap.new_end))
        at = gap.old_end
    yield from (" " + _cut(old[line]) for line in range(at, span.stop))


def _hunks(gaps: Iterable[_Gap]) -> Iterator[list[_Gap]]:
    """Yield gaps that stand close together."""
    hunk: list[_Gap] = []
    for gap in gaps:
        if hunk and gap.old_at - hunk[-1].old_end > 2 * CONTEXT:
            yield hunk
            hunk = []
        hunk.append(gap)
    if hunk:
        yield hunk


def _counted(lines: range) -> str:
    """Write a range as diffs do: an empty one by the line before it."""
    return f"{lines.start + 1 if lines else lines.start},{len(lines)}"


def _cut(line: str) -> str:
    return line if len(line) <= LINE_SHOWN else line[: LINE_SHOWN - 1] + "\u2026"
