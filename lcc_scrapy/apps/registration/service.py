"""The steps of a registration, one transaction each: begin, prove, approve or reject.

A registration is a row in ``registrations`` until it is complete; then it is a provider, and the row is gone.
Both happen in one transaction, so that a kill leaves one or the other. All calls block.
"""

import hmac
import logging
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lcc_scrapy.apps.registration.rules import (
    APPROVE,
    PASSWORD_ROOTS_MAX,
    ROOTS_MAX,
    Kind,
    Registration,
    Stage,
    Wanted,
    digest_of,
)
from lcc_scrapy.apps.registration.settings import RegistrationRules
from lcc_scrapy.apps.registration.store import rows_in
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.providers import Provider, State
from lcc_scrapy.domain.roots import HttpUrl, Root
from lcc_scrapy.domain.timeslots import ALWAYS
from lcc_scrapy.login.passwords import DUMMY, hash_made_up, made_up, verify_password
from lcc_scrapy.providers import registration as providers

_log = logging.getLogger(__name__)

_LOGS_IN = frozenset({State.ACTIVE, State.PAUSED})


class NotKnown(LccError):
    """There is no registration with this pid and password, or it has expired."""

    def __init__(self) -> None:
        super().__init__(
            "there is no registration with this pid and password, or it has expired: then register again"
        )


class AlreadyActive(LccError):
    """The registration is complete, and its secret is used up."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"provider {pid} is active already: nothing was changed")


class Full(LccError):
    """As many registrations wait as may wait."""

    def __init__(self) -> None:
        super().__init__("too many registrations wait for their proof now: come again in an hour")


class Later(LccError):
    """Nothing can be done just now, for a reason that passes."""


class NotProved(LccError):
    """The proof is missing; ``reason`` is for the log and never for strangers."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Given:
    """What is shown once: a secret, and a password (empty for a further root)."""

    registration: Registration
    secret: str = field(repr=False)
    password: str = field(repr=False, default="")


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a proof: ``active``, or it waits for approval. ``roots`` are those that were proved."""

    pid: int
    kind: str
    roots: tuple[str, ...]
    active: bool


class Registering(Protocol):
    """The registrations that ``steps`` asks for: those of one LCC, or of several behind a front."""

    @property
    def rules(self) -> RegistrationRules:
        """Return what the operator grants."""

    def begin(self, wanted: Wanted, address: str) -> Given:
        """Give out a pid, a secret and a password; raises ``Full``."""

    def begin_root(self, pid: int, password: str, site: HttpUrl, address: str) -> Given:
        """Give out a secret for a further root; raises ``NotKnown``, ``Full``."""

    def begin_password(self, pid: int, address: str) -> Given:
        """Give out a secret and a new password; raises ``Full``."""

    def find(self, pid: int, password: str, kind: Kind) -> Registration:
        """Return the registration whose proof is to be looked for; raises ``NotKnown``, ``AlreadyActive``."""

    def roots_to_prove(self, registration: Registration) -> list[str]:
        """Return the roots at each of which a new password wants the file; raises ``NotProved``."""

    def complete(self, registration: Registration, roots: Sequence[str]) -> Done:
        """Do what a registration is for, now that it was proved; raises ``NotKnown``, ``NotProved``."""


class Registrations:
    """Registrations of one LCC. ``fullsets`` is what a new provider gets; ``now`` gives epoch seconds.

    ``give_out`` returns the pid of a new registration, in the transaction that adds it.
    """

    def __init__(
        self,
        store: Store,
        rules: RegistrationRules,
        *,
        fullsets: int | None = None,
        now: Callable[[], float] = time.time,
        give_out: Callable[[Tx], int] = providers.give_out,
    ) -> None:
        self.rules = rules
        self._store = store
        self._fullsets = fullsets
        self._now = now
        self._give_out = give_out

    # --- step one --------------------------------------------------------------------------------

    def begin(self, wanted: Wanted, address: str) -> Given:
        """Give out a pid, a secret and a password; raises ``Full``."""
        with self._store.begin() as tx:
            self._check_room(tx)
            given = self._given(self._give_out(tx), Kind.PROVIDER, wanted, address)
            rows_in(tx).insert_registration(given.registration)
        return _told(given)

    def begin_root(self, pid: int, password: str, site: HttpUrl, address: str) -> Given:
        """Give out a secret for a further root; those given out for one before are good no more.

        Raises ``NotKnown`` for a provider that is not there or may not log in, ``Full``.
        """
        self._check_login(pid, password)
        with self._store.begin() as tx:
            self._check_room(tx)
            rows = rows_in(tx)
            rows.delete_registrations([one.secret for one in rows.registrations_of(pid, Kind.ROOT)])
            given = self._given(pid, Kind.ROOT, Wanted(site), address)
            rows_in(tx).insert_registration(given.registration)
        return _told(given)

    def begin_password(self, pid: int, address: str) -> Given:
        """Give out a secret and a new password for a provider that lost its own.

        Whether the provider exists shows at the proof: strangers are not told here. Raises ``Full``.
        """
        with self._store.begin() as tx:
            self._check_room(tx)
            given = self._given(pid, Kind.PASSWORD, None, address)
            rows_in(tx).insert_registration(given.registration)
        return _told(given)

    def check_room(self) -> None:
        """Raise ``Full`` where ``begin`` would."""
        with self._store.read() as tx:
            self._check_room(tx)

    def _check_room(self, tx: Tx) -> None:
        if rows_in(tx).count_registrations() >= self.rules.pending:
            raise Full

    def _given(self, pid: int, kind: Kind, wanted: Wanted | None, address: str) -> Given:
        secret, password = secrets.token_hex(20), "" if kind is Kind.ROOT else made_up()
        now = int(self._now())
        registration = Registration(
            digest_of(secret),
            pid,
            kind,
            Stage.WAITING,
            str(wanted.site) if wanted else "",
            password and hash_made_up(password),
            wanted.contact if wanted else "",
            wanted.bandwidth if wanted else 0,
            wanted.timeofday if wanted else ALWAYS,
            wanted.timezone if wanted else "",
            "",
            address[:45],
            now,
            now + self.rules.expires,
        )
        return Given(registration, secret, password)

    def _check_login(self, pid: int, password: str) -> None:
        """Raise ``NotKnown`` unless this is the password of a provider that may log in."""
        with self._store.read() as tx:
            provider = tx.provider(pid)
        right = verify_password(provider.password if provider else DUMMY, password)
        if provider is None or not right or provider.state not in _LOGS_IN:
            raise NotKnown

    # --- step two --------------------------------------------------------------------------------

    def find(self, pid: int, password: str, kind: Kind) -> Registration:
        """Return the registration whose proof is to be looked for; raises ``NotKnown`` or ``AlreadyActive``.

        A further root needs the provider's password; what is waited for otherwise has one of its own.
        """
        if kind is Kind.ROOT:
            self._check_login(pid, password)
        hashed = hash_made_up(password)
        with self._store.read() as tx:
            if kind is Kind.ROOT:
                found = next(iter(rows_in(tx).registrations_of(pid, kind)), None)
            else:
                found = rows_in(tx).registration_with(pid, hashed)
            provider = tx.provider(pid)
        if found is not None and found.kind == kind and found.expires > self._now():
            return found
        if found is None and provider is not None and hmac.compare_digest(provider.password, hashed):
            raise AlreadyActive(pid)
        raise NotKnown

    def roots_to_prove(self, registration: Registration) -> list[str]:
        """Return the roots at each of which a new password wants the file; raises ``NotProved``."""
        with self._store.read() as tx:
            provider, roots = tx.provider(registration.pid), tx.roots(registration.pid)
        if provider is None or provider.state not in _LOGS_IN:
            raise NotProved("there is no such provider, or it may not log in")
        if not 0 < len(roots) <= PASSWORD_ROOTS_MAX:
            raise NotProved(f"{len(roots)} roots, where 1 to {PASSWORD_ROOTS_MAX} can be proved")
        return roots

    def complete(self, registration: Registration, roots: Sequence[str]) -> Done:
        """Note that the proof was seen for these roots, and do what it is for, in one transaction.

        Raises ``NotKnown`` when the registration is gone meanwhile, ``NotProved`` when it cannot be done.
        """
        with self._store.begin() as tx:
            found = rows_in(tx).lock_registration(registration.secret)
            if found is None or found.expires <= self._now():
                raise NotKnown
            done = self._proved(tx, found, tuple(roots))
        what = "is active" if done.active else "waits for approval"
        facts = {"pid": done.pid, "kind": done.kind, "roots": " ".join(done.roots), "what": what}
        _log.info("registration of pid %(pid)d (%(kind)s) %(what)s: %(roots)s", facts)
        return done

    def _proved(self, tx: Tx, found: Registration, roots: tuple[str, ...]) -> Done:
        if found.kind == Kind.PASSWORD:
            self._renew_password(tx, found, roots)
            rows = rows_in(tx)
            rows.delete_registrations([one.secret for one in rows.registrations_of(found.pid, Kind.PASSWORD)])
            return Done(found.pid, found.kind, roots, active=True)
        if found.stage == Stage.PROVED:
            return Done(found.pid, found.kind, (found.root,), active=False)
        proved = found.proved(roots[0], int(self._now()) + self.rules.expires)
        if self.rules.mode == APPROVE:
            rows_in(tx).update_registration(proved)
            return Done(found.pid, found.kind, roots, active=False)
        self._activate(tx, proved)
        return Done(found.pid, found.kind, roots, active=True)

    def _renew_password(self, tx: Tx, found: Registration, roots: tuple[str, ...]) -> None:
        provider = tx.lock_providers([found.pid]).get(found.pid)
        if provider is None or provider.state not in _LOGS_IN or set(tx.roots(found.pid)) != set(roots):
            raise NotProved("the provider was changed meanwhile")
        providers.change_locked(tx, found.pid, {"password": found.password})

    def _activate(self, tx: Tx, proved: Registration) -> None:
        """Make a provider, or add a root; the registration is gone then."""
        if proved.kind == Kind.ROOT:
            self._add_root(tx, proved)
        else:
            providers.insert(tx, self._provider(proved), [proved.root])
        rows_in(tx).delete_registrations([proved.secret])

    def _add_root(self, tx: Tx, proved: Registration) -> None:
        provider = tx.lock_providers([proved.pid]).get(proved.pid)
        if provider is None or provider.state not in _LOGS_IN:
            raise NotProved("there is no such provider, or it may not log in")
        before = tx.roots(proved.pid)
        if len(before) >= ROOTS_MAX:
            raise NotProved(f"it has {len(before)} roots already")
        if not any(Root.parse(root).covers(HttpUrl.parse(proved.root)) for root in before):
            providers.change_locked(tx, proved.pid, {}, lambda roots: [*roots, proved.root])

    def _provider(self, proved: Registration) -> Provider:
        rules = self.rules
        return Provider(
            proved.pid,
            proved.password,
            filesmax=rules.filesmax,
            spacemax=rules.spacemax,
            fullsetsallowed=self._fullsets,
            bandwidth=proved.bandwidth,
            timeofday=proved.timeofday,
            timezone=proved.timezone,
            priority=rules.priority,
            contact=proved.contact,
            name=HttpUrl.parse(proved.root).host[:255],
            allowprivate=rules.private,
            created=int(self._now()),
        )

    # --- the operator's --------------------------------------------------------------------------

    def approve(self, pid: int) -> list[Done]:
        """Let what was proved for a pid take effect; raises ``LccError`` when nothing waits for that."""
        done = []
        with self._store.begin() as tx:
            for one in _of_pid(tx, pid):
                found = rows_in(tx).lock_registration(one.secret)
                if found is not None and found.stage == Stage.PROVED and found.expires > self._now():
                    self._activate(tx, found)
                    done.append(Done(pid, found.kind, (found.root,), active=True))
        if not done:
            raise LccError(
                f"nothing of pid {pid} waits for approval; `lcc registration list` shows what does"
            )
        return done

    def reject(self, pid: int) -> int:
        """Remove all registrations of a pid; returns how many. The pid is never given out again."""
        with self._store.begin() as tx:
            gone = [one.secret for one in _of_pid(tx, pid)]
            rows_in(tx).delete_registrations(gone)
        if not gone:
            raise LccError(f"there is no registration of pid {pid}; `lcc registration list` shows all")
        return len(gone)

    def of(self, pid: int) -> list[Registration]:
        """Return the registrations of a pid."""
        with self._store.read() as tx:
            return _of_pid(tx, pid)

    def all(self) -> Iterator[Registration]:
        """Yield all registrations, read in short transactions."""
        after = ""
        while True:
            with self._store.read() as tx:
                page = rows_in(tx).registrations(after)
            if not page:
                return
            yield from page
            after = page[-1].secret


def _of_pid(tx: Tx, pid: int) -> list[Registration]:
    return [one for kind in Kind for one in rows_in(tx).registrations_of(pid, kind)]


def _told(given: Given) -> Given:
    made = given.registration
    facts: dict[str, Any] = {"pid": made.pid, "kind": made.kind, "site": made.site, "peer": made.address}
    _log.info("registration of pid %(pid)d (%(kind)s) begun by %(peer)s for %(site)s", facts)
    return given
