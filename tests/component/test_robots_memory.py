"""What is remembered of robots.txt is bounded by its size, so that sites with enormous ones do not fill memory."""

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.settings import Settings

from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.fetch.robots import (
    KEPT_BYTES,
    LEAST_BYTES,
    MAX_BYTES,
    NO_RULES,
    Asker,
    RobotsAnswer,
    RobotsTxt,
    _Known,
)
from tests.component.test_robots_access import in_a_loop


def remembering(*sizes: int) -> RobotsTxt:
    crawler: Any = SimpleNamespace(
        settings=Settings({"ROBOTSTXT_PARSER": "lcc_scrapy.fetch.robots.LccRobotParser"})
    )
    made = RobotsTxt(crawler)
    for number, size in enumerate(sizes):
        made._remember(("http", f"host-{number}:80", False), _Known(None, NO_RULES, 0.0, size))
    return made


def test_of_large_answers_the_oldest_are_forgotten() -> None:
    made = remembering(*[MAX_BYTES] * 100)
    assert len(made._known) == KEPT_BYTES // MAX_BYTES
    assert next(reversed(made._known)) == ("http", "host-99:80", False)
    assert made._kept <= KEPT_BYTES


def test_of_small_ones_thousands_are_kept() -> None:
    assert len(remembering(*[LEAST_BYTES] * 20_000)._known) == 16_000


def test_an_answer_that_is_renewed_counts_once() -> None:
    made = remembering(1000)
    made._remember(("http", "host-0:80", False), _Known(None, NO_RULES, 0.0, 3000))
    assert made._kept == 3000


def asked(body: bytes) -> tuple[RobotsTxt, HttpUrl, Any]:
    async def ask(_: HttpUrl) -> RobotsAnswer:
        return RobotsAnswer(200, body)

    return remembering(), HttpUrl.parse("http://www.example.org/a"), ask


@in_a_loop
async def test_an_answer_counts_by_what_is_kept_of_it() -> None:
    """Rules for other robots take nothing; those that count take several times their bytes."""
    lines = b"".join(b"Disallow: /folder/%d\n" % number for number in range(5000))
    made, url, ask = asked(b"User-agent: somebody\n" + lines)
    await made.permission(url, ask, Asker())
    assert made._kept == LEAST_BYTES
    made, url, ask = asked(b"User-agent: *\n" + lines)
    await made.permission(url, ask, Asker())
    assert 5 * len(lines) < made._kept < 20 * len(lines)


@in_a_loop
async def test_of_rules_that_are_widened_the_operator_is_told(caplog: pytest.LogCaptureFixture) -> None:
    made, url, ask = asked(b"User-agent: *\n" + b"".join(b"Disallow: /x*%d*y\n" % n for n in range(1000)))
    await made.permission(url, ask, Asker())
    assert "robots.txt of www.example.org:80 has too many wildcards: 667 rules are widened" in caplog.text


@in_a_loop
async def test_redirects_of_robots_txt_lead_where_browsers_go_in_the_octets_that_came() -> None:
    asked_for = []
    leads = iter([b"/x//y/\xe9", b"../r\xc3\xa9//./z", b"\\\\b.example\\robots", b"http://b\xff.example/"])

    async def ask(url: HttpUrl) -> RobotsAnswer:
        asked_for.append(str(url))
        return RobotsAnswer(302, b"", next(leads))

    await remembering().permission(HttpUrl.parse("http://a.example/x"), ask, Asker())
    assert asked_for == [
        "http://a.example/robots.txt",
        "http://a.example/x//y/%E9",
        "http://a.example/x//r%C3%A9//z",
        "http://b.example/robots",
    ]
