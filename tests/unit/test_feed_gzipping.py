"""gzip by several threads: what others read back, whatever was written and however it was cut."""

import gzip
import io
import random
import subprocess
import threading
import tracemalloc
import zlib

import pytest

from lcc_scrapy.feed.exports import gzipping
from lcc_scrapy.feed.exports.gzipping import BLOCK, Gzip


def written(members, cut=1 << 20):
    out = io.BytesIO()
    packed = Gzip(out)
    for member in members:
        for start in range(0, len(member), cut):
            packed.write(member[start : start + cut])
        packed.end_member()
    packed.close()
    return out.getvalue()


def members_of(data):
    found = []
    while data:
        one = zlib.decompressobj(31)
        found.append(one.decompress(data))
        assert one.eof
        data = one.unused_data
    return found


def text(size, seed=1):
    """Return what compresses like pages do."""
    chance = random.Random(seed)
    words = [bytes(chance.choices(b"abcdefghij ", k=8)) for _ in range(3000)]
    return b"".join(chance.choices(words, k=size // 8 + 1))[:size]


SIZES = [0, 1, 100, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 5 * BLOCK + 7]


@pytest.mark.parametrize("size", SIZES)
def test_what_was_written_is_one_member(size):
    assert members_of(written([text(size)])) == [text(size)]


def test_members_stay_apart_in_their_order():
    members = [text(size, seed) for seed, size in enumerate([*SIZES, *range(1, 20_000, 197), 3 * BLOCK])]
    assert members_of(written(members)) == members


def test_gunzip_itself_reads_it():
    data = text(3 * BLOCK) + random.Random(2).randbytes(BLOCK)
    packed = written([data, b"and more"])
    assert (
        subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True).stdout
        == data + b"and more"
    )


def test_the_bytes_depend_neither_on_threads_nor_on_how_they_are_cut(monkeypatch):
    members = [text(3 * BLOCK + 5), b"", text(70_000, 2)]
    one = written(members)
    assert one == written(members, cut=777)
    monkeypatch.setattr(gzipping, "_THREADS", 1)
    monkeypatch.setattr(gzipping, "_WAITING", 2)
    assert one == written(members)


def test_it_is_as_small_as_gzip_would_make_it():
    data = text(20 * BLOCK)
    assert len(written([data])) < 1.005 * len(gzip.compress(data, 6))


def test_blocks_know_what_came_before_them():
    data = random.Random(3).randbytes(30_000)
    assert len(written([data * 30])) < 40_000 + BLOCK // 100


def test_memory_is_bounded_however_much_is_written():
    class Nowhere(io.RawIOBase):
        def writable(self):
            return True

        def write(self, data):
            return len(data)

    packed = Gzip(Nowhere())
    data = text(1 << 20)
    tracemalloc.start()
    for _ in range(30):
        packed.write(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    packed.end_member()
    packed.close()
    assert peak < (2 * gzipping._WAITING + 12) * BLOCK


def test_a_stream_that_nobody_takes_leaves_no_thread_behind():
    class Gone(io.RawIOBase):
        def write(self, data):
            raise BrokenPipeError

    packed = Gzip(Gone())
    with pytest.raises(BrokenPipeError):
        packed.write(bytes(100 * BLOCK))
    with pytest.raises(BrokenPipeError):
        packed.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("gzip")]


def test_everything_is_written_by_the_thread_that_asks():
    writers = set()

    class Watching(io.BytesIO):
        def write(self, data):
            writers.add(threading.get_ident())
            return super().write(data)

    out = Watching()
    packed = Gzip(out)
    packed.write(text(9 * BLOCK))
    packed.end_member()
    packed.close()
    assert writers == {threading.get_ident()}
    assert members_of(out.getvalue()) == [text(9 * BLOCK)]
