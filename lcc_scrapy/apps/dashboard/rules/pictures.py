"""Pictures that browsers show and that hold no markup: PNG, JPEG, GIF and WebP, told by their first bytes."""

from dataclasses import dataclass

_PNG = b"\x89PNG\r\n\x1a\n"
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
"""Markers of a JPEG that tell its size (ITU T.81, table B.1): all SOF, without DHT, JPG and DAC."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What a picture is (its mimetype), and its size in pixels."""

    kind: str
    width: int
    height: int


def picture_of(data: bytes) -> Picture | None:
    """Return which picture begins so; None = none, or one whose size does not stand there."""
    if data.startswith(_PNG) and data[12:16] == b"IHDR" and len(data) >= 24:  # noqa: PLR2004 - PNG, 11.2.1
        return Picture("image/png", _big(data[16:20]), _big(data[20:24]))
    if data[:6] in {b"GIF87a", b"GIF89a"} and len(data) >= 10:  # noqa: PLR2004 - GIF89a, section 18
        return Picture("image/gif", _little(data[6:8]), _little(data[8:10]))
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:  # noqa: PLR2004 - RFC 9649
        return _webp(data)
    return _jpeg(data) if data.startswith(b"\xff\xd8\xff") else None


def _webp(data: bytes) -> Picture | None:
    """Read the first chunk (RFC 9649, sections 2.5 to 2.7)."""
    kind = data[12:16]
    if kind == b"VP8X":
        return Picture("image/webp", _little(data[24:27]) + 1, _little(data[27:30]) + 1)
    if kind == b"VP8L" and data[20] == 0x2F:  # noqa: PLR2004 - its signature
        sides = _little(data[21:25])
        return Picture("image/webp", (sides & 0x3FFF) + 1, (sides >> 14 & 0x3FFF) + 1)
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        return Picture("image/webp", _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF)
    return None


def _jpeg(data: bytes) -> Picture | None:
    """Go from segment to segment until one has the size (ITU T.81, annex B)."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:  # noqa: PLR2004 - a marker
        marker, length = data[at + 1], _big(data[at + 2 : at + 4])
        if marker in _FRAMES:
            return Picture("image/jpeg", _big(data[at + 7 : at + 9]), _big(data[at + 5 : at + 7]))
        at += 1 if marker == 0xFF else 2 + length  # noqa: PLR2004 - one that fills up
    return None


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
