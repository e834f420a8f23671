"""Items and their documents: a team's own fields, and what is withheld until a document is through."""

import logging
from collections.abc import AsyncIterator, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.exceptions import DropItem
from scrapy.http import Response
from scrapy.settings import Settings
from twisted.python.failure import Failure

from lcc_scrapy import pipelines, spider_middlewares
from lcc_scrapy.config.config import load
from lcc_scrapy.extensions import LccLifecycle
from lcc_scrapy.items import LccDocument
from lcc_scrapy.pipelines import LccPipeline
from lcc_scrapy.settings import apply_to
from lcc_scrapy.spider_middlewares import WithholdItems
from lcc_scrapy.spiders.lcc_push import LccPushSpider

RESPONSE = Response("http://a.example/")


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run what waits for nothing but itself."""
    with pytest.raises(StopIteration) as end:
        coroutine.send(None)
    return end.value.value


def document() -> LccDocument:
    return LccDocument(SimpleNamespace(row=None), None, None, RESPONSE)  # type: ignore[arg-type]


def through_middleware(*outputs: Any) -> list[Any]:
    async def callback() -> AsyncIterator[Any]:
        for output in outputs:
            yield output

    async def collect() -> list[Any]:
        return [one async for one in WithholdItems().process_spider_output(RESPONSE, callback())]

    return run(collect())


def test_a_team_s_own_fields_are_there_for_later_pipelines() -> None:
    item = document()
    assert ItemAdapter(item).get("title") is None
    ItemAdapter(item)["title"] = "First"
    item["words"] = 7
    assert ItemAdapter(item).asdict() == dict(item) == item.fields == {"title": "First", "words": 7}
    del ItemAdapter(item)["title"]
    assert list(item) == ["words"]
    with pytest.raises(KeyError):
        ItemAdapter(item)["url"]


def test_documents_without_fields_are_true_and_equal_to_themselves_only() -> None:
    one, other = document(), document()
    assert one
    assert one == one  # noqa: PLR0124
    assert len({one, other}) == 2
    assert ItemAdapter.is_item(one)
    assert not isinstance(one, dict)


def test_adapters_of_other_items_are_as_ever() -> None:
    assert ItemAdapter({"a": 1}).asdict() == {"a": 1}
    with pytest.raises(TypeError):
        ItemAdapter(object())


def test_items_go_with_their_document_and_requests_go_at_once() -> None:
    item, request = document(), Request("http://a.example/x")
    assert through_middleware({"n": 1}, request, {"n": 2}, item, {"n": 3}) == [request, item]
    assert item.withheld == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_items_of_a_document_that_a_middleware_swallowed_go_nowhere() -> None:
    assert through_middleware({"n": 1}) == []


def test_more_items_than_are_withheld_go_at_once_and_are_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(spider_middlewares, "MOST_WITHHELD", 2)
    item = document()
    with caplog.at_level(logging.WARNING):
        assert through_middleware("a", "b", "c", "d", item) == ["c", "d", item]
    assert item.withheld == ["a", "b"]
    assert "did not follow their document" in caplog.text


def test_the_pipeline_sends_items_on_before_the_document_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[Any] = []

    async def start(item: Any, response: Response) -> None:
        happened.append((item, response))

    crawler = SimpleNamespace(
        engine=SimpleNamespace(scraper=SimpleNamespace(start_itemproc_async=start)), stats=None
    )

    async def settle(_outcome: Any) -> None:
        happened.append("stored")

    worker = SimpleNamespace(settle=settle, breaker=SimpleNamespace(passed=lambda: False))
    monkeypatch.setattr(pipelines, "tally_of", lambda _crawler: SimpleNamespace(count=None))
    monkeypatch.setattr(pipelines, "required_worker", lambda _crawler: worker)
    monkeypatch.setattr(pipelines.signals, "announce", lambda *_: None)
    item = document()
    item.withheld = ["a", "b"]
    assert run(LccPipeline(crawler).process_item(item)) is item  # type: ignore[arg-type]
    assert happened == [("a", RESPONSE), ("b", RESPONSE), "stored"]
    assert run(LccPipeline(crawler).process_item({"a": 1})) == {"a": 1}  # type: ignore[arg-type]
    assert item.withheld == []


def test_items_that_went_nowhere_are_counted() -> None:
    counts: dict[str, int] = {}
    crawler = SimpleNamespace(
        stats=SimpleNamespace(inc_value=lambda name, count: counts.update({name: count}))
    )
    manager = SimpleNamespace(settle=lambda _outcome: None)
    lifecycle = LccLifecycle(crawler, SimpleNamespace(manager=manager, now=lambda: 0))  # type: ignore[arg-type]
    item = document()
    lifecycle.item_dropped(item, DropItem("no"))
    assert counts == {}
    item.withheld = ["a", "b"]
    lifecycle.item_dropped(item, DropItem("no"))
    assert counts == {"lcc/items_withheld": 2}
    item.withheld = ["a"]
    lifecycle.item_error(item, Failure(ValueError("broken")))
    assert counts == {"lcc/items_withheld": 1}


@pytest.mark.parametrize(("given", "there"), [("yes", True), ("no", False)])
def test_a_setting_lets_items_go_whatever_becomes_of_their_document(given: str, there: bool) -> None:
    settings = Settings({"LCC_DATA_DIR": "/nowhere", "LCC_ITEMS_FOLLOW_DOCUMENT": given})
    apply_to(settings, load(settings), LccPushSpider)
    assert (f"{WithholdItems.__module__}.WithholdItems" in settings.getdict("SPIDER_MIDDLEWARES")) is there
