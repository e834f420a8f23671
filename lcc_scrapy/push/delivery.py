"""Bringing a submission to the LCC: log in, send the set, commit the state, try again where that helps."""

from __future__ import annotations

import ssl
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from lcc_scrapy.push import client, quota, refusals
from lcc_scrapy.push.command import Notes, Progress, Status, Stop
from lcc_scrapy.push.refusals import Again, Standing, Verdict
from lcc_scrapy.push.state import Damaged, Header, StateFile
from lcc_scrapy.push.submission import Item, Submission
from lcc_scrapy.wire.messages import (
    Init,
    InitAccepted,
    InitRejected,
    SetAccepted,
    SetRejected,
    SetStart,
    UrlError,
)

TRY_LATER_CODES = frozenset({103, 104, 203})
FIRST_DELAY = 10.0
LONGEST_DELAY = 600.0
"""Seconds between two attempts: doubled each time up to this bound, which also holds for retry-after."""


@dataclass(frozen=True)
class Plan:
    """What the user asked for. ``start.set_id`` is empty unless the user named the set."""

    address: client.Address
    login: Init
    start: SetStart
    tls: ssl.SSLContext | None = None
    timeout: float = 300.0
    retries: int = 0
    over_quota: quota.OverQuota = quota.OverQuota.WARN
    errors_kept: int = 20


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


class Ledger:
    """The state file that a hand-over names, while lcccp holds it; without one, nothing is kept."""

    def __init__(self, file: StateFile | None = None, header: Header | None = None) -> None:
        self._file = file
        self._header = header or Header()
        self._sent: frozenset[bytes] = frozenset()
        self._verdict = Verdict()

    @classmethod
    def open(cls, file: StateFile, set_id: str) -> Ledger:
        """Take over a pending state; raises `Stop` when it is not the one that was handed over."""
        try:
            header = file.checked_pending()
        except Damaged as error:
            raise Stop(Status.BAD_INPUT, f"{file.pending}: {error}; nothing sent") from None
        if header is None:
            raise Stop(
                Status.BAD_INPUT,
                f"there is no {file.pending}: where lcccpstate runs on another machine, use --no-commit "
                "here and lcccpstate --commit there; nothing sent",
            )
        if header.id != set_id:
            raise Stop(Status.TRY_LATER, f"{file.path}: a newer run took over; nothing sent")
        return cls(file, header)

    def check_bound_to(self, provider_id: str, urlprefix: str) -> None:
        """Refuse to mix sites: raises `Stop` (65) when the state was made for another."""
        self._check("provider", self._header.pid, provider_id)
        self._check("urlprefix", self._header.urlprefix, urlprefix)

    def _check(self, what: str, bound: str, given: str) -> None:
        if self._file is not None and bound and bound != given:
            raise Stop(
                Status.BAD_INPUT,
                f"{self._file.path} belongs to {what} {bound!r}, not {given!r}: use another state file, or "
                "lcccpstate --full to bind it anew; nothing sent",
            )

    def logged_in(self, login: InitAccepted, *, full: bool) -> str:
        """Check the LCC and remember its full-set request; returns a warning, or "". Raises `Stop` (65)."""
        self._check("LCC", self._header.lcc, login.lcc_id or self._header.lcc)
        if self._file is None:
            return ""
        if login.quota.fullset_wanted and not full:
            self._file.record_full_set_request(login.quota.fullset_reason)
        elif not login.quota.fullset_wanted:
            self._file.forget_full_set_request()
        return self._somebody_else(login)

    def _somebody_else(self, login: InitAccepted) -> str:
        missed = login.seq - self._header.seq - 1 if self._header.seq else 0
        if missed <= 0:
            return ""
        return (
            f"{missed} other logins as this provider since the last one recorded in {self._name}, the last "
            f"from {login.last_conn_ip}; if they were not yours (--check counts too), change the password"
        )

    @property
    def _name(self) -> str:
        return self._file.path.name if self._file else ""

    def again(self, login: InitAccepted, plan: Plan, submission: Submission) -> Again:
        """Mark what a login reports as refused; return what was refused and may be taken now.

        A full set has it already.
        """
        self._verdict = Verdict()
        if self._file is None or plan.start.full:
            return Again()
        if login.error_count > len(login.errors):
            self._header = replace(self._header, unlisted="yes")
        codes = refusals.reported(login, plan.start.urlprefix)
        if codes or self._header.unlisted:
            self._sent = frozenset(map(quota.key_of_item, submission.items(full=False)))
        codes = {key: code for key, code in codes.items() if key not in self._sent}
        if codes:
            marked = refusals.with_marks(self._file.pending_lines(), codes)
            self._file.write_pending(self._header, marked)
        return Again.of(self._chosen()) if self._judges_anew(login) else Again()

    def items_again(self, submission: Submission) -> Iterator[Item]:
        """Yield what ``again`` counted."""
        return map(submission.item, self._chosen())

    def _judges_anew(self, login: InitAccepted) -> bool:
        """Tell whether the LCC may take what it refused. An LCC that gives no revision never says so."""
        return login.revision not in {"", self._header.revision}

    def _chosen(self) -> Iterator[bytes]:
        """Yield the refused lines; all that are not sent anyway, where a login did not list all errors."""
        lines = self._file.pending_lines() if self._file else iter(())
        return refusals.chosen(lines, all_but=self._sent if self._header.unlisted else None)

    def refused(self, error: UrlError, urlprefix: str) -> None:
        """Take note of a URL that the LCC refuses."""
        if self._file is not None:
            self._verdict.refuse(error, urlprefix)

    def accepted(
        self, plan: Plan, login: InitAccepted, left_out: frozenset[bytes], *, full: bool
    ) -> Standing:
        """Commit: the LCC now knows the pending state, less what was left out or refused.

        Returns what is refused then.
        """
        verdict = self._verdict
        if self._file is None:
            return verdict.standing
        verdict.judged = full or self._judges_anew(login)
        header = replace(
            self._header,
            lcc=login.lcc_id or self._header.lcc,
            pid=plan.login.provider_id,
            urlprefix=plan.start.urlprefix,
            seq=login.seq,
            revision=login.revision or self._header.revision,
            unlisted="" if verdict.judged else self._header.unlisted,
        )
        self._file.commit(header, left_out, verdict.over)
        if full:
            self._file.forget_full_set_request()
        return verdict.standing

    def not_accepted(self, login: InitAccepted) -> None:
        """Record only that this login was ours."""
        self._header = replace(self._header, seq=login.seq)
        if self._file is not None:
            self._file.note_login(login.seq, self._header.unlisted)


class Delivery:
    """One submission on its way."""

    def __init__(self, plan: Plan, submission: Submission, ledger: Ledger, notes: Notes) -> None:
        self._plan = plan
        self._submission = submission
        self._ledger = ledger
        self._notes = notes
        self._set_id = plan.start.set_id or _handed_id(submission) or str(uuid.uuid4())

    def run(self, sleep: Callable[[float], None] = time.sleep) -> Outcome:
        """Try until it is settled, or as often as the plan says; raises `Stop` for what no retry mends."""
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
            conversation = client.connect(self._plan.address, self._plan.timeout, self._plan.tls)
            try:
                self._converse(conversation, outcome, progress)
            finally:
                conversation.close()
                progress.clear()
        except client.Unreachable as error:
            outcome.status, outcome.text = Status.UNAVAILABLE, str(error)
        except client.Lost as error:
            outcome.status, outcome.text = Status.TRY_LATER, self._lost(outcome, str(error))
        return outcome

    def _lost(self, outcome: Outcome, reason: str) -> str:
        if isinstance(outcome.login, InitAccepted):
            self._ledger.not_accepted(outcome.login)
        if outcome.set_id:
            return f"{reason}: outcome unknown; run again, the set is recognised by its id {outcome.set_id}"
        return reason

    def _converse(self, conversation: client.Conversation, outcome: Outcome, progress: Progress) -> None:
        outcome.login = conversation.login(self._plan.login)
        if isinstance(outcome.login, InitRejected):
            _login_refused(outcome, outcome.login, self._plan)
            return
        full = self._plan.start.full
        if warning := self._ledger.logged_in(outcome.login, full=full):
            self._notes.warn(warning)
        again = self._ledger.again(outcome.login, self._plan, self._submission)
        if again.count:
            self._notes.tell(f"{again.count:,} URLs that were not taken earlier are sent again")
        fit = self._fit(outcome.login, again)
        outcome.left_out = len(fit.left_out)
        if fit.excess and self._plan.over_quota is quota.OverQuota.FAIL:
            self._ledger.not_accepted(outcome.login)
            outcome.status, outcome.text = Status.REFUSED, f"over quota: {fit.excess}; nothing sent"
            return
        if full or self._submission.count(full=False) + again.count > outcome.left_out:
            self._send(conversation, outcome, fit, again, progress)
            if isinstance(outcome.verdict, SetRejected):
                self._set_refused(outcome, outcome.login, outcome.verdict)
                return
        self._conclude(outcome, outcome.login, fit)

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
        conversation: client.Conversation,
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
