"""A Redis with a replica and a Sentinel of a test's own: the replica takes over from a master that is killed."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from tests.harness import wait_for
from tests.own_redis import OwnRedis, own_redis, program
from tests.ports import free_port

NAME = "lcc-test"
CONFIGURATION = f"""
port {{port}}
bind 127.0.0.1
dir {{folder}}
sentinel monitor {NAME} 127.0.0.1 {{master}} 1
sentinel down-after-milliseconds {NAME} 300
sentinel failover-timeout {NAME} 1000
"""


class WatchedRedis:
    """Two servers, of which Sentinel says which one is the master."""

    def __init__(self, servers: tuple[OwnRedis, OwnRedis], sentinel_port: int) -> None:
        self._servers = servers
        self.sentinel_port = sentinel_port
        self.url = f"redis+sentinel://127.0.0.1:{sentinel_port}/{NAME}/0"

    @property
    def master(self) -> OwnRedis:
        """Return the server that is the master now."""
        with closing(Redis(port=self.sentinel_port, socket_timeout=60)) as sentinel:
            port = int(sentinel.sentinel_get_master_addr_by_name(NAME)[1])
        return next(one for one in self._servers if one.port == port)

    @contextmanager
    def client(self) -> Iterator[Redis]:
        """Give a client of the master."""
        with self.master.client() as made:
            yield made

    def wait_until_replicated(self) -> None:
        """Wait until the replica has everything."""
        with self.client() as client:
            client.set("lcc-test-replicated", 1)
            wait_for(lambda: client.wait(1, 1000) == 1, 60, "the replica")

    def fail_over(self) -> OwnRedis:
        """Kill the master and wait until the other one has taken over; returns the old one, which is down."""
        old = self.master
        old.kill()
        wait_for(lambda: self._is_ready(old), 60, "Sentinel")
        return old

    def _is_ready(self, old: OwnRedis) -> bool:
        try:
            with self.client() as client:
                return self.master is not old and client.info("replication")["role"] == "master"
        except RedisError:
            return False


@contextmanager
def watched_redis(folder: Path) -> Iterator[WatchedRedis]:
    """Run two servers and a Sentinel; they are gone at the end."""
    folder.mkdir()
    with ExitStack() as running:
        master = running.enter_context(own_redis(folder / "one"))
        other = running.enter_context(
            own_redis(folder / "other", "--replicaof", "127.0.0.1", str(master.port))
        )
        port = free_port()
        file = folder / "sentinel.conf"
        file.write_text(CONFIGURATION.format(port=port, folder=folder, master=master.port))
        sentinel = subprocess.Popen(
            ["redis-sentinel", str(file)], executable=program(), stdout=subprocess.DEVNULL
        )
        running.callback(sentinel.wait, 60)
        running.callback(sentinel.kill)
        made = WatchedRedis((master, other), port)
        wait_for(lambda: _knows_both(port), 60, "Sentinel")
        made.wait_until_replicated()
        yield made


def _knows_both(port: int) -> bool:
    try:
        with closing(Redis(port=port, socket_timeout=60)) as sentinel:
            return len(sentinel.sentinel_slaves(NAME)) == 1
    except RedisError:
        return False
