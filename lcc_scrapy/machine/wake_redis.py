"""Waking crawls of other machines over Redis or Valkey: a hint that URLs were queued (see ``wake_file``).

Nothing depends on it. A message that is lost, or a Redis that is away, costs the rest of ``LCC_POLL``.
"""

import atexit
import logging
import secrets
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from lcc_scrapy.domain.errors import ConfigurationError, MissingExtra
from lcc_scrapy.machine.data_directory import DataDirectory
from lcc_scrapy.machine.redis_urls import FORMS, class_of, errors, why
from lcc_scrapy.machine.wake_file import WakeFile

EVERY = 0.1
"""Seconds between two messages of one process at least; the first one goes at once."""

AGAIN = 5.0
"""Seconds until a Redis that is away is asked again."""

_SOCKET_SECONDS = 5.0
_LISTEN_SECONDS = 1.0
_LAST_WORDS = 1.0
"""Seconds that a process which ends has for its last message."""

_log = logging.getLogger(__name__)


def client_of(url: str) -> Any:
    """Return a client; it connects with its first command. Raises ``ConfigurationError``."""
    try:
        from redis import Redis  # noqa: PLC0415 - an extra
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtra("redis", "LCC_WAKE_REDIS: redis") from error
    options = {
        "socket_timeout": _SOCKET_SECONDS,
        "socket_connect_timeout": _SOCKET_SECONDS,
        "health_check_interval": _SOCKET_SECONDS,
        "retry": Retry(NoBackoff(), 0),
    }
    try:
        return (class_of(url) or Redis).from_url(url, **options)
    except ValueError:  # its text may hold a part of a password
        said = f"LCC_WAKE_REDIS: this is no redis://, rediss:// or unix:// URL, nor {FORMS}"
        raise ConfigurationError(said) from None


def channel_of(lcc_id: str) -> str:
    """Return the channel of an LCC; the braces keep what is one LCC's on one node of a cluster."""
    return f"{{lcc:{lcc_id}}}:wake"


class _Trouble:
    """Says once that Redis does not answer, and once that it does again."""

    def __init__(self) -> None:
        self._told = False

    def begins(self, error: Exception) -> None:
        if not self._told:
            line = "Redis does not answer, crawls of other machines look every LCC_POLL only: %s"
            _log.warning(line, why(error))
        self._told = True

    def ends(self) -> None:
        if self._told:
            _log.info("Redis answers again")
        self._told = False


class Publisher:
    """Tells the crawls of other machines, in a thread of its own. ``name`` is in all that it tells."""

    def __init__(self, url: str, lcc_id: str) -> None:
        self.name = secrets.token_bytes(8)
        self._client = client_of(url)
        self._channel = channel_of(lcc_id)
        self._wanted = threading.Event()
        self._idle = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def publish(self) -> None:
        """Wake them soon; returns at once. Any thread may call it."""
        with self._lock:
            self._idle.clear()
            self._wanted.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lcc-wake", daemon=True)
                self._thread.start()
                atexit.register(self._idle.wait, _LAST_WORDS)

    def _run(self) -> None:
        trouble, pause, failures = _Trouble(), threading.Event(), errors()
        while self._wanted.wait():
            self._wanted.clear()
            try:
                self._client.publish(self._channel, self.name)
                trouble.ends()
            except failures as error:
                trouble.begins(error)
            with self._lock:
                if not self._wanted.is_set():
                    self._idle.set()
            pause.wait(EVERY)


class Subscriber:
    """Calls ``wake``, in a thread of its own, when somebody tells that URLs were queued.

    ``mine`` is the name of this process's own publisher: what that tells is known here.
    """

    def __init__(self, url: str, lcc_id: str, wake: Callable[[], object], mine: bytes = b"") -> None:
        self._mine = mine
        self._client = client_of(url)
        self._channel = channel_of(lcc_id)
        self._wake = wake
        self._stopping = threading.Event()

    def start(self) -> None:
        """Listen from now on."""
        threading.Thread(target=self._run, name="lcc-woken", daemon=True).start()

    def stop(self) -> None:
        """Listen no more; the thread ends in a second or two."""
        self._stopping.set()

    def _run(self) -> None:
        trouble, failures = _Trouble(), errors()
        while not self._stopping.is_set():
            try:
                self._listen(trouble)
            except failures as error:
                trouble.begins(error)
                self._stopping.wait(AGAIN)

    def _listen(self, trouble: _Trouble) -> None:
        with closing(self._client.pubsub()) as channel:
            channel.subscribe(self._channel)
            while not self._stopping.is_set():
                message = channel.get_message(timeout=_LISTEN_SECONDS)
                others = self._is_of_others(message)
                while message is not None:  # many machines may tell at once: that is one look
                    message = channel.get_message(timeout=0)
                    others |= self._is_of_others(message)
                if others:
                    trouble.ends()
                    self._wake()
                    self._stopping.wait(EVERY)

    def _is_of_others(self, message: Any) -> bool:
        """Tell whether a message wakes; the confirmation does too: what came before it was not heard."""
        return message is not None and message["data"] != self._mine


def waker(folder: Path, redis_url: str) -> Callable[[], None]:
    """Return what wakes crawls when URLs were queued: those of a data directory, and of other machines.

    ``redis_url`` is LCC_WAKE_REDIS, empty = those of the data directory only.
    """
    file = WakeFile(folder)
    if not redis_url:
        return file.touch
    publisher = Publisher(redis_url, DataDirectory.find(folder).lcc_id)

    def wake() -> None:
        file.touch()
        publisher.publish()

    return wake
