"""The type of a document by its first bytes, where its site says none (MIME Sniffing, section 7.1)."""

import re

from lcc_scrapy.domain.entries import ANY_TYPE, NO_TYPE

HEAD = 1445
"""Bytes that are looked at."""

HTML, PDF = "text/html", "application/pdf"

_BLANKS = rb"[\t\n\f\r ]*+"
_TAGS = rb"!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p"
_LENGTH_OF_EBML = (
    rb"(?:[\x80-\xff]|[\x40-\x7f].|[\x20-\x3f].{2}|[\x10-\x1f].{3}"
    rb"|[\x08-\x0f].{4}|[\x04-\x07].{5}|[\x02\x03].{6}|\x01.{7})"
)
_FIRST: tuple[tuple[re.Pattern[bytes], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), mimetype)
    for pattern, mimetype in (
        (_BLANKS + rb"(?i:<(?:" + _TAGS + rb")[ >]|<!--)", HTML),
        (_BLANKS + rb"<\?xml", "text/xml"),
        (rb"%PDF-", PDF),
        (rb"%!PS-Adobe-", "application/postscript"),
        (rb"\xfe\xff..|\xff\xfe..|\xef\xbb\xbf.", "text/plain"),
        (rb"\0\0[\x01\x02]\0", "image/x-icon"),
        (rb"BM", "image/bmp"),
        (rb"GIF8[79]a", "image/gif"),
        (rb"RIFF....WEBPVP", "image/webp"),
        (rb"\x89PNG\r\n\x1a\n", "image/png"),
        (rb"\xff\xd8\xff", "image/jpeg"),
        (rb"FORM....AIFF", "audio/aiff"),
        (rb"ID3", "audio/mpeg"),
        (rb"OggS\0", "application/ogg"),
        (rb"MThd\0\0\0\x06", "audio/midi"),
        (rb"RIFF....AVI ", "video/avi"),
        (rb"RIFF....WAVE", "audio/wave"),
        (rb"\x1aE\xdf\xa3.{0,33}?B\x82" + _LENGTH_OF_EBML + rb"\0*+webm", "video/webm"),
        (rb"\x1f\x8b\x08", "application/x-gzip"),
        (rb"PK\x03\x04", "application/zip"),
        (rb"Rar[ !]\x1a\x07\0", "application/x-rar-compressed"),
    )
)
_SURELY_HTML = re.compile(_BLANKS + rb"(?i:<(?:!doctype html|html)[ >])")
_BINARY = re.compile(rb"[\0-\x08\x0b\x0e-\x1a\x1c-\x1f]")

_MPEG_1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_MPEG_2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_SAMPLES = (44100, 48000, 32000)
"""Of frames of MP3: thousands of bits and samples per second."""


def sniffed(head: bytes) -> str:
    """Return the type that the first bytes of a document tell, ``HEAD`` of them or all there are."""
    for pattern, mimetype in _FIRST:
        if pattern.match(head):
            return mimetype
    if _is_mp4(head):
        return "video/mp4"
    if _is_mp3(head):
        return "audio/mpeg"
    return NO_TYPE if _BINARY.search(head) else "text/plain"


def type_for(declared: str, head: bytes) -> str:
    """Return the type of a document whose site says none: as declared, unless its first bytes contradict.

    Only HTML and PDF contradict; to XML, only what no XML begins with. What was declared of no type
    (``ANY_TYPE``) is what it looks like.
    """
    found = sniffed(head)
    if declared == ANY_TYPE:
        return found
    is_xml = declared.endswith(("/xml", "+xml"))
    contradicts = found == PDF or (found == HTML and (not is_xml or _SURELY_HTML.match(head)))
    return found if contradicts else declared


def _is_mp4(head: bytes) -> bool:
    size = int.from_bytes(head[:4], "big")
    if head[4:8] != b"ftyp" or size > len(head) or size % 4:
        return False
    return any(head[at : at + 3] == b"mp4" for at in (8, *range(16, size, 4)))


def _is_mp3(head: bytes) -> bool:
    """Tell whether there is a frame of MP3 and another one behind it."""
    size = _mp3_frame(head)
    return 4 <= size <= len(head) and _mp3_frame(head[size:]) >= 0  # noqa: PLR2004


def _mp3_frame(data: bytes) -> int:
    """Return the size of the frame that begins here, -1 = there is none."""
    if len(data) < 4 or data[0] != 0xFF or data[1] & 0xE6 != 0xE2:  # noqa: PLR2004 - layer 3
        return -1
    version, rate, samples = data[1] >> 3 & 3, data[2] >> 4, data[2] >> 2 & 3
    if rate == 15 or samples == 3:  # noqa: PLR2004
        return -1
    thousands = (_MPEG_1 if version & 1 else _MPEG_2)[rate]
    scale = 72 if version == 1 else 144
    return thousands * 1000 * scale // _SAMPLES[samples] + (data[2] >> 1 & 1)
