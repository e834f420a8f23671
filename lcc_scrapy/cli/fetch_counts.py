"""Recent outcomes of fetches, as ``lcc status`` and ``lcc provider show`` print them."""

import time
from collections.abc import Iterator
from typing import Any

from lcc_scrapy.cli import printing


def lines(facts: dict[str, Any]) -> Iterator[tuple[str, object]]:
    """Write what ``queue.fetch_counts.of_late`` tells."""
    from lcc_scrapy.queue.fetch_counts import in_words

    for name in ("hour", "day"):
        yield f"last {name}", in_words(_counts(facts[name])) or "nothing was fetched"
    oldest = facts["oldest_waiting"]
    if oldest is not None:
        yield "oldest", f"{oldest['url']} of provider {oldest['pid']}{_for_how_long(oldest['since'])}"


def _counts(facts: dict[str, Any]) -> dict[tuple[str, int], int]:
    counts: dict[tuple[str, int], int] = {}
    for result, its in facts.items():
        if result != "since" and its["total"]:
            codes = {int(code): count for code, count in its["codes"].items()}
            codes[0] = its["total"] - sum(codes.values())
            counts |= {(result, code): count for code, count in codes.items() if count}
    return counts


def _for_how_long(since: int) -> str:
    if not since:
        return ""
    return f", for {printing.duration(max(0, int(time.time()) - since))}"
