"""Formats of changes: JSON lines, CSV, XML, or plain columns separated by tabs.

Every format has the same columns; what a removal does not have is empty (null in JSON).
"""

import csv
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import GenericAlias, UnionType
from xml.sax.saxutils import quoteattr

from lcc_scrapy.domain.cache import CachedUrl, Tombstone
from lcc_scrapy.domain.directives import NO_OWNERS, Owners
from lcc_scrapy.domain.selection import Change, Leave
from lcc_scrapy.domain.versions import Version

TYPES: Mapping[str, type | UnionType | GenericAlias] = {
    "op": str,
    "docid": str,
    "seq": int,
    "pid": int,
    "curl": str,
    "furl": str,
    "burl": str | None,
    "mimetype": str,
    "subtype": str | None,
    "fetched_time": int | None,
    "fetched_machineid": int | None,
    "fetched_fileid": int | None,
    "path": str | None,
    "len": int | None,
    "md5": str | None,
    "sha256": str | None,
    "mtime": int | None,
    "served_type": str | None,
    "served_charset": str | None,
    "removed_time": int | None,
    "reason": str | None,
    "file_encoding": str | None,
    "owners": list[str],
    "owners_seq": int | None,
}
"""The columns of a change; what may be empty is so where it does not apply."""
COLUMNS = tuple(TYPES)

VERSION_TYPES: Mapping[str, type | UnionType] = {
    "seq": int,
    "fetched_time": int,
    "replaced_time": int,
    "fetched_machineid": int,
    "fetched_fileid": int,
    "path": str,
    "len": int,
    "md5": str,
    "sha256": str,
    "served_type": str | None,
    "served_charset": str | None,
    "file_encoding": str | None,
}
"""The columns of an earlier content."""

Facts = dict[str, str | int | None]
Record = dict[str, str | int | list[str] | None]
PathOf = Callable[[int, int], str]
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def record(row: Change, path_of: PathOf, owners: Owners = NO_OWNERS) -> Record:
    """Return the columns of a change; ``path_of`` gives the path of (machine, file)."""
    told = _document(row, path_of) if isinstance(row, CachedUrl) else _departure(row)
    return {**told, "owners": list(owners.get(row.urlkey, ()))}


def records(rows: Iterable[Change], path_of: PathOf, owners: Owners) -> Iterator[Record]:
    """Yield the columns of changes."""
    return (record(row, path_of, owners) for row in rows)


def _departure(row: Tombstone | Leave) -> Facts:
    given: Facts = {
        "op": row.op,
        "docid": row.docid,
        "seq": row.seq,
        "pid": row.pid,
        "curl": row.curl,
        "furl": row.furl,
        "mimetype": row.mimetype,
        "removed_time": row.removed_time if isinstance(row, Tombstone) else None,
        "reason": row.reason if isinstance(row, Tombstone) else "no longer selected",
    }
    return {name: given.get(name) for name in COLUMNS}


def _document(row: CachedUrl, path_of: PathOf) -> Facts:
    """Return all ``COLUMNS`` in their order, without owners."""
    return {
        "op": row.op,
        "docid": row.docid,
        "seq": row.seq,
        "pid": row.pid,
        "curl": row.curl,
        "furl": row.furl,
        "burl": row.burl,
        "mimetype": row.mimetype,
        "subtype": row.subtype or None,
        "fetched_time": row.fetched_time,
        "fetched_machineid": row.fetched_machineid,
        "fetched_fileid": row.fetched_fileid,
        "path": path_of(row.fetched_machineid, row.fetched_fileid),
        "len": row.fetched_len,
        "md5": row.fetched_md5,
        "sha256": row.sha256,
        "mtime": row.mtime,
        "served_type": row.served_type or None,
        "served_charset": row.served_charset or None,
        "removed_time": None,
        "reason": None,
        "file_encoding": row.file_encoding or None,
        "owners": None,
        "owners_seq": row.owners_seq or None,
    }


def version_record(version: Version, path_of: PathOf) -> Facts:
    """Return the columns of an earlier content of a document."""
    return {
        "seq": version.seq,
        "fetched_time": version.fetched_time,
        "replaced_time": version.replaced_time,
        "fetched_machineid": version.fetched_machineid,
        "fetched_fileid": version.fetched_fileid,
        "path": path_of(version.fetched_machineid, version.fetched_fileid),
        "len": version.fetched_len,
        "md5": version.fetched_md5,
        "sha256": version.sha256,
        "served_type": version.served_type or None,
        "served_charset": version.served_charset or None,
        "file_encoding": version.file_encoding or None,
    }


def plain(value: object) -> object:
    """Return a value where there are no lists: names, separated by blanks."""
    return " ".join(value) if isinstance(value, list) else value


def for_xml(text: str) -> str:
    """Return text with U+FFFD for what XML cannot hold; it is still to be escaped."""
    return _NOT_XML.sub("\ufffd", text)


class Format(ABC):
    """Turns records with some columns into text, in pieces."""

    def __init__(self, columns: Sequence[str] = ()) -> None:
        self._columns = columns

    def begin(self) -> str:
        """Return what stands before the first record."""
        return ""

    @abstractmethod
    def records(self, records: Iterable[Mapping[str, object]]) -> str:
        """Return the text of some records."""

    def end(self) -> str:
        """Return what stands behind the last record."""
        return ""


_as_json = json.JSONEncoder(ensure_ascii=False).encode


class JsonLines(Format):
    """One JSON object per line."""

    def records(self, records: Iterable[Mapping[str, object]]) -> str:
        """Return lines."""
        return "".join(_as_json(one) + "\n" for one in records)


_RUN = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet takes for a formula."""


_CRLF = "\r\n"
"""What the writer ends lines with, so that it quotes texts with either: CR alone ends a line too."""


class _Lines(list[str]):
    def write(self, line: str) -> None:
        self.append(line)


class Csv(Format):
    """Comma-separated values (RFC 4180, lines end in LF) with a line of names.

    A text that a spreadsheet would run gets an apostrophe before it; numbers stay as they are.
    """

    def begin(self) -> str:
        """Return the names."""
        return ",".join(self._columns) + "\n"

    def records(self, records: Iterable[Mapping[str, object]]) -> str:
        """Return lines."""
        lines = _Lines()
        csv.writer(lines, lineterminator=_CRLF).writerows(
            [self._cell(one[name]) for name in self._columns] for one in records
        )
        return "".join(line.removesuffix(_CRLF) + "\n" for line in lines)

    def _cell(self, value: object) -> object:
        value = plain(value)
        return f"'{value}" if isinstance(value, str) and value.startswith(_RUN) else value


class RawCsv(Csv):
    """The same with every text as it is, for programs."""

    def _cell(self, value: object) -> object:
        return plain(value)


class Xml(Format):
    """One ``<url>`` element per change in ``<changes>``; characters that XML cannot hold become U+FFFD."""

    def begin(self) -> str:
        """Open the document."""
        return '<?xml version="1.0" encoding="UTF-8"?>\n<changes>\n'

    def records(self, records: Iterable[Mapping[str, object]]) -> str:
        """Return elements."""
        return "".join(f"  <url {self._attributes(one)}/>\n" for one in records)

    def end(self) -> str:
        """Close the document."""
        return "</changes>\n"

    def _attributes(self, one: Mapping[str, object]) -> str:
        given = ((name, str(plain(value))) for name, value in one.items() if value not in (None, []))
        return " ".join(f"{name}={quoteattr(for_xml(value))}" for name, value in given)


FORMATS: dict[str, Callable[[Sequence[str]], Format]] = {"jsonl": JsonLines, "csv": Csv, "xml": Xml}
"""What makes a format for records with these columns."""
