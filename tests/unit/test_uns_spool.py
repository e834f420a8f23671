"""The spool: whole and durable, or not there."""

import errno
import os
import subprocess
import sys
import tracemalloc
from collections import Counter
from dataclasses import replace
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcc_scrapy.domain.entries import Declared, Operation, UrlEntry
from lcc_scrapy.domain.errors import (
    ConfigurationError,
    DiskFailed,
    DiskFull,
    InUse,
    LccError,
    NotDurable,
    SetTooLarge,
)
from lcc_scrapy.uns import spool, spool_writer
from lcc_scrapy.uns.spool import SMALLEST, ReadySet, SpoolFolder, has_sets_coming
from lcc_scrapy.uns.spool_file import DamagedSpoolFile, SpoolHeader, SpoolReader, entry_of, header_line
from lcc_scrapy.uns.spool_writer import PER_FILE

HEADER = SpoolHeader(7, 3, 1_700_000_000, "10.0.0.9", "s-1", full=True, ifabsent=True, drop_outside=True)
ENTRIES = [
    UrlEntry("http://e/a", "text/html", Operation.UPDATE, "http://e/a", None),
    UrlEntry("é\n\u2028\x7f", "text/html", Operation.REMOVE),
    UrlEntry("p", "*/*", Operation.PRESENT, "http://e/p"),
    UrlEntry(
        "c", "a/b", Operation.UPDATE, "f", "b", "t: x", Declared(1 << 52, 0, "0" * 32), timeofday="10" * 12
    ),
]


@pytest.fixture
def folder(tmp_path):
    made = SpoolFolder(tmp_path / "spool")
    made.lock()
    made.recover()
    yield made
    made.unlock()


def store(folder, entries=ENTRIES, header=HEADER, arrived=1_700_000_000.5):
    writer = folder.begin(header, arrived)
    for entry in entries:
        writer.add(entry)
    return writer.commit(unreadable=2)


def read(path, offset=0):
    with SpoolReader(path) as reader:
        reader.verify()
        return [entry for entry, _ in reader.entries(offset)]


def names(folder):
    return sorted(path.name for path in folder.path.iterdir() if path.name not in {"lock", "uns-id"})


def test_what_was_written_is_read(folder):
    path = store(folder)
    with SpoolReader(path) as reader:
        assert reader.header == HEADER
        footer = reader.footer
        assert (footer.updates, footer.removals, footer.present, footer.unreadable) == (2, 1, 1, 2)
        assert footer.records == 4
    assert read(path) == ENTRIES


def test_a_set_of_nothing_is_a_set(folder):
    assert read(store(folder, [])) == []


text = st.text(st.characters(codec="utf-8"), max_size=30)
numbers = st.none() | st.integers(0, 1 << 60)
entry_strategy = st.builds(
    UrlEntry, text, text, st.just(Operation.UPDATE), text, st.none() | text, text,
    st.builds(Declared, numbers, numbers, st.none() | text), text,
) | st.builds(UrlEntry, text, text, st.just(Operation.REMOVE))  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.lists(entry_strategy))
def test_any_entries_come_back_and_reading_may_go_on_anywhere(folder, entries):
    path = store(folder, entries)
    with SpoolReader(path) as reader:
        whole = list(reader.entries())
        assert [entry for entry, _ in whole] == entries
        for position, (_, offset) in enumerate(whole):
            assert [entry for entry, _ in reader.entries(offset)] == entries[position + 1 :]
    folder.remove([ReadySet.named(path.parent, path.name)])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.lists(entry_strategy), st.integers(1, 5))
def test_records_say_what_entries_say_however_many_are_read_at_a_time(folder, entries, limit):
    path = store(folder, entries)
    with SpoolReader(path) as reader:
        offset, read = 0, []
        while found := reader.records(offset, limit)[0]:
            assert len(found) <= limit
            offset = reader.records(offset, limit)[1]
            read += map(entry_of, found)
            assert [entry for entry, _ in reader.entries(offset)] == entries[len(read) :]
        assert read == entries
        assert not entries or offset == reader.end
    folder.remove([ReadySet.named(path.parent, path.name)])


def test_of_long_records_fewer_are_read_at_a_time(folder):
    long = replace(ENTRIES[0], curl="x" * 100_000)
    with SpoolReader(store(folder, [long] * 20)) as reader:
        assert len(reader.records(0, 1000)[0]) < 10


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"7\n",
        b'"u12345678"\n',
        b'["u","curl"]\n',
        b'["x","curl","text/html"]\n',
        b'[["u"],"curl","text/html"]\n',
        b'["r","a","text/html"],["r","b","text/html"]\n',
        b'["r","a"\n"text/html"]\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_a_line_that_is_no_record_makes_a_file_damaged(folder, line):
    path = store(folder)
    data = path.read_bytes()
    with SpoolReader(path) as reader:
        first, end = reader.entries().__next__()[1], reader.end
    bad = data[:first] + line
    footer = data[end:].replace(b'"bytes":%d' % end, b'"bytes":%d' % len(bad))
    path.write_bytes(bad + footer)
    with SpoolReader(path) as reader, pytest.raises(DamagedSpoolFile, match="bad record"):
        reader.records(0, 10)


def test_equal_sets_have_equal_content_digests_whoever_sent_them_when(folder):
    def digest(entries, header, arrived):
        path = store(folder, entries, header, arrived)
        with SpoolReader(path) as reader:
            return reader.footer.content

    first = digest(ENTRIES, HEADER, 1)
    assert digest(ENTRIES, replace(HEADER, seq=4, received=5, peer="x"), 2) == first
    assert digest(ENTRIES[1:], replace(HEADER, seq=5), 3) != first
    assert digest(ENTRIES, replace(HEADER, seq=6, full=False), 4) != first


@pytest.mark.parametrize("at", range(0, 900, 7))
def test_a_file_changed_or_cut_anywhere_is_noticed(folder, at):
    path = store(folder)
    whole = path.read_bytes()
    at = min(at, len(whole) - 1)
    flipped = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    for damaged in (whole[:at], flipped, whole + b"\n", whole + whole):
        path.write_bytes(damaged)
        with pytest.raises(DamagedSpoolFile):
            read(path)


def test_nothing_is_ready_before_the_commit_and_nothing_left_after_a_drop(folder):
    writer = folder.begin(HEADER, 1)
    writer.add(ENTRIES[0])
    assert folder.ready() == []
    writer.drop()
    writer.drop()
    assert (names(folder), folder.used) == ([], 0)


def test_a_finished_file_can_be_read_for_a_dry_run_and_is_not_ready(folder):
    writer = folder.begin(HEADER, 1)
    writer.add(ENTRIES[0])
    assert read(writer.finish()) == ENTRIES[:1]
    assert folder.ready() == []
    writer.drop()
    assert names(folder) == []


def test_file_and_folder_are_synced_in_this_order_before_the_commit_returns(folder, monkeypatch):
    seen = []
    fsync = os.fsync

    def note(descriptor):
        seen.append((os.readlink(f"/proc/self/fd/{descriptor}").rpartition("/")[2], names(folder)))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    path = store(folder)
    assert seen == [(path.name + ".part", [path.name + ".part"]), ("spool", [path.name])]


@pytest.fixture
def synced(monkeypatch):
    """The names of files and folders, in the order in which they were synced."""
    seen, fsync = [], os.fsync

    def note(descriptor):
        seen.append(os.readlink(f"/proc/self/fd/{descriptor}").rpartition("/")[2])
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    return seen


def test_a_new_folder_and_its_id_outlast_a_power_cut(tmp_path, synced):
    folder = SpoolFolder(tmp_path / "spool")
    folder.lock()
    folder.unlock()
    assert synced == [tmp_path.name, "uns-id.part", "spool"]


def test_the_id_of_a_folder_is_in_its_file_before_that_is_synced(tmp_path, monkeypatch):
    sizes = []
    monkeypatch.setattr(spool, "sync", lambda descriptor, _: sizes.append(os.fstat(descriptor).st_size))
    folder = SpoolFolder(tmp_path / "spool")
    folder.lock()
    assert sizes == [len(folder.identity) + 1]
    folder.unlock()


def test_a_folder_whose_id_cannot_be_read_stays_free(tmp_path):
    (tmp_path / "spool" / "uns-id").mkdir(parents=True)
    descriptors = os.listdir("/proc/self/fd")
    with pytest.raises(ConfigurationError, match="cannot be used: Is a directory"):
        SpoolFolder(tmp_path / "spool").lock()
    assert os.listdir("/proc/self/fd") == descriptors


def test_what_was_removed_or_set_aside_does_not_come_back_after_a_power_cut(folder, synced):
    for arrived in (1, 2):
        store(folder, arrived=arrived)
    first, second = folder.ready()
    del synced[:]
    folder.remove([first])
    assert synced == ["spool"]
    folder.remove([first])
    assert synced == ["spool"], "nothing was removed"
    folder.set_aside(second, "damaged")
    assert synced == ["spool", "quarantine", "spool"]
    folder.recover()
    assert synced == ["spool", "quarantine", "spool", "spool"]


@pytest.mark.parametrize("broken", ["write", "fsync file", "rename", "fsync folder"])
@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.EIO, DiskFailed),
        (errno.EROFS, DiskFailed),
        (errno.ENOSPC, DiskFull),
        (errno.EDQUOT, DiskFull),
        (errno.EMFILE, NotDurable),
    ],
)
def test_a_failing_disk_is_no_acceptance_and_leaves_nothing(folder, monkeypatch, broken, number, error):
    def fail(*_args):
        raise OSError(number, os.strerror(number))

    writer = folder.begin(HEADER, 1)
    if broken == "write":
        monkeypatch.setattr(spool_writer.os, "write", fail)
    elif broken == "fsync file":
        monkeypatch.setattr(os, "fsync", fail)
    elif broken == "rename":
        monkeypatch.setattr(type(folder.path), "rename", fail)
    else:
        monkeypatch.setattr(os, "fsync", Mock(side_effect=[None, OSError(number, os.strerror(number))]))
    with pytest.raises(LccError, match=os.strerror(number)) as raised:
        writer.commit()
    monkeypatch.undo()
    failed_sync = broken.startswith("fsync") and error is NotDurable
    assert type(raised.value) is (DiskFailed if failed_sync else error)
    assert (names(folder), folder.used) == ([], 0)


def test_a_file_that_cannot_be_opened_takes_no_room(folder, monkeypatch):
    monkeypatch.setattr(spool_writer.os, "open", Mock(side_effect=OSError(errno.EMFILE, "too many")))
    with pytest.raises(NotDurable, match="too many"):
        folder.begin(HEADER, 1)
    monkeypatch.undo()
    assert (names(folder), folder.used) == ([], 0)


def test_neither_a_stored_set_nor_a_damaged_one_leaves_a_file_open(folder):
    descriptors = os.listdir("/proc/self/fd")
    path = store(folder, ENTRIES * 5000)
    assert os.listdir("/proc/self/fd") == descriptors
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedSpoolFile, match="end mark") as held:  # the traceback still has the reader
        SpoolReader(path)
    assert os.listdir("/proc/self/fd") == descriptors
    path.write_bytes(b"[" + path.read_bytes())
    with pytest.raises(DamagedSpoolFile, match="Expecting") as also_held:
        SpoolReader(path)
    assert os.listdir("/proc/self/fd") == descriptors
    assert held.traceback
    assert also_held.traceback


def test_an_accepted_set_is_never_overwritten(folder):
    path = store(folder)
    with pytest.raises(NotDurable, match="there already"):
        store(folder, ENTRIES[1:])
    assert read(path) == ENTRIES
    assert folder.used == path.stat().st_size + PER_FILE


def test_a_short_write_is_completed(folder, monkeypatch):
    write = os.write
    monkeypatch.setattr(spool_writer.os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    assert read(store(folder)) == ENTRIES


def test_a_full_folder_takes_no_set_and_recovers_when_one_is_removed(tmp_path):
    folder = locked(tmp_path, max_bytes=4 * PER_FILE)
    path = store(folder)
    with pytest.raises(NotDurable, match="no room for provider 7"):
        store(folder, arrived=2)
    assert folder.used == path.stat().st_size + PER_FILE
    assert folder.is_full_for(7)
    assert not folder.full
    folder.remove([ReadySet.named(path.parent, path.name)])
    folder.remove([ReadySet.named(path.parent, path.name)])
    assert folder.used == 0
    assert not folder.is_full_for(7)
    store(folder, arrived=3)
    folder.unlock()


def locked(tmp_path, **values):
    folder = SpoolFolder(tmp_path / "spool", **values)
    folder.lock()
    folder.recover()
    return folder


def test_one_provider_gets_as_much_as_is_left_free_and_another_still_finds_room(tmp_path):
    folder = locked(tmp_path, max_bytes=60 * PER_FILE)
    accepted = Counter()
    for pid in (7, 8, 9):
        while not folder.is_full_for(pid):
            accepted[pid] += 1
            store(folder, [], replace(HEADER, pid=pid, seq=accepted[pid]), accepted[pid])
        with pytest.raises(NotDurable, match=f"no room for provider {pid}"):
            store(folder, ENTRIES, replace(HEADER, pid=pid, seq=99), 99)
        assert not folder.full
    assert accepted[7] > accepted[8] > accepted[9] > 0
    assert folder.used < 60 * PER_FILE
    again = SpoolFolder(folder.path, 60 * PER_FILE)
    folder.unlock()
    again.lock()
    again.recover()
    assert again.used == folder.used
    assert again.is_full_for(7)
    again.unlock()


def test_a_set_larger_than_what_one_provider_may_have_need_not_come_again(tmp_path):
    folder = locked(tmp_path, max_bytes=4 * PER_FILE)
    with pytest.raises(SetTooLarge):
        store(folder, ENTRIES * 100)
    assert (names(folder), folder.used) == ([], 0)
    folder.unlock()


def test_a_set_may_be_as_large_as_what_one_provider_gets(tmp_path):
    size = PER_FILE + len(header_line(HEADER))
    for limit, error in ((2 * size - 1, None), (2 * size - 2, SetTooLarge)):
        folder = locked(tmp_path, max_bytes=limit)
        if error is None:
            folder.begin(HEADER, 1).drop()
        else:
            with pytest.raises(error):
                folder.begin(HEADER, 1)
        folder.unlock()


def test_a_folder_is_full_once_the_smallest_set_finds_no_room(tmp_path):
    assert SpoolFolder(tmp_path, 2 * SMALLEST).full
    assert not SpoolFolder(tmp_path, 2 * SMALLEST + 1).full


def test_a_folder_over_its_bound_says_so(folder):
    store(folder)
    folder.max_bytes = 10
    assert folder.full


def test_sets_are_ready_in_the_order_of_arrival(folder):
    for pid, seq, arrived in ((7, 12, 3), (8, 1, 2), (7, 9, 4), (7, 10, 1)):
        store(folder, [], replace(HEADER, pid=pid, seq=seq), arrived)
    assert [(found.pid, found.seq, found.arrived) for found in folder.ready()] == [
        (7, 10, 1000),
        (8, 1, 2000),
        (7, 12, 3000),
        (7, 9, 4000),
    ]


def test_a_folder_keeps_its_id_wherever_it_goes(folder, tmp_path):
    identity = folder.identity
    assert len(identity) == 36
    folder.unlock()
    moved = SpoolFolder(folder.path.rename(tmp_path / "elsewhere"))
    moved.lock()
    assert moved.identity == identity
    moved.unlock()
    other = SpoolFolder(tmp_path / "other")
    other.lock()
    assert other.identity != identity
    other.unlock()


def test_setting_aside_a_file_that_is_gone_is_none_the_worse(folder):
    store(folder)
    (waiting,) = folder.ready()
    folder.remove([waiting])
    assert folder.set_aside(waiting, "gone").pid == 7
    assert folder.used == 0


def test_recovery_removes_what_was_unfinished_and_sets_aside_what_is_damaged(tmp_path):
    before = SpoolFolder(tmp_path / "spool")
    before.lock()
    good, bad, cut = (store(before, arrived=at) for at in (1, 2, 3))
    before.begin(HEADER, 4).add(ENTRIES[0])
    before.unlock()
    bad.write_bytes(bad.read_bytes().replace(b"http://e/a", b"http://e/b"))
    cut.write_bytes(cut.read_bytes()[:-30])

    after = SpoolFolder(tmp_path / "spool")
    after.lock()
    lost = after.recover()
    assert [found.path for found in after.ready()] == [good]
    assert after.used == good.stat().st_size + PER_FILE
    assert [(one.pid, one.path.name) for one in lost] == [(7, bad.name), (7, cut.name)]
    assert "digest" in lost[0].reason
    assert "end mark" in lost[1].reason
    assert sorted(path.name for path in (after.path / "quarantine").iterdir()) == [bad.name, cut.name]
    assert after.recover() == []
    after.unlock()


def test_the_folder_knows_its_full_sets_also_after_a_restart(folder):
    full = replace(HEADER, full=True, set_id="s", charged=True)
    first, second, third = (
        store(folder, header=replace(full, seq=seq, full=seq != 2), arrived=seq) for seq in (1, 2, 3)
    )
    folder.recover()
    assert [(one.seq, one.set_id, one.charged) for one in folder.full_sets.of(7).waiting] == [
        (1, "s", True),
        (3, "s", True),
    ]
    folder.remove([ReadySet.named(first.parent, first.name)])
    folder.remove([ReadySet.named(second.parent, second.name)])
    folder.set_aside(ReadySet.named(third.parent, third.name), "damaged")
    assert folder.full_sets.of(7).waiting == ()


def test_a_file_of_a_later_format_is_not_read(folder):
    path = store(folder)
    path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":9'))
    with pytest.raises(DamagedSpoolFile, match="format"):
        SpoolReader(path)


def test_a_second_process_is_told_who_has_the_folder(folder):
    descriptors = os.listdir("/proc/self/fd")
    with pytest.raises(InUse, match=f"in use by process {os.getpid()}"):
        SpoolFolder(folder.path).lock()
    assert os.listdir("/proc/self/fd") == descriptors
    folder.unlock()
    second = SpoolFolder(folder.path)
    second.lock()
    second.unlock()


def test_a_killed_process_leaves_the_folder_free(tmp_path):
    code = (
        "import pathlib, sys, time\nfrom lcc_scrapy.uns.spool import SpoolFolder\n"
        "folder = SpoolFolder(pathlib.Path(sys.argv[1])); folder.lock(); print('locked', flush=True)\n"
        "time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "spool")], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(ConfigurationError, match=f"process {process.pid};"):
            SpoolFolder(tmp_path / "spool").lock()
        process.kill()
    freed = SpoolFolder(tmp_path / "spool")
    freed.lock()
    freed.unlock()


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be used: No such file"):
        SpoolFolder(tmp_path / "no" / "spool").lock()


def test_a_million_records_would_need_no_more_memory_than_few(folder):
    tracemalloc.start()
    try:
        path = store(folder, (ENTRIES[0] for _ in range(50_000)))
        with SpoolReader(path) as reader:
            reader.verify()
            assert sum(1 for _ in reader.entries()) == 50_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000


HEAD = b'{"format":1,"pid":1,"seq":1,"received":1}\n{"updates":0,"removals":0,"present":0,"unreadable":0,'


@pytest.mark.parametrize(
    "data",
    [
        b"[]\n",
        b"1\n",
        b"[" * 100_000 + b"\n",
        HEAD + b'"bytes":42.0,"content":"","sha256":"","end":"lcc-spool"}\n',
        HEAD + b'"bytes":42,"content":"\\ud800","sha256":"","end":"lcc-spool"}\n',
    ],
)
def test_a_file_of_other_json_is_damaged_like_any_other(tmp_path, data):
    path = tmp_path / "000000000000001-7-3.set"
    path.write_bytes(data)
    with pytest.raises(DamagedSpoolFile), SpoolReader(path) as reader:
        reader.verify()


def test_sets_come_from_a_spool_only_while_somebody_absorbs_it(folder):
    assert not has_sets_coming(folder.path)
    store(folder)
    assert has_sets_coming(folder.path)
    folder.unlock()
    assert not has_sets_coming(folder.path)
    assert not has_sets_coming(folder.path.parent / "nowhere")


def test_a_folder_that_nobody_has_taken_is_given_up_without_harm(tmp_path):
    folder = SpoolFolder(tmp_path / "spool")
    assert (folder.identity, folder.used) == ("", 0)
    descriptors = os.listdir("/proc/self/fd")
    folder.unlock()
    assert os.listdir("/proc/self/fd") == descriptors
    folder.lock()
    folder.unlock()
    folder.unlock()
    SpoolFolder(tmp_path / "spool").lock()


def test_recovery_leaves_no_unfinished_file_on_the_disk(tmp_path):
    before = locked(tmp_path)
    before.begin(HEADER, 4).add(ENTRIES[0])
    assert [name for name in names(before) if name.endswith(".part")]
    before.unlock()
    after = locked(tmp_path)
    assert names(after) == []
    after.unlock()


def test_whoever_loses_a_set_is_told_before_it_is_set_aside(folder):
    path = store(folder)
    path.write_bytes(path.read_bytes()[:-30])
    told = []
    folder.recover(lambda waiting, reason: told.append((waiting.path, waiting.path.exists(), bool(reason))))
    assert told == [(path, True, True)]
    assert not path.exists()


def writer_of(path, claims=None, largest=10**6):
    claim = (lambda _: None) if claims is None else claims.append
    return spool_writer.SpoolWriter(path, HEADER, claim, largest, lambda: None)


def test_a_file_that_cannot_be_opened_closes_nobody_else_s_descriptor(tmp_path, monkeypatch):
    closed = Mock(side_effect=OSError(errno.EBADF, "bad"))
    monkeypatch.setattr(spool_writer.os, "close", closed)
    with pytest.raises(NotDurable):
        writer_of(tmp_path / "missing" / "1.set")
    closed.assert_called_once_with(-1)


def test_room_is_given_back_once(tmp_path):
    claims = []
    writer = writer_of(tmp_path / "1.set", claims)
    writer.drop()
    writer.drop()
    assert sum(claims) == 0
    assert 0 not in claims


def test_records_are_written_so_many_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(spool_writer, "_FLUSH_RECORDS", 3)
    claims = []
    writer = writer_of(tmp_path / "1.set", claims)
    before = len(claims)
    for entry in ENTRIES * 2:
        writer.add(entry)
    assert len(claims) - before == 2
    writer.drop()
