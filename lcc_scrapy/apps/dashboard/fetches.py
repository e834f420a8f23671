"""How fetches ended: charts of the last hour and day, and tables of results and codes."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from lcc_scrapy.apps.dashboard.layout import table
from lcc_scrapy.domain.errors import text_of
from lcc_scrapy.domain.fetch_counts import Column
from lcc_scrapy.domain.shown import number
from lcc_scrapy.queue.fetch_counts import FAILING

_HEIGHT, _WIDTH, _GAP = 100, 20, 2
"""Of a chart, of a column with its gap, of a gap: units of the picture, which is scaled."""

_CHART = Markup(
    '<figure><figcaption id="{name}-t">{title}</figcaption>'
    '<svg class="chart" viewBox="0 0 {width} {height}" preserveAspectRatio="none" role="img"'
    ' aria-labelledby="{name}-t {name}-d"><desc id="{name}-d">{told}</desc>{bars}</svg>'
    "<p><small>{told}</small></p><details><summary>Numbers</summary>{numbers}</details></figure>"
)
_BAR = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"></rect>')


def chart(name: str, title: str, columns: Sequence[Column]) -> Markup:
    """Return a chart with its numbers; ``name`` is what its parts are called in the page."""
    most = max([1, *(one.tried for one in columns)])
    bars = Markup("").join(_column(place, one, most) for place, one in enumerate(columns))
    return _CHART.format(
        name=name, title=title, width=_WIDTH * len(columns), height=_HEIGHT, told=_told(columns), bars=bars,
        numbers=table(
            ["From", "Fetches", "Failed"], [[_clock(one.begun), one.tried, one.failed] for one in columns]
        ),
    )  # fmt: skip


def _column(place: int, one: Column, most: int) -> Markup:
    tried, failed = (round(_HEIGHT * count / most, 1) for count in (one.tried, one.failed))
    left, wide = place * _WIDTH, _WIDTH - _GAP
    parts = (("tried", tried), ("failed", failed))
    return Markup("").join(
        _BAR.format(kind, left, round(_HEIGHT - high, 1), wide, high) for kind, high in parts if high
    )


def _told(columns: Sequence[Column]) -> str:
    tried, failed = (sum(getattr(one, name) for one in columns) for name in ("tried", "failed"))
    most = max(columns, key=lambda one: one.tried)
    if not tried:
        return f"No fetch ended since {_clock(columns[0].begun)}Z."
    return (
        f"{number(tried)} fetches since {_clock(columns[0].begun)}Z, {number(failed)} of them failed;"
        f" most from {_clock(most.begun)}Z on: {number(most.tried)}."
    )


def _clock(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%a %H:%M")


def results(fetched: Mapping[str, Any]) -> Markup:
    """Return what became of fetches (``queue.fetch_counts.of_late``), and which codes failed ones had."""
    found = [name for name in fetched["day"] if name != "since" and fetched["day"][name]["total"]]
    rows: list[list[object]] = []
    for name in found:
        rows.append([name, fetched["hour"][name]["total"], fetched["day"][name]["total"]])
        if name in FAILING:
            hour, day = fetched["hour"][name]["codes"], fetched["day"][name]["codes"]
            rows += [
                [f"{code} {text_of(int(code))}", hour.get(code, 0), count] for code, count in day.items()
            ]
    if not rows:
        return Markup("<p>Nothing was fetched within a day.</p>")
    return table(["Result", "Last hour", "Last day"], rows)
