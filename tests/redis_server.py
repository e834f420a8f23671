"""The Redis of tests: a prefix of its own for each test, whose keys are removed at its end."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from redis import Redis
from redis.exceptions import RedisError

URL = os.environ.get("LCC_TEST_REDIS", "redis://127.0.0.1:6379/0")


@contextmanager
def redis_of_a_test() -> Iterator[tuple[Redis, str]]:
    """Give a client and a prefix; skips where there is no server, unless ``CI=true``."""
    client, prefix = Redis.from_url(URL, socket_timeout=60), f"lcc-test-{uuid4().hex}"
    try:
        client.ping()
    except RedisError as error:
        client.close()
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(
            f"no Redis at {URL}: install redis-server, or name another one in LCC_TEST_REDIS ({error})"
        )
    try:
        yield client, prefix
    finally:
        for name in client.scan_iter(f"*{prefix}*"):
            client.delete(name)
        client.close()
