"""Batches of a Redis key, with a real Redis: each item is in the key, in the batch or acknowledged."""

from pathlib import Path

import pytest
from redis import Redis
from scrapy.settings import Settings

from lcc_scrapy.apps.sources import redis_key
from lcc_scrapy.apps.sources.opening import redis_of
from lcc_scrapy.apps.sources.redis_key import ITEMS, Batch, RedisAway, RedisKey, client_of
from lcc_scrapy.config.config import load
from lcc_scrapy.domain.errors import ConfigurationError, MissingExtra
from tests.ports import free_port
from tests.redis_server import URL


def key_at(name: str, reader: str = "lcc-1") -> RedisKey:
    return RedisKey(client_of({}, URL), name, reader)


def test_a_batch_comes_again_until_it_is_acknowledged(redis_server: tuple[Redis, str]) -> None:
    client, name = redis_server
    client.rpush(name, *range(ITEMS + 2))
    key = key_at(name)
    first = key.take()
    assert first is not None
    assert first.items == tuple(str(number).encode() for number in range(ITEMS))
    assert (key.take(), key_at(name).take(), key.under_way()) == (first, first, ITEMS)
    key.acknowledge(Batch("0" * 32, first.items), [b"never"])  # of a process that has lost its claim
    assert (key.take(), client.exists(key.refused_key)) == (first, 0)
    key.acknowledge(first, [b"1", b"2"])
    assert client.lrange(key.refused_key, 0, -1) == [b"2", b"1"]
    last = key.take()
    assert last is not None
    assert (last.items, key.under_way()) == ((b"500", b"501"), 2)
    key.acknowledge(last)
    assert (key.take(), key.under_way(), client.exists(name, key.batch_key)) == (None, 0, 0)


def test_items_come_in_the_order_in_which_scrapy_redis_takes_them(redis_server: tuple[Redis, str]) -> None:
    client, name = redis_server
    client.zadd(f"{name}:z", {"low": 1, "high": 9, "middle": 5})
    client.sadd(f"{name}:s", "a", "b")
    by_score, of_set = key_at(f"{name}:z").take(), key_at(f"{name}:s").take()
    assert by_score is not None
    assert by_score.items == (b"high", b"middle", b"low")
    assert of_set is not None
    assert set(of_set.items) == {b"a", b"b"}


def test_two_readers_of_one_key_have_batches_of_their_own(redis_server: tuple[Redis, str]) -> None:
    client, name = redis_server
    client.rpush(name, *range(ITEMS + 1))
    one, other = key_at(name, "lcc-1").take(), key_at(name, "lcc-2").take()
    assert one is not None
    assert other is not None
    assert (len(one.items), other.items) == (ITEMS, (b"500",))


def test_a_batch_is_bounded_in_bytes_and_refused_items_in_number(
    redis_server: tuple[Redis, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, name = redis_server
    monkeypatch.setattr(redis_key, "BYTES", 100)
    monkeypatch.setattr(redis_key, "REFUSED", 3)
    client.rpush(name, *["x" * 60] * 5)
    key = key_at(name)
    for expected in (2, 2, 1):
        batch = key.take()
        assert batch is not None
        assert len(batch.items) == expected
        key.acknowledge(batch, batch.items)
    assert client.llen(key.refused_key) == 3


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda client, name: client.hset(name, "a", "b"), "is a hash, not a list, set or sorted set"),
        (lambda client, name: client.set(name, "b"), "is a string, not a list, set or sorted set"),
    ],
)
def test_a_key_of_another_type_is_an_error_and_stays(
    redis_server: tuple[Redis, str], make: object, said: str
) -> None:
    client, name = redis_server
    make(client, name)  # type: ignore[operator]
    with pytest.raises(RedisAway, match=said):
        key_at(name).take()
    assert client.exists(name) == 1


@pytest.mark.filterwarnings("ignore:.*retry_on_timeout:DeprecationWarning")  # of scrapy-redis
def test_a_redis_that_is_not_there_is_one_clear_line() -> None:
    with pytest.raises(RedisAway, match=r"Redis does not answer: .*refused"):
        RedisKey(client_of({"REDIS_HOST": "127.0.0.1", "REDIS_PORT": free_port()}, ""), "a", "b").take()


def test_the_settings_of_a_project_make_the_client_and_the_url_of_the_lcc_goes_first() -> None:
    theirs = {"REDIS_URL": "redis://one.example:1/2", "REDIS_PARAMS": {"socket_timeout": 7}, "OTHER": 1}
    options = client_of(theirs, "").get_connection_kwargs()
    assert (options["host"], options["port"], options["db"], options["socket_timeout"]) == (
        "one.example",
        1,
        2,
        7,
    )
    assert client_of(theirs, "redis://two.example/0").get_connection_kwargs()["host"] == "two.example"


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "scrapy_redis.connection", None)
    with pytest.raises(MissingExtra, match=r"lcc-scrapy\[redis\]"):
        client_of({}, "")


@pytest.mark.parametrize(
    ("settings", "url"),
    [({}, "http://127.0.0.1"), ({}, "redis://127.0.0.1:x"), ({"REDIS_PARAMS": {"redis_cls": "no.Such"}}, "")],
)
def test_settings_that_make_no_client_are_one_line(settings: dict[str, object], url: str) -> None:
    with pytest.raises(ConfigurationError, match="LCC_REDIS_URL and REDIS_\\* make no client of Redis"):
        client_of(settings, url)


def test_an_encoding_that_is_none_is_an_error_before_any_item_is_taken(tmp_path: Path) -> None:
    config = load(Settings({"LCC_DATA_DIR": str(tmp_path)}))
    with pytest.raises(ConfigurationError, match="REDIS_ENCODING: unknown encoding: utf-9"):
        redis_of(config, {"REDIS_ENCODING": "utf-9"}).client()
