"""Why a worker hands out no URL: what its row says, in the order in which it has to be mended."""

from types import SimpleNamespace
from typing import Any

import pytest

from lcc_scrapy.app.wiring import Worker
from lcc_scrapy.domain.breaker import LAST, Breaker, Fault


def worker(*, short: bool = False, broken: bool = False, full: bool = False) -> Any:
    breaker = Breaker(60)
    for _ in range(LAST if broken else 0):
        breaker.failed(Fault("shop.Price", "KeyError"), 0.0)
    return SimpleNamespace(
        resources=SimpleNamespace(short=short, why="no room on /data"),
        breaker=breaker,
        _group_commit=SimpleNamespace(is_full=lambda: full),
    )


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({}, ""),
        ({"full": True}, "as many results as LCC_COMMIT_PAGES permits wait to be written to disk"),
        (
            {"full": True, "broken": True},
            "fetching is paused: shop.Price fails on every document (KeyError)",
        ),
        ({"full": True, "broken": True, "short": True}, "no room on /data"),
    ],
)
def test_the_first_thing_to_mend_is_said(state: dict[str, bool], said: str) -> None:
    assert Worker._idle(worker(**state)) == said
