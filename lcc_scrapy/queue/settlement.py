"""Settling: what becomes of the queue, the cache and the provider's errors after fetches ended.

All outcomes of a call go into one transaction; bodies are put on disk before their rows are committed,
and only those that are kept (seed 003 section 6 "Some Notes").
"""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count as numbers_from

from lcc_scrapy.cache.file_ids import FILEID
from lcc_scrapy.cache.irrelevant import current_at, forget
from lcc_scrapy.cache.last_outcomes import of_fetch, removal_reason
from lcc_scrapy.cache.misses import watched
from lcc_scrapy.db.records import (
    EVERYBODY,
    OUTCOME_FAILED,
    OUTCOME_RETRYING,
    OUTCOME_STORED,
    FailingHost,
    Fetched,
    Irrelevant,
    LastOutcome,
    Spidered,
    UrlErrorRecord,
)
from lcc_scrapy.db.tx import Tx
from lcc_scrapy.domain import convergence, queue, removal_guard, retries
from lcc_scrapy.domain.cache import Body, CachedUrl, UrlMeta, fitting
from lcc_scrapy.domain.entries import Origin, accepts, furlkey
from lcc_scrapy.domain.errors import text_of
from lcc_scrapy.domain.fetch_counts import span_of
from lcc_scrapy.domain.headers import length_of
from lcc_scrapy.domain.policy import STRICT, QueuePolicy
from lcc_scrapy.domain.providers import Render, quota_refusal
from lcc_scrapy.domain.queue import (
    Cancelled,
    Delayed,
    Failed,
    Fetch,
    HostNoted,
    NotModified,
    Outcome,
    QueuedUrl,
    Served,
    Ticket,
)
from lcc_scrapy.domain.rendering import NOT_RENDERED, is_rendered, rendition_key, rendition_row
from lcc_scrapy.domain.retries import NO_BACKOFF
from lcc_scrapy.domain.revisits import Bounds, bounds_of
from lcc_scrapy.domain.sent import as_sent, values_of
from lcc_scrapy.domain.turn import NEVER
from lcc_scrapy.domain.values import quickly_made
from lcc_scrapy.queue.unit_of_work import UnitOfWork
from lcc_scrapy.queue.visits import Visit, ended

_log = logging.getLogger(__name__)
STORED, CONFIRMED, RETRYING, DELAYED, FAILED, DISCARDED, LOST, NOTED = (
    "stored",
    "confirmed",
    "retrying",
    "delayed",
    "failed",
    "discarded",
    "lost",
    "noted",
)


@quickly_made
@dataclass(frozen=True, slots=True)
class Settled:
    """What became of one outcome. ``row`` is the cached row as it is now, if there is one.

    ``again``: when the URL is to be fetched again (epoch seconds; 0 = now); NEVER = it left the queue.
    """

    outcome: Outcome
    result: str
    row: CachedUrl | None = None
    code: int = 0
    removed: bool = False
    again: float = NEVER


class Settlement:
    """One transaction's worth of outcomes.

    A served body that brings no file id is given one here.

    ``keep`` is called once, before rows are written, with the bodies to put on disk; ``durable`` waits until
    they are, before anything is locked that other workers need.
    """

    def __init__(
        self,
        tx: Tx,
        outcomes: Sequence[Outcome],
        *,
        owner: str,
        machineid: int,
        now: int,
        policy: QueuePolicy,
        keep: Callable[[Sequence[Served]], None],
        durable: Callable[[], None] = lambda: None,
    ) -> None:
        rows = [outcome.ticket.row for outcome in outcomes]
        self._owner = owner
        self._machineid = machineid
        self._keep = keep
        self._durable = durable
        self._now = now
        pids = {row.pid for row in rows}
        pids |= {url[1] for one in outcomes if isinstance(one, HostNoted) for url in one.blamed}
        self._batch = UnitOfWork(tx, pids, _keys_of(outcomes), now, policy, known=rows)
        self._taken_over = self._find_taken_over(tx, [row for row in rows if queue.is_found(row)])
        self._left = self._find_left(tx, [row for row in rows if queue.is_found(row)])
        self._visits: dict[bytes, Visit] = {}
        self._turns = tx.lock_turns({outcome.ticket.turnkey for outcome in outcomes})
        self._outcomes = self._with_file_ids(outcomes)
        self._kept: list[Served] = []
        self._blamed: list[Settled] = []
        self._errors: list[UrlErrorRecord] = []
        self._last: dict[bytes, LastOutcome] = {}

    def run(self) -> list[Settled]:
        """Settle everything; returns one result per outcome, in order."""
        settled = [self._settle(outcome) for outcome in self._outcomes]
        batch = self._batch
        self._keep(self._still_there())
        for error in self._errors:
            batch.counters[error.pid]["nurlerrs"] += 1
        batch.write_own()
        batch.tx.add_errors(self._errors, batch.policy.errors_kept)
        batch.tx.put_outcomes(list(self._last.values()))
        batch.tx.visited(self._ended_visits())
        counted = self._count([*settled, *self._blamed])
        self._tell_held()
        self._durable()
        self._count_totals(counted)  # all workers count in the same rows: see ``tx.FEED`` for their order
        batch.write_last()
        return [self._as_written(one) for one in settled]

    def _still_there(self) -> list[Served]:
        """Return what to store, but what a later outcome removed or replaced: no row would name its file."""
        named = {row.fetched_fileid for row in self._batch.cached.values()}
        return [one for one in self._kept if one.fileid in named]

    def _count(self, settled: Sequence[Settled]) -> Counter[Fetched]:
        """Count what became of the fetches of each provider, in this span of time."""
        counted = Counter(
            Fetched(one.outcome.ticket.row.pid, one.result, one.code)
            for one in settled
            if one.result not in {LOST, NOTED}
        )
        self._batch.tx.count_fetches(counted, span_of(self._now))
        return counted

    def _count_totals(self, counted: Counter[Fetched]) -> None:
        """Count the same of all providers together, in this span of time and for ever."""
        totals: Counter[Fetched] = Counter()
        for (_, result, code), count in counted.items():
            totals[Fetched(EVERYBODY, result, code)] += count
        self._batch.tx.count_fetches(totals, span_of(self._now))
        self._batch.tx.tally({f"{one.result} {one.code}": count for one, count in totals.items()})

    def _as_written(self, settled: Settled) -> Settled:
        """Show the row with the seq that it was given when everything was written, and what waits then."""
        row = settled.row and self._batch.cached.get(settled.row.urlkey)
        waiting = self._waiting(settled.outcome.ticket.row) if settled.result != LOST else None
        if row is settled.row and waiting is None:
            return settled
        again = NEVER if waiting is None else waiting.not_before
        return Settled(settled.outcome, settled.result, row, settled.code, settled.removed, again)

    def _is_lost(self, outcome: Outcome) -> bool:
        ticket = outcome.ticket
        turn = self._turns.get(ticket.turnkey)
        leased = turn is not None and (turn.owner, turn.token) == (self._owner, ticket.token)
        return not leased or ticket.row.pid not in self._batch.providers

    def _find_taken_over(self, tx: Tx, found: Sequence[QueuedUrl]) -> dict[bytes, bytes]:
        """Return which pushed URLs took over the places of spiders' visits that were under way, by key."""
        gone = {
            row.urlkey: furlkey(row.pid, row.furl) for row in found if row.urlkey not in self._batch.queued
        }
        waiting = tx.waiting_at(gone.values()) if gone else {}
        taken = {key: waiting[lies_at] for key, lies_at in gone.items() if lies_at in waiting}
        self._batch.add(taken.values())
        return taken

    def _find_left(self, tx: Tx, found: Sequence[QueuedUrl]) -> dict[bytes, Irrelevant]:
        """Return what is left of dropped documents at these URLs, by the keys of what waits."""
        lies_at = {row.urlkey: furlkey(row.pid, row.furl) for row in found}
        left = current_at(tx, lies_at.values()) if lies_at else {}
        return {key: left[at] for key, at in lies_at.items() if at in left}

    def _is_still_irrelevant(self, row: QueuedUrl, body: Body | None = None) -> bool:
        """Tell whether a dropped document is as it was: its site said so (no body), or served the same."""
        left = self._left.get(row.urlkey)
        if left is None or not self._batch.policy.drop_irrelevant:
            return False
        return body is None or left.sha256 == body.sha256

    def _stays_dropped(self, outcome: Outcome, row: QueuedUrl) -> Settled:
        self._visited(outcome.ticket.row, Visit())
        self._batch.drop_queued(row.urlkey)
        return Settled(outcome, DISCARDED)

    def _waiting(self, row: QueuedUrl) -> QueuedUrl | None:
        queued = self._batch.queued
        return queued.get(row.urlkey) or queued.get(self._taken_over.get(row.urlkey, b""))

    def _visited(self, row: QueuedUrl, visit: Visit) -> None:
        if queue.is_found(row):
            self._visits[furlkey(row.pid, row.furl)] = visit

    def _ended_visits(self) -> list[Spidered]:
        known = self._batch.tx.spidered(self._visits) if self._visits else {}
        return [ended(row, self._visits[key], self._now, self._bounds(row.pid)) for key, row in known.items()]

    def _bounds(self, pid: int) -> Bounds:
        return bounds_of(self._batch.providers[pid].revisit, self._batch.policy.revisits)

    def _with_file_ids(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Give every served body a file id of its own, where it has none."""
        served = [one for one in outcomes if isinstance(one, Served) and not self._is_lost(one)]
        nameless = sum(not one.fileid for one in queue.bodies_of(served))
        fileids = numbers_from(self._batch.tx.take(FILEID, nameless) if nameless else 0)
        ready = {id(one): _ready(one, fileids) for one in served}
        return [ready.get(id(one), one) for one in outcomes]

    def _settle(self, outcome: Outcome) -> Settled:
        if self._is_lost(outcome):
            return Settled(outcome, LOST)
        if isinstance(outcome, (Delayed, HostNoted)):
            self._note_host(outcome)
        row = self._waiting(outcome.ticket.row)
        if isinstance(outcome, HostNoted):
            return Settled(outcome, NOTED)
        if row is None or row.operation == queue.NOTHING or self._is_pointless(row):
            self._batch.drop_queued(outcome.ticket.row.urlkey)
            return Settled(outcome, DISCARDED)
        return self._settle_fetch(outcome, row)

    def _settle_fetch(self, outcome: Fetch, row: QueuedUrl) -> Settled:
        match outcome:
            case Served():
                return self._served(outcome, row)
            case NotModified():
                return self._not_modified(outcome, row)
            case Failed():
                return self._failed(outcome, row)
            case Cancelled():
                return Settled(outcome, DISCARDED)
            case Delayed():
                self._note(row, outcome.code, outcome.at, outcome.detail, state=OUTCOME_RETRYING)
                if outcome.until and not queue.overtaken(row, outcome.ticket):
                    self._batch.put_queued(replace(row, not_before=outcome.until))
                return Settled(outcome, DELAYED, code=outcome.code)

    def _is_pointless(self, row: QueuedUrl) -> bool:
        """Tell whether a document that was to be looked at again is not there any more."""
        return queue.is_recheck(row) and row.urlkey not in self._batch.cached

    def _note_host(self, outcome: Delayed | HostNoted) -> None:
        """Write what is known of a host; what failed though the host answers is tried again like others."""
        ticket = outcome.ticket
        if outcome.backoff != NO_BACKOFF:
            self._batch.tx.put_failing_host(FailingHost.of(ticket.turnkey, ticket.host, outcome.backoff))
        for key, pid, tries, _ in outcome.blamed if isinstance(outcome, HostNoted) else ():
            row, said = self._batch.queued.get(key), self._last.get(key) or self._batch.tx.outcome(key)
            if row is not None and said is not None and (row.pid, row.tries) == (pid, tries):
                detail = said.text.removeprefix(text_of(said.code)).removeprefix(": ")
                blamed = replace(ticket, row=row)
                failed = Failed(blamed, said.code, detail, outcome.at, alone=True)
                self._blamed.append(self._failed(failed, row))

    def _served(self, served: Served, row: QueuedUrl) -> Settled:  # noqa: PLR0911 - one for each case
        said = queue.found_as(queue.declared_by(row, served), served.answer)
        if queue.is_found(said) and not accepts(self._types_of(row.pid), said.mimetype):
            return self._failed(
                Failed(served.ticket, 703, said.mimetype, served.answer.answered, final=True), row
            )
        before = self._batch.cached.get(said.urlkey)
        if before is not None and self._is_doubtful(said, before, served.body):
            return self._look_once_more(served, row, before)
        wrong = 0 if queue.is_found(said) else queue.mismatch(said, served.answer, served.body)
        if wrong and not queue.is_recheck(said):
            return self._mismatched(served, row, said, wrong)
        if wrong and self._is_strict(row.pid):
            return self._failed(Failed(served.ticket, wrong, "", served.answer.answered, final=True), row)
        if before is None and self._is_still_irrelevant(row, served.body):
            return self._stays_dropped(served, row)
        if before is not None and queue.is_found(said) and before.origin == Origin.PUSH:
            said = queue.as_pushed(said, before)
        if before is not None and queue.is_recheck(said):
            said = queue.as_rechecked(said, before)
        over = self._over_quota(row.pid, None if before is None else before.fetched_len, served)
        if over:
            return self._failed(Failed(served.ticket, over, "", served.answer.answered, final=True), row)
        self._matched(said)
        after, fresh = self._store(served, said)
        if not fresh:
            self._batch.confirm(after.urlkey)
        self._count_change(row, served.ticket, before, changed=fresh)
        self._leave_queue(served, row)
        self._visited(served.ticket.row, Visit(changed=fresh))
        self._drop_former(served.ticket.row, after)
        return Settled(served, STORED if fresh else CONFIRMED, after, wrong)

    def _store(self, served: Served, said: QueuedUrl) -> tuple[CachedUrl, bool]:
        """Put a body into the cache, declared as ``said``; tell whether it is another content than before."""
        before = self._batch.cached.get(said.urlkey)
        after = queue.stored_row(served, queue.as_told(said), before, self._machineid)
        fresh = before is None or after.fetched_fileid != before.fetched_fileid
        if fresh:
            self._kept.append(served)
        self._batch.put_cached(after, tell=before is None or queue.users_notice(before, after))
        self._batch.put_meta(_meta(served, after.urlkey))
        self._put_rendition(served.rendition, said, changed=fresh)
        return after, fresh

    # --- what is not as it was declared ------------------------------------------------------------

    def _is_doubtful(self, said: QueuedUrl, before: CachedUrl, body: Body) -> bool:
        """Tell whether a look that nobody asked for found other content than a copy that is as declared."""
        declared = before.origin == Origin.PUSH and convergence.is_right(before)
        looked = queue.is_recheck(said) or queue.is_found(said)
        first = not said.tries and bool(self._batch.policy.retry_delays)
        return declared and looked and first and body.sha256 != before.sha256

    def _look_once_more(self, served: Served, row: QueuedUrl, before: CachedUrl) -> Settled:
        """Keep a copy that is as declared until a second look, after the last delay, finds the same."""
        code, at = convergence.OTHER_CONTENT, served.answer.answered
        if queue.overtaken(row, served.ticket):
            return Settled(served, DISCARDED, before, code)
        self._batch.put_queued(queue.try_again(row, at + self._batch.policy.retry_delays[-1]))
        self._note(row, code, at, state=OUTCOME_RETRYING)
        return Settled(served, RETRYING, before, code)

    def _mismatched(self, served: Served, row: QueuedUrl, said: QueuedUrl, code: int) -> Settled:
        """Settle a body that is not what was declared as ``said``: see ``convergence.after_mismatch``."""
        before, at = self._batch.cached.get(said.urlkey), served.answer.answered
        superseded = queue.superseded(row, served.ticket)
        decision = self._after_mismatch(served, row, said, code, superseded=superseded)
        over = decision.stored and self._over_quota(
            row.pid, None if before is None else before.fetched_len, served
        )
        if over and not (decision.again or superseded):
            return self._failed(Failed(served.ticket, over, "", at, final=True), row)
        after, fresh = before, False
        if decision.stored and not over:
            after, fresh = self._store(served, said)
        elif before is not None and not superseded:
            after = queue.unlike_declared(said, before, at)
            self._batch.put_cached(after, tell=False)
        if superseded:
            return Settled(served, STORED if fresh else DISCARDED, after, code)
        known = convergence.strong(served.answer.etag) if served.answer.final_url == row.furl else ""
        etag = known if decision.conditional and not over else ""
        self._try_again_or_tell(
            served.ticket, row, code, at, decision.again, stored=decision.stored, etag=etag
        )
        if not decision.again:
            self._count_change(row, served.ticket, before, changed=fresh)
        return Settled(served, STORED if fresh else RETRYING if decision.again else FAILED, after, code)

    def _after_mismatch(
        self, served: Served, row: QueuedUrl, said: QueuedUrl, code: int, *, superseded: bool
    ) -> convergence.Mismatch:
        """Decide; of what is superseded, nothing is stored that would have to wait for a last try."""
        before = self._batch.cached.get(said.urlkey)
        return convergence.after_mismatch(
            code,
            empty=convergence.is_empty(said.declared, served.body.length),
            copy=convergence.copy_of(before, said.declared, row.declared),
            strict=self._is_strict(row.pid),
            tries=0 if superseded else row.tries,
            delays=(0.0,) if superseded else self._batch.policy.retry_delays,
            now=served.answer.answered,
            in_a_row=0 if superseded else self._in_a_row(row.pid),
        )

    def _same_mismatch(self, outcome: NotModified, row: QueuedUrl) -> Settled:
        """Settle a 304 that says: these are still the bytes that came in place of what was declared."""
        before = self._batch.cached.get(row.urlkey)
        if queue.superseded(row, outcome.ticket):
            return Settled(outcome, DISCARDED, before)
        noted = self._batch.tx.outcome(row.urlkey)
        known = noted is not None and noted.code in convergence.MISMATCHES
        code = noted.code if noted and known else convergence.OTHER_CONTENT
        stored = before is not None and before.etag == outcome.ticket.row.last_etag
        if before is not None:
            self._batch.put_cached(queue.unlike_declared(row, before, outcome.at), tell=False)
        delays = self._batch.policy.retry_delays
        again = convergence.next_try(row.tries, delays, outcome.at, self._in_a_row(row.pid))
        self._try_again_or_tell(
            outcome.ticket, row, code, outcome.at, again, stored=stored, etag=outcome.ticket.row.last_etag
        )
        after = self._batch.cached.get(row.urlkey)
        return Settled(outcome, RETRYING if again else FAILED, after, code)

    def _try_again_or_tell(
        self, ticket: Ticket, row: QueuedUrl, code: int, at: int, again: float, *, stored: bool, etag: str
    ) -> None:
        """Let a URL with a mismatch be tried ``again``; 0 = it was its last try, and its provider is told."""
        if again:
            self._batch.put_queued(queue.try_again(row, again, etag))
        elif queue.overtaken(row, ticket):
            self._ask_once_more(row, at)
        else:
            self._batch.drop_queued(row.urlkey)
            self._batch.counters[row.pid]["mismatched"] += 1
            self._tell_provider(row, code, at)
            self._note(row, code, at, state=OUTCOME_STORED if stored else OUTCOME_FAILED)
            return
        self._note(row, code, at, state=OUTCOME_RETRYING)

    def _ask_once_more(self, row: QueuedUrl, at: int) -> None:
        """Ask for a URL once more that was declared again, as before, during its last try."""
        due = convergence.one_more(at, at, self._batch.policy.retry_delays)
        self._batch.put_queued(queue.once_more(row, due))

    def _in_a_row(self, pid: int) -> int:
        """Return how many last tries of a provider mismatched in a row, with those of this unit of work."""
        added = self._batch.counters[pid]["mismatched"] if pid in self._batch.counters else 0
        return self._batch.providers[pid].mismatched + added

    def _matched(self, said: QueuedUrl) -> None:
        """Note that a site serves what its provider declared."""
        if said.origin == Origin.PUSH and self._in_a_row(said.pid):
            self._batch.counters[said.pid]["mismatched"] = -self._batch.providers[said.pid].mismatched

    def _count_change(
        self, row: QueuedUrl, ticket: Ticket, before: CachedUrl | None, *, changed: bool
    ) -> None:
        """Count a change that was pushed, or what a sample found if no push came in between."""
        if before is None or queue.is_found(row):
            return
        if not queue.is_recheck(row):
            if changed:
                self._batch.missed[row.pid]["pushed"] += 1
        elif queue.is_sample(row) and not queue.overtaken(row, ticket):
            counted = self._batch.missed[row.pid]
            counted["sampled"] += 1
            counted["watched"] += watched(self._batch.providers[row.pid], before.confirmed_time, self._now)
            self._batch.suspects[row.pid] += [row.urlkey] * changed

    def _drop_former(self, row: QueuedUrl, after: CachedUrl) -> None:
        """Remove a found document that is served as another type now, and so has another key."""
        former = self._batch.cached.get(row.urlkey)
        if former is not None and former.origin != Origin.PUSH and after.urlkey != row.urlkey:
            self._batch.drop_cached(row.urlkey, "served as another type", guarded=False)

    def _put_rendition(self, served: Served | None, page: QueuedUrl, *, changed: bool) -> None:
        """Store what a browser made of a page; the former rendition goes where it is not of this page."""
        if not is_rendered(page.mimetype):
            return  # another view of the same curl
        said = rendition_row(page)
        before, pid = self._batch.cached.get(said.urlkey), page.pid
        if served is None or self._over_quota(pid, before.fetched_len if before else 0, served):
            if before is not None and (changed or self._batch.providers[pid].render != Render.YES):
                self._batch.drop_cached(said.urlkey, NOT_RENDERED, guarded=False)
            return
        after = queue.stored_row(served, said, before, self._machineid)
        if before is None or after.fetched_fileid != before.fetched_fileid:
            self._kept.append(served)
        self._batch.put_cached(after, tell=before is None or queue.users_notice(before, after))
        self._batch.put_meta(_meta(served, after.urlkey))

    def _leave_queue(self, served: Served, row: QueuedUrl) -> None:
        if not queue.overtaken(row, served.ticket) or queue.answered_by(row, served.body):
            self._batch.drop_queued(row.urlkey)

    def _not_modified(self, outcome: NotModified, row: QueuedUrl) -> Settled:
        if outcome.ticket.row.last_etag:
            return self._same_mismatch(outcome, row)
        before = self._batch.cached.get(row.urlkey)
        if before is None and self._is_still_irrelevant(row):
            return self._stays_dropped(outcome, row)
        if before is None:
            if row.urlkey in self._left:
                self._batch.tx.wanted_again([self._left[row.urlkey].urlkey])
            unconditional = replace(row, version=row.version + 1)
            self._batch.put_queued(unconditional)
            return Settled(outcome, DISCARDED)
        self._visited(outcome.ticket.row, Visit())
        self._count_change(row, outcome.ticket, before, changed=False)
        after = queue.confirmed_row(outcome, row.seen, before)
        self._batch.put_cached(after, tell=queue.users_notice(before, after))
        self._batch.confirm(row.urlkey)
        self._put_rendition(None, row, changed=False)
        if not queue.overtaken(row, outcome.ticket):
            self._batch.drop_queued(row.urlkey)
        return Settled(outcome, CONFIRMED, after)

    def _failed(self, failed: Failed, row: QueuedUrl) -> Settled:
        declared, delays = self._patience(row, failed)
        better = bool(delays) and retries.may_get_better(failed.code, declared=declared)
        overtaken = queue.overtaken(row, failed.ticket)
        if queue.superseded(row, failed.ticket) or (overtaken and not better):
            return Settled(failed, DISCARDED, code=failed.code)
        code = retries.UNAVAILABLE if failed.alone else failed.code  # whatever it was, it may be over
        decision = retries.after_failure(code, row.tries, failed.at, delays, declared=declared)
        again = isinstance(decision, retries.Retry) or overtaken
        state = OUTCOME_RETRYING if again else OUTCOME_FAILED
        self._note(row, failed.code, failed.at, failed.detail, state=state)
        if isinstance(decision, retries.Retry):
            self._batch.put_queued(queue.try_again(row, max(decision.at, row.not_before), row.last_etag))
            return Settled(failed, RETRYING, code=failed.code)
        if overtaken:
            self._ask_once_more(row, failed.at)
            return Settled(failed, RETRYING, code=failed.code)
        self._batch.drop_queued(row.urlkey)
        self._visited(row, Visit(failed.code))
        if row.origin in {Origin.PUSH, Origin.INDEXNOW}:
            self._tell_provider(row, failed.code, failed.at, failed.detail)
        before = self._batch.cached.get(row.urlkey)
        if decision.removes_copy and row.urlkey in self._left:
            forget(self._batch.tx, [furlkey(row.pid, row.furl)])
        if decision.removes_copy and before is not None:
            self._count_change(row, failed.ticket, before, changed=True)
            hold = self._batch.held_by_guard(row.pid, 1) or (queue.is_found(row) and before.held > 0)
            self._batch.remove(row.urlkey, row.psetid, removal_reason(failed.code), hold=hold)
        after = self._batch.cached.get(row.urlkey)
        return Settled(failed, FAILED, after, failed.code, removed=before is not None and after is None)

    def _patience(self, row: QueuedUrl, failed: Failed) -> tuple[bool, tuple[float, ...]]:
        """Return whether a URL was declared to exist since it was fetched, and the delays between tries."""
        delays = () if failed.final else self._batch.policy.retry_delays
        if failed.code not in retries.MISSING_CODES:
            return False, delays
        before = self._batch.cached.get(row.urlkey)
        looked = before is not None and before.origin == Origin.PUSH and row.origin != Origin.PUSH
        if before is not None and looked:
            return convergence.is_right(before), delays[-1:]
        return queue.is_declared(row, is_new=before is None), delays

    def _types_of(self, pid: int) -> tuple[str, ...]:
        return self._batch.providers[pid].accepted_types(self._batch.policy.mimetypes)

    def _is_strict(self, pid: int) -> bool:
        return (self._batch.providers[pid].declared or self._batch.policy.declared) == STRICT

    def _over_quota(self, pid: int, before: int | None, served: Served) -> int:
        """Return what refuses a body; headers, which differ by the hour, refuse no copy that is renewed.

        ``before`` is the length of that copy, None = there is none.
        """
        files, space = self._in_use(pid)
        provider, length = self._batch.providers[pid], served.body.length
        if before is not None:
            return quota_refusal(provider, files, space, before, length)
        return quota_refusal(provider, files, space, None, length + length_of(served.answer.headers))

    def _in_use(self, pid: int) -> tuple[int, int]:
        """Return files and bytes in use, with what this unit of work has stored so far."""
        provider, batch = self._batch.providers[pid], self._batch
        files, space = provider.fileused, provider.spaceused
        if provider.filesmax or provider.spacemax:
            added, freed = batch.change_in_use(pid)
            return files + added, space + freed
        return files, space

    def _tell_provider(self, row: QueuedUrl, code: int, at: int, detail: str = "") -> None:
        text = _told(code, detail)
        self._errors.append(url_error(row, code, text, at))

    def _note(self, row: QueuedUrl, code: int, at: int, detail: str = "", *, state: str) -> None:
        self._last[row.urlkey] = of_fetch(row, code, _told(code, detail), at, state)

    def _tell_held(self) -> None:
        """Warn of documents that only the guard keeps: of the first, the tenth, the hundredth …"""
        for pid, count in self._batch.newly_held.items():
            before = self._batch.providers[pid].heldremovals
            if before == 0 or len(str(before)) < len(str(before + count)):
                told = removal_guard.notice(pid, before + count, "their fetches failed for good")
                _log.warning("%(notice)s", {"notice": told, "pid": pid})


def _told(code: int, detail: str) -> str:
    """Return what a code means, with a detail that may come from anywhere and must fit a column."""
    text = f"{text_of(code)}: {detail}" if detail else text_of(code)
    return text.encode("ascii", "backslashreplace").decode().replace("\0", "\\0")[:255]


def _keys_of(outcomes: Sequence[Outcome]) -> list[bytes]:
    """Return the keys that outcomes are about: of their rows, and of found documents as they were served."""
    served = [one for one in outcomes if isinstance(one, Served)]
    stored = [queue.found_as(one.ticket.row, one.answer).urlkey for one in served]
    rows = [one.ticket.row for one in served if one.rendition is not None]
    renditions = [rendition_key(row.pid, row.curl) for row in rows]
    blamed = [url[0] for one in outcomes if isinstance(one, HostNoted) for url in one.blamed]
    return [*(outcome.ticket.row.urlkey for outcome in outcomes), *stored, *renditions, *blamed]


def _ready(served: Served, fileids: Iterator[int]) -> Served:
    """Return a served body with its file id, and with an answer that the cache can hold."""
    answer = fitting(served.answer)
    if served.fileid and answer is served.answer:
        return served
    fileid = served.fileid or next(fileids)
    rendition = served.rendition and _ready(served.rendition, fileids)
    return Served(served.ticket, answer, served.body, fileid, rendition)


def _meta(served: Served, key: bytes) -> UrlMeta:
    answer = served.answer
    return UrlMeta(key, answer.status_line, answer.headers, answer.peer, answer.answered)


def url_error(row: QueuedUrl, code: int, text: str, at: int) -> UrlErrorRecord:
    """Return what is kept for a provider of a URL that failed."""
    values = values_of(row)
    known = json.dumps({name: value for name, value in values.items() if value is not None})
    sent = json.dumps(as_sent(row.sent, values)) if row.sent else None
    return UrlErrorRecord(row.pid, code, text, row.furl, known, at, sent=sent)
