"""The seam of where contents lie: files of this machine (``files.py``) or objects of S3 (``objects.py``)."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Protocol

from lcc_scrapy.content.files import ContentFiles, Stored, highest_fileid
from lcc_scrapy.domain.cache import Body


class ContentStore(Protocol):
    """The contents of one machine, by file id. Everything here blocks."""

    @property
    def machineid(self) -> int:
        """The number of the machine."""

    def keep(self, bodies: Sequence[tuple[int, Body]]) -> None:
        """Make bodies durable under their ids: all, or none with ``NotDurable`` or ``DiskFailed``."""

    def open(self, fileid: int, machineid: int | None = None) -> IO[bytes]:
        """Open a content as it is stored; raises ``FileNotFoundError`` or another ``OSError``."""

    def address(self, fileid: int, machineid: int, size: int, seconds: int) -> str | None:
        """Return a URL at which anybody may read a content of that size for so many seconds; None = nowhere.

        Raises as ``open`` does.
        """

    def stat(self, fileid: int) -> Stored:
        """Tell size and time of a content; raises as ``open`` does."""

    def name_of(self, fileid: int) -> str:
        """Return how operators call a content: its path or URL."""

    def remove(self, fileids: Iterable[int]) -> list[int]:
        """Delete contents and return which are gone; others stay for later."""

    def files_from(self, first: int) -> list[int]:
        """Return the ids that lie in the folder of ``first``, from that one on, in order."""

    def sync_removals(self, fileid: int) -> None:
        """Let what was removed from the folder of a file stay away after a power cut."""

    def all_files(self) -> Iterator[tuple[int, int]]:
        """Yield (file id, size) of every content."""


def content_store(url: str, folder: Path, machineid: int) -> ContentStore:
    """Return the contents of a machine: at ``url`` (``s3://…``), or below ``folder`` where it is empty.

    Raises ``ConfigurationError`` for a URL that cannot be used.
    """
    if not url:
        return ContentFiles(folder, machineid)
    from lcc_scrapy.content.objects import ContentObjects  # noqa: PLC0415 - most LCCs have files

    return ContentObjects(url, machineid)


def highest_id(url: str, folder: Path) -> int:
    """Return the highest file id of all machines' contents; 0 = there is none."""
    if not url:
        return highest_fileid(folder)
    from lcc_scrapy.content.objects import highest_object  # noqa: PLC0415 - most LCCs have files

    return highest_object(url)
