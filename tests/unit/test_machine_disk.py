"""What may be tried again on a disk and what may not, and the ballast."""

import errno
import fcntl
import os
import threading
import time
from pathlib import Path

import pytest

from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.content.sink import Sink
from lcc_scrapy.domain.cache import Body
from lcc_scrapy.domain.errors import DiskFailed, DiskFull, LccError, NotDurable
from lcc_scrapy.domain.free_space import TIGHT, Reserve
from lcc_scrapy.machine import ballast, disk
from lcc_scrapy.machine.ballast import Ballast
from lcc_scrapy.machine.disk import FolderSync, on_disk, sync, sync_folder

SIZE = 1_000_000
KINDS = [
    (errno.ENOSPC, DiskFull),
    (errno.EDQUOT, DiskFull),
    (errno.EIO, DiskFailed),
    (errno.EROFS, DiskFailed),
    (errno.EMFILE, NotDurable),
    (errno.EACCES, NotDurable),
]


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch):
    def fail(number: int) -> None:
        def fsync(_descriptor: int) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fsync)

    return fail


@pytest.mark.parametrize(("number", "kind"), KINDS)
def test_an_error_says_whether_it_may_be_tried_again(number: int, kind: type[LccError]) -> None:
    with (
        pytest.raises(LccError, match=f"spool file: .*{os.strerror(number)}") as raised,
        on_disk("spool file"),
    ):
        raise OSError(number, os.strerror(number))
    assert type(raised.value) is kind


@pytest.mark.parametrize("number", [errno.EIO, errno.EINVAL, errno.EBADF])
def test_no_fsync_is_repeated_but_for_want_of_room(tmp_path: Path, fails, number: int) -> None:
    fails(number)
    with pytest.raises(DiskFailed, match=f"fsync of {tmp_path}"):
        sync_folder(tmp_path)
    fails(errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"), (tmp_path / "file").open("wb") as file:
        sync(file.fileno(), tmp_path / "file")


def test_a_body_that_cannot_be_synced_is_not_stored_in_memory_or_in_a_file(tmp_path: Path, fails) -> None:
    content = ContentFiles(tmp_path, 1)
    content.prepare()
    sink = Sink(content, 10, 1000)
    sink.write(bytes(11))
    fails(errno.EIO)
    with pytest.raises(DiskFailed):
        sink.finish()
    sink.discard()
    with pytest.raises(DiskFailed):
        content.keep([(1, Body(1, "", "", b"x"))])
    assert not content.path_of(1).exists()


def test_folders_whose_maker_failed_are_synced_by_the_next(tmp_path: Path, fails, monkeypatch) -> None:
    content = ContentFiles(tmp_path, 1)
    content.prepare()
    fails(errno.ENOSPC)
    with pytest.raises(DiskFull):
        content.keep([(1, Body(1, "", "", b"x"))])
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda one: synced.append(os.readlink(f"/proc/self/fd/{one}")))
    content.keep([(1, Body(1, "", "", b"x"))])
    assert {str(tmp_path), str(tmp_path / "1"), str(tmp_path / "1/000"), str(tmp_path / "1/000/000")} <= {
        *synced
    }


def test_a_worker_clears_what_one_of_its_number_left_unfinished(tmp_path: Path) -> None:
    for worker in (0, 1):
        content = ContentFiles(tmp_path, 1, worker)
        content.prepare()
        content.unfinished_path("body-1-1").write_bytes(b"half")
    ContentFiles(tmp_path, 1, 0).prepare()
    assert [path.name for path in (tmp_path / "1/tmp").glob("*/*")] == ["body-1-1"]
    assert (tmp_path / "1/tmp/1/body-1-1").exists(), "that of a worker which may live"


# --- ballast -------------------------------------------------------------------------------------


def test_a_ballast_takes_room_on_the_disk_until_it_is_given_up(tmp_path: Path) -> None:
    held = Ballast(tmp_path, SIZE)
    assert not held.is_held
    held.make()
    assert held.is_held
    assert (tmp_path / ballast.NAME).stat().st_blocks * 512 >= SIZE
    assert held.give_up()
    assert not held.give_up()
    assert list(tmp_path.iterdir()) == []
    assert Ballast(tmp_path, 0).is_held


def test_a_ballast_that_was_left_half_made_is_made_whole(tmp_path: Path) -> None:
    (tmp_path / "ballast.part").write_bytes(bytes(1000))
    Ballast(tmp_path, SIZE).make()
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("ballast", SIZE)]


def test_a_ballast_that_another_process_makes_is_left_to_it(tmp_path: Path) -> None:
    with (tmp_path / "ballast.part").open("wb") as draft:
        fcntl.flock(draft, fcntl.LOCK_EX)
        Ballast(tmp_path, SIZE).make()
        assert [path.name for path in tmp_path.iterdir()] == ["ballast.part"]


def test_a_ballast_that_finds_no_room_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DiskFull):
        Ballast(tmp_path, SIZE).make()
    assert list(tmp_path.iterdir()) == []


def test_work_rests_below_the_floor_and_goes_on_a_quarter_above_it() -> None:
    reserve = Reserve(floor=100, ballast=10)
    assert reserve.wanted(resting=False) == 100
    assert reserve.wanted(resting=True) == 125


def test_the_ballast_goes_when_there_is_no_room_and_comes_back_when_there_is_for_work_too() -> None:
    reserve = Reserve(floor=4 * TIGHT, ballast=2 * TIGHT)
    assert reserve.gives_up(TIGHT - 1, full=False)
    assert not reserve.gives_up(TIGHT, full=False)
    assert reserve.gives_up(9 * TIGHT, full=True)
    assert not reserve.renews(7 * TIGHT - 1)
    assert reserve.renews(7 * TIGHT)
    nothing = Reserve(0, 0)
    assert (nothing.gives_up(0, full=True), nothing.renews(10 * TIGHT), nothing.wanted(resting=True)) == (
        False,
        False,
        0,
    )


class SlowFolder:
    """Stands for the folder's sync: each call waits until it is let go."""

    def __init__(self) -> None:
        self.calls = 0
        self.begun = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.error: Exception | None = None

    def __call__(self, _folder: Path) -> None:
        self.calls += 1
        self.begun.release()
        assert self.go.acquire(timeout=30)
        if self.error is not None:
            raise self.error


def syncing(names: FolderSync, count: int) -> tuple[list[threading.Thread], list[object]]:
    ended: list[object] = []

    def sync() -> None:
        try:
            names()
            ended.append(None)
        except OSError as error:
            ended.append(error)

    threads = [threading.Thread(target=sync, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads, ended


def test_those_who_wait_for_the_names_of_a_folder_share_the_next_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, names = SlowFolder(), FolderSync(tmp_path)
    monkeypatch.setattr(disk, "sync_folder", slow)
    first, ended = syncing(names, 1)
    assert slow.begun.acquire(timeout=30)
    others, ended_together = syncing(names, 8)
    deadline = time.monotonic() + 30
    while len(names._turn._waiters) < 8:  # type: ignore[attr-defined]
        assert time.monotonic() < deadline
    slow.go.release()
    assert slow.begun.acquire(timeout=30)
    first[0].join(30)
    assert (ended, ended_together) == ([None], [])
    slow.error = OSError(errno.ENOSPC, "full")
    slow.go.release()
    for thread in others:
        thread.join(30)
    assert slow.calls == 2
    assert ended_together == [slow.error] * 8


def test_a_sync_of_names_that_failed_does_not_spoil_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = FolderSync(tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr("os.fsync", lambda _descriptor: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        with pytest.raises(OSError, match="full"):
            names()
    names()
