"""Documents in a tar.gz or zip: a file each, and the manifest as the last one."""

import shutil
import tarfile
import zipfile
from datetime import UTC, datetime
from typing import IO

from lcc_scrapy.apps.exports.gzipping import Gzip
from lcc_scrapy.apps.exports.interface import LEVEL, Archive, Item
from lcc_scrapy.feed.row_formats import Record

_MANIFEST = "manifest.jsonl"
_BLOCK = 256 * 1024
_ZIP_EPOCH = 315_532_800
_MODE = 0o644


class TarGz(Archive):
    """A tar archive (pax), compressed as it is written."""

    def __init__(self, out: IO[bytes]) -> None:
        self._gzip = Gzip(out)
        self._size = 0

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Add a file whose time is that of the fetch."""
        self._add(item.name, item.row.fetched_len, item.row.fetched_time, content)

    def end(self, manifest: IO[bytes], size: int, last: Record) -> None:
        """Add the manifest."""
        del last
        self._add(_MANIFEST, size, 0, manifest)

    def close(self) -> None:
        """Write the end of the archive: two empty blocks, in a whole record."""
        end = 2 * tarfile.BLOCKSIZE
        self._write(bytes(end + -(self._size + end) % tarfile.RECORDSIZE))
        self._gzip.end_member()

    def _add(self, name: str, size: int, at: int, content: IO[bytes]) -> None:
        self._write(_head(name, size, at))
        while block := content.read(_BLOCK):
            self._write(block)
        self._write(bytes(-size % tarfile.BLOCKSIZE))

    def _write(self, data: bytes) -> None:
        self._size += self._gzip.write(data)


def _member(name: str, size: int, at: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = size, at, _MODE
    return member.tobuf(tarfile.PAX_FORMAT)


_CHECKSUM = slice(148, 156)
_BLANK = bytearray(_member("", 0, 0))
_BLANK[_CHECKSUM] = b" " * 8  # as which it counts in the sum
_OCTAL_MAX = 8**11 - 1


def _head(name: str, size: int, at: int) -> bytes:
    """Return what stands before a file: filled into a blank form, which takes a tenth of the time."""
    if not (name.isascii() and len(name) <= tarfile.LENGTH_NAME and 0 <= at <= _OCTAL_MAX >= size):
        return _member(name, size, at)
    head = _BLANK.copy()
    head[: len(name)] = name.encode()
    head[124:135] = b"%011o" % size
    head[136:147] = b"%011o" % at
    head[_CHECKSUM] = b"%06o\0 " % sum(head)
    return bytes(head)


class Zip(Archive):
    """A zip archive; its directory, some hundred bytes per document, is in memory until the end."""

    def __init__(self, out: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL)

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Add a file whose time is that of the fetch (UTC)."""
        self.add(item.name, item.row.fetched_time, content)

    def end(self, manifest: IO[bytes], size: int, last: Record) -> None:
        """Add the manifest."""
        del size, last
        self.add(_MANIFEST, 0, manifest)

    def close(self) -> None:
        """Write the directory."""
        self._zip.close()

    def add(self, name: str, at: int, content: IO[bytes]) -> None:
        """Add a file with its time (epoch seconds); there is none before 1980."""
        moment = datetime.fromtimestamp(max(at, _ZIP_EPOCH), UTC)
        member = zipfile.ZipInfo(name, moment.timetuple()[:6])
        member.compress_type = zipfile.ZIP_DEFLATED
        member.external_attr = _MODE << 16
        with self._zip.open(member, "w", force_zip64=True) as out:
            shutil.copyfileobj(content, out, _BLOCK)
