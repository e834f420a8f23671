"""Content files of a group become durable by one syncfs where that can be relied upon, else by fsyncs."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.domain.cache import Body
from lcc_scrapy.domain.errors import DiskFailed, DiskFull
from lcc_scrapy.machine import group_fsync
from lcc_scrapy.machine.group_fsync import FEW, SLOW, SPARED, GroupFsync, reports_all

MANY = FEW + 1


class Calls:
    """Notes what is opened, synced and by which call, and lets a syncfs fail or take long."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[str, str]] = []
        self.error = 0
        self.takes = 0.0
        self.now = 100.0
        self._open, self._fsync = os.open, os.fsync
        monkeypatch.setattr(os, "open", self._opened)
        monkeypatch.setattr(os, "fsync", self._synced)
        monkeypatch.setattr(group_fsync, "syncfs", self._all_synced)
        monkeypatch.setattr(group_fsync, "_is_trusted", lambda _descriptor: True)

    def _opened(self, path, *args, **options):
        self.made.append(("open", Path(path).name))
        return self._open(path, *args, **options)

    def _synced(self, descriptor):
        self.made.append(("fsync", Path(os.readlink(f"/proc/self/fd/{descriptor}")).name))
        self._fsync(descriptor)

    def _all_synced(self, descriptor):
        self.made.append(("syncfs", Path(os.readlink(f"/proc/self/fd/{descriptor}")).name))
        self.now += self.takes
        if self.error:
            raise OSError(self.error, os.strerror(self.error))

    def of(self, name: str) -> list[str]:
        return [path for call, path in self.made if call == name]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


@pytest.fixture
def content(tmp_path: Path, calls: Calls) -> ContentFiles:
    made = ContentFiles(tmp_path, 1)
    made._group_fsync = GroupFsync(lambda: calls.now)
    made.prepare()
    made.keep([(1, body(1))])
    calls.made.clear()
    return made


def body(number: int) -> Body:
    data = str(number).encode() * 100
    return Body(len(data), "", "", data=data)


def bodies(first: int, count: int) -> list[tuple[int, Body]]:
    return [(number, body(number)) for number in range(first, first + count)]


def is_there(content: ContentFiles, number: int) -> bool:
    return content.path_of(number).read_bytes() == body(number).data


def test_many_files_are_synced_by_one_call_on_a_descriptor_that_is_older_than_they(
    content: ContentFiles, calls: Calls
) -> None:
    content.keep(bodies(2, MANY))
    assert calls.made[0] == ("open", "000")
    assert calls.made[-1] == ("syncfs", "000")
    assert calls.of("fsync") == []
    assert all(is_there(content, number) for number, _ in bodies(2, MANY))


def test_a_group_in_two_folders_of_one_disk_is_synced_once(content: ContentFiles, calls: Calls) -> None:
    content.keep([(1000, body(1000))])
    calls.made.clear()
    content.keep(bodies(1000 - FEW, 2 * FEW))
    assert {name for _, name in calls.made[:2]} == {"000", "001"}
    assert len(calls.of("syncfs")) == 1


def test_few_files_are_synced_one_by_one(content: ContentFiles, calls: Calls) -> None:
    content.keep(bodies(2, FEW))
    assert calls.of("fsync") == [*map(str, range(2, 2 + FEW)), "000"]
    assert calls.of("syncfs") == []


def test_files_are_synced_one_by_one_where_a_syncfs_may_not_tell_everything(
    content: ContentFiles, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_fsync, "_is_trusted", lambda _descriptor: False)
    content.keep(bodies(2, MANY))
    assert calls.of("fsync") == [*map(str, range(2, 2 + MANY)), "000"]
    assert calls.of("syncfs") == []


def test_a_disk_to_which_others_write_a_lot_is_not_synced_as_a_whole_for_a_while(
    content: ContentFiles, calls: Calls
) -> None:
    calls.takes = SLOW + 0.1
    content.keep(bodies(2, MANY))
    content.keep(bodies(50, MANY))
    assert len(calls.of("syncfs")) == 1
    assert len(calls.of("fsync")) == MANY + 1
    calls.now += SPARED
    content.keep(bodies(100, MANY))
    assert len(calls.of("syncfs")) == 2


@pytest.mark.parametrize(("number", "kind"), [(errno.EIO, DiskFailed), (errno.ENOSPC, DiskFull)])
def test_a_syncfs_that_fails_stores_nothing(
    content: ContentFiles, calls: Calls, number: int, kind: type[Exception]
) -> None:
    calls.error = number
    with pytest.raises(kind, match=os.strerror(number)):
        content.keep(bodies(2, MANY))
    assert [fileid for fileid, _ in content.all_files()] == [1]


def test_what_found_no_room_is_written_anew(content: ContentFiles, calls: Calls) -> None:
    calls.error = errno.ENOSPC
    with pytest.raises(DiskFull):
        content.keep(bodies(2, MANY))
    calls.error = 0
    content.keep(bodies(2, MANY))
    assert all(is_there(content, number) for number, _ in bodies(2, MANY))


@pytest.mark.parametrize("count", [1, MANY])
def test_a_file_of_an_earlier_try_is_replaced_and_not_written_into(content: ContentFiles, count: int) -> None:
    content.path_of(2).write_bytes(b"of an earlier try, and longer than what comes now" * 100)
    with content.open(2) as reader:
        content.keep(bodies(2, count))
        assert reader.read(5) == b"of an"
    assert is_there(content, 2)


def test_a_file_that_cannot_be_written_leaves_no_half_of_it_nor_others_of_its_group(
    content: ContentFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., int] = os.write

    def write(descriptor, data):
        if len(data) == 100:  # the last piece
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data[:100])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(DiskFull):
        content.keep([(100, Body(50, "", "", data=bytes(50))), (101, body(101))])
    assert [fileid for fileid, _ in content.all_files()] == [1]


@pytest.mark.parametrize(
    ("release", "trusted"),
    [
        ("5.16.20-generic", False),
        ("5.17.0", True),
        ("6.1.0-35-amd64", True),
        ("10.0", True),
        ("4.19", False),
        ("odd", False),
        ("", False),
    ],
)
def test_only_kernels_that_report_every_error_are_relied_upon(release: str, *, trusted: bool) -> None:
    assert reports_all(release) is trusted


def test_a_real_syncfs_takes_what_a_folder_s_disk_has_and_refuses_what_is_no_descriptor(
    tmp_path: Path,
) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    group_fsync.syncfs(descriptor)
    os.close(descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        group_fsync.syncfs(descriptor)
