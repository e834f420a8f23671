"""Valid conversations of both dialects in many encodings, and what can be done to their bytes."""

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lcc_scrapy.wire import writing
from lcc_scrapy.wire.messages import Init, SetStart

DATA = Path(__file__).parents[1] / "data" / "uns"
ROOT = "http://www.example.org/"
_SECRET = "geheim &amp; &quot;lang&quot;"


def transcripts(pid: int, password: str) -> list[bytes]:
    """Return what a provider may say from beginning to end."""
    dialects = [
        (DATA / name).read_text().replace('id="7"', f'id="{pid}"').replace(_SECRET, password)
        for name in ("dialect_a.xml", "dialect_b.xml")
    ]
    bare = dialects[0].replace('<?xml version="1.0" encoding="UTF-8"?>\n', "")
    return [
        *(text.encode() for text in dialects),
        bare.replace('set="full"', 'set="partial"').encode(),
        dialects[1].replace("complete", "partial").encode(),
        bare.replace('id="s-1"', 'dryrun="yes"').encode(),
        bare.replace('id="s-1"', 'outside="drop" ifabsent="yes"').encode(),
        bare.encode("utf-16"),
        bare.encode("utf-16-le"),
        bare.encode("utf-16-be"),
        bare.encode("latin-1"),
        dialects[0].replace("UTF-8", "windows-1252").encode("cp1252"),
        dialects[0].encode("utf-8-sig"),
        _as_lcccp_writes(pid, password, {"timeofday": "0-8"}),
        _as_lcccp_writes(pid, password, {"mtime": "1700000000", "md5": "0" * 32}),
        writing.init(Init(str(pid), password)),
    ]


def _as_lcccp_writes(pid: int, password: str, more: dict[str, str]) -> bytes:
    start = SetStart(full=False, urlprefix=ROOT, set_id="", drop_outside=True)
    lines = (
        writing.url({"curl": f"dir/{number}.html", "mimetype": "text/html", "len": str(number), **more})
        for number in range(300)
    )
    return (
        writing.init(Init(str(pid), password))
        + writing.set_start(start)
        + b"".join(lines)
        + writing.set_end()
    )


# --- what is done to them ------------------------------------------------------------------------

Mutation = Callable[[bytes, random.Random], bytes]

_WORDS = (
    b"<", b">", b"/>", b"</", b"&", b"&amp;", b"&#0;", b"&#x110000;", b"&lol;", b'"', b"'", b"=", b"\0", b"\xff\xfe",
    b"\xfe\xff", b"\xef\xbb\xbf", b"<!--", b"-->", b"<![CDATA[", b"]]>", b"<?xml", b"?>", b'<?xml version="1.0" encoding="utf-7"?>',
    b"<!DOCTYPE x>", b"xmlns=", b'xmlns:a="urn:x" ', b"</lococa:set>", b"</lococa:init>", b"<lococa:init>", b"<url/>", b"</stream>",
    b"\r\n", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"http://", b"%2e%2e/", b"full", b"partial", b"remove",
)  # fmt: skip
_ENCODINGS = (
    "utf-16",
    "utf-16-be",
    "utf-32",
    "latin-1",
    "utf-8-sig",
    "cp037",
    "utf-7",
    "shift_jis",
    "cp1252",
)
_DECLARED = (
    "UTF-16",
    "UTF-32",
    "ISO-8859-1",
    "windows-1252",
    "utf-7",
    "idna",
    "martian",
    "x" * 50,
    "EBCDIC-CP-US",
)
_VALUES = (
    b"http://user@www.example.org/", b"http://www.example.org/../", b"9" * 400, b"-1", b"mon-fri 20-06", b"1" * 168,
    b"99991231235959", b"+2024-02-30T25:61", b"Mon, 31 Feb 2002 99:00:00 -9999", b"text/" + b"x" * 300, b"", b" ",
    b"http://[::1]:99999/", b"\xc3\xa9" * 900, b"http://www.example.org/" + b"a" * 3000, b"Tue, 1 Jan 0000 00:00:00 GMT",
)  # fmt: skip


def _spot(data: bytes, chance: random.Random) -> int:
    return chance.randrange(len(data) + 1)


def _flip(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 3, 20)) if data else 0):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _delete(data: bytes, chance: random.Random) -> bytes:
    at = _spot(data, chance)
    return data[:at] + data[at + chance.choice((1, 2, 10, 200)) :]


def _insert(data: bytes, chance: random.Random) -> bytes:
    at = _spot(data, chance)
    return data[:at] + chance.randbytes(chance.choice((1, 2, 10, 200))) + data[at:]


def _insert_word(data: bytes, chance: random.Random) -> bytes:
    at = _spot(data, chance)
    return data[:at] + chance.choice(_WORDS) + data[at:]


def _repeat_block(data: bytes, chance: random.Random) -> bytes:
    start = _spot(data, chance)
    end = min(len(data), start + chance.choice((1, 20, 100, 500)))
    return data[:end] + data[start:end] * chance.choice((1, 2, 50)) + data[end:]


def _truncate(data: bytes, chance: random.Random) -> bytes:
    return data[: _spot(data, chance)]


def _declare(data: bytes, chance: random.Random) -> bytes:
    return f'<?xml version="1.0" encoding="{chance.choice(_DECLARED)}"?>'.encode() + data


def _recode(data: bytes, chance: random.Random) -> bytes:
    return data.decode("utf-8", "replace").encode(chance.choice(_ENCODINGS), "replace")


def _doctype(data: bytes, chance: random.Random) -> bytes:
    entities = b"".join(b'<!ENTITY l%d "%s">' % (n, b"&l%d;" % (n - 1) * 10) for n in range(1, 9))
    at = chance.choice((0, _spot(data, chance)))
    return (
        data[:at]
        + b'<!DOCTYPE x [<!ENTITY l0 "lol">'
        + entities
        + b"]>"
        + data[at:].replace(b"index", b"&l8;", 1)
    )


def _at_tag(data: bytes, chance: random.Random) -> int:
    ends = [at + 1 for at, byte in enumerate(data[:5000]) if byte == ord(">")]
    return chance.choice(ends) if ends else 0


def _nest(data: bytes, chance: random.Random) -> bytes:
    at, depth = _at_tag(data, chance), chance.choice((3, 20, 5000))
    return data[:at] + b"<x>" * depth + b"</x>" * depth + data[at:]


def _flood_attributes(data: bytes, chance: random.Random) -> bytes:
    count = chance.choice((5, 17, 200, 20_000))
    return data.replace(
        b"mimetype=", b" ".join(b'n%d=""' % number for number in range(count)) + b" mimetype=", 1
    )


def _flood_names(data: bytes, chance: random.Random) -> bytes:
    at = _at_tag(data, chance)
    return (
        data[:at]
        + b"".join(b"<n%d/>" % chance.getrandbits(40) for _ in range(chance.choice((10, 400))))
        + data[at:]
    )


def _long_name(data: bytes, chance: random.Random) -> bytes:
    at = _at_tag(data, chance)
    return data[:at] + b"<" + b"n" * chance.choice((300, 70_000, 400_000)) + b"/>" + data[at:]


def _long_value(data: bytes, chance: random.Random) -> bytes:
    return data.replace(
        b'="', b'="' + chance.choice((b"x", b">", b" ", b"&amp;")) * chance.choice((3000, 200_000)), 1
    )


def _hostile_value(data: bytes, chance: random.Random) -> bytes:
    parts = data.split(b'"')
    if len(parts) > 2:
        parts[chance.randrange(1, len(parts), 2)] = chance.choice(_VALUES)
    return b'"'.join(parts)


def _many_urls(data: bytes, chance: random.Random) -> bytes:
    url = b'<url c="%d.html" mimetype="text/html"/>'
    many = b"".join(url % number for number in range(chance.choice((100, 3000))))
    return data.replace(b"</lococa:set>", many + b"</lococa:set>", 1).replace(b"</set>", many + b"</set>", 1)


MUTATIONS: tuple[Mutation, ...] = (
    _flip, _flip, _delete, _insert, _insert_word, _insert_word, _repeat_block, _truncate, _declare, _recode, _doctype,
    _nest, _flood_attributes, _flood_names, _long_name, _long_value, _hostile_value, _hostile_value, _many_urls,
)  # fmt: skip


class End(StrEnum):
    """How a client leaves."""

    HALF_CLOSE = "half-close"
    """All is said; it reads to the end."""
    RESET = "reset"
    """It is gone at once, with a reset."""
    CLOSE = "close"
    """It closes without reading."""
    WAIT = "wait"
    """It says nothing more and leaves the end to the server."""


@dataclass(frozen=True)
class Stream:
    """One client: what it sends, in which pieces, and how it ends. Equal seeds and numbers give equal ones."""

    number: int
    data: bytes
    cuts: tuple[int, ...]
    end: End

    @property
    def pieces(self) -> Sequence[bytes]:
        edges = [0, *self.cuts, len(self.data)]
        return [self.data[start:end] for start, end in itertools.pairwise(edges)]

    @property
    def address(self) -> str:
        """A loopback address of its own, by which the server's log tells of it."""
        return f"127.{1 + (self.number >> 16)}.{self.number >> 8 & 255}.{1 + (self.number & 127)}"


def stream(seed: int, number: int, valid: Sequence[bytes]) -> Stream:
    """Make one stream: one in ten is as valid as it was, the others have been changed up to five times."""
    chance = random.Random(f"{seed} {number}")
    data = chance.choice(valid)
    for _ in range(chance.choice((0, 1, 1, 1, 1, 1, 2, 2, 3, 5))):
        if chance.random() < 0.05:
            other = chance.choice(valid)
            data = data[: _spot(data, chance)] + other[_spot(other, chance) :]
        else:
            data = chance.choice(MUTATIONS)(data, chance)
    cuts = tuple(sorted(_spot(data, chance) for _ in range(chance.choice((0, 0, 1, 5, 40)))))
    end = chance.choices(list(End), (80, 9, 9, 2))[0]
    return Stream(number, data, cuts, end)
