"""The engine as a part of ``lcc annotate``: the coordinator with its processors."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Event

from lcc_scrapy.annotation.engine import Effects, Engine, Report
from lcc_scrapy.annotation.processors import Contents, Processors
from lcc_scrapy.annotation.profile_feed import profile_changes
from lcc_scrapy.db.claim import Claim
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.annotation_limits import AnnotationRules

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class EnginePart:
    """What the engine works with; ``keeps``: earlier contents are kept. ``report``: of the last run."""

    store: Store
    contents: Contents
    rules: AnnotationRules
    processors: int
    effects: Effects
    keeps: bool
    report: Report | None = None
    now: Callable[[], float] = time.time
    name: str = "engine"

    def run(self, claim: Claim, stop: Event, *, once: bool) -> None:
        """Annotate what waits and what comes; raises ``ClaimLost``."""
        changes = partial(profile_changes, self.store)
        pool = Processors(self.processors, self.rules, self.contents, changes, self._milliseconds)
        engine = Engine(
            self.store,
            claim,
            pool,
            self.rules,
            now=self._milliseconds,
            effects=self.effects,
            keeps=self.keeps,
        )
        self.report = engine.report
        _log.info("annotating with %d processors", self.processors)
        try:
            engine.run(stop, once=once)
        finally:
            pool.close()

    def _milliseconds(self) -> int:
        return int(self.now() * 1000)


def summary(report: Report) -> str:
    """Return what a coordinator did, in one line."""
    return (
        f"annotated {report.pages} documents, {report.acis} ACIs, {report.failed} failed,"
        f" at most {report.peak} waiting, {report.cpu:.1f} s of processor CPU"
    )
