"""The spool folder (the seed's "unsdb"): accepted sets that wait to be absorbed into the queue.

One process owns a folder at a time. Ready files are called ``<arrival>-<pid>-<seq>.set`` (arrival in
epoch milliseconds), unfinished ones end in ``.part``; ``quarantine/`` holds files that were not whole;
``uns-id`` names the folder, and with it the UNS, wherever it is moved to.
"""

import fcntl
import os
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock

from lcc_scrapy.domain.dynamic_threshold import room_left
from lcc_scrapy.domain.errors import ConfigurationError, InUse, NotNow
from lcc_scrapy.machine.disk import FolderSync, sync, sync_folder
from lcc_scrapy.uns.full_sets import AcceptedFullSets, FullSet
from lcc_scrapy.uns.spool_file import DamagedSpoolFile, SpoolHeader, SpoolReader
from lcc_scrapy.uns.spool_writer import PART_SUFFIX, PER_FILE, SpoolWriter

_NAME = re.compile(r"(?P<arrived>\d{15})-(?P<pid>0|[1-9]\d*)-(?P<seq>0|[1-9]\d*)\.set")
_IDENTITY = "uns-id"

SMALLEST = PER_FILE + 512
"""What the smallest set takes: a file with a header."""


@dataclass(frozen=True, slots=True)
class ReadySet:
    """An accepted set on disk; ``arrived`` in epoch milliseconds. There may be many of these in memory."""

    folder: Path
    pid: int
    seq: int
    arrived: int

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / f"{self.arrived:015d}-{self.pid}-{self.seq}.set"

    @classmethod
    def named(cls, folder: Path, name: str) -> "ReadySet | None":
        """Return what a file name says, or None when it is not that of a ready file."""
        found = _NAME.fullmatch(name)
        return cls(folder, int(found["pid"]), int(found["seq"]), int(found["arrived"])) if found else None


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A file that was set aside: its information is lost, and its provider must be asked for everything."""

    path: Path
    pid: int
    reason: str


Lost = Callable[[ReadySet, str], None]
"""Called with a set that is about to be set aside, and why."""


def _nobody_asks(_waiting: ReadySet, _reason: str) -> None:
    """Do nothing about a lost set: the caller looks at what ``recover`` returns."""


def has_sets_coming(path: Path) -> bool:
    """Tell whether sets wait in a spool folder that some process absorbs, this one or another."""
    try:
        with (path / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:  # somebody has it
        return any(ReadySet.named(path, one.name) for one in path.iterdir())
    return False


class SpoolFolder:
    """Call ``lock`` and ``recover`` before anything else. ``max_bytes``: 0 = no limit.

    ``full_sets`` knows those among the waiting sets that are full.
    """

    def __init__(self, path: Path, max_bytes: int = 0) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self.identity = ""
        """Of this folder, from ``lock`` on; 36 characters."""
        self.full_sets = AcceptedFullSets()
        self._used = 0
        self._own: Counter[int] = Counter()
        self._guard = Lock()
        self._sync_names = FolderSync(path)
        self._lock_file = -1

    # --- how full it is --------------------------------------------------------------------------

    @property
    def used(self) -> int:
        """Bytes in ready and unfinished files, ``PER_FILE`` more for each."""
        return self._used

    @property
    def full(self) -> bool:
        """Tell whether nobody's set would find room."""
        return self._room(None) <= SMALLEST

    def is_full_for(self, pid: int) -> bool:
        """Tell whether no set of this provider would find room, so that it need not log in."""
        return self._room(pid) <= SMALLEST

    def _room(self, pid: int | None) -> int:
        own = 0 if pid is None else self._own[pid]
        return room_left(own, self._used, self.max_bytes)

    def _claim(self, pid: int, size: int) -> None:
        with self._guard:
            if size > self._room(pid):
                raise NotNow(
                    f"no room for provider {pid} in the spool folder:"
                    f" {self._own[pid]} bytes are its own, {self._used} of {self.max_bytes} used"
                )
            self._used += size
            self._own[pid] += size
            if not self._own[pid]:
                del self._own[pid]

    # --- whose it is -----------------------------------------------------------------------------

    def lock(self) -> None:
        """Take the folder, creating it when its parent exists; raises ``InUse`` when another has it."""
        try:
            self.path.mkdir(exist_ok=True)
            sync_folder(self.path.parent)  # also when it is there: its maker may have been killed before
            self._lock_file = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._unusable(error) from None
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(self._lock_file, 20, 0).decode("ascii", "replace").strip() or "unknown"
            self.unlock()
            raise InUse(
                f"spool folder {self.path} is in use by process {owner}; stop it, set another LCC_SPOOL_DIR,"
                " or, to fetch only, an empty LCC_UNS_ENDPOINTS"
            ) from None
        try:
            os.pwrite(self._lock_file, f"{os.getpid():<20}\n".encode(), 0)
            self.identity = self._identify()
        except OSError as error:
            self.unlock()
            raise self._unusable(error) from None

    def unlock(self) -> None:
        """Give the folder up."""
        if self._lock_file >= 0:
            os.close(self._lock_file)
            self._lock_file = -1

    def _unusable(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(f"spool folder {self.path} cannot be used: {error.strerror}")

    def _identify(self) -> str:
        """Return the folder's id; a new folder gets one, durably."""
        file = self.path / _IDENTITY
        known = file.read_text(encoding="ascii", errors="replace").strip() if file.exists() else ""
        if known:
            return known[:36]
        draft = file.with_suffix(PART_SUFFIX)
        identity = str(uuid.uuid4())
        with draft.open("w", encoding="ascii") as writing:
            writing.write(f"{identity}\n")
            writing.flush()
            sync(writing.fileno(), draft)
        draft.replace(file)
        sync_folder(self.path)
        return identity

    # --- its sets --------------------------------------------------------------------------------

    def recover(self, lost: Lost = _nobody_asks) -> list[Quarantined]:
        """Clean up after a crash: remove unfinished files, set damaged ones aside, count the rest.

        Reads every ready file once. A set that is set aside was accepted: its provider must be asked
        for a full set, so ``lost`` is called before the file is moved.
        """
        for part in self.path.glob(f"*{PART_SUFFIX}"):
            part.unlink()
        ready = self.ready()
        checked = [self._check(waiting, lost) for waiting in ready]
        sync_folder(self.path)
        self._own = Counter()
        for waiting in self.ready():
            self._own[waiting.pid] += waiting.path.stat().st_size + PER_FILE
        self._used = self._own.total()
        return [damaged for damaged in checked if damaged]

    def ready(self) -> list[ReadySet]:
        """Return what waits, by arrival."""
        paths = self.path.iterdir()
        found = [waiting for path in paths if (waiting := ReadySet.named(self.path, path.name))]
        return sorted(found, key=lambda waiting: (waiting.arrived, waiting.pid, waiting.seq))

    def begin(self, header: SpoolHeader, arrived: float) -> SpoolWriter:
        """Begin the file of a set that arrives now (epoch seconds); raises ``NotDurable``."""
        waiting = ReadySet(self.path, header.pid, header.seq, int(arrived * 1000))
        claim = partial(self._claim, header.pid)
        return SpoolWriter(waiting.path, header, claim, room_left(0, 0, self.max_bytes), self._sync_names)

    def remove(self, sets: Iterable[ReadySet]) -> None:
        """Forget sets that were absorbed; durable on return, harmless when repeated."""
        gone = []
        for waiting in sets:
            path = waiting.path
            with suppress(FileNotFoundError):
                size = path.stat().st_size
                path.unlink()
                gone.append((waiting, size))
        if gone:
            self._sync_names()
        for waiting, size in gone:
            self._is_gone(waiting, size)

    def set_aside(self, waiting: ReadySet, reason: str) -> Quarantined:
        """Move a file to ``quarantine/``, where nothing reads it; one that is gone is none the worse."""
        quarantine = self.path / "quarantine"
        quarantine.mkdir(exist_ok=True)
        target = quarantine / waiting.path.name
        if waiting.path.exists():
            size = waiting.path.stat().st_size
            waiting.path.rename(target)
            sync_folder(quarantine)
            sync_folder(self.path)
            self._is_gone(waiting, size)
        return Quarantined(target, waiting.pid, reason)

    def _check(self, waiting: ReadySet, lost: Lost) -> Quarantined | None:
        try:
            with SpoolReader(waiting.path) as reader:
                reader.verify()
                header = reader.header
        except DamagedSpoolFile as error:
            lost(waiting, str(error))
            return self.set_aside(waiting, str(error))
        if header.full:
            self.full_sets.add(FullSet(waiting.pid, waiting.seq, header.set_id, header.charged))
        return None

    def _is_gone(self, waiting: ReadySet, size: int) -> None:
        self._claim(waiting.pid, -size - PER_FILE)
        self.full_sets.remove(waiting.pid, waiting.seq)
