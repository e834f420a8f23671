"""The UNS with its spool and its intake, on real sockets and threads, over a store in memory."""

import socket
import threading
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from scrapy.settings import Settings
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from lcc_scrapy.app import intake_service
from lcc_scrapy.app.intake_service import IntakeService
from lcc_scrapy.config.config import load
from lcc_scrapy.db.thread import StoreThread
from lcc_scrapy.domain.errors import ConfigurationError, InUse, StoreUnavailable
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.login.passwords import hash_password
from lcc_scrapy.uns.spool import SpoolFolder
from lcc_scrapy.uns.spool_file import SpoolHeader
from tests.memory_store import MemoryStore

PASSWORD = hash_password("secret")
ROOT = "http://www.example.org/"
INIT = (
    b'<lococa:init xmlns:lococa="http://www.lococa.org/1.0"><provider id="7" passwd="secret"/></lococa:init>'
)
SET = b'<lococa:set set="partial" urlprefix="http://www.example.org/"><url c="a" mimetype="text/html"/></lococa:set>'


class Sometimes(MemoryStore):
    """A database that may be away."""

    away = False

    def begin(self) -> Any:
        if self.away:
            raise StoreUnavailable("gone away")
        return super().begin()


class Short:
    """Means that a test makes short."""

    short = False

    def notice(self, error: BaseException) -> None:
        """Do nothing about it."""


class Front:
    """A reception, and what it told."""

    def __init__(self, folder: Path, **settings: str) -> None:
        from twisted.internet import reactor

        self.reactor: Any = reactor
        given = {"LCC_DATA_DIR": str(folder), "LCC_UNS_ENDPOINTS": "tcp:0:interface=127.0.0.1", **settings}
        self.config = load(Settings(given), {})
        self.store = Sometimes()
        with self.store.begin() as tx:
            tx.insert_provider(Provider(7, PASSWORD), [ROOT])
        self.thread = StoreThread(reactor)
        self.resources = Short()
        self.stopped = False
        self.accepted: list[int] = []
        self.steps: list[int] = []
        self.intake_service = IntakeService(
            self.config,
            "lcc",
            self.store,
            self.thread,
            reactor,
            accepted=lambda waiting: self.accepted.append(waiting.seq),
            absorbed=lambda step: self.steps.append(step.entries),
            resources=self.resources,
            stop_seconds=0.1,
        )

    @pytest_twisted.inlineCallbacks
    def open(self) -> Any:
        yield self.intake_service.claim()
        yield self.intake_service.begin()
        addresses = yield self.intake_service.listen()
        self.port = addresses[0].port

    @pytest_twisted.inlineCallbacks
    def stop(self) -> Any:
        if not self.stopped:
            self.stopped = True
            yield self.intake_service.stop()
            self.thread.close()

    @pytest_twisted.inlineCallbacks
    def until(self, condition: Any) -> Any:
        for _ in range(3000):
            if condition():
                return
            yield deferLater(self.reactor, 0.01)
        pytest.fail("waited for 30 s")

    def talk(self, *pieces: bytes) -> Any:
        return deferToThread(_talk, self.port, pieces)

    def logins(self) -> list[int]:
        with self.store.read() as tx:
            return [login.connseq for login in tx.logins_of(self.intake_service.spool.identity, (0, 0), 99)]

    def queued(self) -> int:
        with self.store.read() as tx:
            return tx.queued_total()

    @property
    def lastconnseq(self) -> int:
        with self.store.read() as tx:
            provider = tx.provider(7)
            assert provider is not None
            return provider.lastconnseq


def _talk(port: int, pieces: tuple[bytes, ...]) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=300) as wire:
        for piece in pieces:
            wire.sendall(piece)
        wire.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: wire.recv(65536), b"")).decode()


@pytest.fixture
def make(tmp_path: Path) -> Any:
    made: list[Front] = []

    def front(**settings: str) -> Front:
        made.append(Front(tmp_path, **settings))
        return made[-1]

    yield front
    for one in made:
        pytest_twisted.blockon(one.stop())


@pytest_twisted.inlineCallbacks
def test_a_set_goes_from_the_wire_into_the_queue_and_its_login_is_forgotten(make: Any) -> Any:
    front = make()
    yield front.open()
    answer = yield front.talk(INIT, SET)
    assert '<set_accepted received="1"/>' in answer
    yield front.until(
        lambda: front.steps == [1] and not front.logins() and not front.intake_service.spool.used
    )
    assert front.accepted == [1]
    assert front.queued() == 1


@pytest_twisted.inlineCallbacks
def test_a_login_that_brings_no_set_is_forgotten_when_it_ends(make: Any) -> Any:
    front = make()
    yield front.open()
    wire = yield deferToThread(socket.create_connection, ("127.0.0.1", front.port))
    wire.send(INIT)
    yield deferToThread(wire.recv, 1)
    assert front.logins() == [1]
    wire.close()
    yield front.until(lambda: not front.logins())
    assert front.accepted == []


@pytest_twisted.inlineCallbacks
def test_nobody_is_let_in_before_the_database_was_seen(make: Any) -> Any:
    front = make()
    yield front.intake_service.claim()
    addresses = yield front.intake_service.listen()
    front.port = addresses[0].port
    answer = yield front.talk(INIT, SET)
    assert '<reason code="103" retry-after="300">' in answer
    assert front.lastconnseq == 0
    yield front.intake_service.begin()
    answer = yield front.talk(INIT, SET)
    assert '<set_accepted received="1"/>' in answer


@pytest_twisted.inlineCallbacks
def test_beginning_may_be_tried_again_when_the_database_was_not_there(make: Any) -> Any:
    front = make()
    yield front.intake_service.claim()
    (front.config.spool_dir / "000001700000000-7-1.set").write_bytes(b"damaged\n")
    front.store.away = True
    with pytest.raises(StoreUnavailable):
        yield front.intake_service.begin()
    front.store.away = False
    yield front.intake_service.begin()
    with front.store.read() as tx:
        assert tx.provider(7).fullsetwanted == "cache crash"
    assert [path.name for path in (front.config.spool_dir / "quarantine").iterdir()] == [
        "000001700000000-7-1.set"
    ]


@pytest_twisted.inlineCallbacks
def test_a_provider_whose_sets_fill_the_spool_is_told_so_before_it_is_counted_in(make: Any) -> Any:
    front = make(LCC_SPOOL_MAX_BYTES="16k")
    yield front.open()
    front.intake_service.spool.begin(SpoolHeader(7, 91, 1), 1).commit()
    answer = yield front.talk(INIT, SET)
    assert '<reason code="103" retry-after="300">' in answer
    assert front.lastconnseq == 0
    wrong = yield front.talk(INIT.replace(b"secret", b"guess"))
    assert '<reason code="101">' in wrong


@pytest_twisted.inlineCallbacks
def test_a_spool_that_another_process_lets_go_of_is_taken_over(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> Any:
    monkeypatch.setattr(intake_service, "LOCK_PATIENCE", 300.0)
    front = make()
    before = SpoolFolder(front.config.spool_dir)
    before.lock()
    threading.Timer(0.3, before.unlock).start()
    yield front.intake_service.claim()
    assert front.intake_service.spool.identity == before.identity


@pytest_twisted.inlineCallbacks
def test_a_spool_that_another_process_keeps_is_refused_after_some_seconds(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> Any:
    monkeypatch.setattr(intake_service, "LOCK_PATIENCE", 0.3)
    front = make()
    before = SpoolFolder(front.config.spool_dir)
    before.lock()
    with pytest.raises(InUse, match="LCC_UNS_ENDPOINTS"):
        yield front.intake_service.claim()
    before.unlock()


@pytest_twisted.inlineCallbacks
def test_a_reception_that_stopped_has_given_everything_up(make: Any) -> Any:
    front = make()
    yield front.open()
    yield front.stop()
    again = SpoolFolder(front.config.spool_dir)
    again.lock()
    again.unlock()
    with pytest.raises(ConnectionRefusedError):
        yield front.talk(INIT)


@pytest_twisted.inlineCallbacks
def test_a_folder_that_cannot_be_used_is_refused_at_once(make: Any, tmp_path: Path) -> Any:
    front = make(LCC_SPOOL_DIR=str(tmp_path / "no" / "spool"))
    with pytest.raises(ConfigurationError, match="cannot be used: No such file"):
        yield front.intake_service.claim()


@pytest_twisted.inlineCallbacks
def test_a_spool_file_whose_set_was_absorbed_is_removed_at_the_next_start(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> Any:
    front = make()
    monkeypatch.setattr(SpoolFolder, "remove", lambda *_: None)  # a kill comes before it
    yield front.open()
    yield front.talk(INIT, SET)
    yield front.until(lambda: front.steps)
    assert len(front.intake_service.spool.ready()) == 1
    yield front.stop()
    monkeypatch.undo()
    again = make()
    again.store = again.intake_service._store = front.store
    yield again.open()
    yield again.until(lambda: not again.intake_service.spool.ready())
    assert again.queued() == 1


@pytest_twisted.inlineCallbacks
def test_while_room_is_short_nobody_is_let_in_and_no_set_begins(make: Any) -> Any:
    front = make()
    yield front.open()
    front.resources.short = True
    answer = yield front.talk(INIT, SET)
    assert 'code="103"' in answer
    front.resources.short = False

    begin = front.intake_service._service.conversations.begin

    def begin_late(*login: Any) -> bool:
        front.resources.short = True
        return begin(*login)

    front.intake_service._service.conversations.begin = begin_late
    answer = yield front.talk(INIT, SET)
    assert "init_accepted" in answer
    assert 'code="203"' in answer
    assert front.intake_service.spool.ready() == []


@pytest_twisted.inlineCallbacks
def test_while_room_is_short_no_set_is_absorbed(make: Any) -> Any:
    front = make(LCC_POLL="0.05s")
    accepted = front.intake_service._accepted
    front.intake_service._accepted = lambda waiting: (
        accepted(waiting),
        setattr(front.resources, "short", True),
    )
    yield front.open()
    answer = yield front.talk(INIT, SET)
    assert "set_accepted" in answer
    yield deferLater(front.reactor, 0.3)
    assert front.queued() == 0
    front.resources.short = False
    yield front.until(lambda: front.queued() == 1)
