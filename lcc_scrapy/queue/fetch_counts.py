"""What became of the fetches of late, by result and code, and which URL has waited longest."""

from collections.abc import Iterable, Mapping
from typing import Any

from lcc_scrapy.db.records import EVERYBODY
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain.fetch_counts import DAY, HOUR, since
from lcc_scrapy.queue.settlement import CONFIRMED, DELAYED, DISCARDED, FAILED, RETRYING, STORED

FAILING = frozenset({RETRYING, DELAYED, FAILED})
"""Results of fetches that brought nothing."""

Counts = Mapping[tuple[str, int], int]
"""(result, wire code, 0 = none) → how many."""

_IN_WORDS = {
    STORED: "stored",
    CONFIRMED: "confirmed",
    RETRYING: "to be tried again",
    DELAYED: "waiting for their host",
    FAILED: "failed",
    DISCARDED: "not needed any more",
}


def of_late(tx: Tx, now: int, pid: int | None = None) -> dict[str, Any]:
    """Return the counts of the last hour and day, of one provider or of all, and the oldest waiting URL.

    ``{"hour": {"since": epoch, "stored": {"total": 9, "codes": {}}, …}, "day": {…}, "oldest_waiting": {…}}``;
    what is counted is up to ten minutes more than the hour or day, ``since`` says from when on.
    """
    spans = {"hour": since(now, HOUR), "day": since(now, DAY)}
    counted = {
        name: {"since": begun, **_by_result(tx.fetch_counts(begun, pid or EVERYBODY))}
        for name, begun in spans.items()
    }
    oldest = tx.oldest_waiting(pid)
    waiting = oldest and {"url": oldest.row.furl, "pid": oldest.row.pid, "since": oldest.since}
    return {**counted, "oldest_waiting": waiting}


def _by_result(counts: Counts) -> dict[str, dict[str, Any]]:
    return {
        result: {"total": sum(its.values()), "codes": {str(code): n for code, n in most(its.items()) if code}}
        for result, its in ((result, _of_result(result, counts)) for result in _IN_WORDS)
    }


def in_words(counts: Counts) -> str:
    """Write counts in plain words: ``120 stored, 12 failed (404: 10, 603: 2)``; nothing for none."""
    found = ((result, _of_result(result, counts)) for result in _IN_WORDS)
    return ", ".join(_result_in_words(result, its) for result, its in found if its)


def most(counts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return numbers with their counts, those first of which there are most."""
    return sorted(counts, key=lambda one: (-one[1], one[0]))


def _of_result(result: str, counts: Counts) -> dict[int, int]:
    return {code: count for (name, code), count in counts.items() if name == result}


def _result_in_words(result: str, its: Mapping[int, int]) -> str:
    codes = ", ".join(f"{code}: {count}" for code, count in most(its.items()) if code)
    return f"{sum(its.values())} {_IN_WORDS[result]}{f' ({codes})' if codes else ''}"
