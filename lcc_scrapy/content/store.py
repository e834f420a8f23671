"""The seam of where contents lie: files of this machine (``files.py``), or where an app has them."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Protocol

from lcc_scrapy.content.files import ContentFiles, Stored
from lcc_scrapy.domain.cache import Body
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.runtime.apps import Apps, load

_KIND = "contents"


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

    def highest_id(self) -> int:
        """Return the highest file id of all machines' contents; 0 = there is none."""


class MakeContents(Protocol):
    """Makes the contents of a machine at a URL: ``App.factories["contents"]``, by the scheme of URLs."""

    def __call__(self, url: str, machineid: int) -> ContentStore:
        """Return them.

        Raises ``ConfigurationError`` for a wrong URL; its text holds nothing of it.
        """


def content_store(url: str, folder: Path, machineid: int, factory: str) -> ContentStore:
    """Return the contents of a machine: below ``folder``, or at ``url`` if it is set, by its ``factory_of``.

    Raises ``ConfigurationError`` for a URL that cannot be used.
    """
    if not url:
        return ContentFiles(folder, machineid)
    make: MakeContents = load(factory)
    return make(url, machineid)


def factory_of(url: str, apps: Apps) -> str:
    """Return the part of an app that makes the contents at a URL; an empty URL needs none.

    Raises ``ConfigurationError``, whose text holds nothing of the URL: there may be a password in it.
    """
    if not url:
        return ""
    known, scheme = apps.factories(_KIND), scheme_of(url)
    if scheme in known:
        return known[scheme]
    missing = apps.without_factory(_KIND, scheme)
    if missing is not None:
        raise ConfigurationError(f"LCC_CONTENT_URL: {scheme}:// is of the app {missing}")
    if not known:
        raise ConfigurationError("LCC_CONTENT_URL: there is no app that has contents at URLs")
    raise ConfigurationError(f"LCC_CONTENT_URL: expected {' or '.join(f'{one}://…' for one in known)}")


def scheme_of(url: str) -> str:
    """Return what says whose contents are at a URL."""
    return url.partition("://")[0].lower()
