"""The throttle before the login service: failed logins are throttled, password checks are few and take turns.

Checks run in threads of their own, so that guessing blocks neither the event loop nor the database.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.python.failure import Failure

from lcc_scrapy.db.thread import DaemonPool
from lcc_scrapy.domain.errors import Refusal
from lcc_scrapy.domain.fair_queue import FairQueue
from lcc_scrapy.domain.login_limits import ThrottleRules
from lcc_scrapy.domain.throttling import Caller, LoginThrottle
from lcc_scrapy.listeners.peers import neighbourhood, plain_address
from lcc_scrapy.login.passwords import verify_password


@dataclass(slots=True, eq=False)
class _Check:
    caller: Caller
    known: str = field(repr=False)
    password: str = field(repr=False)
    done: Deferred[bool] = field(default_factory=Deferred)


class ThrottledChecks:
    """All methods but ``check`` return at once; ``Refusal`` 103 says in how many seconds to come again.

    ``reactor.seconds()`` is the clock of the buckets.
    """

    def __init__(self, reactor: Any, rules: ThrottleRules) -> None:
        self._reactor = reactor
        self._rules = rules
        self._throttle = LoginThrottle(rules.per_address, rules.per_id)
        self._room: FairQueue[_Check] = FairQueue(rules.waiting, lambda check: check.caller)
        self._pool = DaemonPool(minthreads=0, maxthreads=rules.checks, name="lcc-passwords")
        self._pool.start()
        self._busy = 0

    def apply(self, rules: ThrottleRules) -> None:
        """Go by other rules from now on."""
        self._rules = rules
        self._throttle.change(rules.per_address, rules.per_id)
        self._room.most = rules.waiting
        self._pool.adjustPoolsize(minthreads=0, maxthreads=rules.checks)
        self._go_on()

    def admit(self, ip: str, pid: int | None) -> Caller:
        """Return the caller, before anything is asked of the database; raises ``Refusal``."""
        caller = self._throttle.caller(neighbourhood(plain_address(ip)), pid)
        _refuse_for(self._throttle.address_wait(caller, self._reactor.seconds()))
        return caller

    def identify(self, caller: Caller, last_ip: str) -> Caller:
        """Return the caller once the address of its provider's last login is known; raises ``Refusal``."""
        if not caller.known and last_ip and neighbourhood(plain_address(last_ip)) == caller.address:
            caller = self._throttle.remember(caller)
        now = self._reactor.seconds()
        seconds = self._throttle.wait(caller, now)
        if seconds and not caller.known:
            self._throttle.charge(caller, now)
        _refuse_for(seconds)
        return caller

    def check(self, caller: Caller, known: str, password: str) -> Deferred[bool]:
        """Tell whether ``password`` is the one ``known`` was made from, when it is this caller's turn.

        A token is taken; ``passed`` puts it back. Fails with ``Refusal`` when too many wait, or when the
        caller's tokens went to others while it waited. Cancelling it gives the place up.
        """
        check = _Check(caller, known, password)
        check.done = Deferred(lambda _: self._room.leave(check))
        turned_away = self._room.enter(check)
        if turned_away is not None:
            turned_away.done.errback(Refusal(103, "too many logins wait"))
        self._go_on()
        return check.done

    def passed(self, caller: Caller) -> None:
        """Put the token back: the password was right. The address is known from now on."""
        self._throttle.give_back(caller)
        self._throttle.remember(caller)

    def close(self) -> None:
        """End the threads."""
        self._pool.stop()

    def _go_on(self) -> None:
        while self._busy < self._rules.checks and (check := self._room.next()) is not None:
            self._begin(check)

    def _begin(self, check: _Check) -> None:
        now = self._reactor.seconds()
        try:
            _refuse_for(self._throttle.wait(check.caller, now))
        except Refusal as refusal:
            check.done.errback(refusal)
            return
        self._throttle.take(check.caller, now)
        self._busy += 1
        looked = deferToThreadPool(self._reactor, self._pool, verify_password, check.known, check.password)
        looked.addBoth(self._ended, check)

    def _ended(self, result: "bool | Failure", check: _Check) -> None:
        self._busy -= 1
        if not check.done.called:
            check.done.errback(result) if isinstance(result, Failure) else check.done.callback(result)
        self._go_on()


def _refuse_for(seconds: float) -> None:
    if seconds:
        raise Refusal(103, "too many failed logins", math.ceil(seconds))
