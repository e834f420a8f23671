"""One push: a source, the comparison of lcccpstate and the delivery of lcccp in one process."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from lcc_scrapy.push import report
from lcc_scrapy.push.command import Notes, Status, Stop
from lcc_scrapy.push.delivery import Delivery, Outcome
from lcc_scrapy.push.lcccpstate import Compared, Wish, compare
from lcc_scrapy.push.ledger import Ledger
from lcc_scrapy.push.logins import LoginRecord
from lcc_scrapy.push.plan import Plan
from lcc_scrapy.push.state import Damaged, StateFile
from lcc_scrapy.push.submission import Submission
from lcc_scrapy.wire.messages import SetAccepted

ERRORS_SHOWN = 20


class Source(Protocol):
    """Where the URLs of a site come from."""

    @property
    def name(self) -> str:
        """What its state file is called by."""

    @property
    def is_whole(self) -> bool:
        """Tell whether it names the whole site, so that what it does not name is gone."""

    @property
    def undated_is_same(self) -> bool:
        """Tell whether a URL without md5, len and mtime is told once only (`changes.Comparison`)."""

    def write(self, out: BinaryIO, notes: Notes) -> None:
        """Write the lines of ``file2url``, and the end mark; raises `Stop`."""


@dataclass(frozen=True)
class Job:
    """What is pushed, and what is kept of it. ``plan`` is for a partial set; the state decides the kind."""

    source: Source
    plan: Plan
    state: StateFile
    logins: LoginRecord
    wish: Wish

    @classmethod
    def of(cls, source: Source, plan: Plan, base: Path, wish: Wish) -> Job:
        """Name the files beside ``base``: each source has a state of its own, all share the logins."""
        state = StateFile(base.with_name(f"{base.name}.{source.name}.state"))
        return cls(source, plan, state, LoginRecord(base.with_name(f"{base.name}.login")), wish)


def push(
    job: Job, notes: Notes, *, summary: Notes | None = None, clock: Callable[[], float] | None = None
) -> Status:
    """Push what changed; raises `Stop`. ``summary`` gets one line if anything was sent.

    ``clock``: see `Delivery.run`.
    """
    try:
        with job.state.locked():
            compared, outcome = _pushed(job, notes, clock)
    except Damaged as error:
        raise Stop(
            Status.BAD_INPUT,
            f"{job.state.path} cannot be used: {error}. Run once with --full: it sends the whole site",
        ) from None
    report.tell(outcome, notes, ERRORS_SHOWN)
    dry = job.plan.start.dryrun
    if dry and isinstance(outcome.verdict, SetAccepted):
        report.print_dry_run(outcome.verdict)
    elif summary is not None and isinstance(outcome.verdict, SetAccepted):
        summary.tell(f"{compared.counts}; accepted: {outcome.verdict.received:,} URLs")
    _tell_full_set_request(outcome, job, notes, full=compared.full)
    return outcome.status


def _pushed(job: Job, notes: Notes, clock: Callable[[], float] | None) -> tuple[Compared, Outcome]:
    with ExitStack() as held:
        found, handed, spool = (held.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        job.source.write(found, notes)
        found.seek(0)
        compared = compare(job.state, found, handed, job.wish, notes)
        _refuse_nothing(compared, job)
        notes.tell(f"{compared.counts}{'; the whole site is sent' if compared.full else ''}")
        handed.seek(0)
        submission = Submission(spool)
        submission.read(handed, notes.progress())
        ledger, plan = _taken_over(job, submission, full=compared.full)
        return compared, Delivery(plan, submission, ledger, notes).run(clock=clock)


def _refuse_nothing(compared: Compared, job: Job) -> None:
    """A folder without files is likelier a mistake than a site."""
    if job.source.is_whole and not compared.counts.present and not compared.counts.gone:
        raise Stop(Status.BAD_INPUT, f"the {job.source.name} has nothing to push; nothing sent")


def _taken_over(job: Job, submission: Submission, *, full: bool) -> tuple[Ledger, Plan]:
    handed = submission.hand_over
    ledger = Ledger.open(job.state, handed.set_id if handed else "", job.logins)
    plan = job.plan.with_kind(full=full)
    ledger.check_bound_to(plan.login.provider_id, plan.start.urlprefix)
    return ledger, plan


def _tell_full_set_request(outcome: Outcome, job: Job, notes: Notes, *, full: bool) -> None:
    wanted = "" if full else report.full_set_wanted(outcome)
    if wanted:
        how = "the next run sends it" if job.source.is_whole else "run lcc-push with the whole site"
        notes.warn(f"the LCC wants a full set ({wanted}): {how}")
