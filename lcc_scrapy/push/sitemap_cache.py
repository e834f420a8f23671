"""The sitemaps of the last run, one file each: a line of JSON for each entry and a last one with its ETag."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from lcc_scrapy.push.command import Status, Stop
from lcc_scrapy.push.sitemap import Entry, SitemapReader

_VALIDATOR_MAX = 1024
_FOOTER_MAX = 64 * 1024


@dataclass(frozen=True)
class Footer:
    """The last line of a file: written when the sitemap was whole."""

    place: str
    count: int
    is_index: bool
    dropped: int = 0
    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True)
class Kept:
    """A sitemap that was read."""

    path: Path
    footer: Footer

    @property
    def is_index(self) -> bool:
        """Tell whether its entries are sitemaps."""
        return self.footer.is_index

    @property
    def dropped(self) -> int:
        """How many entries had no usable URL."""
        return self.footer.dropped

    @property
    def conditions(self) -> dict[str, str]:
        """Return the headers that ask for it only if it changed."""
        asked = {"If-None-Match": self.footer.etag, "If-Modified-Since": self.footer.last_modified}
        return {name: value for name, value in asked.items() if value}

    def entries(self) -> Iterator[Entry]:
        """Yield what it names."""
        with self.path.open("rb") as file:
            for _ in range(self.footer.count):
                yield Entry(*json.loads(file.readline()))


class Cache:
    """A folder of such files; one that is not whole counts as none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, place: str) -> Kept | None:
        """Return what is kept of a sitemap, if it can be asked for conditionally."""
        path = self._path(place)
        with suppress(OSError, ValueError, TypeError):
            kept = Kept(path, _footer_of(path))
            if kept.footer.place == place and kept.conditions:
                return kept
        return None

    @contextmanager
    def writing(self, place: str) -> Iterator[Writer]:
        """Give what writes a sitemap; without `Writer.done` all stays as it was. Raises `Stop` (65)."""
        target = self._path(place)
        temporary = target.with_name(f"{target.name}.tmp")
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            file = temporary.open("wb")
        except OSError as error:
            raise Stop(Status.BAD_INPUT, f"{temporary} cannot be written: {error.strerror}") from None
        with file:
            yield Writer(file, target, place)
        with suppress(FileNotFoundError):
            temporary.unlink()

    def forget_others(self, places: Collection[str]) -> None:
        """Remove what is kept of sitemaps that are named no more."""
        wanted = {self._path(place).name for place in places}
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if path.name not in wanted:
                path.unlink()

    def _path(self, place: str) -> Path:
        return self._folder / sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:32]


class Writer:
    """Writes one sitemap."""

    def __init__(self, file: BinaryIO, target: Path, place: str) -> None:
        self._file = file
        self._target = target
        self._place = place
        self._count = 0

    def add(self, entries: Collection[Entry]) -> None:
        """Write some entries."""
        for entry in entries:
            self._file.write(json.dumps([entry.loc, entry.modified]).encode() + b"\n")
        self._count += len(entries)

    def done(self, reader: SitemapReader, headers: Mapping[str, str] | None = None) -> Kept:
        """Make it the one that is kept."""
        validators = {
            name: value if len(value) <= _VALIDATOR_MAX and value.isascii() and value.isprintable() else ""
            for name, value in (
                ("etag", (headers or {}).get("etag", "")),
                ("last_modified", (headers or {}).get("last-modified", "")),
            )
        }
        footer = Footer(self._place, self._count, reader.is_index, reader.dropped, **validators)
        self._file.write(json.dumps(asdict(footer)).encode() + b"\n")
        self._file.flush()
        Path(self._file.name).replace(self._target)
        return Kept(self._target, footer)


def _footer_of(path: Path) -> Footer:
    """Read the last line of a file; raises OSError, ValueError, TypeError."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _FOOTER_MAX))
        return Footer(**json.loads(file.read().rstrip(b"\n").rpartition(b"\n")[2]))
