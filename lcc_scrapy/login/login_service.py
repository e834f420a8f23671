"""The service through which providers log in: passwords, connection numbers, quota, errors to report.

Implements ``uns.ports.LoginService``; ``login_throttle`` delays those who guess.
"""

import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn
from zlib import crc32

from twisted.internet.defer import Deferred, inlineCallbacks, succeed
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThreadPool

from lcc_scrapy.cache.last_outcomes import of_refusal
from lcc_scrapy.db.records import OUTCOME_REFUSED, REFUSED_TYPES, OpenLogin, UrlErrorRecord
from lcc_scrapy.db.thread import StoreThread
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain import tokens
from lcc_scrapy.domain.entries import RefusedUrl
from lcc_scrapy.domain.errors import Refusal, StoreUnavailable
from lcc_scrapy.domain.login_limits import ThrottleRules
from lcc_scrapy.domain.policy import QueuePolicy
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.roots import Root
from lcc_scrapy.domain.throttling import Caller
from lcc_scrapy.feed.tokens import StoreTokens
from lcc_scrapy.intake.absorbing import SpooledSet
from lcc_scrapy.intake.dry_run import dry_run
from lcc_scrapy.login.grouping import Grouped
from lcc_scrapy.login.login_throttle import ThrottledChecks
from lcc_scrapy.login.passwords import DUMMY, RightPasswords
from lcc_scrapy.uns.full_sets import Accepted
from lcc_scrapy.uns.ports import DryRun, Login
from lcc_scrapy.wire.messages import UNLIMITED, InitAccepted, Quota, UrlError

PATIENCE = 10.0
"""Seconds after which a login is answered with "try again later" if the database is slow."""

LOOK_AGAIN = 0.05
"""Seconds until a provider is looked at again whose row somebody else has locked, usually for less."""

REFUSED_PAGE = 200
"""Refused URLs that are noted in one transaction."""

_PID_DIGITS = 18


@dataclass(frozen=True, slots=True)
class LoginRules:
    """What the login service tells everybody, and what it goes by."""

    lcc_id: str
    mimetypes: tuple[str, ...]
    slots: int
    policy: QueuePolicy
    throttled_checks: ThrottleRules = field(default_factory=ThrottleRules)


class LoginService:
    """Logs providers in at the UNS with the id ``uns``.

    ``open_set`` reads a spooled set, for dry runs; ``is_full_for`` tells whether the spool takes no set of
    a provider now, ``full_sets`` which full sets it has brought that wait there; ``now`` gives epoch seconds.
    ``rules`` may be replaced, for logins from then on.
    """

    def __init__(
        self,
        store: Store,
        thread: StoreThread,
        reactor: Any,
        rules: LoginRules,
        open_set: Callable[[Path], SpooledSet],
        *,
        uns: str,
        is_full_for: Callable[[int], bool],
        full_sets: Callable[[int], Accepted] = lambda _pid: Accepted(),
        now: Callable[[], float] = time.time,
    ) -> None:
        self._open_set = open_set
        self._uns = uns
        self._is_full_for = is_full_for
        self._full_sets = full_sets
        self._now = now
        self._store = store
        self._thread = thread
        self._reactor = reactor
        self._rules = rules
        self._checks = ThrottledChecks(reactor, rules.throttled_checks)
        self._right = RightPasswords()
        self._tokens = StoreTokens(store)
        self._known: Grouped[int, Provider | None] = Grouped(thread, self._find)
        self._admitted: Grouped[tuple[int, str], Login | None] = Grouped(thread, self._admit)

    def apply(self, rules: LoginRules) -> None:
        """Go by other rules, for logins from now on."""
        self._rules = rules
        self._checks.apply(rules.throttled_checks)

    def login(self, provider_id: str, password: str, ip: str) -> Deferred[Login]:
        """Check a password, or a push token, and note the connection; fails with ``Refusal`` 101 to 103.

        A token may come with an empty id: it says whose it is.

        An unknown id costs as much time as a wrong password and gets the same answer; whoever failed too
        often is told to come again later, without a look at the password. Fails with
        ``StoreUnavailable`` when it takes longer than ``PATIENCE``; nothing is noted then, but for a login
        that was just being noted.
        """
        return self._login(provider_id, password, ip).addTimeout(PATIENCE, self._reactor, _too_late)

    @inlineCallbacks
    def _login(self, provider_id: str, password: str, ip: str) -> Any:
        caller = self._checks.admit(ip, _pid(provider_id))
        provider: Provider | None = None
        if tokens.is_token(password):
            pid = yield self._thread.run(self._pid_of_token, password)
            if pid is not None and provider_id in {"", str(pid)}:
                provider = yield self._known.ask(pid)
        if provider is None:
            provider = yield from self._check_password(caller, password)
        if provider.state == State.MOVING:
            raise Refusal(103, "provider is moving")
        if provider.state not in {State.ACTIVE, State.PAUSED}:
            raise Refusal(102, f"provider is {provider.state}")
        if self._is_full_for(provider.pid):
            raise Refusal(103, "its sets fill the spool")
        while (login := (yield self._admitted.ask((provider.pid, ip)))) is None:
            yield deferLater(self._reactor, LOOK_AGAIN)
        return login

    def _check_password(self, caller: Caller, password: str) -> Generator[Any, Any, Provider]:
        """Return the provider whose password it is; raises ``Refusal``."""
        provider: Provider | None = None
        if isinstance(caller.pid, int):
            provider = yield self._known.ask(caller.pid)
        caller = self._checks.identify(caller, provider.lastconnip if provider else "")
        known = provider.password if provider else DUMMY
        if provider is not None and self._right.has(known, password, self._reactor.seconds()):
            return provider
        right: bool = yield self._checks.check(caller, known, password)
        if provider is None or not right:
            raise Refusal(101)
        self._right.note(known, password, self._reactor.seconds())
        if provider.state in {State.ACTIVE, State.PAUSED}:
            self._checks.passed(caller)
        return provider

    def logout(self, login: Login, refused: int = 0) -> Deferred[None]:
        """Forget the errors that were delivered with a login; count URLs that were refused for their type."""
        if not (login.accepted.error_count or refused):
            return succeed(None)
        errors = login.accepted.error_count
        return self._thread.run(self._forget, login.pid, login.errors_upto, errors, refused)

    @inlineCallbacks
    def note_refused(self, login: Login, refused: Sequence[RefusedUrl]) -> Any:
        """Keep why URLs of a set were refused, a page at a time."""
        for start in range(0, len(refused), REFUSED_PAGE):
            page = refused[start : start + REFUSED_PAGE]
            yield self._thread.run(self._keep_refused, login.pid, page)

    def dry_run(self, login: Login, spooled: Path) -> Deferred[DryRun]:
        """Tell what a set would remove, changing nothing."""
        del login
        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), self._dry_run, spooled)

    def close(self) -> None:
        """End the threads."""
        self._checks.close()

    # --- in the store's thread -------------------------------------------------------------------

    def _pid_of_token(self, secret: str) -> int | None:
        """Return whose push token it is, None when it is not good."""
        try:
            return tokens.check(self._tokens, secret, tokens.PUSH, int(self._now())).provider
        except (tokens.Refused, tokens.NotAllowed):
            return None

    def _find(self, pids: Sequence[int]) -> list[Provider | None]:
        with self._store.read() as tx:
            found = tx.providers_of(pids)
        return [found.get(pid) for pid in pids]

    def _admit(self, logins: Sequence[tuple[int, str]]) -> list[Login | Exception | None]:
        """Note logins of providers, each from an address, in one transaction.

        None for those whose rows are locked: one that is locked for long must not hold up all others.
        """
        now = int(self._now())
        brought = {pid: self._full_sets(pid) for pid, _ in logins}
        with self._store.begin() as tx:
            providers = tx.lock_providers(brought, free=True)
            others = brought.keys() - providers.keys()
            locked = tx.providers_of(others).keys() if others else ()
            before: list[Provider | None] = []
            for pid, ip in logins:
                provider = providers.get(pid)
                before.append(provider)
                if provider is not None:
                    providers[pid] = _noted(provider, ip, now)
            self._note(tx, before, providers, now)
            roots = tx.roots_of(providers)
            return [
                self._let_in(tx, one, brought[pid], roots, now)
                if one is not None
                else (None if pid in locked else Refusal(101))
                for (pid, _), one in zip(logins, before, strict=True)
            ]

    def _note(
        self, tx: Tx, before: Sequence[Provider | None], after: Mapping[int, Provider], now: int
    ) -> None:
        names = ("pid", "lastconnseq", "lastconnip", "lastconntime", "confirmed")
        tx.note_logins([{name: getattr(one, name) for name in names} for one in after.values()])
        numbers = ((one.pid, one.lastconnseq + 1) for one in before if one is not None)
        tx.insert_logins([OpenLogin(pid, number, self._uns, now) for pid, number in numbers])

    def _let_in(
        self, tx: Tx, provider: Provider, brought: Accepted, roots: Mapping[int, Sequence[str]], now: int
    ) -> Login:
        """Return what a provider is told, which was ``provider`` before this login."""
        pid, rules = provider.pid, self._rules
        # nothing is kept for a provider that has no errors, and most have none
        errors = tx.errors(pid, rules.policy.errors_kept) if provider.nurlerrs else []
        left = provider.fullsets_left(now, rules.policy.fullset_period)
        counted = self._counted(tx, provider, now)
        if left is not None:
            noted_already = (one.seq for one in brought.waiting if tx.pset_of(pid, one.seq))
            left = max(0, left - brought.without(noted_already).newly_charged(counted))
        accepted = InitAccepted(
            provider.lastconnseq + 1,
            provider.lastconnip,
            provider.accepted_types(rules.mimetypes),
            _quota(provider, left, _still_wanted(provider, brought)),
            provider.nurlerrs,
            provider.nurlproc,
            tuple(map(_reported, errors)),
            rules.lcc_id,
            _revision(provider, rules),
        )
        return Login(
            pid=pid,
            accepted=accepted,
            roots=tuple(map(Root.parse, roots.get(pid, ()))),
            timeofday=provider.timeofday,
            slots=rules.slots,
            fullsets_left=left,
            fullsets_charged=brought.charged,
            empty=not (provider.fileused or provider.nurlproc or brought.waiting),
            counted_sets=frozenset([*counted, *(one.set_id for one in brought.waiting if one.set_id)]),
            errors_upto=max((error.errorid for error in errors), default=0),
        )

    def _counted(self, tx: Tx, provider: Provider, now: int) -> list[str]:
        """Return the ids of full sets that were counted; none if the provider has no limit."""
        if provider.fullsetsallowed is None:
            return []
        return tx.set_ids(provider.pid, now - int(self._rules.policy.resend_period))

    def _forget(self, pid: int, upto: int, count: int, refused: int) -> None:
        with self._store.begin() as tx:
            provider = tx.lock_providers([pid]).get(pid)
            tx.forget_errors(pid, upto)
            if provider is not None:
                tx.add_to_provider(pid, {"nurlerrs": -min(count, provider.nurlerrs)})
            tx.tally({REFUSED_TYPES: refused} if refused else {})

    def _keep_refused(self, pid: int, refused: Sequence[RefusedUrl]) -> None:
        now = int(self._now())
        rows = {row.urlkey: row for row in (of_refusal(pid, one, now) for one in refused)}
        with self._store.begin() as tx:
            tx.put_outcomes(list(rows.values()))
            tx.trim_outcomes(pid, OUTCOME_REFUSED, self._rules.policy.refusals_kept)

    def _dry_run(self, spooled: Path) -> DryRun:
        reader = self._open_set(spooled)
        try:
            return dry_run(self._store, reader, self._rules.policy, int(self._now()))
        finally:
            reader.close()


def _pid(provider_id: str) -> int | None:
    """Read a provider's id: leading zeros make no other provider of it."""
    readable = provider_id.isascii() and provider_id.isdigit() and len(provider_id) <= _PID_DIGITS
    return int(provider_id) if readable else None


def _noted(provider: Provider, ip: str, now: int) -> Provider:
    """Return a provider as a login leaves it, which confirms its documents unless a full set is wanted."""
    return replace(
        provider,
        lastconnseq=provider.lastconnseq + 1,
        lastconnip=ip[:45],
        lastconntime=now,
        confirmed=provider.confirmed if provider.fullsetwanted else now,
    )


def _too_late(_result: object, seconds: float) -> NoReturn:
    raise StoreUnavailable(f"no answer within {seconds:g} s")


def _still_wanted(provider: Provider, brought: Accepted) -> str:
    """Return why a full set is wanted, unless one that was sent after the request waits in the spool."""
    answered = any(one.seq > provider.wantedseq for one in brought.waiting)
    return "" if answered else provider.fullsetwanted


def _quota(provider: Provider, left: int | None, wanted: str) -> Quota:
    return Quota(
        provider.fileused,
        _free(provider.filesmax, provider.fileused),
        provider.spaceused,
        _free(provider.spacemax, provider.spaceused),
        UNLIMITED if left is None else left,
        bool(wanted),
        wanted,
    )


def _revision(provider: Provider, rules: LoginRules) -> str:
    """Return a text that changes with every reason to refuse a URL: roots, types, quota, hours."""
    # the counter too: what was refused between a change and its withdrawal is asked for as well
    judged_by = json.dumps([rules.mimetypes, rules.slots])
    return f"{provider.revision}-{crc32(judged_by.encode()):08x}"


def _free(limit: int, used: int) -> int:
    return max(0, limit - used) if limit else UNLIMITED


def _reported(error: UrlErrorRecord) -> UrlError:
    return UrlError(error.code, error.text, error.url, error.submitted)
