"""Sites of which a section is broken, with a clock that the test moves: what passes are waits, nothing else."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import pytest
from same_thread import ByHand
from test_queue_manager import House

from lcc_scrapy.domain.cache import Answer, Body
from lcc_scrapy.domain.queue import Served, Ticket
from lcc_scrapy.engine.statistics import counter
from lcc_scrapy.fetch import outcomes
from lcc_scrapy.fetch.turn import TurnDelayed, TurnKeeper
from lcc_scrapy.queue.leases import Member

BACKOFF = 60.0
OK, BROKEN = 200, 503
BROKEN_PAGES = [f"broken/{n}" for n in range(300)]
GOOD_PAGES = [f"good/{n}" for n in range(30)]

Asked = list[tuple[float, str]]
"""Requests: seconds since the start, and the path."""


class Crawl:
    """A worker that fetches from a host which answers at once, ``status_of`` a path and the seconds passed.

    ``late``: windows are read when nothing is left to fetch.
    """

    def __init__(
        self,
        pages: Sequence[str],
        status_of: Callable[[str, float], int],
        *,
        at_once: int = 1,
        late: bool = False,
    ) -> None:
        self.house = House()
        self.readers = ByHand()
        if late:
            self.house.manager.windows.readers = self.readers
        self.house.provider(1, atonce=at_once)
        self.house.manager.start()
        self.house.push(1, *pages)
        self.began = self.house.clock.seconds()
        self.status_of = status_of
        self.asked: Asked = []
        worker: Any = SimpleNamespace(
            manager=self.house.manager,
            now=lambda: int(self.house.clock.seconds()),
            config=SimpleNamespace(host_patience=3 * 86400.0),
        )
        self.keeper = TurnKeeper(worker, counter(None))

    @property
    def passed(self) -> float:
        """Seconds since the start."""
        return self.house.clock.seconds() - self.began

    def until(self, seconds: float) -> Asked:
        """Fetch whatever is handed out until so long after the start."""
        rings = self.house.rings
        while self.passed < seconds:
            tickets = list(iter(self.house.manager.next_ticket, None))
            self.asked += [(self.passed, path_of(ticket)) for ticket in tickets]
            for ticket in tickets:
                self._fetch(ticket)
            if not tickets and not self.readers.work_off(1) and rings == self.house.rings:
                self.house.clock.advance(0.25)
            rings = self.house.rings
        return self.asked

    def _fetch(self, ticket: Ticket) -> None:
        status = self.status_of(path_of(ticket), self.passed)

        async def answer(_ticket: Ticket, _member: Member) -> Any:
            return SimpleNamespace(status=status, headers={})

        with suppress(TurnDelayed):
            with suppress(StopIteration):
                self.keeper.keep(ticket, answer).send(None)
            self.house.manager.settle(self._outcome(ticket, status))

    def _outcome(self, ticket: Ticket, status: int) -> Any:
        if failed := outcomes.not_served(ticket, status, conditional=False):
            return failed
        url, now = ticket.row.furl, int(self.house.clock.seconds())
        answer = Answer(status, url, "text/html", "", "", "", "[]", "", "", now)
        return Served(ticket, answer, Body(1, "0" * 32, f"{url:0>64}"[-64:], b""))

    def reported(self) -> list[str]:
        """Return the URLs that were told to their provider as failed."""
        with self.house.store.read() as tx:
            return [error.url for error in tx.errors(1, 1000)]


def path_of(ticket: Ticket) -> str:
    return ticket.row.furl.removeprefix("http://h1/")


def is_broken(path: str, _: float) -> int:
    return BROKEN if path.startswith("broken/") else OK


def good(asked: Asked) -> list[str]:
    return sorted(path for _, path in asked if path.startswith("good/"))


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize("late", [False, True])
def test_good_pages_behind_a_broken_section_wait_once(at_once: int, late: bool) -> None:
    asked = Crawl([*BROKEN_PAGES, *GOOD_PAGES], is_broken, at_once=at_once, late=late).until(BACKOFF + 10)
    assert good(asked) == sorted(GOOD_PAGES)
    assert max(at for at, path in asked if path.startswith("good/")) == BACKOFF


def test_good_pages_behind_several_broken_sections_wait_once_for_each() -> None:
    pages = [f"broken/{section}/{n}" for n in range(100) for section in "abc"]
    asked = Crawl([*pages, *GOOD_PAGES], is_broken).until(60 + 120 + 30 + 1)
    assert good(asked) == sorted(GOOD_PAGES)


def test_broken_pages_have_tries_of_their_own_and_are_told_to_their_provider() -> None:
    pages = [*BROKEN_PAGES[:40], *(f"good/{n}" for n in range(100))]
    crawl = Crawl(pages, is_broken)
    asked = crawl.until(BACKOFF + 70)
    assert [sum(path == page for _, path in asked) for page in BROKEN_PAGES[:40]] == [2] * 40
    assert len(crawl.reported()) == 40


def dies_after(requests: int) -> Callable[[str, float], int]:
    """Return the statuses of a site with a broken section that answers 503 alone after some requests."""
    before = iter(range(requests))
    return lambda path, at: is_broken(path, at) if next(before, None) is not None else BROKEN


@pytest.mark.parametrize(("requests", "first"), [(2, 15), (4, 3.75), (6, 1), (20, 1), (21, 1)])
def test_a_host_that_dies_behind_a_broken_section_gets_no_request_more(requests: int, first: float) -> None:
    crawl = Crawl([*BROKEN_PAGES, *GOOD_PAGES], dies_after(requests))
    asked = [at - BACKOFF for at, _ in crawl.until(BACKOFF + 3 * 3600)][requests:]
    with_each_wait = [0, *accumulate(min(first * 2**n, 3600) for n in range(20))]
    assert asked[0] == 0
    assert all(at >= other for at, other in zip(asked[2:], with_each_wait[2:], strict=False))
    assert not [url for url in crawl.reported() if "broken" not in url]


def test_a_host_that_never_answered_is_asked_after_each_wait_only() -> None:
    asked = Crawl([*BROKEN_PAGES, *GOOD_PAGES], lambda *_: BROKEN).until(3 * 3600)
    assert [at for at, _ in asked] == [0, 60, 180, 420, 900, 1860, 3780, 7380]
