"""A real cluster of two nodes: crawls are woken over either, and keys are drained from both."""

from contextlib import ExitStack, contextmanager
from uuid import uuid4

import pytest
from test_wake_redis import Woken

from lcc_scrapy.apps.sources.redis_key import RedisAway, RedisKey, client_of
from lcc_scrapy.machine import wake_redis
from lcc_scrapy.machine.wake_redis import Publisher, Subscriber
from tests.harness import wait_for
from tests.own_redis import OwnRedis, own_redis
from tests.ports import free_port

pytestmark = pytest.mark.slow

KEYS = ("a", "b", "shop:start_urls", "{tag}x")
"""Of both nodes."""


@contextmanager
def cluster(folder):
    """Run two nodes; give them."""
    folder.mkdir()
    with ExitStack() as running:
        nodes = [running.enter_context(own_redis(folder / name, *options())) for name in ("one", "two")]
        for node, slots in zip(nodes, ("0 8191", "8192 16383"), strict=True):
            with node.client() as client:
                client.execute_command("CLUSTER ADDSLOTSRANGE", *slots.split())
        with nodes[0].client() as client:
            client.execute_command("CLUSTER MEET", "127.0.0.1", nodes[1].port, bus_of(nodes[1]))
        for node in nodes:
            wait_for(lambda node=node: is_whole(node), 60, "the cluster")
        yield nodes


def options():
    return "--cluster-enabled", "yes", "--cluster-port", str(free_port())


def bus_of(node: OwnRedis) -> int:
    with node.client() as client:
        return int(client.config_get("cluster-port")["cluster-port"])


def is_whole(node: OwnRedis) -> bool:
    with node.client() as client:
        return client.execute_command("CLUSTER INFO")["cluster_state"] == "ok"


def url_of(*nodes):
    return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes)


def test_keys_of_all_nodes_are_drained_in_batches_that_a_kill_does_not_lose(tmp_path):
    with cluster(tmp_path / "redis") as (one, two):
        client = client_of({"REDIS_URL": url_of(one, two)}, "")
        slots = [client.keyslot(name) // 8192 for name in KEYS]
        assert set(slots) == {0, 1}
        for name in KEYS:
            client.rpush(name, *range(3))
            first = RedisKey(client, name, "lcc-1").take()
            assert first.items == (b"0", b"1", b"2")
            key = RedisKey(client_of({"REDIS_URL": url_of(two)}, ""), name, "lcc-1")
            assert key.take() == first
            key.acknowledge(first, [b"refused"])
            assert (key.under_way(), key.take()) == (0, None)


def test_a_message_at_any_node_wakes(tmp_path, monkeypatch):
    monkeypatch.setattr(wake_redis, "AGAIN", 0.05)
    with cluster(tmp_path / "redis") as nodes:
        heard, lcc_id = Woken(), uuid4().hex
        subscriber = Subscriber(url_of(*nodes), lcc_id, heard)
        subscriber.start()
        assert heard.within(60)
        for node in nodes:
            heard.news.clear()
            Publisher(url_of(node), lcc_id).publish()
            assert heard.within(60)
        subscriber.stop()


def test_a_cluster_that_is_away_keeps_nothing_from_starting(tmp_path, monkeypatch):
    monkeypatch.setattr(wake_redis, "AGAIN", 0.05)
    with cluster(tmp_path / "redis") as (one, two):
        one.kill()
        two.kill()
        heard, lcc_id = Woken(), uuid4().hex
        subscriber, publisher = Subscriber(url_of(one, two), lcc_id, heard), Publisher(url_of(one), lcc_id)
        subscriber.start()
        publisher.publish()
        with pytest.raises(RedisAway, match="does not answer"):
            RedisKey(client_of({}, url_of(one)), "a", "lcc-1").take()
        one.start()
        two.start()
        assert heard.within(60)
        heard.news.clear()
        wait_for(lambda: published(publisher, heard), 60, "the message")
        subscriber.stop()


def published(publisher, heard):
    publisher.publish()
    return heard.news.is_set()
