"""gzip: what others read back, whatever was written and however it was cut."""

import io
import random
import subprocess
import tracemalloc
import zlib

import pytest

from lcc_scrapy.apps.exports.gzipping import Gzip

BLOCK = 256 * 1024


def written(members, cut=1 << 20):
    out = io.BytesIO()
    packed = Gzip(out)
    for member in members:
        for start in range(0, len(member), cut):
            packed.write(member[start : start + cut])
        packed.end_member()
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


def test_the_bytes_do_not_depend_on_how_they_are_cut():
    members = [text(3 * BLOCK + 5), b"", text(70_000, 2)]
    assert written(members) == written(members, cut=777)


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
    assert peak < 8 * BLOCK
