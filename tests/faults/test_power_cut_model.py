"""The disk that power cuts are simulated on, and the record it is fed from."""

import random
import tempfile
from pathlib import Path

import pytest

from tests.faults.powercut import trace
from tests.faults.powercut.disk import Cut, Disk, Loss, Unmodelled
from tests.faults.powercut.trace import Call, in_hex

DATA = "/srv/lcc-data"


class Run:
    """Writes a record as strace would, one call a line, and replays it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines: list[str] = []
        self.call("mkdir", self.text(DATA), "0777")
        self.sync("/srv")

    @staticmethod
    def text(text: str) -> str:
        return f'"{in_hex(text)}"'

    def line(self, line: str) -> None:
        self._lines.append(line)

    def call(self, name: str, *args: str, result: str = "0") -> None:
        self.line(f"7 {name}({', '.join(args)}) = {result}")

    def sync(self, path: str) -> None:
        self.call("fsync", f"3<{in_hex(path)}>")

    def write(self, path: str, data: str, flags: str = "O_WRONLY|O_CREAT|O_TRUNC") -> None:
        at = "AT_FDCWD<\\x2f>"
        self.call("openat", at, self.text(path), flags, "0666", result=f"3<{in_hex(path)}>")
        self.call("write", f"3<{in_hex(path)}>", self.text(data), str(len(data)), result=str(len(data)))

    def calls(self) -> list[Call]:
        record = self._folder / "record"
        record.write_text("\n".join(self._lines) + "\n")
        return list(trace.read(record, ("/srv",)))

    def after(self, loss: Loss, chance: random.Random | None = None) -> dict[str, bytes]:
        disk = Disk(Path(DATA))
        for call in self.calls():
            disk.apply(call)
        left = Path(tempfile.mkdtemp(dir=self._folder))
        disk.lay_out(left, Cut(loss, chance or random.Random(1)))
        return {
            str(path.relative_to(left / "lcc-data")): path.read_bytes()
            for path in left.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_what_was_synced_with_its_name_survives(run: Run) -> None:
    run.write(f"{DATA}/a", "hello")
    run.sync(f"{DATA}/a")
    run.sync(DATA)
    run.write(f"{DATA}/a", "HE", flags="O_WRONLY")
    assert run.after(Loss.ALL) == {"a": b"hello"}
    assert run.after(Loss.DATA) == {"a": b"hello"}


def test_a_synced_file_without_a_synced_name_is_gone(run: Run) -> None:
    run.write(f"{DATA}/a", "hello")
    run.sync(f"{DATA}/a")
    assert run.after(Loss.ALL) == {}
    assert run.after(Loss.DATA) == {"a": b"hello"}


def test_a_name_without_data_is_a_file_of_zeros(run: Run) -> None:
    run.write(f"{DATA}/a", "hello")
    run.sync(DATA)
    assert run.after(Loss.ALL) == {"a": b""}
    assert run.after(Loss.DATA) == {"a": bytes(5)}


def test_what_was_written_while_an_fsync_ran_is_not_safe(run: Run) -> None:
    run.write(f"{DATA}/a", "first")
    run.sync(DATA)
    file = f"3<{in_hex(DATA + '/a')}>"
    run.line(f"8 fsync({file} <unfinished ...>")
    run.call("write", file, run.text("second"), "6", result="6")
    run.line("8 <... fsync resumed>) = 0")
    assert run.after(Loss.ALL) == {"a": b"first"}


def test_a_syncfs_keeps_everything_with_its_name_that_was_there_when_it_began(run: Run) -> None:
    run.call("mkdir", run.text(f"{DATA}/b"), "0777")
    run.write(f"{DATA}/b/a", "hello")
    run.line(f"8 syncfs(4<{in_hex(DATA)}> <unfinished ...>")
    run.write(f"{DATA}/late", "too late")
    run.line("8 <... syncfs resumed>) = 0")
    run.write(f"{DATA}/b/a", "HE", flags="O_WRONLY")
    assert run.after(Loss.ALL) == {"b/a": b"hello"}


def test_a_syncfs_of_another_disk_or_one_that_failed_keeps_nothing(run: Run) -> None:
    run.write(f"{DATA}/a", "hello")
    run.call("syncfs", f"4<{in_hex('/elsewhere')}>")
    run.call("syncfs", f"4<{in_hex(DATA)}>", result="-1 EIO (Input/output error)")
    assert run.after(Loss.ALL) == {}


def test_a_failed_fsync_keeps_nothing(run: Run) -> None:
    run.write(f"{DATA}/a", "hello")
    run.sync(DATA)
    run.call("fsync", f"3<{in_hex(DATA + '/a')}>", result="-1 EIO (Input/output error)")
    assert run.after(Loss.ALL) == {"a": b""}


def test_a_short_write_writes_what_it_says(run: Run) -> None:
    run.write(f"{DATA}/a", "")
    run.call("write", f"3<{in_hex(DATA + '/a')}>", run.text("hello"), "5", result="2")
    run.call("write", f"3<{in_hex(DATA + '/a')}>", run.text("y!"), "2", result="2")
    run.sync(f"{DATA}/a")
    run.sync(DATA)
    assert run.after(Loss.ALL) == {"a": b"hey!"}


def test_writes_at_a_place_vectors_and_truncations_are_followed(run: Run) -> None:
    run.write(f"{DATA}/a", "hello")
    file = f"3<{in_hex(DATA + '/a')}>"
    run.call("pwrite64", file, run.text("J"), "1", "0", result="1")
    vector = f'[{{iov_base="{in_hex(", wor")}", iov_len=5}}, {{iov_base="{in_hex("ld")}", iov_len=2}}]'
    run.call("writev", file, vector, "2", result="7")
    run.call("ftruncate", file, "10")
    run.sync(f"{DATA}/a")
    run.sync(DATA)
    assert run.after(Loss.ALL) == {"a": b"Jello, wor"}


def test_a_linked_file_survives_under_the_name_that_was_synced(run: Run) -> None:
    run.call("mkdir", run.text(f"{DATA}/b"), "0777")
    run.sync(DATA)
    run.write(f"{DATA}/a", "hello")
    run.sync(f"{DATA}/a")
    run.call("link", run.text(f"{DATA}/a"), run.text(f"{DATA}/b/a"))
    run.call("unlink", run.text(f"{DATA}/a"))
    run.sync(f"{DATA}/b")
    assert run.after(Loss.ALL) == {"b/a": b"hello"}


@pytest.mark.parametrize("synced", [(), ("b",), ("a",), ("a", "b")])
def test_a_renamed_file_never_loses_both_names(run: Run, synced: tuple[str, ...]) -> None:
    for folder in ("a", "b"):
        run.call("mkdir", run.text(f"{DATA}/{folder}"), "0777")
    run.sync(DATA)
    run.write(f"{DATA}/a/f", "hello")
    run.sync(f"{DATA}/a/f")
    run.sync(f"{DATA}/a")
    run.call("rename", run.text(f"{DATA}/a/f"), run.text(f"{DATA}/b/f"))
    for folder in synced:
        run.sync(f"{DATA}/{folder}")
    found = [set(run.after(Loss.TORN, random.Random(seed))) for seed in range(40)]
    assert set() not in found
    assert ({"b/f"} in found) or synced == ("b",)
    if "a" in synced:
        assert {"a/f"} not in found


def test_some_sectors_survive_and_some_do_not(run: Run) -> None:
    run.write(f"{DATA}/a", "x" * 2048)
    run.sync(f"{DATA}/a")
    run.sync(DATA)
    run.call("pwrite64", f"3<{in_hex(DATA + '/a')}>", run.text("y" * 1000), "1000", "100", result="1000")
    found = {run.after(Loss.TORN, random.Random(seed))["a"] for seed in range(60)}
    first = b"x" * 100 + b"y" * 412
    assert first + b"x" * 1536 in found
    assert first + b"y" * 588 + b"x" * 948 in found
    assert len(found) == 2**3


def test_what_the_model_does_not_know_is_refused(run: Run) -> None:
    run.write(f"{DATA}/a", "hello")
    file = f"3<{in_hex(DATA + '/a')}>"
    run.call("mmap", "NULL", "4096", "PROT_READ|PROT_WRITE", "MAP_SHARED", file, "0", result="0x7f00")
    with pytest.raises(Unmodelled):
        run.after(Loss.ALL)


@pytest.mark.parametrize("name", ["copy_file_range", "sync_file_range"])
def test_calls_of_unknown_effect_are_refused(run: Run, name: str) -> None:
    run.write(f"{DATA}/a", "hello")
    run.call(name, f"3<{in_hex(DATA + '/a')}>", "0", "0", "10")
    with pytest.raises(Unmodelled):
        run.after(Loss.ALL)


def test_a_record_that_leaves_out_data_is_refused(run: Run) -> None:
    run.write(f"{DATA}/a", "")
    run.call("write", f"3<{in_hex(DATA + '/a')}>", run.text("hello") + "...", "50", result="50")
    with pytest.raises(AssertionError, match="in part"):
        run.calls()
