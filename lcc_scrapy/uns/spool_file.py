"""The format of a spool file: one set of one provider, whole or worthless (seed 003 section 5, "unsdb").

Lines of UTF-8 JSON, one value a line:

- a header object: ``format``, ``pid``, ``seq`` (of the login), ``received`` (epoch seconds), ``set_id``,
  ``full``, ``ifabsent``, ``drop_outside``, ``peer``;
- one array per record: operation (``u`` update, ``r`` remove, ``p`` present), curl, mimetype, furl, burl
  (null = not browsable), subtype, mtime, len, md5, timeofday, form of what was sent (``domain.sent``; not
  where nobody sent it, and in earlier versions); a removal ends after the mimetype;
- a footer object: ``updates``, ``removals``, ``present``, ``unreadable``, ``bytes`` before it, ``content``
  (SHA-256 of the records, equal for equal sets), ``sha256`` over all these bytes and values, ``end`` =
  "lcc-spool". Nothing follows it.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from hashlib import sha256
from io import BytesIO
from itertools import repeat
from pathlib import Path
from typing import Any, BinaryIO, Self

from lcc_scrapy.domain.entries import Declared, Operation, UrlEntry
from lcc_scrapy.domain.errors import LccError
from lcc_scrapy.domain.runs import EntryRun

FORMAT = 1
END_MARK = "lcc-spool"
_BLOCK = 1 << 20
_SMALL = 1 << 16
"""Bytes up to which a file is read at once: most sets are that small, and header and footer lie far apart."""
_FOOTER_MAX = 1024
_LONG = 512
"""Bytes of a record; of longer ones, fewer are read at a time than were asked for."""
_OPERATIONS = {Operation.UPDATE: "u", Operation.REMOVE: "r", Operation.PRESENT: "p"}
_LETTERS = {letter: operation for operation, letter in _OPERATIONS.items()}
_LENGTHS = {3, 10, 11}
UPDATE = _OPERATIONS[Operation.UPDATE]
REMOVE = _OPERATIONS[Operation.REMOVE]

Record = Sequence[Any]
"""The values of one line, as they stand there."""

_NOT_WHAT_WAS_WRITTEN = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What reading a line of any other JSON, or of none, ends in."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


class DamagedSpoolFile(LccError):
    """A spool file without end mark, with a wrong digest, or of another format; nothing of it counts."""


@dataclass(frozen=True, slots=True)
class SpoolHeader:
    """What holds for the whole set. ``received`` in epoch seconds; an empty ``set_id`` = none given."""

    pid: int
    seq: int
    received: int
    peer: str = ""
    set_id: str = ""
    full: bool = False
    ifabsent: bool = False
    drop_outside: bool = False
    charged: bool = False
    """A full set that counts against what its provider may send."""


@dataclass(frozen=True, slots=True)
class SpoolFooter:
    """Counts of the records, and what proves that the file is whole."""

    updates: int
    removals: int
    present: int
    unreadable: int
    bytes: int
    content: str
    """64 hex digits, equal for equal sets, whatever their sender and time."""
    sha256: str = ""

    @property
    def records(self) -> int:
        """Number of record lines."""
        return self.updates + self.removals + self.present


def sealed(footer: SpoolFooter, digest: "hashlib._Hash") -> SpoolFooter:
    """Complete a footer, given the digest of all lines before it."""
    whole = digest.copy()
    whole.update(_encode(astuple(footer)[:-1]).encode("utf-8", "surrogatepass"))
    return replace(footer, sha256=whole.hexdigest())


def content_kind(header: SpoolHeader) -> bytes:
    """Return what the digest of a set's content begins with."""
    return b"full\n" if header.full else b"partial\n"


def header_line(header: SpoolHeader) -> bytes:
    """Write the first line."""
    return (_encode({"format": FORMAT, **asdict(header)}) + "\n").encode()


def footer_line(footer: SpoolFooter) -> bytes:
    """Write the last line."""
    return (_encode({**asdict(footer), "end": END_MARK}) + "\n").encode()


def record_line(entry: UrlEntry) -> str:
    """Write one record."""
    letter = _OPERATIONS[entry.operation]
    if entry.operation is Operation.REMOVE:
        return _encode((letter, entry.curl, entry.mimetype)) + "\n"
    told = entry.declared
    values = (letter, entry.curl, entry.mimetype, entry.furl, entry.burl, entry.subtype)
    form = () if entry.sent is None else (entry.sent,)
    return _encode((*values, told.mtime, told.length, told.md5, entry.timeofday, *form)) + "\n"


def record_lines(run: EntryRun) -> str:
    """Write the records of a run, in which there is nothing to escape."""
    if run.operation is Operation.REMOVE:
        pairs = zip(run.curls, run.mimetypes, strict=True)
        return "".join([f'["r","{curl}","{kind}"]\n' for curl, kind in pairs])
    md5s = None if run.md5s is None else [f'"{md5}"' for md5 in run.md5s]
    form = _encode(run.sent)
    told = (repeat("null") if column is None else column for column in (run.mtimes, run.lengths, md5s))
    return "".join(
        [
            f'["u","{curl}","{kind}","{furl}","{burl}","",{mtime},{length},{md5},"",{form}]\n'
            for curl, kind, furl, burl, mtime, length, md5 in zip(
                run.curls, run.mimetypes, run.furls, run.burls, *told, strict=False
            )
        ]
    )


def entry_of(record: Record) -> UrlEntry:
    """Return what a record says."""
    letter, curl, mimetype, *more = record
    operation = _LETTERS[letter]
    if not more:
        return UrlEntry(curl, mimetype, operation)
    furl, burl, subtype, mtime, length, md5, timeofday, *sent = more
    told = Declared(mtime, length, md5)
    return UrlEntry(curl, mimetype, operation, furl, burl, subtype, told, timeofday, *sent)


def _opened(path: Path) -> BinaryIO:
    file = path.open("rb")
    begin = file.read(_SMALL)
    if len(begin) == _SMALL:
        file.seek(0)
        return file
    file.close()
    return BytesIO(begin)


def _is_sound(record: object) -> bool:
    return type(record) is list and len(record) in _LENGTHS and record[0] in _LETTERS


class SpoolReader:
    """Reads a spool file in bounded memory; a context manager. All methods raise ``DamagedSpoolFile``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _opened(path)
        try:
            self.header = self._read_header()
            self.footer = self._read_footer()
        except DamagedSpoolFile:
            self._file.close()
            raise
        except _NOT_WHAT_WAS_WRITTEN as error:
            self._file.close()
            raise DamagedSpoolFile(f"{path.name}: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; reading is over."""
        self._file.close()

    @property
    def end(self) -> int:
        """The offset behind the last record."""
        return self.footer.bytes

    def verify(self) -> None:
        """Read the whole file once; raises ``DamagedSpoolFile`` unless it is what the footer says."""
        digest = sha256()
        self._file.seek(0)
        left = self.footer.bytes
        while left and (block := self._file.read(min(left, _BLOCK))):
            digest.update(block)
            left -= len(block)
        if sealed(self.footer, digest) != self.footer:
            raise DamagedSpoolFile(f"{self.path.name}: the digest does not match")

    def entries(self, offset: int = 0) -> Iterator[tuple[UrlEntry, int]]:
        """Give each entry with the offset at which reading goes on after it; 0 = from the first one."""
        offset = max(offset, self._first)
        self._file.seek(offset)
        while offset < self.footer.bytes:
            line = self._file.readline()
            offset += len(line)
            try:
                entry = entry_of(json.loads(line))
            except _NOT_WHAT_WAS_WRITTEN:
                raise DamagedSpoolFile(f"{self.path.name}: bad record before byte {offset}") from None
            yield entry, offset

    def records(self, offset: int, limit: int) -> tuple[list[Record], int]:
        """Return the next records, ``limit`` at most, and the offset behind them; at ``end`` there are none.

        Of long ones there are fewer. They are read all at once, which takes half as long as one by one.
        """
        offset = max(offset, self._first)
        self._file.seek(offset)
        lines = self._file.readlines(limit * _LONG)[:limit]
        upto = offset + sum(map(len, lines))
        if upto > self.footer.bytes:
            upto -= len(lines.pop())
        try:
            records = json.loads(b"[" + b",".join(lines) + b"]")
            sound = len(records) == len(lines) and all(map(_is_sound, records))
        except _NOT_WHAT_WAS_WRITTEN:
            sound = False
        if not sound:
            raise DamagedSpoolFile(f"{self.path.name}: bad record before byte {upto}")
        return records, upto

    def _read_header(self) -> SpoolHeader:
        line = self._file.readline(_BLOCK)
        self._first = len(line)
        values = json.loads(line)
        if values.pop("format") != FORMAT:
            raise DamagedSpoolFile(f"{self.path.name}: format unknown to this version")
        return SpoolHeader(**values)

    def _read_footer(self) -> SpoolFooter:
        size = self._file.seek(0, 2)
        self._file.seek(max(0, size - _FOOTER_MAX))
        tail = self._file.read()
        line = tail[tail.rstrip(b"\n").rfind(b"\n") + 1 :]
        values = json.loads(line) if line.endswith(b"}\n") else {}
        if not isinstance(values, dict) or values.pop("end", "") != END_MARK:
            raise DamagedSpoolFile(f"{self.path.name}: no end mark")
        footer = SpoolFooter(**values)
        if type(footer.bytes) is not int or footer.bytes != size - len(line):
            raise DamagedSpoolFile(f"{self.path.name}: {size} bytes, not what the end mark says")
        return footer
