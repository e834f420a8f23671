"""Tables of what was measured: medians, ranges, ratios of medians."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from crawling.running import Measured

Runs = Mapping[str, Sequence[Measured]]
"""What each variant did, round by round."""

KINDS = ("-2", "-own")
"""How the names of those end that are compared among themselves: two processes, own code."""

HEADINGS = (
    "crawler", "pages/s", "range", "x Scrapy as shipped", "range", "CPU s per 1,000", "peak MB", "other CPUs",
    "through LccPipeline", "n",
)  # fmt: skip

Aim = tuple[str, str, float | None]
"""(who, against whom, at least so many times the pages/s); None: nothing was promised."""

TARGETS: tuple[Aim, ...] = (
    ("lcc-sqlite", "scrapy", 8.0),
    ("lcc-sqlite", "tuned", 4.0),
    ("lcc-sqlite", "jobdir", 20.0),
    ("lcc-sqlite", "redis", 20.0),
    ("lcc-2", "scrapy-2", 6.0),
    ("lcc-sqlite-own", "scrapy-own", 6.0),
    ("lcc-sqlite-own", "tuned-own", 2.5),
    ("lcc-sqlite-own", "jobdir-own", None),
    ("lcc-sqlite-own", "redis-own", None),
)
"""With 64 providers and pages of 8 KB."""

OF_PROVIDERS = {1: 4.0, 8: 7.0, 1000: 6.0, 10_000: 5.0}
"""With other numbers of providers, and pages of 8 KB: times Scrapy as shipped."""

MOST_MEMORY = 200
"""MB of all processes of a crawl together, with 64 providers."""

OF_DISK = 0.8
"""Of what ``dd`` with a final fsync writes to the same disk, with pages of 200 KB."""


def aims_with(providers: int) -> tuple[Aim, ...]:
    """Return what is to be reached with so many providers and pages of 8 KB."""
    least = OF_PROVIDERS.get(providers)
    return TARGETS if least is None else (("lcc-sqlite", "scrapy", least), ("lcc-sqlite", "tuned", None))


@dataclass(frozen=True)
class Ratio:
    """One variant against another: the ratio of the medians, lowest and highest of the rounds' ratios."""

    value: float
    lowest: float
    highest: float

    @classmethod
    def of(
        cls, ours: Sequence[Measured], theirs: Sequence[Measured], what: Callable[[Measured], float]
    ) -> "Ratio":
        """Compare runs of the same rounds."""
        by_round = [what(one) / what(other) for one, other in zip(ours, theirs, strict=True)]
        value = median(map(what, ours)) / median(map(what, theirs))
        return cls(value, min(by_round), max(by_round))

    @property
    def range(self) -> str:
        """Return it as a text."""
        return f"{self.lowest:.2f}-{self.highest:.2f}"


def rate(one: Measured) -> float:
    return one.rate


def cpu(one: Measured) -> float:
    return one.cpu


def base_of(name: str) -> str:
    """Return what a variant is compared with: two processes with two, own code with the same."""
    return "scrapy" + next((kind for kind in KINDS if name.endswith(kind)), "")


def share(part: float) -> str:
    return f"{100 * part:.5g} %"


def crawlers(runs: Runs, titles: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return a row for each variant; dashes where it did not run."""
    return [_crawler(titles[name], mine, runs.get(base_of(name), ())) for name, mine in runs.items()]


def _crawler(title: str, mine: Sequence[Measured], base: Sequence[Measured]) -> tuple[str, ...]:
    if not mine:
        return (title, *["-"] * (len(HEADINGS) - 2), "0")
    rates = [one.rate for one in mine]
    ratio = Ratio.of(mine, base, rate) if len(base) == len(mine) else None
    return (
        title, f"{median(rates):,.0f}", f"{min(rates):,.0f}-{max(rates):,.0f}",
        f"{ratio.value:.2f}" if ratio else "-", ratio.range if ratio else "-",
        f"{median(one.cpu for one in mine):.3f}", f"{median(one.peak for one in mine):,.0f}",
        f"{median(one.others for one in mine):.2f}", _through(mine), str(len(mine)),
    )  # fmt: skip


def _through(mine: Sequence[Measured]) -> str:
    """Return the share of pages that went through ``LccPipeline``, a range where rounds differ."""
    shares = {one.through for one in mine if one.through is not None}
    return "-".join(share(one) for one in sorted({min(shares), max(shares)})) if shares else "-"


TARGET_HEADINGS = ("against", "x pages/s", "range", "at least", "x CPU per page", "range")


def targets(runs: Runs, titles: Mapping[str, str], aims: Sequence[Aim] = TARGETS) -> list[tuple[str, ...]]:
    """Return what is reached of the aims, of those whose variants ran in all rounds."""
    table = []
    for who, against, least in aims:
        ours, theirs = runs.get(who, ()), runs.get(against, ())
        if ours and len(ours) == len(theirs):
            faster, cheaper = Ratio.of(ours, theirs, rate), Ratio.of(theirs, ours, cpu)
            wanted = f"{least:g}" if least else "-"
            told = (f"{faster.value:.2f}", faster.range, wanted, f"{cheaper.value:.2f}", cheaper.range)
            table.append((titles[against], *told))
    return table


def memory(mine: Sequence[Measured]) -> tuple[str, ...]:
    """Return what is reached of the aim for memory, as a row of the aims."""
    peaks = [one.peak for one in mine]
    found, extent = f"{median(peaks):,.0f}", f"{min(peaks):,.0f}-{max(peaks):,.0f}"
    return ("peak memory of all processes, MB", found, extent, f"at most {MOST_MEMORY}", "-", "-")


def disk(mine: Sequence[Measured], written: Sequence[float]) -> tuple[str, ...]:
    """Return what is reached of the disk's rate, as a row of the aims; ``written`` are pages/s of ``dd``."""
    by_round = [one.rate / other for one, other in zip(mine, written, strict=True)]
    found = median(map(rate, mine)) / median(written)
    extent = f"{min(by_round):.2f}-{max(by_round):.2f}"
    return ("dd with a final fsync", f"{found:.2f}", extent, f"{OF_DISK:g}", "-", "-")


def plain(headings: Sequence[str], table: Sequence[Sequence[str]]) -> str:
    """Write a table for a terminal: the first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(headings, *table, strict=True)]
    lines = []
    for line in (headings, *table):
        first, *others = zip(line, widths, strict=True)
        lines.append("  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]))
    return "\n".join(lines)


def markdown(headings: Sequence[str], table: Sequence[Sequence[str]]) -> str:
    """Write a table for the documentation."""
    rule = ["---", *["---:"] * (len(headings) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (headings, rule, *table))


def show(title: str, headings: Sequence[str], table: Sequence[Sequence[str]], file: Path | None) -> None:
    """Print a table, and append it to a file of Markdown if one is given."""
    print(f"\n{title}\n{plain(headings, table)}\n", flush=True)
    if file is not None:
        with file.open("a") as out:
            out.write(f"**{title}**\n\n{markdown(headings, table)}\n\n")
