"""How fast the LCC crawls, against Scrapy and what teams build of it, side by side.

Every crawler fetches the same pages of one nginx, in processes of its own, its queue full before it starts.
Rounds are interleaved, each begins with another crawler, and each run is measured without its start.
All obey robots.txt, log at INFO, and have as many fetches in flight: 64, or one of each provider.

Of each run of the LCC is counted which share of the pages went through ``LccPipeline``: less than all is a
failure.

    python bench/crawl.py                                    # everything, 40 minutes
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
from crawling.running import Failed, Launch, Measured
from crawling.site import Site
from crawling.variants import BY_NAME, ONE_PROCESS, SCRAPY, VARIANTS, Job, Variant

SECONDS = 8.0
"""How long the pages of a run are to last, by what its crawler did in earlier rounds."""

SHARING = 3
"""How many times as long two processes run: it takes the LCC's some seconds to have shared the providers."""

LEAST = 8
"""Pages of each provider at least: the first one brings its robots.txt with it."""

TITLES = {one.name: one.title for one in VARIANTS}
FEW = ("scrapy", "tuned", "lcc-sqlite")
"""Who runs with large pages."""


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

CELLS = (USUAL, Cell(1, SMALL), Cell(8, SMALL), Cell(1000, SMALL), Cell(64, LARGE))
QUICK = (USUAL, Cell(1, SMALL), Cell(64, LARGE))
ROUNDS, ROUNDS_ELSEWHERE = 5, 3


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
    runs: dict[Cell, dict[str, list[Measured]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
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
        job = Job(self.site, folder, cell.providers, cell.size, self._pages(cell, variant))
        ready = self.servers.enter_context(variant.prepare(job))
        os.sync()  # what others wrote is not to be waited for
        found = running.run(self._profiled(ready.launch), self.site, job.pages, job.providers, ready.settled)
        self.loads.append(os.getloadavg()[0])
        ready.check()
        return replace(found, through=ready.through()) if ready.through else found

    def _pages(self, cell: Cell, variant: Variant) -> int:
        known = self.runs[cell][variant.name]
        pace = median(one.rate for one in known) if known else variant.pace
        seconds = SECONDS * (SHARING if variant.name.endswith("-2") else 1)
        each = round((self.pages or pace * seconds) / cell.providers)
        return max(each, LEAST) * cell.providers

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
        Site(folder / "site", sizes) as site,
        ExitStack() as servers,
    ):
        bench = Bench(folder, site, servers, given.pages, given.profile)
        for cell in cells:
            bench.compare(cell, chosen(given, cell), rounds(given, cell))
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
    if given.quick:
        return [BY_NAME["lcc-sqlite"]]
    return [BY_NAME[name] for name in FEW] if cell.size != SMALL else list(ONE_PROCESS)


def rounds(given: argparse.Namespace, cell: Cell) -> int:
    """Return how often all run under some conditions."""
    usual = ROUNDS if cell == USUAL else ROUNDS_ELSEWHERE
    return int(given.rounds or (1 if given.quick else usual))


def report(bench: Bench, cell: Cell, markdown: Path | None) -> None:
    """Show what came of a cell."""
    runs = bench.runs[cell]
    tables.show(str(cell), tables.HEADINGS, tables.crawlers(runs, TITLES), markdown)
    reached = tables.targets(runs, TITLES)
    if cell.providers == USUAL.providers and reached:
        tables.show(f"the LCC, {cell}", tables.TARGET_HEADINGS, reached, markdown)
    for one in (BY_NAME[name] for name in runs):
        if reason := one.missing():
            print(f"{one.name} did not run: {reason}")


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
    usual = f"default {ROUNDS}, and {ROUNDS_ELSEWHERE} under other than the usual conditions ({USUAL})"
    options.add_argument("--rounds", type=int, help=usual)
    options.add_argument("--pages", type=int, help="in every run (default: some eight seconds' worth)")
    options.add_argument("--providers", type=int, nargs="+", help="default 64, 1, 8 and 1000")
    options.add_argument("--sizes", type=int, nargs="+", help="bytes of a page (default 8000; 200000, too)")
    options.add_argument("--only", nargs="+", choices=list(BY_NAME), metavar="CRAWLER")
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
