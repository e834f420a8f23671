"""Every measurement, one after the other: what ``make bench`` runs, and ``make bench-quick`` two at a time.

Before each one it prints how long that takes on two processors with nothing else to do, and what is left.
A measurement that fails, or takes far longer, is named and the others go on; the status is 1 then.
What has not begun after two hours is named as well, and not begun.

    python bench/suite.py                    # everything, less than two hours
    python bench/suite.py --quick            # all of it small, two at a time, for errors, not for times
    python bench/suite.py --only wakeup feed
"""

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from crawling.running import stop_when_told

HERE = Path(__file__).parent
TABLES, CHART = Path("dist/performance.md"), Path("dist/performance.svg")
MOST = 120.0
"""Minutes for everything."""

PATIENCE, LEAST_PATIENCE = 3.0, 20.0
"""A measurement is stopped after so many times its time, but not before so many minutes."""

GRACE = 60.0
"""Seconds that a measurement has to stop its crawls and to give back what it used."""

LOOK = 0.2
"""Seconds between looks at what runs."""


@dataclass(frozen=True)
class Step:
    """A measurement: script and arguments as on a command line, and the minutes that it takes."""

    command: str
    minutes: float

    @property
    def name(self) -> str:
        """Return the script's name."""
        return self.command.split()[0].removesuffix(".py")

    @property
    def patience(self) -> float:
        """Return after how many minutes it is stopped."""
        return max(LEAST_PATIENCE, PATIENCE * self.minutes)


def on_both(command: str, minutes: float) -> tuple[Step, Step]:
    """Return a measurement on SQLite and on MariaDB."""
    return Step(command, minutes), Step(f"{command} --database mariadb", minutes)


FULL = (
    Step(f"crawl.py --markdown {TABLES} --plot {CHART}", 45),
    *on_both(f"recrawl.py --markdown {TABLES}", 1.5),
    *on_both(f"wakeup.py --markdown {TABLES}", 1.5),
    *on_both(f"feed.py --markdown {TABLES}", 1.5),
    Step("intake.py", 1),
    Step("uns.py", 1.5),
    Step("push_http.py --tls --rounds 3 --sets 1000", 2),
    Step("lock_waits.py", 1.5),
    Step("turns.py", 3),
    Step("claims.py", 1),
    Step("takeover.py --lease 10s", 1.5),
    Step("object_storage.py", 0.5),
    *on_both("crowds.py --providers 10000 --urls 100000 --fetch 10000", 2),
    *on_both("crowds.py --providers 100 --urls 300000 --fetch 10000", 1),
    *on_both("crowds.py --providers 1 --urls 300000 --fetch 10000", 1),
    *on_both("queues.py --providers 5000 --long 200000 --seconds 10 --rounds 1", 2.5),
    Step("spider_gap.py --rounds 2", 1.3),
    Step("at_once.py --rounds 1", 1.2),
    Step("rendering.py --pages 10 --rounds 1", 0.3),
    *on_both("logins.py", 0.5),
    Step("lookups.py", 1),
    Step("paced.py", 1.5),
    Step("fetch_log.py --rounds 3", 1.2),
    Step("store_jobs.py", 1),
    Step("hostile_sites.py", 4),
    Step("strangers.py --rounds 1", 1.4),
    Step("soak.py --hours 0.03", 2),
    Step("parsers.py", 3),
    Step("settling.py --sizes 8192 --rounds 2", 2),
    Step("safequeue.py", 2),
    Step("export.py", 2),
    Step("annotation_engine.py --pages 1500", 1),
    Step("alert_delay.py --pages 10", 0.5),
    Step("compression.py", 1),
    Step("revisits.py", 1),
    Step("links.py", 2),
    Step("annotate.py", 1),
    Step("web.py", 1),
    Step("web_shares.py --rounds 1", 0.5),
    Step("dashboard.py", 1),
    Step("viewers.py --rounds 1", 1),
    Step("tracker.py --directories 200000", 0.5),
    Step("exchange.py", 0.4),
    Step("capacity.py --at 10000", 0.04),
    Step("machines.py", 0.04),
)

QUICK = (
    Step("crawl.py --quick", 0.8),
    Step("recrawl.py --rounds 1 --pages 640", 0.1),
    Step("wakeup.py --pushes 2", 0.1),
    Step("feed.py --rounds 1 --documents 2000", 0.1),
    Step("intake.py --rounds 1 --urls 2000", 0.1),
    Step("uns.py --rounds 1 --urls 20000", 0.1),
    Step("push_http.py --rounds 1 --urls 5000 --sets 40", 0.2),
    Step("lock_waits.py --rounds 1 --database mariadb postgresql --workers 2 --pages 640", 0.3),
    Step("turns.py --registered 3 --active 3", 0.1),
    Step("claims.py --database sqlite --providers 20 --claimers 2 --seconds 1", 0.1),
    Step("takeover.py --lease 3s --losses 1", 0.2),
    Step("crowds.py --providers 20 --urls 400 --fetch 400", 0.2),
    Step("queues.py --providers 70 --urls 4 --long 400 --seconds 1 --cases short one", 0.2),
    Step("spider_gap.py --pages 100 --links 30", 0.1),
    Step("at_once.py --pages 30 --at-once 4 --rounds 1", 0.2),
    Step("rendering.py --pages 3 --rounds 1", 0.3),
    Step("fetch_log.py --pages 320 --rounds 1", 0.1),
    Step("settling.py --ways plain --pages 100 --sizes 2000 --providers 8 --rounds 1", 0.1),
    Step("safequeue.py --urls 20000 --seconds 1", 0.2),
    Step("alert_delay.py --pages 2", 0.1),
    Step("annotation_engine.py --pages 50 --profiles 3 --processors 1", 0.1),
    Step("export.py --repeat 1 --copies 1 --docroot docs --formats tar.gz", 0.1),
    Step("strangers.py --seconds 1 --rounds 1", 0.5),
    Step("compression.py docs", 0.1),
    Step("revisits.py --pages 50 --every 24", 0.1),
    Step("links.py --pages 20 --repeat 1", 0.1),
    Step("annotate.py --profiles 3 1000 --pages 3 --repeat 1", 0.1),
    Step("web.py --documents 50 --rounds 1", 0.1),
    Step("web_shares.py --documents 50 --seconds 1 --rounds 1", 0.1),
    Step("viewers.py --pages 320 --viewers 0 50 --rounds 1", 0.2),
    Step("dashboard.py --providers 80 --documents 2 --times 1", 0.1),
    Step("tracker.py --directories 2000 --lookups 200", 0.05),
    Step("exchange.py --folder /usr/share/doc --directories 1000", 0.1),
    Step("capacity.py --at 1000", 0.02),
    Step("machines.py", 0.02),
)


@dataclass
class Running:
    """A measurement that runs, until ``end`` (of ``time.monotonic``) at the most.

    Beside others it says into ``said`` what it says, to be read in one piece; alone, where this process does.
    """

    step: Step
    end: float
    said: IO[bytes] | None
    begun: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        script, *words = shlex.split(self.step.command)
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / script), *words],
            stdout=self.said,
            stderr=self.said,
            start_new_session=True,
        )

    def is_over(self) -> bool:
        """Tell whether it has ended, or has no time left."""
        return self.process.poll() is not None or time.monotonic() >= self.end

    def finished(self) -> str:
        """Return what is wrong with it, or nothing; it does not run after that."""
        status = self.process.poll()
        stop(self.process)
        if self.said is not None:
            self.said.seek(0)
            print(f"\n=== {self.step.command}:\n{self.said.read().decode(errors='replace')}", end="")
            self.said.close()
        if status is None:
            return "stopped"
        return f"status {status}" if status else ""


@dataclass
class Suite:
    """Measurements, and how many of them run at a time."""

    steps: Sequence[Step]
    most: float = MOST
    """Minutes for all of them; what has not begun by then is not begun."""
    at_once: int = 1
    failures: list[str] = field(default_factory=list)
    running: list[Running] = field(default_factory=list)

    def run(self) -> None:
        """Run all of them."""
        begun = time.monotonic()
        print(
            f"{len(self.steps)} measurements, about {self._minutes(0):.0f} minutes,"
            f" {self.most:g} at the most",
            flush=True,
        )
        try:
            for number, step in enumerate(self.steps):
                self._wait(self.at_once - 1)
                spent = (time.monotonic() - begun) / 60
                print(
                    f"\n=== {number + 1} of {len(self.steps)}: {step.command}: about {told(step.minutes)};"
                    f" {spent:.0f} min gone, about {self._minutes(number):.0f} to go",
                    flush=True,
                )
                self._begin(step, self.most - spent)
            self._wait(0)
        finally:
            for one in self.running:
                stop(one.process)

    def _minutes(self, number: int) -> float:
        return sum(step.minutes for step in self.steps[number:]) / self.at_once

    def _begin(self, step: Step, left: float) -> None:
        if left <= 0:
            self._failed(step, f"not begun: {self.most:g} minutes are over")
            return
        end = time.monotonic() + 60 * min(left, step.patience)
        said = tempfile.TemporaryFile() if self.at_once > 1 else None  # noqa: SIM115
        self.running.append(Running(step, end, said))

    def _wait(self, most: int) -> None:
        """Wait until no more than so many run."""
        while len(self.running) > most:
            time.sleep(LOOK)
            for one in [one for one in self.running if one.is_over()]:
                self._end(one)
                self.running.remove(one)

    def _end(self, one: Running) -> None:
        wrong = one.finished()
        took = told((time.monotonic() - one.begun) / 60)
        if wrong:
            self._failed(one.step, f"{wrong} after {took}")
        else:
            print(f"=== done in {took}", flush=True)

    def _failed(self, step: Step, why: str) -> None:
        self.failures.append(f"{step.command}: {why}")
        print(f"=== FAILED: {self.failures[-1]}", flush=True)


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Stop a measurement that still runs, and what it has started."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)  # they clean up as after Ctrl-C
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def told(minutes: float) -> str:
    """Write a time."""
    return f"{minutes:.1f} min" if minutes >= 1 else f"{60 * minutes:.0f} s"


def chosen(steps: Iterable[Step], names: Sequence[str] | None) -> list[Step]:
    """Return the steps of these names, all without one."""
    return [step for step in steps if not names or step.name in names]


def main() -> None:
    """Run what was asked for; the status is 1 when anything failed."""
    names = sorted({step.name for step in FULL})
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="all of it small, to see that it runs")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    given = parser.parse_args()
    stop_when_told()
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # also where a shell has us ignore it, and children
    if not given.quick:
        TABLES.parent.mkdir(exist_ok=True)
        TABLES.unlink(missing_ok=True)
    suite = Suite(chosen(QUICK if given.quick else FULL, given.only), at_once=2 if given.quick else 1)
    suite.run()
    if suite.failures:
        raise SystemExit(
            f"\n{len(suite.failures)} of {len(suite.steps)} failed:\n" + "\n".join(suite.failures)
        )


if __name__ == "__main__":
    main()
