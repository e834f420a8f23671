"""Hubs of WebSub, and topics that name them, that mean harm."""

import asyncio
import hmac
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest

from lcc_scrapy.apps.sources import running, websub
from lcc_scrapy.apps.sources.callbacks import CallbackService
from lcc_scrapy.apps.sources.grammar import HUBS
from lcc_scrapy.apps.sources.links import HEADER_MAX
from lcc_scrapy.apps.sources.rules import Further, Listing, Role, Source, SourceFile
from lcc_scrapy.apps.sources.running import Run
from lcc_scrapy.apps.sources.store import rows_in
from lcc_scrapy.apps.sources.submitting import Rules
from lcc_scrapy.apps.sources.subscribing import Subscriber
from lcc_scrapy.apps.sources.topics import read_topic
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.domain.roots import HttpUrl
from lcc_scrapy.kit.fetching import CannotFetch, Fetched
from lcc_scrapy.kit.work import at_once

TOPIC = "http://www.example.org/feed"
SUBSCRIBED = Source(
    1, 7, "websub", TOPIC, 3600, callback="c", secret="s", hub="http://hub/", topic=TOPIC, lease=5000
)
NOW = 1000


def asked(source: Source, mode: str = "subscribe") -> Source:
    return replace(source, asked=mode)


def intent(mode: str) -> dict[str, str]:
    return {"hub.mode": mode, "hub.topic": TOPIC, "hub.challenge": "prove it", "hub.lease_seconds": "9999999"}


def in_a_loop(job: Any) -> Any:
    with ThreadPoolExecutor(1) as thread:  # this thread has a loop that runs
        return thread.submit(asyncio.run, asyncio.wait_for(job, 120)).result()


# --- whose word counts ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["", "subscribe", "unsubscribe", "SUBSCRIBE", " "])
def test_a_hub_that_was_asked_for_nothing_prolongs_nothing(mode: str) -> None:
    assert websub.verified(SUBSCRIBED, intent(mode), NOW) == websub.Verdict(SUBSCRIBED)


def test_a_hub_that_is_left_can_send_nothing() -> None:
    moved = websub.prepared(SUBSCRIBED, "http://other/", TOPIC)
    body = b"<feed/>"
    forged = "sha256=" + hmac.new(SUBSCRIBED.secret.encode(), body, "sha256").hexdigest()
    assert not websub.is_signed(moved.secret, forged, body)
    assert moved.callback != SUBSCRIBED.callback
    assert moved.lease == 0  # that of the former hub says nothing of the new one
    assert websub.prepared(moved, "http://other/", TOPIC) == moved


def test_the_hub_that_has_the_subscription_is_asked_first_and_its_name_stays() -> None:
    assert hubs_asked("http://first/", SUBSCRIBED.hub, failing={"http://first/"}) == [SUBSCRIBED.hub]
    assert hubs_asked("http://first/", "http://second/", failing={"http://first/"}) == [
        "http://first/",
        "http://second/",
    ]


def hubs_asked(*hubs: str, failing: set[str] = frozenset()) -> list[str]:  # type: ignore[assignment]
    """Return which hubs a topic has asked that names these."""
    at: list[str] = []

    class Asking(Subscriber):
        async def _subscribe(self, run: Run, hub: str, topic: str, now: int) -> None:
            at.append(hub)
            if hub in failing:
                raise CannotFetch("no")

    report = SimpleNamespace(note=lambda _: None)
    run = SimpleNamespace(topic=TOPIC, base=TOPIC, hubs=hubs, source=SUBSCRIBED, report=report)
    in_a_loop(Asking(None, at_once, None, "https://lcc.example.org").renew(run, NOW))  # type: ignore[arg-type]
    return at


# --- what a small answer costs -------------------------------------------------------------------


def test_an_answer_makes_us_ask_few_hubs_however_many_it_names() -> None:
    header = "".join(f"<http://h{number}/>;rel=hub," for number in range(1000))[:HEADER_MAX]
    fetched = Fetched(200, HttpUrl.parse(TOPIC), BytesIO(), {b"link": [header] * 16})
    run = made_run(None)
    run._note_hubs(Listing(Role.NEWS), fetched)
    assert len(run.hubs) == HUBS
    assert len(hubs_asked(*run.hubs, failing=set(run.hubs))) == HUBS


def made_run(store: Any, most: int = 1000) -> Run:
    return Run(store, at_once, None, SUBSCRIBED, Rules(most=most))  # type: ignore[arg-type]


def filled(store: Store, urls: int) -> Store:
    """Give a store a subscribed source that remembers URLs."""
    with store.begin() as tx:
        tx.insert_provider(Provider(7, "x"), ["http://www.example.org/"])
        rows_in(tx).put_source(SUBSCRIBED)
        rows_in(tx).put_source_files([SourceFile(1, 1, TOPIC, 0, Role.NEWS, read=1, listed=urls)])
        rows_in(tx).put_source_urls(1, {number.to_bytes(16, "big"): 1 for number in range(urls)})
    return store


def sent(store: Store, *names: str, most: int = 1000) -> Run:
    """Take in what a hub sends."""
    body = "".join(f"<entry><link href='/{name}'/><id>{name}</id></entry>" for name in names)
    run = made_run(store, most)
    content = Fetched(200, HttpUrl.parse(TOPIC), BytesIO(f"<feed>{body}</feed>".encode()), {})
    in_a_loop(run.take(content))
    return run


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_a_ping_costs_what_it_names_and_not_all_that_is_remembered(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, read = filled(store, 500), []
    monkeypatch.setattr(running.Files, "_page", lambda *_: read.append("a page of all"))
    assert sent(store, "a", "b").report.queued == 2
    assert sent(store, "a", "b").report.queued == 0
    assert read == []


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_pings_count_what_they_bring_and_stay_within_the_bound(store: Store) -> None:
    store = filled(store, 500)
    assert sent(store, "a", "b", most=503).report.queued == 2
    assert sent(store, "b", "c", "d", "e", most=503).report.queued == 1
    with store.read() as tx:
        assert [one.listed for one in rows_in(tx).source_files(1)] == [503]
        assert len(rows_in(tx).source_urls(1, b"", 1000)) == 503


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_what_a_file_names_is_judged_beside_the_event_loop(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """50 MB of odd URLs take seconds."""
    there: list[str] = []

    def noting(job: Any) -> Any:
        def noted(*args: Any) -> Any:
            there.append(threading.current_thread().name)
            return job(*args)

        return noted

    for name in ("read_topic", "checked", "compare", "note_former_name"):
        monkeypatch.setattr(running, name, noting(getattr(running, name)))
    store = filled(store, 3)
    sent(store, "a")
    index = Listing(Role.INDEX, files=(Further("http://xn--strae-oqa.example/"),))
    in_a_loop(made_run(store)._take_index(SourceFile(2, 1, TOPIC, 0, Role.INDEX), index, TOPIC, 0))
    assert len(there) == 4
    assert all(name.startswith("asyncio_") for name in there)


def test_a_topic_of_megabytes_is_not_kept_in_memory() -> None:
    body = b"<html><head><link rel=hub href=http://hub/></head>" + bytes(64_000)
    tracemalloc.start()
    try:
        with pytest.raises(Exception, match="no sitemap and no feed"):
            read_topic(body[:60_000] + b"x" * 5000 for _ in range(300))
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def test_a_stranger_without_a_callback_writes_nothing() -> None:
    noted: list[Any] = []
    registry = SimpleNamespace(verified=lambda *_: "", called_back=lambda _: None, pinged=noted.append)

    async def scenario() -> None:
        service = CallbackService(SimpleNamespace(work=at_once, registry=registry))  # type: ignore[arg-type]
        assert await service.verify("x", intent("subscribe")) is None
        assert await service.source("x") is None

    in_a_loop(scenario())
    assert noted == []
