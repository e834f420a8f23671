"""Waking over Redis, with a real one: what is told arrives, and what is lost costs nothing."""

import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from redis import Redis

from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.machine import wake_redis
from lcc_scrapy.machine.data_directory import DataDirectory
from lcc_scrapy.machine.wake_file import WakeFile
from lcc_scrapy.machine.wake_redis import Publisher, Subscriber, waker
from tests.harness import wait_for
from tests.own_redis import program
from tests.ports import free_port
from tests.redis_server import URL


class Woken:
    def __init__(self) -> None:
        self.at: list[float] = []
        self.news = threading.Event()

    def __call__(self) -> None:
        self.at.append(time.monotonic())
        self.news.set()

    def within(self, seconds: float) -> bool:
        heard = self.news.wait(seconds)
        self.news.clear()
        return heard


@pytest.fixture
def woken(redis_server: tuple[Redis, str]) -> Iterator[tuple[Woken, str]]:
    woken, lcc_id = Woken(), uuid4().hex
    subscriber = Subscriber(URL, lcc_id, woken)
    subscriber.start()
    assert woken.within(60)  # by the confirmation
    yield woken, lcc_id
    subscriber.stop()


def test_whoever_listens_is_woken_each_time(woken: tuple[Woken, str]) -> None:
    heard, lcc_id = woken
    publisher = Publisher(URL, lcc_id)
    for _ in range(5):
        publisher.publish()
        assert heard.within(60)
        time.sleep(wake_redis.EVERY)


def test_many_news_are_few_messages_and_the_last_one_is_told(woken: tuple[Woken, str]) -> None:
    heard, lcc_id = woken
    publisher, began = Publisher(URL, lcc_id), time.monotonic()
    heard.at.clear()
    for _ in range(1000):
        publisher.publish()
        time.sleep(0.0001)
    last = time.monotonic()
    publisher.publish()
    wait_for(lambda: heard.at[-1:] >= [last], 60, "the last message")
    assert len(heard.at) <= 3 + (time.monotonic() - began) / wake_redis.EVERY


def test_a_process_does_not_wake_itself_nor_other_lccs(redis_server: tuple[Redis, str]) -> None:
    heard, lcc_id = Woken(), uuid4().hex
    publisher = Publisher(URL, lcc_id)
    subscriber = Subscriber(URL, lcc_id, heard, publisher.name)
    subscriber.start()
    assert heard.within(60)  # by the confirmation
    publisher.publish()
    Publisher(URL, uuid4().hex).publish()
    assert not heard.within(0.5)
    Publisher(URL, lcc_id).publish()
    assert heard.within(60)
    subscriber.stop()


def test_a_redis_that_went_away_is_told_once_and_used_again_when_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wake_redis, "AGAIN", 0.05)
    port, heard, lcc_id = free_port(), Woken(), uuid4().hex

    def start() -> subprocess.Popen[bytes]:
        command = ["redis-server", "--port", str(port), "--save", "", "--dir", str(tmp_path)]
        return subprocess.Popen(command, executable=program(), stdout=subprocess.DEVNULL)

    def told() -> int:
        return sum("does not answer" in record.message for record in caplog.records)

    url = f"redis://127.0.0.1:{port}/0"
    subscriber, publisher = Subscriber(url, lcc_id, heard), Publisher(url, lcc_id)
    subscriber.start()
    for _ in range(2):
        server = start()
        try:
            assert heard.within(60)  # the confirmation, which tells of what was missed
            publisher.publish()
            assert heard.within(60)
            caplog.clear()
        finally:
            server.kill()
            server.wait(60)
        publisher.publish()
        wait_for(lambda: told() == 2, 60, "both to tell that Redis is away")
        time.sleep(0.3)
        assert told() == 2  # once each
    subscriber.stop()


def test_crawls_of_the_own_machine_are_woken_by_the_file_with_and_without_redis(
    tmp_path: Path, redis_server: tuple[Redis, str]
) -> None:
    folder = DataDirectory.create(tmp_path / "data").folder
    file = WakeFile(folder)
    for url in ("", URL):
        waker(folder, url)()
        assert file.is_touched()


def test_a_url_that_is_none_is_one_line() -> None:
    with pytest.raises(ConfigurationError, match=re.escape("LCC_WAKE_REDIS: ")):
        Publisher("http://127.0.0.1", "x")
