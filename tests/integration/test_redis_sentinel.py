"""A real Sentinel that fails over: who wakes and who drains keys goes on with the new master."""

from uuid import uuid4

import pytest
from test_wake_redis import Woken

from lcc_scrapy.apps.sources.redis_key import RedisAway, RedisKey, client_of
from lcc_scrapy.machine import wake_redis
from lcc_scrapy.machine.wake_redis import Publisher, Subscriber
from tests.harness import wait_for
from tests.watched_redis import watched_redis

pytestmark = pytest.mark.slow


def test_after_a_failover_all_go_on_with_the_new_master(tmp_path, monkeypatch):
    monkeypatch.setattr(wake_redis, "AGAIN", 0.05)
    with watched_redis(tmp_path / "redis") as redis:
        heard, lcc_id = Woken(), uuid4().hex
        subscriber, publisher = Subscriber(redis.url, lcc_id, heard), Publisher(redis.url, lcc_id)
        subscriber.start()
        assert heard.within(60)
        key = RedisKey(client_of({"REDIS_URL": redis.url}, ""), "urls", "lcc-1")
        with redis.client() as client:
            client.rpush("urls", *range(3))
        first = key.take()
        redis.wait_until_replicated()

        old = redis.fail_over()  # it may be heard of before this returns
        assert heard.within(60), "the confirmation of the new master"
        wait_for(lambda: took(key) == first, 60, "the batch that was taken and not acknowledged")
        key.acknowledge(first)
        assert key.take() is None
        publisher.publish()
        assert heard.within(60)

        old.start()
        redis.wait_until_replicated()
        assert redis.fail_over() is not old
        with redis.client() as client:
            assert client.exists("urls", key.batch_key) == 0, "what was acknowledged does not come back"
        subscriber.stop()


def took(key):
    """Take a batch; the first commands after a failover may meet the old master."""
    try:
        return key.take()
    except RedisAway:
        return None
