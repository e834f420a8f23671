"""Bringing a submission to the LCC: log in, send the set, commit the state, try again where that helps."""

import ssl
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from lcc_scrapy.providers import client, quota
from lcc_scrapy.providers.command import Notes, Progress, Status, Stop
from lcc_scrapy.providers.state import Damaged, Header, StateFile
from lcc_scrapy.providers.submission import Submission
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


@dataclass(frozen=True, slots=True)
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


@dataclass(slots=True)
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


class Ledger:
    """The state file that a hand-over names, while lcccp holds it; without one, nothing is kept."""

    def __init__(self, file: StateFile | None = None, header: Header | None = None) -> None:
        self._file = file
        self._header = header or Header()

    @classmethod
    def open(cls, file: StateFile, set_id: str) -> "Ledger":
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
        """Check the LCC and remember its wish; returns a warning, or "". Raises `Stop` (65)."""
        self._check("LCC", self._header.lcc, login.lcc_id or self._header.lcc)
        if self._file is None:
            return ""
        if login.quota.fullset_wanted and not full:
            self._file.record_wish(login.quota.fullset_reason)
        elif not login.quota.fullset_wanted:
            self._file.forget_wish()
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

    def accepted(self, plan: Plan, login: InitAccepted, left_out: frozenset[bytes], *, full: bool) -> None:
        """Commit: the LCC now knows the pending state, less what was left out."""
        if self._file is None:
            return
        header = replace(
            self._header,
            lcc=login.lcc_id or self._header.lcc,
            pid=plan.login.provider_id,
            urlprefix=plan.start.urlprefix,
            seq=login.seq,
        )
        self._file.commit(header, left_out)
        if full:
            self._file.forget_wish()

    def not_accepted(self, login: InitAccepted) -> None:
        """Record only that this login was ours."""
        self._header = replace(self._header, seq=login.seq)
        if self._file is not None:
            self._file.note_login(login.seq)


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
            _login_refused(outcome, outcome.login)
            return
        full = self._plan.start.full
        if warning := self._ledger.logged_in(outcome.login, full=full):
            self._notes.warn(warning)
        fit = self._fit(outcome.login)
        outcome.left_out = len(fit.left_out)
        if fit.excess and self._plan.over_quota is quota.OverQuota.FAIL:
            self._ledger.not_accepted(outcome.login)
            outcome.status, outcome.text = Status.REFUSED, f"over quota: {fit.excess}; nothing sent"
        elif full or self._submission.count(full=False) > outcome.left_out:
            self._send(conversation, outcome, fit, progress)
            self._settle(outcome, outcome.login, fit)
        else:
            self._conclude(outcome.login, fit)

    def _fit(self, login: InitAccepted) -> quota.Fit:
        full, mode = self._plan.start.full, self._plan.over_quota
        room = quota.room_for(login.quota, full=full)
        trim = mode is quota.OverQuota.TRIM
        fit = quota.fit(lambda: self._submission.items(full=full), room, full=full, trim=trim)
        if fit.excess and mode is not quota.OverQuota.FAIL:
            left_out = f"; {len(fit.left_out):,} new URLs are left out" if fit.left_out else ""
            self._notes.warn(f"over quota: {fit.excess}{left_out}")
        return fit

    def _send(
        self, conversation: client.Conversation, outcome: Outcome, fit: quota.Fit, progress: Progress
    ) -> None:
        plan = self._plan
        outcome.set_id = _id_of(self._set_id, fit.left_out)
        start = replace(plan.start, set_id="" if plan.start.dryrun else outcome.set_id)
        total = self._submission.count(full=plan.start.full) - outcome.left_out

        def urls() -> Iterable[bytes]:
            for item in fit.admitted(self._submission.items(full=plan.start.full)):
                outcome.sent += 1
                progress.show(f"{outcome.sent:,} of {total:,} URLs sent")
                yield item.xml

        def refused(error: UrlError) -> None:
            outcome.error_count += 1
            if len(outcome.errors) < plan.errors_kept:
                outcome.errors.append(error)

        outcome.verdict = conversation.submit(start, urls(), refused)

    def _settle(self, outcome: Outcome, login: InitAccepted, fit: quota.Fit) -> None:
        verdict = outcome.verdict
        if isinstance(verdict, SetRejected):
            self._ledger.not_accepted(login)
            outcome.retry_after = verdict.retry_after
            later = verdict.code in TRY_LATER_CODES
            outcome.status = Status.TRY_LATER if later else Status.REFUSED
            outcome.text = f"set refused: {verdict.code} {verdict.reason}"
            return
        self._conclude(login, fit)
        if outcome.error_count:
            outcome.status = Status.URL_ERRORS

    def _conclude(self, login: InitAccepted, fit: quota.Fit) -> None:
        if self._plan.start.dryrun:
            self._ledger.not_accepted(login)
        else:
            self._ledger.accepted(self._plan, login, fit.left_out, full=self._plan.start.full)


def _handed_id(submission: Submission) -> str:
    return submission.hand_over.set_id if submission.hand_over else ""


def _login_refused(outcome: Outcome, answer: InitRejected) -> None:
    outcome.status = Status.TRY_LATER if answer.code in TRY_LATER_CODES else Status.LOGIN_REFUSED
    outcome.text = f"login refused: {answer.code} {answer.reason}"
    outcome.retry_after = answer.retry_after


def _id_of(set_id: str, left_out: frozenset[bytes]) -> str:
    """A set that was trimmed is another set: what was left out is part of its name."""
    if not left_out:
        return set_id
    return str(uuid.uuid5(uuid.NAMESPACE_OID, set_id + b"".join(sorted(left_out)).hex()))
