"""What ``lcc explain`` knows of URLs that were refused at push, on every store; and what it says of all others."""

from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest
from little_lcc import PID, removal, update, url

from lcc_scrapy.queue.explanation import Surroundings, explain, in_roots_of
from lcc_scrapy.uns.url_validator import REFUSED_CHARACTERS
from tests.little_uns import little_uns

OUTSIDE = "http://elsewhere.example.net/a"


@pytest.fixture
def uns(lcc, tmp_path, monkeypatch):
    with little_uns(lcc, tmp_path / "spool", monkeypatch) as made:
        yield made


def told(lcc, name):
    around = Surroundings(lcc.now, ZoneInfo("UTC"), running=True)
    return [
        (one.state, one.outcome.code if one.outcome else 0, one.since_then)
        for one in explain(lcc.store, name, around)
    ]


def test_refused_urls_are_explained_by_each_of_their_names_after_further_logins(uns, lcc):
    uns.push(
        {"c": OUTSIDE, "mimetype": "text/html"},
        {"c": "b", "mimetype": "video/mp4"},
        {"c": "c", "mimetype": ""},
        {"c": "d", "f": "ftp://x/\udcff".encode("utf-8", "replace").decode(), "mimetype": "text/html"},
        {"c": "e", "mimetype": "text/html"},
    )
    uns.log_in().hang_up()
    uns.absorb()
    uns.log_in().hang_up()
    assert told(lcc, OUTSIDE) == [("refused", 704, "")]
    assert told(lcc, url("b")) == [("refused", 703, "")]
    assert told(lcc, url("c")) == [("refused", 702, "")]
    assert told(lcc, url("d")) == told(lcc, "ftp://x/?") == [("refused", 705, "")]
    assert told(lcc, url("e")) == [("waiting", 0, "")]
    assert (in_roots_of(lcc.store, url("f")), in_roots_of(lcc.store, OUTSIDE)) == ([PID], [])


def test_what_is_dropped_without_a_word_to_the_provider_is_explained_all_the_same(uns, lcc):
    conversation = uns.log_in()
    assert "704" not in conversation.send({"c": OUTSIDE, "mimetype": "text/html"}, outside="drop")
    assert told(lcc, OUTSIDE) == [("refused", 704, "")]


def test_nothing_is_noted_of_a_dry_run(uns, lcc):
    uns.push({"c": OUTSIDE, "mimetype": "text/html"}, dryrun="yes")
    assert told(lcc, OUTSIDE) == []


def test_refusals_are_bounded_by_set_and_by_provider(uns, lcc):
    lcc.policy = replace(lcc.policy, refusals_kept=3)
    uns.restart()
    for number in range(3):
        uns.push(*({"c": f"{OUTSIDE}{number}{n}", "mimetype": "text/html"} for n in range(2)))
        lcc.now += 1
    assert [told(lcc, f"{OUTSIDE}{name}") == [] for name in ("00", "01", "20", "21")] == [
        True, True, False, False,
    ]  # fmt: skip
    long = ["x" * 1900 + str(number) for number in range(40)]
    uns.push(*({"c": f"http://{name}", "mimetype": "text/html"} for name in long))
    assert REFUSED_CHARACTERS < 40 * 1900
    assert told(lcc, f"http://{long[-1]}") == [("refused", 705, "")]


def test_what_is_stored_after_a_failure_is_told_so(lcc):
    lcc.push(update("a"))
    lcc.settle(lcc.failed(lcc.ticket("a"), 404, final=True))
    assert told(lcc, url("a")) == [("failed", 404, "")]
    lcc.now += 3600
    lcc.push(update("a"))
    assert told(lcc, url("a")) == [("waiting", 404, "submitted again")]
    lcc.fetch("a")
    assert told(lcc, url("a")) == [("cached", 404, "stored")]
    lcc.now += 1
    lcc.push(removal("a"))
    assert told(lcc, url("a")) == [("removed", 404, "removed by its provider")]


def test_a_copy_that_outlives_a_failure_is_not_told_as_stored_since(lcc):
    lcc.store_pages("a")
    lcc.now += 1
    lcc.push(update("a"))
    lcc.settle(lcc.failed(lcc.ticket("a"), 503, final=True))
    assert told(lcc, url("a")) == [("cached", 503, "")]
    lcc.now += 3600
    lcc.push(update("a"))
    lcc.settle(lcc.failed(lcc.ticket("a"), 410, final=True))
    assert told(lcc, url("a")) == [("failed", 410, "")]


def test_a_document_that_differs_from_what_was_declared_is_told_as_stored(lcc):
    lcc.policy = replace(lcc.policy, retry_delays=())
    lcc.push(update("a", b"something else"))
    lcc.fetch("a", b"this")
    assert told(lcc, url("a")) == [("cached", 608, "stored")]
