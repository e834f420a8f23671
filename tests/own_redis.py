"""A Redis of a test's own, in a folder of its own, which may be killed, emptied and frozen."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from tests.harness import missing, wait_for
from tests.ports import free_port

DURABLE = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")


def program() -> str:
    """Return Redis's program: the server and its checker are one, by the name that it is called by.

    Debian's redis-tools has it by the second name, without the service of redis-server.
    """
    found = shutil.which("redis-check-rdb")
    if found is None:
        missing("Redis's programs", "apt-get install redis-tools")
    return str(found)


class OwnRedis:
    """A server on a port of 127.0.0.1. What it was given is on disk before it answers: a kill loses nothing."""

    def __init__(self, folder: Path, *options: str) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"

    @contextmanager
    def client(self) -> Iterator[Redis]:
        """Give a client on a connection of its own."""
        with closing(Redis(port=self.port, socket_timeout=60)) as made:
            yield made

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", *DURABLE, *self._options]
        self._process = subprocess.Popen(
            [*command, "--dir", str(self._folder)], executable=program(), stdout=subprocess.DEVNULL
        )
        wait_for(self._answers, 60, "Redis")

    def _answers(self) -> bool:
        with suppress(RedisError), self.client() as client:
            return bool(client.ping())
        return False

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def empty(self) -> None:
        """Forget everything, while it does not run."""
        assert self._process is None
        shutil.rmtree(self._folder)
        self._folder.mkdir()

    def freeze(self) -> None:
        """Answer nothing any more; connections stay."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Answer again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


@contextmanager
def own_redis(folder: Path, *options: str) -> Iterator[OwnRedis]:
    """Run a server, with options of its own; it is gone at the end."""
    server = OwnRedis(folder, *options)
    try:
        server.start()
        yield server
    finally:
        server.kill()
