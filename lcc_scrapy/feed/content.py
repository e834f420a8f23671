"""The content of documents: decoded streams of bytes out of content files.

The errors:

- ``ContentGone``: the document was replaced or removed since its row was read. Read on: the feed tells.
- ``ContentElsewhere``: the file lies on another machine, and nothing here can fetch it from there.
- ``ContentLost``: the row is right, and its file is not there; an operator has to look after that.
"""

from collections.abc import Callable
from pathlib import Path
from typing import IO, Protocol

from lcc_scrapy.content.files import ContentAway, relative_name
from lcc_scrapy.content.store import ContentStore
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.errors import LccError, StorageAway
from lcc_scrapy.domain.versions import Version

_BUFFER = 64 * 1024


class ContentGone(LccError):
    """The document was replaced or removed meanwhile; a newer row, or its removal, comes.

    Or an earlier content of it is not kept any longer.
    """


class ContentElsewhere(LccError):
    """The content file lies on another machine."""


class ContentLost(LccError):
    """A content file that should be there is not."""


class Content(Protocol):
    """Where content comes from."""

    def open(self, row: CachedUrl | Version) -> IO[bytes]:
        """Return the content as it is stored; raises ``FileNotFoundError`` or ``ContentElsewhere``."""


class StoredContent:
    """Contents of all machines in one object storage."""

    def __init__(self, contents: ContentStore) -> None:
        self._contents = contents

    def open(self, row: CachedUrl | Version) -> IO[bytes]:
        """Return the content as it is stored; raises ``FileNotFoundError`` or ``StorageAway``."""
        try:
            return self._contents.open(row.fetched_fileid, row.fetched_machineid)
        except ContentAway as error:
            raise _away(row, error) from None

    def address(self, row: CachedUrl | Version, seconds: int) -> str | None:
        """Return a URL at which anybody may read a content as it was served, for so many seconds.

        None = it has to be opened: it is compressed there, or not there as its row says. Raises
        ``StorageAway``.
        """
        if row.file_encoding:
            return None
        try:
            return self._contents.address(row.fetched_fileid, row.fetched_machineid, row.fetched_len, seconds)
        except FileNotFoundError:
            return None
        except ContentAway as error:
            raise _away(row, error) from None


def _away(row: CachedUrl | Version, error: ContentAway) -> StorageAway:
    return StorageAway(f"the content of document {row.docid}: {error.strerror}")


def _no_machine(_number: int) -> bool:
    return False


class LocalContent:
    """Content files below a folder of this machine; those of other machines come from ``others``.

    ``is_ours`` tells whether the files of a machine can be nowhere else.
    """

    def __init__(
        self, folder: Path, others: Content | None = None, is_ours: Callable[[int], bool] = _no_machine
    ) -> None:
        self._folder = folder
        self._others = others
        self._is_ours = is_ours

    def open(self, row: CachedUrl | Version) -> IO[bytes]:
        """Return the content as it is stored; raises ``FileNotFoundError`` or ``ContentElsewhere``."""
        try:
            name = relative_name(row.fetched_machineid, row.fetched_fileid)
            return open(f"{self._folder}/{name}", "rb", _BUFFER)  # noqa: PTH123 - a Path takes as long again
        except FileNotFoundError:
            machine = row.fetched_machineid
            if (self._folder / str(machine)).is_dir() or self._is_ours(machine):
                raise
        if self._others is None:
            raise ContentElsewhere(
                f"the content of document {row.docid} lies on machine {row.fetched_machineid}, not below"
                f" {self._folder}: read it there, or mount that machine's content folder"
            )
        return self._others.open(row)
