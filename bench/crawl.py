"""How fast the LCC crawls, against Scrapy and what teams build of it, side by side.

Every crawler fetches the same pages of one nginx, in processes of its own, its queue full before it starts.
Rounds are interleaved, each begins with another crawler, and each run is measured without its start.
All obey robots.txt, log at INFO, and have as many fetches in flight: 64, or one of each provider.

Of each run of the LCC is counted which share of the pages went through ``LccPipeline``: less than all is a
failure.

    python bench/crawl.py                                    # everything, 50 minutes
    python bench/crawl.py --only scrapy lcc-sqlite --providers 64
    python bench/crawl.py --only scrapy-own lcc-sqlite-own --providers 64
    python bench/crawl.py --only lcc-sqlite --providers 64 --rounds 1 --profile lcc.prof

Crawlers: see VARIANTS of crawling/variants.py. ``--profile`` writes what cProfile saw of the main thread.
"""

import argparse
import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from crawling import plot, running, tables
from crawling.command_line import parsed, parser
from crawling.disk import written_by_dd
from crawling.running import Failed, Launch, Measured
from crawling.site import MISSING, Site
from crawling.variants import BY_NAME, CROWD, SCRAPY, VARIANTS, Job, Variant

SECONDS = 6.0
"""How long the pages of a run are to last, by what its crawler did before: in other cells, too."""

SHARING = 3
"""How many times as long two processes run: it takes the LCC's some seconds to have shared the providers."""

LEAST, LEAST_IN_CROWDS = 8, 2
"""Pages of each provider at least, and where there are thousands: the first brings its robots.txt with it."""

TITLES = {name: one.title for name, one in BY_NAME.items()}
FEW = ("scrapy", "tuned", "lcc-sqlite")
"""Who runs under other than the usual conditions."""


@dataclass(frozen=True)
class Cell:
    """Conditions under which crawlers are compared; ``size`` is that of a page in bytes."""

    providers: int
    size: int

    def __str__(self) -> str:
        return f"{self.providers:,} provider{'s' * (self.providers > 1)}, pages of {self.size / 1000:g} KB"


SMALL, LARGE = 8_000, 200_000
USUAL = Cell(64, SMALL)
"""Here everybody runs, and the targets hold."""

CELLS = (USUAL, *(Cell(number, SMALL) for number in tables.OF_PROVIDERS), Cell(64, LARGE))
QUICK = (USUAL, Cell(1, SMALL), Cell(64, LARGE))
ROUNDS = 5


@dataclass
class Bench:
    """All runs of all cells."""

    folder: Path
    site: Site
    servers: ExitStack
    """Gives back what was used on servers."""
    pages: int = 0
    """In every run; 0 = so many that it lasts ``SECONDS``."""
    profile: Path | None = None
    missing: bool = False
    runs: dict[Cell, dict[str, list[Measured]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    written: dict[Cell, list[float]] = field(default_factory=dict)
    """Pages/s that ``dd`` writes, of cells with large pages, round by round."""
    _count: int = 0

    def compare(self, cell: Cell, variants: list[Variant], rounds: int) -> None:
        """Run crawlers under the same conditions, in turns; in each round another one begins."""
        self.runs[cell] = {one.name: [] for one in variants}
        able = [one for one in variants if not one.missing()]
        if not able:
            return
        for number in range(rounds):
            print(f"{cell}: round {number + 1} of {rounds}", flush=True)
            first = number % len(able)
            for variant in able[first:] + able[:first]:
                self._try(cell, variant)
            if cell.size != SMALL:
                self.written.setdefault(cell, []).append(written_by_dd(self.folder, cell.size))

    def _try(self, cell: Cell, variant: Variant) -> None:
        try:
            found = self._once(cell, variant)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others go on
            kind = "" if isinstance(error, Failed) else f"{type(error).__name__}: "
            self.failures.append(f"{variant.name}, {cell}: {kind}{error}")
            print(f"  {self.failures[-1]}", flush=True)
            return
        self.runs[cell][variant.name].append(found)
        print(
            f"  {variant.name:16}{found.rate:8,.0f} pages/s {found.cpu:7.3f} CPU s per 1,000"
            f" {found.peak:5.0f} MB {found.others:5.2f} other CPUs {found.pages:7,} pages"
            + (f", {tables.share(found.through)} through LccPipeline" if found.through is not None else ""),
            flush=True,
        )

    def _once(self, cell: Cell, variant: Variant) -> Measured:
        self._count += 1
        folder = self.folder / f"{self._count:04d}-{variant.name}"
        folder.mkdir()
        pages = self._pages(cell, variant)
        missing = cell.providers * -(-pages // cell.providers // MISSING) if self.missing else 0
        job = Job(self.site, folder, cell.providers, cell.size, pages, missing)
        ready = self.servers.enter_context(variant.prepare(job))
        os.sync()  # what others wrote is not to be waited for
        found = running.run(self._profiled(ready.launch), self.site, job.pages, job.providers, ready.settled)
        self.loads.append(os.getloadavg()[0])
        ready.check()
        return replace(found, through=ready.through()) if ready.through else found

    def _pages(self, cell: Cell, variant: Variant) -> int:
        pages = self.pages or self._pace(cell, variant) * SECONDS * (
            SHARING if variant.name.endswith("-2") else 1
        )
        least = LEAST if cell.providers < CROWD else LEAST_IN_CROWDS
        return max(round(pages / cell.providers), least) * cell.providers

    def _pace(self, cell: Cell, variant: Variant) -> float:
        """Return the pages/s that a crawler does: here so far, else with pages of this size, else a guess."""
        alike = (runs for other, runs in self.runs.items() if other.size == cell.size)
        known = self.runs[cell][variant.name] or [one for runs in alike for one in runs.get(variant.name, ())]
        return median(one.rate for one in known) if known else variant.pace

    def _profiled(self, launch: Launch) -> Launch:
        if self.profile is None:
            return launch
        profiler = (sys.executable, "-m", "cProfile", "-o", str(self.profile.absolute()), *SCRAPY[1:])
        commands = [(*profiler, *command[len(SCRAPY) :]) for command in launch.commands]
        return replace(launch, commands=commands)


def main() -> None:
    """Measure, print and draw."""
    given = options()
    cells = compared(given)
    sizes = sorted({cell.size for cell in cells})
    with (
        running.scratch(given.scratch) as folder,
        Site(folder / "site", sizes, missing=given.missing) as site,
        ExitStack() as servers,
    ):
        bench = Bench(folder, site, servers, given.pages, given.profile, given.missing)
        for cell in cells:
            bench.compare(cell, chosen(given, cell), rounds(given))
            report(bench, cell, given.markdown)
    if bench.loads:
        print(f"load {min(bench.loads):.1f}-{max(bench.loads):.1f}, median {median(bench.loads):.1f}")
    if given.plot:
        given.plot.write_text(drawn(bench))
    if bench.failures:
        raise SystemExit(f"{len(bench.failures)} runs failed:\n" + "\n".join(bench.failures))


def compared(given: argparse.Namespace) -> list[Cell]:
    """Return under which conditions crawlers are compared."""
    if not (given.providers or given.sizes):
        return list(QUICK if given.quick else CELLS)
    providers, sizes = given.providers or [USUAL.providers], given.sizes or [USUAL.size]
    return [Cell(number, size) for size in sizes for number in providers]


def chosen(given: argparse.Namespace, cell: Cell) -> list[Variant]:
    """Return who runs under some conditions: where not asked for by name, only few under unusual ones."""
    if given.only:
        return [BY_NAME[name] for name in given.only]
    if cell == USUAL:
        return list(VARIANTS)
    return [BY_NAME[name] for name in (("lcc-sqlite",) if given.quick else FEW)]


def rounds(given: argparse.Namespace) -> int:
    """Return how often all run."""
    return int(given.rounds or (1 if given.quick else ROUNDS))


def report(bench: Bench, cell: Cell, markdown: Path | None) -> None:
    """Show what came of a cell."""
    runs = bench.runs[cell]
    tables.show(str(cell), tables.HEADINGS, tables.crawlers(runs, TITLES), markdown)
    reached = aims(bench, cell)
    if reached:
        tables.show(f"the LCC, {cell}", tables.TARGET_HEADINGS, reached, markdown)
    for one in (BY_NAME[name] for name in runs):
        if reason := one.missing():
            print(f"{one.name} did not run: {reason}")


def aims(bench: Bench, cell: Cell) -> list[tuple[str, ...]]:
    """Return what is reached of what was promised for a cell."""
    runs = bench.runs[cell]
    ours, written = runs.get("lcc-sqlite", ()), bench.written.get(cell, ())
    if cell.size != SMALL:
        return [tables.disk(ours, written)] if ours and len(ours) == len(written) else []
    reached = tables.targets(runs, TITLES, tables.aims_with(cell.providers))
    return reached + ([tables.memory(ours)] if ours and cell == USUAL else [])


def drawn(bench: Bench) -> str:
    """Draw pages/s of all cells, as ratios."""
    groups = []
    for cell, runs in bench.runs.items():
        bars = []
        for name, mine in runs.items():
            base = runs.get(tables.base_of(name), [])
            if mine and len(mine) == len(base):
                ratio, ours = tables.Ratio.of(mine, base, tables.rate), name.startswith("lcc")
                bars.append(plot.Bar(name, ratio.value, ratio.lowest, ratio.highest, ours))
        groups.append((str(cell), bars))
    return plot.chart(
        "pages/s, as a multiple of Scrapy as shipped (own code: with the same; two: of two)", groups
    )


def options() -> argparse.Namespace:
    """Read the command line."""
    options = parser(__doc__, "--markdown", "--scratch")
    options.add_argument("--rounds", type=int, help=f"default {ROUNDS}")
    options.add_argument("--pages", type=int, help="in every run (default: some six seconds' worth)")
    options.add_argument("--providers", type=int, nargs="+", help="default 64, 1, 8, 1000 and 10000")
    options.add_argument("--sizes", type=int, nargs="+", help="bytes of a page (default 8000; 200000, too)")
    options.add_argument("--only", nargs="+", choices=list(BY_NAME), metavar="CRAWLER")
    options.add_argument("--missing", action="store_true", help="a tenth of the pages are not there (404)")
    options.add_argument("--quick", action="store_true", help="one round of few pages, to see that all goes")
    options.add_argument("--profile", type=Path, help="write a profile of the last crawl of one process")
    options.add_argument("--plot", type=Path, help="draw the ratios into this file (SVG)")
    given = parsed(options)
    given.pages = given.pages or (320 if given.quick else 0)
    if given.profile and any(name.endswith("-2") for name in given.only or BY_NAME):
        options.error("--profile: choose crawlers of one process with --only")
    return given


if __name__ == "__main__":
    main()
