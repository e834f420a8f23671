"""The data directory: made once by ``lcc init``, never by accident.

``lcc.json`` holds the id and the format version; ``workers/N.lock`` are held by running crawl processes,
so that a restarted one knows which leases are its own and which owners are dead.
"""

import fcntl
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.machine.disk import make_folders, sync, sync_folder

FORMAT = 1
_MARKER = "lcc.json"
_DRAFT = "lcc.json.new"
_MAX_WORKERS = 256


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """An existing data directory. ``lcc_id`` tells one LCC from another."""

    folder: Path
    lcc_id: str

    @classmethod
    def prepare(cls, folder: Path, lcc_id: str = "") -> "DataDirectory":
        """Begin to make a data directory; ``complete`` ends it. One whose making was interrupted goes on.

        ``lcc_id`` is that of an LCC which exists already; without it a new one is made up. Refuses a folder
        that is complete.
        """
        if (folder / _MARKER).exists():
            raise ConfigurationError(
                f"{folder} is a data directory already; `lcc db restore FILE` brings a lost database back"
            )
        try:
            make_folders(folder)
            draft = _read_draft(folder) or str(uuid.uuid4())
            write_durably(folder / _DRAFT, {"format": FORMAT, "lcc": lcc_id or draft})
        except OSError as error:
            raise ConfigurationError(f"cannot make the data directory {folder}: {error.strerror}") from error
        return cls(folder, lcc_id or draft)

    def complete(self) -> None:
        """Make the folder one that ``find`` finds: the last thing ``lcc init`` does."""
        try:
            (self.folder / _DRAFT).replace(self.folder / _MARKER)
            sync_folder(self.folder)
        except OSError as error:
            raise ConfigurationError(
                f"cannot finish the data directory {self.folder}: {error.strerror}"
            ) from error

    @classmethod
    def create(cls, folder: Path) -> "DataDirectory":
        """Make a data directory at once; refuses one that exists already."""
        home = cls.prepare(folder)
        home.complete()
        return home

    @classmethod
    def find(cls, folder: Path) -> "DataDirectory":
        """Open a data directory; raises ``ConfigurationError`` when there is none."""
        try:
            facts = json.loads((folder / _MARKER).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ConfigurationError(
                f"no LCC data directory at {folder}: run `lcc init` there first, or set LCC_DATA_DIR"
            ) from None
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"cannot read {folder / _MARKER}: {error}") from None
        if facts.get("format") != FORMAT:
            raise ConfigurationError(
                f"{folder} has format {facts.get('format')}, this program reads {FORMAT}"
            )
        return cls(folder, str(facts["lcc"]))


def _read_draft(folder: Path) -> str:
    """Return the id that an interrupted ``prepare`` had chosen, for the database may know it by now."""
    try:
        return str(json.loads((folder / _DRAFT).read_text(encoding="utf-8"))["lcc"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return ""


def write_durably(path: Path, facts: Mapping[str, object]) -> None:
    """Replace a file by facts as JSON, at once and on disk."""
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        json.dump(facts, file)
        file.flush()
        sync(file.fileno(), part)
    part.replace(path)
    sync_folder(path.parent)


def running_workers(folder: Path) -> dict[int, int]:
    """Return the crawl processes on a data directory now: worker number → process id (0 = unknown)."""
    found = {}
    for path in sorted((folder / "workers").glob("*.lock")):
        if path.stem.isdigit() and (process := lock_holder(path)) is not None:
            found[int(path.stem)] = process
    return found


def lock_holder(path: Path) -> int | None:
    """Return the process that holds a lock file, 0 when it does not say who it is, None when nobody does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.read(descriptor, 20).strip()
        return int(text) if text.isdigit() else 0
    else:
        return None
    finally:
        os.close(descriptor)


class WorkerSlot:
    """The lowest free worker number of a data directory, held as long as the process lives."""

    def __init__(self, folder: Path, machineid: int) -> None:
        self._folder = folder / "workers"
        self.machineid = machineid
        self._folder.mkdir(exist_ok=True)
        for number in range(_MAX_WORKERS):
            descriptor = _lock(self._path(number))
            if descriptor is not None:
                self._descriptor = descriptor
                self.number = number
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"{os.getpid()}\n".encode())
                return
        raise ConfigurationError(f"{_MAX_WORKERS} crawl processes run on {folder} already")

    @property
    def owner(self) -> str:
        """The name under which this worker leases turns; a restarted process gets the same one back."""
        return self._owner(self.number)

    def dead_owners(self) -> set[str]:
        """Return the owners on this machine whose process is gone: their leases may be taken at once."""
        return {self._owner(number) for number in self._others() if not self._is_held(number)}

    def release(self) -> None:
        """Give the number back."""
        os.close(self._descriptor)

    def _owner(self, number: int) -> str:
        return f"{self.machineid}/{number}"

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.lock"

    def _others(self) -> Iterator[int]:
        for path in self._folder.glob("*.lock"):
            if path.stem.isdigit() and int(path.stem) != self.number:
                yield int(path.stem)

    def _is_held(self, number: int) -> bool:
        descriptor = _lock(self._path(number))
        if descriptor is None:
            return True
        os.close(descriptor)
        return False


def _lock(path: Path) -> int | None:
    """Lock a file for this process; returns its descriptor, or None when another holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
