"""The coordinator: takes documents from the feed, lets processors annotate them, and records what they found.

It alone writes. A kill at any moment loses what processors were at: the documents wait still, and the next
coordinator goes on with them (decision 150).
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from lcc_scrapy.annotation import queueing
from lcc_scrapy.annotation.jobs import Job, Result, docbase_of
from lcc_scrapy.annotation.recording import acis_of, record
from lcc_scrapy.db.claim import HELD, Claim
from lcc_scrapy.db.records import AE_FAILED, AE_PAGES
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.acis import Aci, Waiting
from lcc_scrapy.domain.annotation_limits import AnnotationRules
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.versions import Version

BATCH = 50
"""Documents whose findings are written in one transaction."""

GATHER = 0.05
"""Seconds for which findings wait for others, to be written with them."""

LOOK = 0.5
"""Seconds between two looks at the feed; ``LCC_POLL``, if that is less."""

IN_WORK, AHEAD = 4, 8
"""Documents for each processor that are handed out, and that are read ahead of that."""

PROGRESS = 60.0
"""Seconds between two log lines about what was done."""

_log = logging.getLogger(__name__)


class Pool(Protocol):
    """The processors."""

    count: int

    def give(self, job: Job) -> None:
        """Let one of them do a job."""

    def results(self, seconds: float) -> list[Result]:
        """Return what is ready, after so many seconds at the latest."""


@dataclass(frozen=True, slots=True)
class Told:
    """A new ACI; ``since`` is from when on its owner can expect to be told (epoch milliseconds)."""

    aci: Aci
    since: int


@dataclass(frozen=True, slots=True)
class Effects:
    """What else becomes of a document in the transaction in which its findings are written.

    ``tell`` puts alerts of new ACIs. ``unwanted`` gets documents that concern nobody. Both get ``now`` (epoch
    milliseconds).
    """

    tell: Callable[[Tx, Sequence[Told], int], None] = lambda _tx, _told, _now: None
    unwanted: Callable[[Tx, Sequence[CachedUrl], int], None] = lambda _tx, _rows, _now: None


@dataclass(slots=True)
class Report:
    """What one coordinator did. ``cpu`` is that of the processors, in seconds."""

    pages: int = 0
    acis: int = 0
    failed: int = 0
    peak: int = 0
    cpu: float = 0.0


class Engine:
    """The coordinator of an LCC. ``now`` gives epoch milliseconds; ``keeps`` = versions are kept."""

    def __init__(
        self,
        store: Store,
        claim: Claim,
        pool: Pool,
        rules: AnnotationRules,
        *,
        now: Callable[[], int],
        effects: Effects | None = None,
        keeps: bool = True,
    ) -> None:
        self._store = store
        self._claim = claim
        self._pool = pool
        self._rules = rules
        self._now = now
        self._effects = effects or Effects()
        self._keeps = keeps
        self._ready: deque[Job] = deque()
        self._in_work: dict[bytes, Waiting] = {}
        self._done: list[Result] = []
        self._revision = -1
        self._changes_wanted = False
        self._short = True
        self._next_look = self._held = 0.0
        self._gathered_since = 0.0
        self.report = Report()

    # --- the loop --------------------------------------------------------------------------------

    def run(self, stop: Event, *, once: bool = False) -> None:
        """Annotate until told to stop, or with ``once`` until nothing waits; raises ``ClaimLost``.

        What processors are at when told to stop is finished, within ``LCC_STOP_TIMEOUT``.
        """
        with self._writing() as tx:
            queueing.begin(tx)
        told = time.monotonic()
        while not stop.is_set():
            if not self._tried(self.step) and once and self.is_idle:
                return
            if time.monotonic() - told >= PROGRESS:
                told = time.monotonic()
                _log.info("annotated %d documents, %d ACIs", self.report.pages, self.report.acis)
        self._finish()

    def _tried(self, work: Callable[[], bool]) -> bool:
        """Do something; True when there may be more to do."""
        try:
            return work()
        except StoreUnavailable as error:
            _log.warning("the database does not answer, trying again: %s", error)
            time.sleep(min(self._rules.poll, 2.0))
            return True

    def _finish(self) -> None:
        self._ready.clear()
        end = time.monotonic() + self._rules.stop_timeout
        while self._in_work and time.monotonic() < end:
            self._collect(GATHER)
            self._tried(self._settle)

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing waits and nothing is under way."""
        return not (self._ready or self._in_work or self._done)

    def step(self) -> bool:
        """Do what there is to be done now, wait a little for processors; tells whether there may be more."""
        looks = self._is_to_look()
        busy = self._fill(look=looks)
        self._hand_out()
        self._collect(GATHER if self._in_work else 0.0)
        if self._is_to_settle():
            self._settle()
            busy = True
        if busy or not self.is_idle:
            return True
        if looks:
            self._rest()
        self._next_look = 0.0
        return not looks

    def _rest(self) -> None:
        self._collect(min(LOOK, self._rules.poll))

    # --- from the feed into memory ---------------------------------------------------------------

    def _fill(self, *, look: bool) -> bool:
        """Read on in the feed and in the queue; tells whether there was anything."""
        more = look and self._queue_up()
        return (len(self._ready) < IN_WORK * self._pool.count and self._load()) or more

    def _is_to_look(self) -> bool:
        return self._short or time.monotonic() >= self._next_look

    def _queue_up(self) -> bool:
        """Let documents wait: what was fetched first, and the cached ones for new URDs when that is done."""
        self._next_look = time.monotonic() + min(LOOK, self._rules.poll)
        with self._store.read() as tx:
            quiet = not self._look_at_urds(tx) and not queueing.has_news(tx)
        if quiet:
            return self._keep_claim()
        now = self._now()
        with self._writing() as tx:
            queued = queueing.take_changes(tx, self._rules.queue, now, changes_of_all=self._changes_wanted)
            if not queued.more:
                queued = queueing.run_over_cache(tx, self._rules.queue, now)
            self.report.peak = max(self.report.peak, tx.waiting_count())
        return queued.more or queued.read > 0

    @contextmanager
    def _writing(self) -> Iterator[Tx]:
        """Open a transaction in which nobody else does the same part."""
        with self._store.begin() as tx:
            self._claim.hold(tx)
            yield tx
        self._held = time.monotonic()

    def _keep_claim(self) -> bool:
        if time.monotonic() - self._held > HELD / 3:
            with self._writing():
                pass
        return False

    def _look_at_urds(self, tx: Tx) -> bool:
        """Learn what must be known of URDs here; tells whether they changed."""
        revision = tx.urd_revision()
        if revision == self._revision:
            return False
        self._revision = revision
        before, self._changes_wanted = self._changes_wanted, tx.has_urds_of_changes()
        if self._changes_wanted and not before and not self._keeps:
            _log.warning("profiles of changes find nothing: LCC_KEEP_VERSIONS keeps no earlier contents")
        return True

    def _load(self) -> bool:
        """Make jobs of documents that wait; tells whether there are any."""
        known = len(self._in_work) + len(self._ready)
        with self._store.read() as tx:
            rows = tx.waiting_documents(known + AHEAD * self._pool.count)
            taken = self._in_work.keys() | {job.waiting.urlkey for job in self._ready}
            jobs, gone = self._jobs(tx, [row for row in rows if row.urlkey not in taken])
        self._short = len(jobs) < IN_WORK * self._pool.count
        self._ready.extend(jobs)
        if gone:
            self._forget(gone)
        return bool(jobs or gone)

    def _jobs(self, tx: Tx, waiting: Sequence[Waiting]) -> tuple[list[Job], list[Waiting]]:
        """Return jobs, and those of the documents that are gone."""
        cached = tx.cached(row.urlkey for row in waiting)
        owners = queueing.owners_of(tx, list(cached.values()))
        versions = tx.versions(cached) if self._changes_wanted else {}
        there = [row for row in waiting if row.urlkey in cached]
        jobs = [
            Job(row, cached[row.urlkey], owners[row.urlkey], _before(versions.get(row.urlkey, ()), row.base))
            for row in there
        ]
        return jobs, [row for row in waiting if row.urlkey not in cached]

    def _forget(self, gone: Sequence[Waiting]) -> None:
        with self._writing() as tx:
            there = tx.waiting_rows(row.urlkey for row in gone)
            tx.dequeue([row.urlkey for row in gone if there.get(row.urlkey) == row])

    # --- to the processors and back --------------------------------------------------------------

    def _hand_out(self) -> None:
        while self._ready and len(self._in_work) < IN_WORK * self._pool.count:
            job = self._ready.popleft()
            self._in_work[job.waiting.urlkey] = job.waiting
            self._pool.give(job)

    def _collect(self, seconds: float) -> None:
        found = self._pool.results(seconds)
        if found and not self._done:
            self._gathered_since = time.monotonic()
        self._done += found

    def _is_to_settle(self) -> bool:
        waits = time.monotonic() - self._gathered_since >= GATHER
        return bool(self._done) and (waits or len(self._done) >= min(BATCH, len(self._in_work)))

    def _settle(self) -> bool:
        """Write what was found; what fails is tried again with what comes meanwhile."""
        if not self._done:
            return False
        some = self._done[:BATCH]
        written, acis = self._write(some)
        del self._done[: len(some)]
        for result in some:
            self._in_work.pop(result.job.waiting.urlkey, None)
        self._count(written, acis)
        return bool(self._done)

    def _write(self, results: Sequence[Result]) -> tuple[list[Result], int]:
        """Write findings of documents that are still as they were; returns these, and how many new ACIs."""
        now = self._now()
        with self._writing() as tx:
            valid = _still_valid(tx, results)
            urds = tx.urds({one.urdid for result in valid for one in result.found})
            found = [(aci, one.job) for one in valid for aci in acis_of(one.job, one.found, urds, now)]
            since = {
                (aci.urlkey, aci.owner): job.waiting.since if job.is_old else aci.updatetime
                for aci, job in found
            }
            new = record(tx, [aci for aci, _ in found])
            self._effects.tell(tx, [Told(one, since[one.urlkey, one.owner]) for one in new], now)
            self._effects.unwanted(tx, [one.job.row for one in valid if _is_unwanted(one)], now)
            tx.dequeue([one.job.waiting.urlkey for one in valid])
            tx.take(AE_PAGES, sum(not one.failed for one in valid))
            tx.take(AE_FAILED, sum(bool(one.failed) for one in valid))
        return valid, len(new)

    def _count(self, results: Sequence[Result], acis: int) -> None:
        report = self.report
        report.acis += acis
        for one in results:
            report.cpu += one.cpu
            report.pages += not one.failed
            report.failed += bool(one.failed)
            if one.failed:
                _log.warning("not annotated: %(url)s %(why)s", {"url": one.job.row.furl, "why": one.failed})


def _before(versions: Sequence[Version], base: int) -> Version | None:
    """Return the content that was annotated last, or came after that without being annotated; None = none."""
    if not base or not versions:
        return None
    return next((one for one in versions if one.seq <= base), versions[-1])


def _still_valid(tx: Tx, results: Sequence[Result]) -> list[Result]:
    """Return the results of documents that are as they were, and wait for the same; others are done anew."""
    keys = [one.job.waiting.urlkey for one in results]
    waiting, cached = tx.waiting_rows(keys), tx.cached(keys)
    return [
        one
        for one in results
        if waiting.get(one.job.waiting.urlkey) == one.job.waiting
        and docbase_of(cached.get(one.job.waiting.urlkey)) == docbase_of(one.job.row)
    ]


def _is_unwanted(result: Result) -> bool:
    return not (result.found or result.failed or result.job.only)
