"""Documents in a tar.gz or zip: a file each, and the manifest as the last one."""

import gzip
import shutil
import tarfile
import zipfile
from datetime import UTC, datetime
from typing import IO

from lcc_scrapy.users.exports.interface import LEVEL, Archive, Item
from lcc_scrapy.users.exports.names import MANIFEST
from lcc_scrapy.users.formats import Record

_BLOCK = 256 * 1024
_ZIP_EPOCH = 315_532_800
_MODE = 0o644


class TarGz(Archive):
    """A tar archive (pax), compressed as it is written."""

    def __init__(self, out: IO[bytes]) -> None:
        self._gzip = gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=out, mtime=0)
        self._tar = tarfile.open(mode="w|", fileobj=self._gzip, bufsize=_BLOCK)  # noqa: SIM115 - see close

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Add a file whose time is that of the fetch."""
        self._add(item.name, item.row.fetched_len, item.row.fetched_time, content)

    def end(self, manifest: IO[bytes], size: int, last: Record) -> None:
        """Add the manifest."""
        del last
        self._add(MANIFEST, size, 0, manifest)

    def close(self) -> None:
        """Write the end of the archive."""
        self._tar.close()
        self._gzip.close()

    def _add(self, name: str, size: int, at: int, content: IO[bytes]) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mtime, member.mode = size, at, _MODE
        self._tar.addfile(member, content)


class Zip(Archive):
    """A zip archive; its directory, some hundred bytes per document, is in memory until the end."""

    def __init__(self, out: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL)

    def document(self, item: Item, content: IO[bytes]) -> None:
        """Add a file whose time is that of the fetch (UTC)."""
        self._add(item.name, item.row.fetched_time, content)

    def end(self, manifest: IO[bytes], size: int, last: Record) -> None:
        """Add the manifest."""
        del size, last
        self._add(MANIFEST, _ZIP_EPOCH, manifest)

    def close(self) -> None:
        """Write the directory."""
        self._zip.close()

    def _add(self, name: str, at: int, content: IO[bytes]) -> None:
        moment = datetime.fromtimestamp(max(at, _ZIP_EPOCH), UTC)
        member = zipfile.ZipInfo(name, moment.timetuple()[:6])
        member.compress_type = zipfile.ZIP_DEFLATED
        member.external_attr = _MODE << 16
        with self._zip.open(member, "w", force_zip64=True) as out:
            shutil.copyfileobj(content, out, _BLOCK)
