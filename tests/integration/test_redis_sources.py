"""``lcc source add PID --redis-key``: what producers of scrapy-redis push is fetched, as sets of a provider."""

import json
from collections.abc import Callable, Iterator

import pytest
from redis import Redis

from tests.harness import Lcc, wait_for
from tests.integration.site import Site, page
from tests.integration.test_sources import PID, Scene
from tests.ports import free_port
from tests.redis_server import URL


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


@pytest.fixture
def scene(make_lcc: Callable[..., Lcc], site: Site) -> Scene:
    return Scene(make_lcc, site, LCC_REDIS_URL=URL)


def add(scene: Scene, key: str) -> None:
    scene.lcc.lcc("source", "add", str(PID), "--redis-key", key, "--every", "1s")


def test_a_crawl_drains_a_key_while_it_is_filled(scene: Scene, redis_server: tuple[Redis, str]) -> None:
    client, key = redis_server
    for name in "abcd":
        scene.site.put(f"/d/{name}", page(name))
    add(scene, key)
    scene.lcc.start()
    client.lpush(key, f"{scene.root}a", json.dumps({"url": f"{scene.root}b", "meta": {"job": 1}}))
    wait_for(lambda: scene.cached() == {"a", "b"}, 60, "the first two")
    client.lpush(key, f"{scene.root}c", f"{scene.root}c", f"{scene.root}d")
    wait_for(lambda: scene.cached() == set("abcd"), 60, "the others")
    wait_for(lambda: not scene.waiting(), 60, "all fetches")
    assert scene.lcc.sql("select count(*), count(distinct furl) from lccurl") == [(4, 4)]
    assert client.keys(f"*{key}*") == []
    (row,) = json.loads(scene.lcc.lcc("source", "list", "--json").stdout)
    assert (row["kind"], row["url"], row["every"], row["error"]) == ("redis", key, 1, "")
    assert scene.lcc.stop() == 0


def test_refused_items_are_counted_and_kept_beside_the_key(
    scene: Scene, redis_server: tuple[Redis, str]
) -> None:
    client, key = redis_server
    post = json.dumps({"url": f"{scene.root}a", "method": "POST"})
    client.rpush(key, f"{scene.root}a", "http://elsewhere.example/", post, "nonsense")
    add(scene, key)
    report = scene.run()
    assert (report["queued"], report["refused"]) == (1, {"704": 1, "705": 1, "706": 1})
    assert scene.waiting() == {"a"}
    (kept,) = client.keys(f"*{key}*:refused")
    assert set(client.lrange(kept, 0, -1)) == {b"http://elsewhere.example/", post.encode(), b"nonsense"}
    assert "source 1: 0 URLs queued, 0 removed, 0 held" in scene.lcc.lcc("source", "run", str(PID)).stdout


def test_a_url_that_comes_again_is_fetched_again_and_stays_one_document(
    scene: Scene, redis_server: tuple[Redis, str]
) -> None:
    client, key = redis_server
    scene.site.put("/d/a", page("one"), page("two"))
    add(scene, key)
    scene.lcc.start()
    for asked in (1, 2):
        client.sadd(key, f"{scene.root}a")
        wait_for(lambda asked=asked: len(scene.site.asked("/d/a")) == asked, 60, "a fetch")  # type: ignore[misc]
        wait_for(lambda: scene.cached() == {"a"} and not scene.waiting(), 60, "its end")
    assert scene.lcc.sql("select count(*) from lccurl") == [(1,)]
    assert scene.lcc.stop() == 0


def test_without_room_in_the_queue_a_batch_waits_in_redis(
    make_lcc: Callable[..., Lcc], site: Site, redis_server: tuple[Redis, str]
) -> None:
    client, key = redis_server
    scene = Scene(make_lcc, site, LCC_REDIS_URL=URL, LCC_QUEUE_MAX="10")
    client.rpush(key, *[f"{scene.root}{number}" for number in range(1200)])
    add(scene, key)
    report = scene.run()
    assert report["held_up"] is True
    assert len(scene.waiting()) == report["queued"] == 500
    assert client.llen(key) == 200
    removed = scene.lcc.lcc("source", "remove", "1")
    (batch,) = client.keys(f"*{key}*:batch")
    assert f"500 items were under way: they are in the list {batch.decode()}" in removed.stderr
    assert client.llen(batch) == 501


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (("--redis-key", " "), 1, "--redis-key: 1 to 512 printable characters, not blank"),
        (("--redis-key", "k", "--every", "0.5s"), 1, "--every: at least 1 seconds"),
        (
            ("--redis-key", "k", "--feed", "http://a/"),
            2,
            "give one of --sitemap, --feed, --resourcesync, --websub, --redis-key",
        ),
    ],
)
def test_what_cannot_be_added_is_one_line(
    make_lcc: Callable[..., Lcc], site: Site, options: tuple[str, ...], status: int, said: str
) -> None:
    scene = Scene(make_lcc, site)
    done = scene.lcc.lcc("source", "add", str(PID), *options, check=False)
    assert done.returncode == status
    assert said in done.stderr


def test_a_redis_that_is_away_is_told_and_tried_again(make_lcc: Callable[..., Lcc], site: Site) -> None:
    scene = Scene(make_lcc, site, LCC_REDIS_URL=f"redis://127.0.0.1:{free_port()}/0")
    add(scene, "k")
    done = scene.lcc.lcc("source", "run", str(PID), check=False)
    assert done.returncode == 1
    assert "Redis does not answer" in done.stderr
    assert "Redis does not answer" in scene.lcc.lcc("source", "list").stdout
