"""The type of a document by its first bytes (MIME Sniffing, section 7.1)."""

import pytest

from lcc_scrapy.domain.entries import ANY_TYPE
from lcc_scrapy.domain.sniffing import HEAD, sniffed, type_for

TAGS = [
    "!DOCTYPE HTML",
    "HTML",
    "HEAD",
    "SCRIPT",
    "IFRAME",
    "H1",
    "DIV",
    "FONT",
    "TABLE",
    "A",
    "STYLE",
    "TITLE",
]
TAGS += ["B", "BODY", "BR", "P"]
MP3 = b"\xff\xfb\x90\x00" + bytes(413)
MP4 = b"\0\0\0\x18ftypisom\0\0\0\0mp41isom"
WEBM = b"\x1aE\xdf\xa3\x9fB\x86\x81\1B\xf7\x81\1B\xf2\x81\4B\xf3\x81\x08B\x82\x84webmB\x87\x81\4"


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("form", ["<{}>", "<{} x=y>", "\t\n\f\r <{}>"])
def test_html_begins_with_one_of_its_tags(tag: str, form: str) -> None:
    text = form.format(tag)
    assert {sniffed(text.encode()), sniffed(text.lower().encode())} == {"text/html"}
    assert sniffed(form.format(f"{tag}x").encode()) == "text/plain"
    assert sniffed(f"<{tag}".encode()) == "text/plain"


@pytest.mark.parametrize(
    ("head", "mimetype"),
    [
        (b"<!--", "text/html"), (b"  <!-- x", "text/html"), (b"\n<?xml version", "text/xml"),
        (b"<?XML", "text/plain"), (b"%PDF-1.4", "application/pdf"), (b" %PDF-", "text/plain"),
        (b"%!PS-Adobe-2", "application/postscript"), (b"\xfe\xff\0x", "text/plain"), (b"\xff\xfex\0", "text/plain"),
        (b"\xef\xbb\xbf\0", "text/plain"), (b"\0\0\1\0", "image/x-icon"), (b"\0\0\2\0", "image/x-icon"),
        (b"BM", "image/bmp"), (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"), (b"GIF88a", "text/plain"),
        (b"RIFF\0\0\0\0WEBPVP8", "image/webp"), (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"),
        (b"FORM\0\0\0\0AIFF", "audio/aiff"), (b"ID3", "audio/mpeg"), (b"OggS\0", "application/ogg"),
        (b"MThd\0\0\0\6", "audio/midi"), (b"RIFF\0\0\0\0AVI ", "video/avi"), (b"RIFF\0\0\0\0WAVE", "audio/wave"),
        (MP4, "video/mp4"), (MP4.replace(b"mp41", b"avc1"), "application/octet-stream"),
        (b"\0\0\0\x18ftypmp42" + bytes(12), "video/mp4"), (MP4[:-1], "application/octet-stream"),
        (WEBM, "video/webm"), (WEBM.replace(b"webm", b"mkva"), "application/octet-stream"),
        (MP3 + MP3, "audio/mpeg"), (MP3, "application/octet-stream"), (MP3 + bytes(9), "application/octet-stream"),
        (b"\x1f\x8b\x08", "application/x-gzip"), (b"PK\3\4", "application/zip"),
        (b"Rar!\x1a\7\0", "application/x-rar-compressed"), (b"", "text/plain"), (b"caf\xe9\n\t\x1b", "text/plain"),
    ],
)  # fmt: skip
def test_what_a_document_begins_with_tells_its_type(head: bytes, mimetype: str) -> None:
    assert sniffed(head) == mimetype


def test_text_has_no_binary_bytes() -> None:
    binary = {*range(9), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)}
    for byte in range(0x100):
        expected = "application/octet-stream" if byte in binary else "text/plain"
        assert sniffed(b"x" + bytes((byte,))) == expected


def test_any_beginning_has_a_type() -> None:
    for first in range(0x100):
        for second in range(0x100):
            assert "/" in sniffed(bytes((first, second)) * (HEAD // 2))


@pytest.mark.parametrize(
    ("declared", "head", "mimetype"),
    [
        ("text/plain", b"hello", "text/plain"), ("application/x-thing", b"\0\1\2", "application/x-thing"),
        ("image/png", b"GIF89a", "image/png"), ("text/plain", b"<html>", "text/html"),
        ("text/plain", b"<!-- x", "text/html"), ("text/plain", b"%PDF-1.4", "application/pdf"),
        ("text/html", b"hello", "text/html"), ("image/svg+xml", b"<!-- x --><svg/>", "image/svg+xml"),
        ("text/xml", b"<table >", "text/xml"), ("application/xml", b"<!doctype html>", "text/html"),
        ("application/rss+xml", b"<html>", "text/html"), (ANY_TYPE, b"GIF89a", "image/gif"),
        (ANY_TYPE, b"hello", "text/plain"),
    ],
)  # fmt: skip
def test_what_was_declared_counts_unless_the_document_is_html_or_pdf(
    declared: str, head: bytes, mimetype: str
) -> None:
    assert type_for(declared, head) == mimetype
