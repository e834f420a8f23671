"""Items of Redis keys are read as scrapy-redis reads them."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scrapy.http import Request
from scrapy_redis.spiders import RedisSpider

from lcc_scrapy.apps.sources.redis_items import ITEM_MAX, url_of
from lcc_scrapy.domain.errors import UrlRefused


class Shop(RedisSpider):
    name = "shop"
    redis_encoding = "utf-8"


def theirs(item: bytes) -> Request:
    return Shop().make_request_from_data(item)


def as_item(**members: object) -> bytes:
    return json.dumps(members).encode()


@pytest.mark.parametrize(
    "item",
    [
        b"http://a.example/one",
        "http://a.example/ü?q=ö".encode(),
        as_item(url="http://a.example/"),
        as_item(url="http://a.example/", meta={"job-id": "123xsd"}, method="get"),
        as_item(url="http://a.example/?old=1#end", page="2", tags=["x y", "ü"]),
        as_item(url="http://a.example/?old=1", tags=[]),
    ],
)
def test_the_url_of_an_item_is_that_of_the_request_which_scrapy_redis_makes(item: bytes) -> None:
    request = theirs(item)
    assert request.method == "GET"
    assert Request(url_of(item)).url == request.url


@pytest.mark.parametrize(
    ("item", "code"),
    [
        (as_item(meta={}), 701),
        (as_item(url=None), 701),
        (as_item(url=["http://a.example/"]), 705),
        (as_item(url="http://[bad/", q="1"), 705),
        (b"\xff\xfe", 705),
        (as_item(url="http://a.example/", method="POST"), 706),
        (as_item(url="http://a.example/", method=7), 706),
        (as_item(url="http://a.example/", page=2), 706),
        (b"x" * (ITEM_MAX + 1), 707),
    ],
)
def test_an_item_that_is_no_get_of_a_url_is_refused_with_its_code(item: bytes, code: int) -> None:
    with pytest.raises(UrlRefused) as refused:
        url_of(item)
    assert refused.value.code == code


@pytest.mark.parametrize(
    "item", [b"[" * ITEM_MAX, b'{"a":' * (ITEM_MAX // 5), b"null", b'"http://a/"', b"17"]
)
def test_what_is_no_json_object_is_taken_as_it_is_written(item: bytes) -> None:
    assert url_of(item) == item.decode()


VALUES = st.text(max_size=5) | st.integers() | st.none() | st.lists(st.text(max_size=5), max_size=3)


@settings(max_examples=50)
@given(st.dictionaries(st.text(max_size=5) | st.sampled_from(["url", "method"]), VALUES, max_size=4))
def test_any_object_is_a_url_or_is_refused(members: dict[str, object]) -> None:
    with suppress(UrlRefused):
        assert isinstance(url_of(as_item(**{"url": "http://a.example/", **members})), str)


def test_an_item_in_another_encoding_is_decoded_by_it() -> None:
    assert url_of("http://a.example/ü".encode("latin-1"), "latin-1") == "http://a.example/ü"
    with pytest.raises(UrlRefused):
        url_of(b"http://a.example/", "no-such-encoding")
