"""The set receiver: carries out the effects of one session with the login service and the spool."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from lcc_scrapy.domain.entries import RefusedUrl, UrlEntry
from lcc_scrapy.domain.errors import DiskFailed, NotDurable, NotNow, Refusal, SetTooLarge, StoreUnavailable
from lcc_scrapy.domain.runs import EntryRun
from lcc_scrapy.domain.throttling import Buckets, Rate
from lcc_scrapy.domain.uns_limits import Limits
from lcc_scrapy.uns.conversations import Conversations
from lcc_scrapy.uns.full_sets import FullSet
from lcc_scrapy.uns.outbox import Backlog
from lcc_scrapy.uns.ports import UNLIMITED, AcceptedSets, DryRun, Login, LoginService, Resources
from lcc_scrapy.uns.spool import SpoolFolder
from lcc_scrapy.uns.spool_file import SpoolHeader
from lcc_scrapy.uns.spool_writer import SpoolWriter
from lcc_scrapy.uns.states import (
    Event,
    FullSetSpent,
    LoginGranted,
    LoginRefused,
    SetCounted,
    SetStored,
    SpoolFailed,
)
from lcc_scrapy.wire.messages import Init, SetStart

LINES = Rate(60, 60.0)
"""Log lines of one kind; those beyond are counted, and the next one that is written tells how many."""

log = logging.getLogger(__name__)


class LimitedLog:
    """A limit on log lines that strangers on the network can cause.

    ``clock`` gives seconds. The kind of a line is its text before anything is filled in.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: Buckets[str] = Buckets(LINES)
        self._left_out: Counter[str] = Counter()

    def note(self, level: int, line: str, facts: Mapping[str, object]) -> None:
        """Write a line, or count it; ``facts`` are what it names as ``%(name)s``."""
        now = self._clock()
        if self._buckets.wait(line, now):
            self._left_out[line] += 1
            return
        self._buckets.take(line, now)
        if left_out := self._left_out.pop(line, 0):
            line, facts = f"{line} (%(more)d more like it before)", {**facts, "more": left_out}
        log.log(level, line, facts)


@dataclass(slots=True, kw_only=True)
class Context:
    """What all conversations with providers share in one server.

    ``clock`` measures. ``limits`` may be replaced at any time: a conversation goes by those that held when
    it began.
    """

    conversations: Conversations
    limits: Limits
    clock: IReactorTime
    replies: Backlog = field(default_factory=Backlog)
    journal: LimitedLog = field(init=False)

    def __post_init__(self) -> None:
        """Begin the bounded log of what strangers do."""
        self.journal = LimitedLog(self.clock.seconds)


@dataclass(slots=True, kw_only=True)
class Shared(Context):
    """The same in a UNS, which lets providers in and receives sets.

    ``now`` gives epoch seconds; ``in_thread`` runs what blocks. Until there is a ``login_service``, nobody is
    let in (103).
    """

    login_service: LoginService | None
    accepted_sets: AcceptedSets
    spool: SpoolFolder
    now: Callable[[], float]
    in_thread: Callable[[Callable[[], Path]], Deferred[Path]]
    resources: Resources = UNLIMITED


class SetReceiver:
    """Reports every outcome to ``report`` as an event, at once or later, even after the conversation."""

    def __init__(self, shared: Shared, peer: str, report: Callable[[Event], None]) -> None:
        self._shared = shared
        self._peer = peer
        self._report = report
        self._login: Login | None = None
        self._writer: SpoolWriter | None = None
        self._full_set: FullSet | None = None
        self._settling = False
        self._accepted = False

    def authenticate(self, init: Init) -> None:
        """Ask the login service; while the spool or the disk is full, refuse every login."""
        if self._shared.spool.full or self._shared.resources.short:
            self._report(LoginRefused(Refusal(103, "no room", self._shared.limits.retry_after)))
            return
        service = self._shared.login_service
        if service is not None:
            asked = service.login(init.provider_id, init.password, self._peer)
        else:
            asked = fail(StoreUnavailable("the database has not answered yet"))
        asked.addCallbacks(self._granted, self._refused, errbackArgs=(init.provider_id,))
        asked.addErrback(_log_failure)

    def _granted(self, login: Login) -> None:
        who = {"pid": login.pid, "seq": login.seq, "peer": self._peer}
        log.debug("uns login pid=%(pid)d seq=%(seq)d peer=%(peer)s", who)
        self._login = login
        if self._shared.conversations.begin(login.pid, login.seq, self._peer):
            self._report(LoginGranted(login))
        else:
            self._report(LoginRefused(Refusal(104, "", self._shared.limits.retry_after)))

    def _refused(self, failure: Failure, provider_id: str) -> None:
        error = failure.value
        if isinstance(error, Refusal):
            refusal = Refusal(error.code, "", error.retry_after or self._patience_for(error.code))
        else:
            refusal = Refusal(103, "", self._shared.limits.retry_after)
            if not isinstance(error, StoreUnavailable):
                _log_failure(failure)
        # what is no number was perhaps meant as the password
        known = provider_id[:20] if provider_id.isdecimal() else "(no number)"
        why = str(error) if isinstance(error, Refusal) else "no answer"
        who = {"code": refusal.code, "peer": self._peer, "id": known, "reason": why}
        line = "uns login refused code=%(code)d peer=%(peer)s id=%(id)s: %(reason)s"
        self._shared.journal.note(logging.WARNING, line, who)
        self._report(LoginRefused(refusal))

    def _patience_for(self, code: int) -> int:
        return self._shared.limits.retry_after if code == 103 else 0  # noqa: PLR2004 - the wire's own number

    def open(self, start: SetStart) -> None:
        """Begin the spool file of a set."""
        login = self._login
        assert login is not None
        arrived = self._shared.now()
        charged = start.full and not login.full_set_is_free
        self._full_set = FullSet(login.pid, login.seq, start.set_id, charged) if start.full else None
        header = SpoolHeader(
            pid=login.pid,
            seq=login.seq,
            received=int(arrived),
            peer=self._peer,
            set_id=start.set_id,
            full=start.full,
            ifabsent=start.ifabsent,
            drop_outside=start.drop_outside,
            charged=charged,
        )
        if not start.dryrun:
            self._shared.conversations.set_begins(login.pid, login.seq)
        try:
            if self._shared.resources.short:
                raise NotNow("nothing new is begun now")
            self._writer = self._shared.spool.begin(header, arrived)
        except (NotDurable, DiskFailed) as error:
            self._spool_failed(error)

    def record(self, entry: UrlEntry) -> None:
        """Append an entry; after a failure nothing is appended any more."""
        if self._writer is not None:
            self._append(partial(self._writer.add, entry))

    def record_run(self, run: EntryRun) -> None:
        """Append the entries of a run, likewise."""
        if self._writer is not None:
            self._append(partial(self._writer.add_run, run))

    def _append(self, add: Callable[[], None]) -> None:
        try:
            add()
        except (NotDurable, DiskFailed) as error:
            self._spool_failed(error)

    def commit(self, unreadable: int) -> None:
        """Make the set durable, in a thread."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        if self._is_spent():
            writer.drop()
            self._report(FullSetSpent())
            return
        self._settling = True
        if self._full_set is not None:
            self._shared.spool.full_sets.add(self._full_set)
        written = self._shared.in_thread(lambda: writer.commit(unreadable))
        written.addCallbacks(self._stored, lambda failure: self._not_stored(failure.value, writer))
        written.addErrback(_log_failure)

    def _is_spent(self) -> bool:
        """Tell whether full sets of other conversations, accepted since the login, were the last."""
        login, mine = self._login, self._full_set
        if login is None or mine is None or not mine.charged or login.fullsets_left is None:
            return False
        since = self._shared.spool.full_sets.of(login.pid).charged - login.fullsets_charged
        return since > 0 and since >= login.fullsets_left and mine.set_id not in login.counted_sets

    def _stored(self, path: Path) -> None:
        self._settling = False
        self._accepted = True
        self._shared.accepted_sets.set_arrived(path)
        self._report(SetStored())

    def _not_stored(self, error: BaseException, writer: SpoolWriter) -> None:
        self._settling = False
        writer.drop()
        if self._full_set is not None:
            self._shared.spool.full_sets.withdraw(self._full_set)
        self._spool_failed(error)

    def count(self, unreadable: int) -> None:
        """Dry run: let the login service look at the finished file, then drop it."""
        writer, self._writer = self._writer, None
        if writer is None:
            return
        self._settling = True
        try:
            path = writer.finish(unreadable)
        except (NotDurable, DiskFailed) as error:
            self._not_stored(error, writer)
            return
        service, login = self._let_in_by()
        counted = service.dry_run(login, path)
        counted.addCallbacks(
            lambda result: self._counted(result, writer),
            lambda failure: self._not_stored(failure.value, writer),
        )
        counted.addErrback(_log_failure)

    def _counted(self, result: DryRun, writer: SpoolWriter) -> None:
        self._settling = False
        writer.drop()
        self._report(SetCounted(result.would_remove, result.would_hold))

    def drop(self) -> None:
        """Forget the set that was being received."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.drop()

    def release(self) -> None:
        """Let later sets of this provider go on, once this conversation can bring none any more."""
        login = self._login
        if login is None or self._settling:
            return
        if self._shared.conversations.end(login.pid, login.seq) and not self._accepted:
            self._shared.accepted_sets.no_set_came(login.pid, login.seq)

    def note_refused(self, refused: Sequence[RefusedUrl]) -> None:
        """Let the login service keep why URLs were refused; nobody waits for that."""
        service, login = self._let_in_by()
        service.note_refused(login, refused).addErrback(_log_failure)

    def logout(self, refused: int) -> None:
        """The provider has got the whole answer."""
        service, login = self._let_in_by()
        service.logout(login, refused).addErrback(_log_failure)

    def _let_in_by(self) -> tuple[LoginService, Login]:
        service, login = self._shared.login_service, self._login
        assert service is not None
        assert login is not None
        return service, login

    def _spool_failed(self, error: BaseException) -> None:
        self._shared.resources.notice(error)
        log.error("uns set not kept peer=%(peer)s: %(error)s", {"peer": self._peer, "error": error})
        self._writer = None
        self._report(SpoolFailed(too_large=isinstance(error, SetTooLarge)))


def _log_failure(failure: Failure) -> None:
    known = isinstance(failure.value, StoreUnavailable)
    log.error("uns: %s", failure.getErrorMessage(), exc_info=None if known else failure.value)
