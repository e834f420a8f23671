"""The throttle before the login service, with password checks that end when the test says so."""

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from lcc_scrapy.domain.errors import Refusal
from lcc_scrapy.domain.login_limits import ThrottleRules
from lcc_scrapy.domain.throttling import Rate
from lcc_scrapy.login import login_throttle
from lcc_scrapy.login.login_throttle import ThrottledChecks

HOME, AWAY = "192.0.2.1", "198.51.100.1"


class Threads:
    """Stands for the pool: checks wait in ``begun`` until ``end`` is called."""

    def __init__(self) -> None:
        self.begun: list[Deferred[bool]] = []

    def __call__(self, _reactor: Any, _pool: Any, _verify: Any, _known: str, _password: str) -> Any:
        self.begun.append(Deferred())
        return self.begun[-1]

    def end(self, right: bool) -> None:
        self.begun.pop(0).callback(right)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Threads:
    made = Threads()
    monkeypatch.setattr(login_throttle, "deferToThreadPool", made)
    return made


class Callers:
    """Asks the throttle as the login service does, and keeps what was answered: True, False or the refusal."""

    def __init__(self, **rules: Any) -> None:
        self.clock = Clock()
        self.throttled_checks = ThrottledChecks(self.clock, ThrottleRules(**rules))

    def come(self, ip: str = AWAY, pid: int | None = 7, last_ip: str = "") -> list[Any]:
        told: list[Any] = []
        try:
            caller = self.throttled_checks.identify(self.throttled_checks.admit(ip, pid), last_ip)
        except Refusal as refusal:
            return [refusal]

        def looked(right: bool) -> None:
            if right:
                self.throttled_checks.passed(caller)
            told.append(right)

        checked = self.throttled_checks.check(caller, "hash", "guess")
        checked.addCallbacks(looked, lambda failure: told.append(failure.value))
        return told


@pytest.fixture
def make() -> Any:
    made: list[Callers] = []

    def callers(**rules: Any) -> Callers:
        made.append(Callers(**rules))
        return made[-1]

    yield callers
    for one in made:
        one.throttled_checks.close()


def refused(told: list[Any]) -> bool:
    (only,) = told
    return isinstance(only, Refusal) and only.code == 103


def test_so_many_are_checked_at_a_time_and_so_many_wait(make: Any, threads: Threads) -> None:
    callers = make(checks=2, waiting=3)
    told = [callers.come(f"198.51.100.{number}", number) for number in range(7)]
    assert len(threads.begun) == 2
    assert [refused(one) for one in told if one] == [True, True]
    for _ in range(5):
        threads.end(right=False)
    assert told.count([False]) == 5
    assert threads.begun == []


def test_a_failure_takes_a_token_and_a_success_takes_none(make: Any, threads: Threads) -> None:
    callers = make(per_id=Rate(2, 60.0))
    for right in [True] * 5 + [False] * 2:
        told = callers.come(last_ip="")
        threads.end(right)
        assert told == [right]
        callers.throttled_checks._throttle._known.__init__()  # type: ignore[misc]
    (refusal,) = callers.come()
    assert (refusal.code, refusal.retry_after) == (103, 30)
    assert threads.begun == []
    callers.clock.advance(30)
    callers.come()
    assert len(threads.begun) == 1


def test_those_who_come_together_get_no_more_looks_than_one_after_the_other(
    make: Any, threads: Threads
) -> None:
    callers = make(per_id=Rate(3, 60.0), checks=1)
    told = [callers.come() for _ in range(20)]
    looks = 0
    while threads.begun:
        threads.end(right=False)
        looks += 1
    assert looks == 3
    assert sum(map(refused, told)) == 17


def test_the_provider_is_let_near_from_home_while_its_id_is_guessed_at(make: Any, threads: Threads) -> None:
    callers = make(per_id=Rate(1, 60.0))
    callers.come()
    threads.end(right=False)
    assert refused(callers.come(HOME, 7, last_ip=AWAY))
    told = callers.come(HOME, 7, last_ip=HOME)
    threads.end(right=True)
    assert told == [True]


def test_a_success_makes_an_address_known_also_when_the_last_login_was_elsewhere(
    make: Any, threads: Threads
) -> None:
    callers = make(per_id=Rate(1, 60.0))
    callers.come(HOME)
    threads.end(right=True)
    callers.come(AWAY)
    threads.end(right=False)
    assert refused(callers.come(AWAY, 7, last_ip=AWAY[:-1] + "2"))
    callers.come(HOME, 7, last_ip=AWAY)
    assert len(threads.begun) == 1


def test_an_ipv6_site_is_one_address(make: Any, threads: Threads) -> None:
    callers = make(per_address=Rate(1, 60.0))
    callers.come("2001:db8::1", 7)
    threads.end(right=False)
    assert refused(callers.come("2001:db8::2", 8))
    assert callers.come("2001:db8:0:1::1", 8) == []


@pytest.mark.parametrize("last_ip", ["", "203.0.113.5"], ids=["unknown id", "known id"])
def test_a_stranger_is_told_the_same_whether_the_id_exists_or_not(
    make: Any, threads: Threads, last_ip: str
) -> None:
    callers = make(per_id=Rate(2, 60.0), per_address=Rate(4, 60.0))
    told = []
    for _ in range(8):
        told.append(callers.come(AWAY, 7, last_ip))
        if threads.begun:
            threads.end(right=False)
    assert told[:2] == [[False], [False]]
    assert [(one[0].code, one[0].detail, one[0].retry_after) for one in told[2:]] == [
        (103, "too many failed logins", 30)
    ] * 2 + [(103, "too many failed logins", 15)] * 4


def test_a_known_one_takes_the_place_of_a_stranger(make: Any, threads: Threads) -> None:
    callers = make(checks=1, waiting=1)
    first, second = callers.come("198.51.100.1", 1), callers.come("198.51.100.2", 2)
    home = callers.come(HOME, 7, last_ip=HOME)
    assert refused(second)
    threads.end(right=False)
    threads.end(right=True)
    assert (first, home) == ([False], [True])


def test_a_login_given_up_while_it_waits_is_never_checked(make: Any, threads: Threads) -> None:
    callers = make(checks=1)
    callers.come()
    caller = callers.throttled_checks.identify(callers.throttled_checks.admit(HOME, 8), "")
    waiting = callers.throttled_checks.check(caller, "hash", "guess")
    waiting.addErrback(lambda _: None)
    waiting.cancel()
    threads.end(right=False)
    assert threads.begun == []


def test_a_check_that_fails_is_told_and_others_go_on(make: Any, threads: Threads) -> None:
    callers = make(checks=1)
    first, second = callers.come(AWAY, 1), callers.come(HOME, 2)
    threads.begun.pop(0).errback(MemoryError("no room for 19 MiB"))
    threads.end(right=False)
    assert isinstance(first[0], MemoryError)
    assert second == [False]
