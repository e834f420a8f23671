"""Which component an error is put down to: the one that Scrapy called, wherever it was raised."""

import json
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest
from scrapy.exceptions import IgnoreRequest
from scrapy.pipelines import ItemPipelineManager
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from lcc_scrapy.domain.breaker import Fault
from lcc_scrapy.engine.scrapy_internals import OneTaskEach
from lcc_scrapy.fetch.component_faults import fault_of
from lcc_scrapy.fetch.turn import FetchFailed


class Reads:
    """Fails in a library that it calls."""

    def process_item(self, item: Any) -> Any:
        return json.loads(item)


class Waits:
    async def process_item(self, item: Any) -> Any:
        raise IgnoreRequest("never")


class Passes:
    def process_item(self, item: Any) -> Any:
        return item


def strict(item: Any) -> Any:
    raise ValueError(item)


async def _scrape(manager: ItemPipelineManager) -> None:
    await manager.process_item_async("{")


scrape = FunctionType(_scrape.__code__, {"__name__": "scrapy.core.scraper"})


def error_of(*pipelines: Any) -> BaseException:
    """Hand an item to pipelines as Scrapy does; returns what they raise."""
    crawler: Any = SimpleNamespace(spider=SimpleNamespace())
    manager = ItemPipelineManager(*pipelines, crawler=crawler)
    failures: list[Failure] = []
    Deferred.fromCoroutine(scrape(manager)).addErrback(failures.append)
    error = failures[0].value
    assert error is not None
    return error


@pytest.mark.parametrize(("pipeline", "error"), [(Reads, "JSONDecodeError"), (Waits, "IgnoreRequest")])
def test_an_error_is_that_of_the_component_which_scrapy_called(pipeline: type[Any], error: str) -> None:
    fault = fault_of(error_of(Passes(), pipeline()))
    assert fault == Fault(f"{__name__}.{pipeline.__qualname__}", error)


def _crawled(*_: Any) -> Any:
    return {}["it"]


def test_a_formatter_of_a_team_s_is_a_component() -> None:
    crawled = FunctionType(_crawled.__code__, {"__name__": "shop.logs"})
    crawler: Any = SimpleNamespace(
        spider=None, engine=SimpleNamespace(logformatter=SimpleNamespace(crawled=crawled))
    )
    nothing: Any = None
    with pytest.raises(KeyError) as caught:
        OneTaskEach(crawler, nothing, nothing)._tell(nothing, nothing)
    assert fault_of(caught.value) == Fault("shop.logs._crawled", "KeyError")


def test_a_component_may_be_a_plain_function() -> None:
    assert fault_of(error_of(SimpleNamespace(process_item=strict))) == Fault(
        f"{__name__}.strict", "ValueError"
    )


def test_what_scrapy_did_not_call_is_no_component() -> None:
    with pytest.raises(ValueError) as raised:
        Reads().process_item("{")
    assert fault_of(raised.value) is None
    assert fault_of(ValueError("never raised")) is None


def test_a_request_that_a_middleware_replaced_is_its_doing_and_a_404_nobody_s() -> None:
    assert fault_of(FetchFailed(616, "a middleware replaced the request")) == Fault(
        "a downloader middleware", "a middleware replaced the request"
    )
    assert fault_of(FetchFailed(606, "http://www.example.org/")) is None
