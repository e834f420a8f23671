"""Bodies are decoded in bounded pieces, and one that was cut is never taken for complete."""

import gzip
import zlib

import brotli
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.content.decoding import PIECE, BadCoding, decoder, is_decoded


def raw_deflate(data):
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(data) + made.flush()


ENCODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


CHECKS = {"gzip": 8, "x-gzip": 8, "deflate": 4}
"""Bytes of checksum and length behind the data."""


def decode(coding, data, cut=7):
    made = decoder(coding)
    pieces = [piece for start in range(0, len(data), cut) for piece in made.feed(data[start : start + cut])]
    made.end()
    assert max(map(len, pieces), default=0) <= 2 * PIECE
    return b"".join(pieces)


@given(st.binary(max_size=2000), st.sampled_from(sorted(ENCODERS)), st.integers(1, 3000))
def test_what_was_encoded_comes_back_however_it_is_cut(data, coding, cut):
    assert decode(coding, ENCODERS[coding](data), cut) == data


@pytest.mark.parametrize("coding", sorted(ENCODERS))
def test_a_body_that_was_cut_anywhere_is_refused(coding):
    whole = ENCODERS[coding](b"a body of some length, and more of it " * 9)
    for length in range(1, len(whole) - CHECKS.get(coding, 0)):
        with pytest.raises(BadCoding):
            decode(coding, whole[:length])


@pytest.mark.parametrize("coding", sorted(ENCODERS))
def test_a_body_that_is_something_else_is_refused(coding):
    with pytest.raises(BadCoding):
        decode(coding, b"<html>this was never encoded</html>")


@pytest.mark.parametrize("coding", [*ENCODERS, "", "identity", "compress"])
def test_an_empty_body_is_complete(coding):
    assert decode(coding, b"") == b""


@pytest.mark.parametrize("coding", sorted(ENCODERS))
def test_a_body_of_extreme_ratio_comes_in_pieces(coding):
    data = b"\0" * (3 * PIECE + 5)
    assert decode(coding, ENCODERS[coding](data), 1 << 20) == data


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_further_members_are_decoded_and_a_cut_one_is_refused(coding):
    encode = ENCODERS[coding]
    assert decode(coding, encode(b"one ") + encode(b"two")) == b"one two"
    with pytest.raises(BadCoding):
        decode(coding, encode(b"one ") + encode(b"two" * 50)[:-9])


@given(st.binary(max_size=300), st.sampled_from(sorted(CHECKS)), st.integers(0, 8), st.integers(1, 9))
def test_only_checksum_and_length_may_be_missing(data, coding, missing, cut):
    whole = ENCODERS[coding](data)
    missing = min(missing, CHECKS[coding])
    assert decode(coding, whole[: len(whole) - missing], cut) == data
    with pytest.raises(BadCoding):
        decode(coding, whole[: len(whole) - CHECKS[coding] - 1], cut)


@pytest.mark.parametrize("coding", sorted(CHECKS))
@pytest.mark.parametrize("place", range(1, 5))
def test_a_wrong_checksum_is_refused_also_where_the_length_is_missing(coding, place):
    whole = bytearray(ENCODERS[coding](b"body"))
    whole[place - 1 - CHECKS[coding]] ^= 1
    for end in range(len(whole) - CHECKS[coding] + 4, len(whole) + 1):
        with pytest.raises(BadCoding):
            decode(coding, bytes(whole[:end]))


@pytest.mark.parametrize("cut", [1, 7, 4096])
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_what_stands_behind_the_end_is_ignored(coding, cut):
    assert decode(coding, ENCODERS[coding](b"body") + b"\0\0\0 padding " * 9, cut) == b"body"


def test_deflate_without_its_wrapper_is_understood():
    assert decode("deflate", raw_deflate(b"body " * 50)) == b"body " * 50


@pytest.mark.parametrize(
    "coding",
    ["compress", "x-compress", "gzip;q=1", "br;q=0.5", "*", "exi", "dcb", "bz2", "hex", "aes128gcm", '"gzip"', "gzip deflate"],
)  # fmt: skip
def test_a_coding_that_is_not_known_is_no_page(coding):
    with pytest.raises(BadCoding):
        decode(coding, gzip.compress(b"body"))


@pytest.mark.parametrize("coding", ["utf-8", "UTF8", "iso-8859-1", "none", "binary", "8bit", "aws-chunked"])
def test_a_name_that_is_no_coding_at_all_counts_as_none(coding):
    assert decode(coding, b"body") == b"body"
    assert not is_decoded(coding)
    assert decode(f"gzip, {coding}", gzip.compress(b"body")) == b"body"


@pytest.mark.parametrize(
    "coding", ["gzip, gzip", "gzip,br", "br, identity, gzip", "compress, gzip", ", ".join(["gzip"] * 100)]
)
def test_codings_upon_codings_are_refused_but_for_an_empty_body(coding):
    with pytest.raises(BadCoding):
        decode(coding, gzip.compress(gzip.compress(b"body")))
    assert decode(coding, b"") == b""


@pytest.mark.parametrize("coding", ["identity, gzip", " GZIP ", "gzip,", ",,gzip, identity"])
def test_identity_and_empty_names_do_not_count_as_codings(coding):
    assert decode(coding, gzip.compress(b"body")) == b"body"
    assert is_decoded(coding)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_thousand_empty_parts_pass_and_more_do_not(coding):
    empty = ENCODERS[coding](b"")
    assert decode(coding, empty * 1000, 4096) == b""
    with pytest.raises(BadCoding):
        decode(coding, empty * 1001, 4096)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_as_many_parts_pass_as_hold_a_kilobyte_each(coding):
    part = ENCODERS[coding](bytes(1024))
    assert len(decode(coding, part * 3000, 65536)) == 3000 * 1024


@pytest.mark.parametrize(("log", "taken"), [(23, True), (24, False), (27, False)])
def test_zstd_may_look_back_eight_megabytes_and_no_more(log, taken):
    options = {zstd.CompressionParameter.window_log: log, zstd.CompressionParameter.compression_level: 1}
    packer = zstd.ZstdCompressor(options=options)
    body = packer.compress(b"body" * 1000) + packer.flush()
    if taken:
        assert decode("zstd", body) == b"body" * 1000
    else:
        with pytest.raises(BadCoding):
            decode("zstd", body)
