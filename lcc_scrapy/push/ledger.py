"""What a delivery keeps: the state file of a hand-over, and the number of the last login."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lcc_scrapy.push import quota, refusals
from lcc_scrapy.push.command import Status, Stop
from lcc_scrapy.push.logins import LoginRecord
from lcc_scrapy.push.plan import Plan
from lcc_scrapy.push.refusals import Again, Choice, Standing, Verdict
from lcc_scrapy.push.state import Damaged, Header, StateFile
from lcc_scrapy.push.submission import Item, Submission
from lcc_scrapy.wire.messages import InitAccepted, UrlError


class Ledger:
    """The state file that a hand-over names, while lcccp holds it; without one, nothing is kept."""

    def __init__(
        self, file: StateFile | None = None, header: Header | None = None, logins: LoginRecord | None = None
    ) -> None:
        self._file = file
        self._logins = logins
        self._header = header or Header()
        self._sent: frozenset[bytes] = frozenset()
        self._verdict = Verdict()
        self._choice = Choice(0)

    @classmethod
    def open(cls, file: StateFile, set_id: str, logins: LoginRecord | None = None) -> Ledger:
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
        return cls(file, header, logins)

    def check_bound_to(self, provider_id: str, urlprefix: str) -> None:
        """Refuse to mix sites: raises `Stop` (65) when the state was made for another."""
        self._check("provider", self._header.pid, provider_id)
        self._check("urlprefix", self._header.urlprefix, urlprefix)

    def _check(self, what: str, bound: str, given: str) -> None:
        if self._file is not None and bound and bound != given:
            raise Stop(
                Status.BAD_INPUT,
                f"{self._file.path} belongs to {what} {bound!r}, not {given!r}: use another state file, or "
                "--full (of lcccpstate or lcc-push) to bind it anew; nothing sent",
            )

    def begin_login(self, count: int = 1) -> None:
        """Some logins begin, whose numbers may never become known."""
        if self._logins is not None:
            self._logins.begin(count)

    def logged_in_again(
        self, login: InitAccepted, first: InitAccepted, plan: Plan, submission: Submission
    ) -> InitAccepted:
        """Take note of a second login, for the set; returns the first one with the number of the second."""
        if self._logins is not None:
            self._logins.answered(login)
        codes = refusals.reported(login, plan.start.urlprefix)
        if codes and self._file is not None:
            sent = frozenset(map(quota.key_of_item, submission.items(full=plan.start.full)))
            self._verdict.codes.update(
                {key: code for key, code in codes.items() if key not in sent and code in refusals.CODES}
            )
            self._mark(
                {key: code for key, code in codes.items() if key not in sent and code in refusals.FAILURES}
            )
        return replace(first, seq=max(first.seq, login.seq))

    def logged_in(self, login: InitAccepted, *, full: bool) -> str:
        """Check the LCC and remember its full-set request; returns a warning, or "". Raises `Stop` (65)."""
        self._check("LCC", self._header.lcc, login.lcc_id or self._header.lcc)
        others = self._others(login)
        if self._file is None:
            return others
        if login.quota.fullset_wanted and not full:
            self._file.record_full_set_request(login.quota.fullset_reason)
        elif not login.quota.fullset_wanted:
            self._file.forget_full_set_request()
        return others

    def _others(self, login: InitAccepted) -> str:
        """Say how many logins of somebody else there were, "" if none."""
        if self._logins is not None:
            missed = self._logins.answered(login)
        else:
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

    def again(self, login: InitAccepted, plan: Plan, submission: Submission, now: int) -> Again:
        """Mark what a login reports at the time ``now``; return what is to be sent again.

        A full set has it already. Should it not be accepted, the state says that something was refused: no
        login tells it again.
        """
        self._verdict = Verdict(now=now)
        self._choice = Choice(now)
        if self._file is None:
            return Again()
        codes = refusals.reported(login, plan.start.urlprefix)
        is_refused = not refusals.CODES.isdisjoint(codes.values())
        if login.error_count > len(login.errors) or (plan.start.full and is_refused):
            self._header = replace(self._header, unlisted="yes")
        if plan.start.full:
            if self._header.unlisted:
                self._file.note_login(login.seq, self._header.unlisted)
            self._mark({key: code for key, code in codes.items() if code in refusals.FAILURES})
            return Again()
        if codes or self._header.unlisted:
            self._sent = frozenset(map(quota.key_of_item, submission.items(full=False)))
        self._mark({key: code for key, code in codes.items() if key not in self._sent})
        judges_anew = self._judges_anew(login)
        all_but = self._sent if judges_anew and self._header.unlisted else None
        self._choice = Choice(now, refused=judges_anew, all_but=all_but)
        return Again.of(self._chosen())

    def _mark(self, codes: Mapping[bytes, int]) -> None:
        """Mark lines of the pending state with these codes: the LCC reports them once only."""
        if codes and self._file is not None:
            marked = refusals.with_marks(self._file.pending_lines(), codes, self._choice.now)
            self._file.write_pending(self._header, marked)

    def items_again(self, submission: Submission) -> Iterator[Item]:
        """Yield what ``again`` counted."""
        return map(submission.item, self._chosen())

    def _judges_anew(self, login: InitAccepted) -> bool:
        """Tell whether the LCC may take what it refused. An LCC that gives no revision never says so."""
        return login.revision not in {"", self._header.revision}

    def _chosen(self) -> Iterator[bytes]:
        return self._choice.among(self._file.pending_lines() if self._file else ())

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
