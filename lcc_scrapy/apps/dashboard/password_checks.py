"""Passwords of users, behind the same throttle as the logins of providers. It lives on the event loop."""

import math
import time
from collections.abc import Callable

from anyio import CapacityLimiter, to_thread

from lcc_scrapy.domain.login_limits import ThrottleRules
from lcc_scrapy.domain.shares import ShareUsedUp
from lcc_scrapy.domain.throttling import LoginThrottle
from lcc_scrapy.domain.users import NAME_MAX
from lcc_scrapy.login.passwords import DUMMY, verify_password

_TURNED_AWAY = 10
"""Seconds after which somebody may come again when too many wait."""


class PasswordChecks:
    """Failed sign-ins are throttled by address and by name; few passwords are checked at a time."""

    def __init__(self, rules: ThrottleRules, clock: Callable[[], float] = time.monotonic) -> None:
        self._rules = rules
        self._clock = clock
        self._throttle = LoginThrottle(rules.per_address, rules.per_id)
        self._limiter: CapacityLimiter | None = None
        self._waiting = 0

    async def check(self, address: str, name: str, known: str, password: str) -> bool:
        """Tell whether ``password`` is the one that the hash ``known`` was made from; "" matches none.

        A wrong one takes as long for a user that does not exist. Raises ``ShareUsedUp``.
        """
        caller = self._throttle.caller(address, name[: NAME_MAX + 1])
        wait = self._throttle.wait(caller, self._clock())
        if wait:
            raise ShareUsedUp("too many failed sign-ins", math.ceil(wait))
        if self._waiting >= self._rules.waiting:
            raise ShareUsedUp("too many sign-ins at a time", _TURNED_AWAY)
        self._throttle.take(caller, self._clock())
        right = await self._verify(known or DUMMY, password)
        if right:
            self._throttle.give_back(caller)
            self._throttle.remember(caller)
        return right

    async def _verify(self, known: str, password: str) -> bool:
        if self._limiter is None:
            self._limiter = CapacityLimiter(self._rules.checks)  # it belongs to the loop that runs
        self._waiting += 1
        try:
            return await to_thread.run_sync(verify_password, known, password, limiter=self._limiter)
        finally:
            self._waiting -= 1
