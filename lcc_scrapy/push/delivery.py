"""Bringing a submission to the LCC: log in, send the set, commit the state, try again where that helps."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from lcc_scrapy.push import client, quota
from lcc_scrapy.push.command import Notes, Progress, Status
from lcc_scrapy.push.ledger import Ledger
from lcc_scrapy.push.link import Lost, Unreachable
from lcc_scrapy.push.plan import Plan
from lcc_scrapy.push.refusals import Again, Standing
from lcc_scrapy.push.submission import Item, Submission
from lcc_scrapy.wire.messages import (
    InitAccepted,
    InitRejected,
    SetAccepted,
    SetRejected,
    UrlError,
)

TRY_LATER_CODES = frozenset({103, 104, 203})
FIRST_DELAY = 10.0
LONGEST_DELAY = 600.0
"""Seconds between two attempts: doubled each time up to this bound, which also holds for retry-after."""


@dataclass
class Outcome:
    """What came of it. ``login`` and ``verdict`` are None where it did not come so far."""

    status: Status = Status.DONE
    text: str = ""
    login: InitAccepted | InitRejected | None = None
    verdict: SetAccepted | SetRejected | None = None
    set_id: str = ""
    sent: int = 0
    left_out: int = 0
    errors: list[UrlError] = field(default_factory=list)
    error_count: int = 0
    retry_after: int = 0
    standing: Standing = field(default_factory=Standing)
    """What is refused in the state now, this time's and earlier ones."""


class Delivery:
    """One submission on its way."""

    def __init__(self, plan: Plan, submission: Submission, ledger: Ledger, notes: Notes) -> None:
        self._plan = plan
        self._submission = submission
        self._ledger = ledger
        self._notes = notes
        self._clock: Callable[[], float] = time.time
        self._set_id = plan.start.set_id or _handed_id(submission) or str(uuid.uuid4())

    def run(
        self, sleep: Callable[[float], None] = time.sleep, clock: Callable[[], float] | None = None
    ) -> Outcome:
        """Try until it is settled, or as often as the plan says; raises `Stop` for what no retry mends.

        ``clock`` tells the epoch, by which failed URLs are sent again.
        """
        self._clock = clock or time.time
        outcome = self._attempt()
        for attempt in range(self._plan.retries):
            if outcome.status not in {Status.TRY_LATER, Status.UNAVAILABLE}:
                break
            delay = min(outcome.retry_after or FIRST_DELAY * 2**attempt, LONGEST_DELAY)
            self._notes.tell(f"{outcome.text}; trying again in {delay:g} s")
            sleep(delay)
            outcome = self._attempt()
        return outcome

    def _attempt(self) -> Outcome:
        outcome = Outcome()
        progress = self._notes.progress()
        try:
            self._ledger.begin_login()
            conversation = client.connect(self._plan.address, self._plan.timeout, self._plan.tls)
            try:
                self._converse(conversation, outcome, progress)
            finally:
                conversation.close()
                progress.clear()
        except Unreachable as error:
            outcome.status, outcome.text = Status.UNAVAILABLE, str(error)
        except Lost as error:
            outcome.status, outcome.text = Status.TRY_LATER, self._lost(outcome, str(error))
        return outcome

    def _lost(self, outcome: Outcome, reason: str) -> str:
        if isinstance(outcome.login, InitAccepted):
            self._ledger.not_accepted(outcome.login)
        if outcome.set_id:
            return f"{reason}: outcome unknown; run again, the set is recognised by its id {outcome.set_id}"
        return reason

    def _converse(self, conversation: client.Talk, outcome: Outcome, progress: Progress) -> None:
        outcome.login = conversation.login(self._plan.login)
        if isinstance(outcome.login, InitRejected):
            _login_refused(outcome, outcome.login, self._plan)
            return
        full = self._plan.start.full
        if warning := self._ledger.logged_in(outcome.login, full=full):
            self._notes.warn(warning)
        again = self._ledger.again(outcome.login, self._plan, self._submission, int(self._clock()))
        self._tell_again(again)
        fit = self._fit(outcome.login, again)
        outcome.left_out = len(fit.left_out)
        if fit.excess and self._plan.over_quota is quota.OverQuota.FAIL:
            self._ledger.not_accepted(outcome.login)
            outcome.status, outcome.text = Status.REFUSED, f"over quota: {fit.excess}; nothing sent"
            return
        if full or self._submission.count(full=False) + again.count > outcome.left_out:
            self._ledger.begin_login(self._plan.address.logins_of_a_set)
            self._send(conversation, outcome, fit, again, progress)
            if conversation.later_login is not None:
                outcome.login = self._ledger.logged_in_again(
                    conversation.later_login, outcome.login, self._plan, self._submission
                )
            if isinstance(outcome.verdict, SetRejected):
                self._set_refused(outcome, outcome.login, outcome.verdict)
                return
        self._conclude(outcome, outcome.login, fit)

    def _tell_again(self, again: Again) -> None:
        if again.count > again.failed:
            self._notes.tell(
                f"{again.count - again.failed:,} URLs that were not taken earlier are sent again"
            )
        if again.failed:
            self._notes.tell(f"{again.failed:,} URLs that failed earlier are sent again")

    def _items(self, again: Again) -> Iterator[Item]:
        """Yield what is to be sent: what was submitted, then what is sent again."""
        yield from self._submission.items(full=self._plan.start.full)
        if again.count:
            yield from self._ledger.items_again(self._submission)

    def _fit(self, login: InitAccepted, again: Again) -> quota.Fit:
        full, mode = self._plan.start.full, self._plan.over_quota
        room = quota.room_for(login.quota, full=full)
        trim = mode is quota.OverQuota.TRIM
        fit = quota.fit(lambda: self._items(again), room, full=full, trim=trim)
        if fit.excess and mode is not quota.OverQuota.FAIL:
            left_out = f"; {len(fit.left_out):,} new URLs are left out" if fit.left_out else ""
            self._notes.warn(f"over quota: {fit.excess}{left_out}")
        return fit

    def _send(
        self,
        conversation: client.Talk,
        outcome: Outcome,
        fit: quota.Fit,
        again: Again,
        progress: Progress,
    ) -> None:
        plan = self._plan
        outcome.set_id = _id_of(self._set_id, fit.left_out, again)
        start = replace(plan.start, set_id="" if plan.start.dryrun else outcome.set_id)
        total = self._submission.count(full=plan.start.full) + again.count - outcome.left_out

        def urls() -> Iterable[bytes]:
            for item in fit.admitted(self._items(again)):
                outcome.sent += 1
                progress.show(f"{outcome.sent:,} of {total:,} URLs sent")
                yield item.xml

        def refused(error: UrlError) -> None:
            outcome.error_count += 1
            self._ledger.refused(error, plan.start.urlprefix)
            if len(outcome.errors) < plan.errors_kept:
                outcome.errors.append(error)

        outcome.verdict = conversation.submit(start, urls(), refused)

    def _set_refused(self, outcome: Outcome, login: InitAccepted, answer: SetRejected) -> None:
        self._ledger.not_accepted(login)
        outcome.retry_after = answer.retry_after
        later = answer.code in TRY_LATER_CODES
        outcome.status = Status.TRY_LATER if later else Status.REFUSED
        outcome.text = f"set refused: {answer.code} {answer.reason}"

    def _conclude(self, outcome: Outcome, login: InitAccepted, fit: quota.Fit) -> None:
        if self._plan.start.dryrun:
            self._ledger.not_accepted(login)
        else:
            full = self._plan.start.full
            outcome.standing = self._ledger.accepted(self._plan, login, fit.left_out, full=full)
        if outcome.error_count or outcome.standing.count:
            outcome.status = Status.URL_ERRORS


def _handed_id(submission: Submission) -> str:
    return submission.hand_over.set_id if submission.hand_over else ""


def _login_refused(outcome: Outcome, answer: InitRejected, plan: Plan) -> None:
    outcome.status = Status.TRY_LATER if answer.code in TRY_LATER_CODES else Status.LOGIN_REFUSED
    who = f"provider {plan.login.provider_id} at {plan.address}"
    outcome.text = f"login refused: {answer.code} {answer.reason} ({who})"
    outcome.retry_after = answer.retry_after


def _id_of(set_id: str, left_out: frozenset[bytes], again: Again) -> str:
    """A set with less or more than was handed over is another set: the difference is part of its name."""
    if not left_out and not again.count:
        return set_id
    difference = b"".join(sorted(left_out)).hex() + again.digest
    return str(uuid.uuid5(uuid.NAMESPACE_OID, set_id + difference))
