"""``kill -9`` of a run that drains a Redis key: no item is lost, and none is submitted twice.

``LCC_SOURCE_KILLS`` says how many kills there are at least (``make soak`` takes 20).
"""

import json
import os
from collections.abc import Callable, Iterator

import pytest
from redis import Redis

from tests.acceptance.test_source_kills import killed
from tests.harness import Lcc
from tests.integration.site import Site
from tests.integration.test_redis_sources import add
from tests.integration.test_sources import Scene
from tests.redis_server import URL

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

KILLS = max(3, int(os.environ.get("LCC_SOURCE_KILLS", "3")))
EACH = 2000


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as made:
        yield made


def test_a_run_that_is_killed_at_any_moment_loses_no_item_and_submits_none_twice(
    make_lcc: Callable[..., Lcc], site: Site, redis_server: tuple[Redis, str]
) -> None:
    client, key = redis_server
    scene = Scene(make_lcc, site, LCC_REDIS_URL=URL)
    add(scene, key)
    names: list[str] = []
    kills = 0
    for round_ in range(KILLS):
        new = [f"p{number}" for number in range(len(names), len(names) + EACH)]
        names += new
        client.rpush(key, *[json.dumps({"url": f"{scene.root}{name}", "meta": {}}) for name in new])
        left = (
            EACH - EACH * round_ // KILLS - 1
        )  # items in the key when it is killed: another number each time
        kills += killed(scene.lcc, lambda left=left: client.llen(key) <= left)  # type: ignore[misc]
    assert scene.run()["refused"] == {}
    assert scene.waiting() == set(names)
    assert sum(scene.sets()) == len(names)
    assert client.keys(f"*{key}*") == []
    print(f"{kills} kills, {len(names)} items, none lost")
