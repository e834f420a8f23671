"""Whatever is stored comes back as it was served: any coding, any cut, in memory or in a file."""

import os
from hashlib import md5, sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcc_scrapy.content.decoding import BadCoding, decoder
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.content.sink import Sink, TooLarge
from lcc_scrapy.content.stored import decoded, encoder, open_body
from lcc_scrapy.domain.compression import coding_for

CODINGS = ("gzip", "zstd")
TEXT = b"what a page says, and says again; " * 100


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    made = ContentFiles(tmp_path_factory.mktemp("content"), 1)
    made.prepare()
    return made


def collected(content, chunks, coding, memory=1_000_000):
    sink = Sink(content, memory, 1 << 30, coding)
    for chunk in chunks:
        sink.write(chunk)
    return sink.finish()


@given(
    st.lists(st.one_of(st.binary(max_size=300), st.sampled_from([TEXT, bytes(5000)])), max_size=8),
    st.sampled_from(["", *CODINGS]),
    st.integers(0, 20_000),
    st.integers(1, 1 << 60),
)
def test_what_is_stored_decodes_to_what_was_served(content, chunks, coding, memory, fileid):
    whole = b"".join(chunks)
    body = collected(content, chunks, coding, memory)
    assert (body.length, body.md5, body.sha256) == (
        len(whole),
        md5(whole).hexdigest(),
        sha256(whole).hexdigest(),
    )
    assert bool(body.path) == (len(whole) > memory)
    with open_body(body) as stream:
        assert stream.read() == whole
    content.keep([(fileid, body)])
    with decoded(content.open(fileid), body.encoding) as stream:
        assert stream.read() == whole
    content.remove([fileid])


@pytest.mark.parametrize("coding", CODINGS)
def test_a_body_in_memory_is_there_as_it_was_served_and_lies_in_its_file_compressed(content, coding):
    body = collected(content, [TEXT], coding)
    content.keep([(7, body)])
    assert body.data == TEXT
    assert body.encoding == coding
    assert content.path_of(7).stat().st_size < len(TEXT) / 10


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("data", [b"", b"x", os.urandom(10_000)])
def test_what_does_not_become_smaller_is_stored_as_it_came(content, coding, data):
    body = collected(content, [data], coding)
    assert (body.encoding, body.to_store) == ("", data)


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("memory", [0, 1_000_000])
def test_a_compressed_file_that_was_cut_anywhere_or_damaged_does_not_decode(content, coding, memory):
    data = bytes(range(256)) * 20
    body = collected(content, [data], coding, memory)
    content.keep([(8, body)])
    stored = content.path_of(8).read_bytes()
    for length in range(1, len(stored)):
        content.path_of(8).write_bytes(stored[:length])
        with pytest.raises(BadCoding), decoded(content.open(8), coding) as stream:
            stream.read()
    for place in range(20, len(stored)):
        content.path_of(8).write_bytes(stored[:place] + bytes([stored[place] ^ 255]) + stored[place + 1 :])
        with pytest.raises(BadCoding), decoded(content.open(8), coding) as stream:
            stream.read()


@pytest.mark.parametrize("coding", CODINGS)
def test_bounds_are_of_the_decoded_body(content, coding):
    sink = Sink(content, 10, 1000, coding)
    sink.write(bytes(1000))
    with pytest.raises(TooLarge):
        sink.write(b"x")
    sink.discard()


def test_the_file_of_a_large_body_goes_with_it(content):
    body = collected(content, [TEXT] * 10, "zstd", memory=0)
    path = body.path
    assert os.path.getsize(path) < 1000
    del body
    assert not os.path.exists(path)


@pytest.mark.parametrize("coding", CODINGS)
def test_what_an_encoder_makes_is_within_what_the_decoder_takes(coding):
    made = encoder(coding)
    parts = [made.compress(os.urandom(100_000)) for _ in range(30)]
    whole = b"".join([*parts, made.flush()])
    assert sum(len(piece) for piece in decoder(coding).feed(whole)) == 3_000_000


@pytest.mark.parametrize(
    ("mimetype", "coding"),
    [
        ("text/html", "zstd"),
        ("", "zstd"),
        ("application/octet-stream", "zstd"),
        ("application/pdf", "zstd"),
        ("image/svg+xml", "zstd"),
        ("image/png", ""),
        ("video/mp4", ""),
        ("application/zip", ""),
        ("application/vnd.oasis.opendocument.text", ""),
        ("font/woff2", ""),
    ],
)
def test_only_what_is_not_compressed_already_is_compressed(mimetype, coding):
    assert coding_for("zstd", mimetype) == coding
    assert coding_for("none", mimetype) == ""
