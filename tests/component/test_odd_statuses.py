"""Statuses 600 to 999 never meet the codes of the wire, which are in the same range: they are server errors."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from lcc_scrapy.annotation import webhooks
from lcc_scrapy.apps.indexnow.checking import Checker, _File
from lcc_scrapy.apps.indexnow.rules import PENDING
from lcc_scrapy.apps.registration import proof
from lcc_scrapy.apps.registration.service import NotProved
from lcc_scrapy.apps.tracker import http_index
from lcc_scrapy.domain import retries
from lcc_scrapy.domain.errors import CODES
from lcc_scrapy.domain.http_status import understood
from lcc_scrapy.domain.queue import Failed, Ticket
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.fetch import outcomes, robots
from lcc_scrapy.fetch.turn import TurnKeeper
from lcc_scrapy.kit import fetching

T = TypeVar("T")
ODD = range(600, 1000)
NO_STATUS = [-1, 0, 1, 99, 1000, 1602, 9999]
URL = HttpUrl.parse("http://h.example/")


def run(work: Coroutine[Any, Any, T]) -> T:
    with ThreadPoolExecutor(1) as thread:  # the loop of the tests is another one
        return thread.submit(asyncio.run, work).result()


class Manager:
    """Notes what is said of a host."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def member(self, _: Ticket) -> Any:
        return object()

    def charged(self, _: Ticket) -> int:
        return 0

    def fetch_ended(self, _: Ticket) -> int:
        return 0

    def host_answered(self, _: Ticket) -> None:
        self.said.append("answered")

    def host_failed(self, _: Ticket, __: float, ___: int) -> float:
        self.said.append("failed")
        return 0.0

    def delay(self, _: object) -> None:
        self.said.append("delayed")


def ticket() -> Any:
    row = SimpleNamespace(furl="http://h.example/", pid=1, psetid=1, tries=0)
    return SimpleNamespace(row=row, trip=SimpleNamespace(), etag="", last_modified="")


def host_after(status: int) -> list[str]:
    """Return what is said of the host after an answer, which may be a custom component's."""
    manager = Manager()
    worker: Any = SimpleNamespace(manager=manager)

    async def answered(*_: object) -> Any:
        return SimpleNamespace(status=status, headers={})

    run(TurnKeeper(worker, lambda *_: None).keep(ticket(), answered))
    return manager.said


def test_the_range_covers_all_codes_of_failed_fetches() -> None:
    assert all(code in ODD or understood(code) == code for code in CODES if code >= 500)


@pytest.mark.parametrize("status", ODD)
def test_a_document_fails_with_500_and_the_status_in_the_text(status: int) -> None:
    outcome = outcomes.not_served(ticket(), status, conditional=True)
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.detail) == (500, f"the site answers {status}")
    assert not retries.is_host_level(outcome.code)
    assert isinstance(retries.after_failure(outcome.code, 0, 0.0, (60.0,)), retries.Retry)


def test_the_host_has_answered_whatever_the_status() -> None:
    for status in [*ODD, *NO_STATUS]:
        assert host_after(status) == ["answered"], status


@pytest.mark.parametrize("status", NO_STATUS)
def test_a_status_that_is_none_is_a_malformed_answer(status: int) -> None:
    outcome = outcomes.not_served(ticket(), status, conditional=True)
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.detail) == (614, f"the site answers {status}")


@pytest.mark.parametrize("status", range(400, 600))
def test_known_statuses_are_themselves(status: int) -> None:
    outcome = outcomes.not_served(ticket(), status, conditional=True)
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.detail) == (status, "")


def test_robots_txt_is_unreachable() -> None:
    for status in ODD:

        async def ask(_: HttpUrl, status: int = status) -> robots.RobotsAnswer:
            return robots.RobotsAnswer(status, b"")

        with pytest.raises(robots.RobotsUnavailable, match=f"answers {status}"):
            run(robots._rules(URL, ask))


def test_a_source_cannot_be_fetched_and_neither_can_its_robots_txt(monkeypatch: pytest.MonkeyPatch) -> None:
    fetcher = fetching.Fetcher(None, "lcc")  # type: ignore[arg-type]
    for status in ODD:

        async def ask(*_: object, status: int = status, **__: object) -> fetching.Fetched:
            return fetching.Fetched(status, URL, SimpleNamespace(close=lambda: None), {})  # type: ignore[arg-type]

        monkeypatch.setattr(fetching.Fetcher, "ask", ask)
        for obeys in (False, True):
            whose = fetching.Whose({URL.netloc}, obeys=obeys)
            with pytest.raises(fetching.CannotFetch, match=f"answers {status}"):
                run(fetcher.get(str(URL), whose))


def test_a_mirror_is_not_scanned() -> None:
    for status in ODD:
        with pytest.raises(http_index.CannotScan, match=f"answers {status}"):
            http_index._check(URL, status, "", "")


def test_a_key_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    checker = Checker()
    for status in ODD:

        async def shown(*_: object, status: int = status, **__: object) -> _File:
            return _File(status)

        monkeypatch.setattr(Checker, "_file", shown)
        assert run(checker.check(str(URL), "0123456789abcdef", False)).state == PENDING


def test_a_registration_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    prover = proof.Prover(SimpleNamespace(private=False, ports=frozenset({80})))  # type: ignore[arg-type]
    for status in ODD:

        async def ask(*_: object, status: int = status) -> tuple[int, str, bytes]:
            return status, "", b""

        monkeypatch.setattr(proof, "_ask", ask)
        with pytest.raises(NotProved, match=f"answers {status}"):
            run(prover.root("", URL))


def test_a_webhook_has_failed_and_is_not_gone() -> None:
    for status in ODD:
        with pytest.raises(webhooks.HookFailed, match=f"answers {status}"):
            webhooks._judge(status, 0)
