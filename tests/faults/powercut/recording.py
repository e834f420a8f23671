"""A recorded story, and its replay up to any number of power cuts."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.powercut import story, trace
from tests.faults.powercut.aftermath import Promises
from tests.faults.powercut.disk import Disk
from tests.faults.powercut.trace import Call
from tests.harness import Nginx

ROOT = Path(__file__).parents[3]
NEWER_SQLITE = Path(__file__).parent / "newer_sqlite"
ACCEPTED = b"<set_accepted "
LONGEST = 1500
"""Seconds a story may take under strace, to end what hangs."""


@dataclass(frozen=True)
class Recording:
    """What happened in ``folder``, call by call; ``site`` is where its documents were fetched from."""

    folder: Path
    site: str
    sets: list[story.ProviderSet]
    calls: list[Call]

    @property
    def data(self) -> Path:
        """The data directory, as the story left it."""
        return self.folder / "lcc-data"

    def cuts(self, number: int, chance: random.Random) -> list[int]:
        """Choose calls after which the power goes, in turns of several kinds.

        Acceptances, commits, what makes a set enter the spool or leave it, syncs of other folders, any call.
        """
        indexes = range(len(self.calls))
        kinds = [
            [index for index in indexes if is_acceptance(self.calls[index])],
            [index for index in indexes if self.calls[index].name == "ftruncate"],
            [index for index in indexes if self._synced(self.calls[index]) == self.data / "spool"],
            [index for index in indexes if self._synced(self.calls[index]).is_dir()],
            list(indexes),
        ]
        chosen: set[int] = set()
        for turn in range(number):
            left = [index for index in kinds[turn % len(kinds)] if index not in chosen]
            chosen.add(chance.choice(left or [index for index in indexes if index not in chosen]))
        return sorted(chosen)

    def first_acceptance(self) -> int:
        """Return the call by which the first provider heard that its set was accepted."""
        return next(index for index, call in enumerate(self.calls) if is_acceptance(call))

    def _synced(self, call: Call) -> Path:
        return Path(call.descriptor(0)[1] if call.name == "fsync" else os.devnull)

    def replay(
        self, cuts: Sequence[int], lazily: Callable[[str], bool] = lambda _path: False
    ) -> Iterator[tuple[int, Disk, Promises]]:
        """Give the disk, and what had been promised, after each of some calls (by their index)."""
        disk, promises, stops = Disk(self.data, lazily), Promises(), set(cuts)
        for index, call in enumerate(self.calls):
            disk.apply(call)
            promises = _promises_after(promises, call)
            if index in stops:
                yield index, disk, promises


def is_acceptance(call: Call) -> bool:
    """Tell whether a provider is told that its set was accepted."""
    return call.name in trace.SENDING and call.carries(ACCEPTED)


def _note(call: Call) -> dict[str, object]:
    """Return what the story notes with this call, if it does."""
    if call.name != "write" or call.descriptor(0)[1] != "/dev/null":
        return {}
    text = call.text(1).decode()
    return json.loads(text.removeprefix(story.MARK)) if text.startswith(story.MARK) else {}


def _promises_after(promises: Promises, call: Call) -> Promises:
    if is_acceptance(call):
        return promises.and_accepted()
    note = _note(call)
    return promises.and_told(note) if note else promises


def record(folder: Path, nginx: Nginx, sets: int, care: str = "", *, wal: bool = False) -> Recording:
    """Run the story under strace; with ``care``, a careless one (see there), with ``wal``, as with a newer SQLite."""
    pythonpath = [str(ROOT), *([str(NEWER_SQLITE)] if wal else [])]
    told = story.provider_sets(sets)
    site = folder / "site"
    story.write_site(site, told)
    nginx.start({"site": site})
    prefix = f"http://127.0.0.1:{nginx.ports['site']}/"
    home = folder / "home"
    home.mkdir()
    command = [sys.executable, "-m", "tests.faults.powercut.story", str(home), prefix, str(sets)]
    done = subprocess.run(
        [*trace.strace(folder / "record"), *command, *([care] if care else [])],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(pythonpath)},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return Recording(home, prefix, told, _calls(folder / "record", home))


def _calls(record: Path, home: Path) -> list[Call]:
    """Return the calls in order; something is promised when the call that says so begins."""
    found = trace.read(record, (str(home), story.MARK, ACCEPTED.decode()))
    return sorted(found, key=lambda call: call.began if is_acceptance(call) or _note(call) else call.ended)
