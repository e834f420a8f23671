"""A body that waits for its bandwidth: what it holds meanwhile, and what ends it."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lcc_scrapy.content.sink import Sink, TooLarge
from lcc_scrapy.content.stored import encoder
from lcc_scrapy.domain.errors import LeaseLost
from lcc_scrapy.fetch import pacing
from lcc_scrapy.fetch.pacing import IN_MEMORY, FetchAborted, Pacer

TURN: Any = SimpleNamespace(turnkey="7", token=1)


class Manager:
    """A Queue Manager with one limit (bytes per second) whose time passes when somebody sleeps."""

    def __init__(self, limit: float = 1000.0) -> None:
        self.limit = limit
        self.owed = 0.0
        self.charges = 0
        self.lost = False

    def expect(self, _turn: object, size: int) -> float:
        return size / self.limit

    def charge(self, _turn: object, size: int) -> float:
        self.charges += 1
        if self.lost:
            raise LeaseLost("gone")
        self.owed += size / self.limit
        return max(0.0, self.owed)


class Scene:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **config: Any) -> None:
        self.manager = Manager()
        self.worker: Any = SimpleNamespace(
            aborting=False, manager=self.manager, config=SimpleNamespace(**{"pace_deadline": 0.0, **config})
        )
        self.held = 0
        fields = {b"content-length": ""}
        answer = SimpleNamespace(complete=False, field=lambda name: fields.get(name, ""))
        self.fields, self.connection = fields, SimpleNamespace(answer=answer, hold=self._hold)
        content: Any = SimpleNamespace(unfinished_path=lambda name: folder / name)
        self.folder, self.sink = folder, Sink(content, 1_000_000, 10_000_000)
        self.slept = 0.0
        self.after: Callable[[], None] = lambda: None
        monkeypatch.setattr(pacing.asyncio, "sleep", self._sleep)

    def _hold(self) -> None:
        self.held += 1

    async def _sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.manager.owed -= seconds
        self.after()

    def pacer(self, *, waits: bool = True) -> Pacer:
        return Pacer(self.worker, TURN, self.connection, self.sink, waits=waits)  # type: ignore[arg-type]

    def files(self) -> list[Path]:
        return list(self.folder.iterdir())


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, monkeypatch)


def run(scenario: Coroutine[Any, Any, Any]) -> Any:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, scenario).result()


def test_a_body_waits_for_what_it_took_and_is_not_read_meanwhile(scene: Scene) -> None:
    pacer = scene.pacer()
    pacer.charge(20_000)
    run(pacer.rest())
    assert (scene.slept, scene.held) == (pytest.approx(20), 1)


def test_a_body_that_others_need_is_charged_and_waits_for_nothing(scene: Scene) -> None:
    scene.worker.config.pace_deadline = 1.0
    scene.fields[b"content-length"] = "20000"
    pacer = scene.pacer(waits=False)
    pacer.charge(20_000)
    run(pacer.rest())
    assert (scene.slept, scene.held, scene.manager.owed) == (0, 0, pytest.approx(20))


def test_a_body_that_has_arrived_waits_for_nothing(scene: Scene) -> None:
    pacer = scene.pacer()
    pacer.charge(20_000)
    scene.connection.answer.complete = True
    run(pacer.rest())
    assert (scene.slept, scene.held) == (0, 0)


def test_a_limit_that_is_lifted_ends_the_wait(scene: Scene) -> None:
    def lift() -> None:
        scene.manager.owed = 0.0

    pacer, scene.after = scene.pacer(), lift
    pacer.charge(1_000_000)
    run(pacer.rest())
    assert scene.slept <= pacing.CHECK_EVERY


@pytest.mark.parametrize("lost", [False, True])
def test_a_wait_ends_when_the_process_stops_or_the_turn_is_lost(scene: Scene, *, lost: bool) -> None:
    def end() -> None:
        scene.worker.aborting, scene.manager.lost = not lost, lost

    pacer, scene.after = scene.pacer(), end
    pacer.charge(1_000_000)
    with pytest.raises(LeaseLost if lost else FetchAborted):
        run(pacer.rest())
    assert scene.slept <= pacing.CHECK_EVERY


def test_limits_hold_a_body_up_for_so_long_and_no_longer(scene: Scene) -> None:
    scene.worker.config.pace_deadline = 100.0
    pacer = scene.pacer()
    for _ in range(9):
        pacer.charge(10_000)
        run(pacer.rest())
    pacer.charge(20_000)
    with pytest.raises(TooLarge, match="have held it up for 100 s"):
        run(pacer.rest())


@pytest.mark.parametrize(("length", "refused"), [("100000", False), ("100001", True), ("", False)])
def test_what_says_that_it_cannot_make_it_is_not_begun(scene: Scene, length: str, *, refused: bool) -> None:
    scene.worker.config.pace_deadline = 100.0
    scene.fields[b"content-length"] = length
    if refused:
        with pytest.raises(TooLarge, match="100001 bytes take 100 s at the limit"):
            scene.pacer()
    else:
        scene.pacer()


def test_the_length_of_an_answer_without_a_body_refuses_nothing(scene: Scene) -> None:
    scene.worker.config.pace_deadline = 100.0
    scene.fields[b"content-length"], scene.connection.answer.complete = "100001", True
    scene.pacer()


def test_a_body_that_waits_leaves_memory_but_for_a_little_and_comes_back_whole(scene: Scene) -> None:
    pacer = scene.pacer()
    for size, files in ((IN_MEMORY, 0), (1, 1), (1, 1)):
        scene.sink.write(b"x" * size)
        pacer.charge(size)
        run(pacer.rest())
        assert len(scene.files()) == files
    assert scene.sink._parts == []
    body = scene.sink.finish()
    assert (body.data, body.path, scene.files()) == (b"x" * (IN_MEMORY + 2), "", [])


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@pytest.mark.parametrize("random", [False, True])
def test_what_waited_is_compressed_as_what_did_not(tmp_path: Path, coding: str, *, random: bool) -> None:
    content: Any = SimpleNamespace(unfinished_path=lambda name: tmp_path / name)
    pieces = [bytes(range(256)) * 100 if random else b"word " * 5000 for _ in range(4)]
    bodies = []
    for kept in (10**9, 1000):
        sink = Sink(content, 1_000_000, 10_000_000, coding)
        for piece in pieces:
            sink.write(piece)
            sink.leave_memory(kept)
        bodies.append(sink.finish())
    assert bodies[0] == bodies[1]
    assert bodies[1].data == b"".join(pieces)
    assert encoder(coding) is not None


def test_a_body_too_large_for_memory_stays_in_its_file(tmp_path: Path) -> None:
    content: Any = SimpleNamespace(unfinished_path=lambda name: tmp_path / name)
    sink = Sink(content, 1000, 10_000)
    sink.write(b"x" * 900)
    sink.leave_memory(100)
    sink.write(b"x" * 900)
    body = sink.finish()
    assert Path(body.path).read_bytes() == b"x" * 1800


def test_a_body_given_up_while_it_waits_leaves_no_file(tmp_path: Path) -> None:
    content: Any = SimpleNamespace(unfinished_path=lambda name: tmp_path / name)
    sink = Sink(content, 1_000_000, 10_000_000)
    sink.write(b"x" * 100_000)
    sink.leave_memory(100)
    sink.discard()
    assert list(tmp_path.iterdir()) == []
