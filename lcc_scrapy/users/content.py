"""The content of documents: decoded streams of bytes out of content files.

The errors:

- ``ContentGone``: the document was replaced or removed since its row was read. Read on: the feed tells.
- ``ContentElsewhere``: the file lies on another machine, and nothing here can fetch it from there.
- ``ContentLost``: the row is right, and its file is not there; an operator has to look after that.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from lcc_scrapy.content.decoding import Decoder, decoder
from lcc_scrapy.content.files import relative_path
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.errors import LccError

_BLOCK = 256 * 1024


class ContentGone(LccError):
    """The document was replaced or removed meanwhile; a newer row, or its removal, comes."""


class ContentElsewhere(LccError):
    """The content file lies on another machine."""


class ContentLost(LccError):
    """A content file that should be there is not."""


class Content(Protocol):
    """Where content comes from."""

    def open(self, row: CachedUrl) -> IO[bytes]:
        """Return the content as it is stored; raises ``FileNotFoundError`` or ``ContentElsewhere``."""


class LocalContent:
    """Content files below a folder of this machine; those of other machines come from ``others``."""

    def __init__(self, folder: Path, others: Content | None = None) -> None:
        self._folder = folder
        self._others = others

    def open(self, row: CachedUrl) -> IO[bytes]:
        """Return the content as it is stored; raises ``FileNotFoundError`` or ``ContentElsewhere``."""
        try:
            return (self._folder / relative_path(row.fetched_machineid, row.fetched_fileid)).open("rb")
        except FileNotFoundError:
            if (self._folder / str(row.fetched_machineid)).is_dir():
                raise
        if self._others is None:
            raise ContentElsewhere(
                f"the content of document {row.docid} lies on machine {row.fetched_machineid}, not below"
                f" {self._folder}: read it there, or mount that machine's content folder"
            )
        return self._others.open(row)


def decoded(file: IO[bytes], row: CachedUrl) -> IO[bytes]:
    """Return the content of a document as its site served it, out of a file that may be compressed."""
    if not row.file_encoding:
        return file
    return io.BufferedReader(_Decoded(file, decoder(row.file_encoding)))


class _Decoded(io.RawIOBase):
    """Decodes while it is read, in pieces of bounded size."""

    def __init__(self, file: IO[bytes], coding: Decoder) -> None:
        self._file = file
        self._pieces = self._decode(coding)
        self._rest = memoryview(b"")

    def _decode(self, coding: Decoder) -> Iterator[bytes]:
        while block := self._file.read(_BLOCK):
            yield from coding.feed(block)
        coding.end()

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or a part of it; 0 = the end."""
        target = memoryview(buffer).cast("B")
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        taken = self._rest[: len(target)]
        target[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)

    def close(self) -> None:
        """Close the file too."""
        self._file.close()
        super().close()
