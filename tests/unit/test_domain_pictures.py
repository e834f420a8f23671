"""Pictures are told by their first bytes, and say how large they are."""

import random
import struct

import pytest

from lcc_scrapy.apps.dashboard.rules.pictures import Picture, picture_of

SEGMENT = b"\xff\xe1\x00\x06exif"
FRAME = b"\xff\xc2\x00\x0b\x08" + struct.pack(">HH", 480, 640) + b"\x01\x01\x11\x00"
PICTURES = {
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480): "png",
    b"GIF89a" + struct.pack("<HH", 640, 480): "gif",
    b"GIF87a" + struct.pack("<HH", 640, 480): "gif",
    b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + b"\x7f\x02\0" + b"\xdf\x01\0": "webp",
    b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 639 | 479 << 14) + bytes(5): "webp",
    b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480): "webp",
    b"\xff\xd8" + SEGMENT * 3 + b"\xff" + FRAME: "jpeg",
    b"\xff\xd8" + FRAME: "jpeg",
}


@pytest.mark.parametrize(("data", "kind"), PICTURES.items(), ids=PICTURES.values())
def test_a_picture_tells_its_kind_and_size(data, kind):
    assert picture_of(data) == picture_of(data + b"more") == Picture(f"image/{kind}", 640, 480)


@pytest.mark.parametrize("data", PICTURES, ids=PICTURES.values())
def test_what_is_cut_before_its_size_is_no_picture(data):
    for length in range(len(data) - 4 if data[:2] == b"\xff\xd8" else len(data)):
        assert picture_of(data[:length]) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'>",
        b"\xff\xd8\xff\xda",
        b"BM\0\0",
        b"RIFF\0\0\0\0WAVE" + bytes(30),
    ],
)
def test_what_may_hold_markup_or_is_unknown_is_none(data):
    assert picture_of(data) is None


def test_no_bytes_are_an_error():
    chance = random.Random(1)
    for data in PICTURES:
        for _ in range(300):
            changed = bytearray(data)
            for _ in range(3):
                changed[chance.randrange(2, len(changed))] = chance.randrange(256)
            found = picture_of(bytes(changed[: chance.randrange(len(changed) + 1)]))
            assert found is None or min(found.width, found.height) >= 0


def test_segments_without_a_size_end():
    assert picture_of(b"\xff\xd8" + b"\xff\xe0\0\0" * 25_000) is None
    assert picture_of(b"\xff\xd8" + b"\xff" * 100_000) is None
