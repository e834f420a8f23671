"""A bar chart as SVG: one group of bars for each title, with ranges."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, LABELS, LINE, GAP = 760, 330, 18, 30
COLOURS = {"lcc": "#2a6f97", "": "#9aa5ad"}

_STYLE = "text { font: 12px sans-serif; fill: #222 } .title { font-weight: bold }"


@dataclass(frozen=True)
class Bar:
    """A bar: its label, its length, and the range around it."""

    label: str
    value: float
    lowest: float
    highest: float
    ours: bool


def chart(title: str, groups: Sequence[tuple[str, Sequence[Bar]]]) -> str:
    """Draw groups of horizontal bars, all on one scale."""
    most = max((bar.highest for _, bars in groups for bar in bars), default=1.0)
    scale = (WIDTH - LABELS - 60) / most
    parts, y = [f'<text class="title" x="8" y="20">{escape(title)}</text>'], 20
    for name, bars in groups:
        y += GAP
        parts.append(f'<text class="title" x="8" y="{y}">{escape(name)}</text>')
        for bar in bars:
            y += LINE
            parts.append(_bar(bar, y, scale))
    height = y + GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}">'
    ground = f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>'
    return "\n".join([head, f"<style>{_STYLE}</style>", ground, *parts, "</svg>", ""])


def _bar(bar: Bar, y: int, scale: float) -> str:
    colour = COLOURS["lcc" if bar.ours else ""]
    low, high, middle = LABELS + bar.lowest * scale, LABELS + bar.highest * scale, y - 5
    whisker = f"M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 3}v6M{high:.1f} {middle - 3}v6"
    return (
        f'<text x="{LABELS - 8}" y="{y}" text-anchor="end">{escape(bar.label)}</text>'
        f'<rect x="{LABELS}" y="{y - 12}" width="{bar.value * scale:.1f}" height="14" fill="{colour}"/>'
        f'<path d="{whisker}" stroke="#222"/>'
        f'<text x="{high + 6:.1f}" y="{y}">{bar.value:.2f}</text>'
    )
