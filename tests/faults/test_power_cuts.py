"""Simulated power cuts: only what was fsynced survives, and nothing that was promised is lost.

``LCC_CUTS`` says how many (default 6; ``make soak`` takes 200).
"""

import os
import random
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from lcc_scrapy.db.sql.store import WAL_FIXED_IN
from tests.faults.powercut.aftermath import cached_documents, contents, losses
from tests.faults.powercut.careless import FORGOTTEN, SYNCHRONOUS, TOGETHER, forgets
from tests.faults.powercut.disk import Cut, Loss
from tests.faults.powercut.recording import Recording, record
from tests.faults.powercut.story import lcc_in
from tests.harness import Nginx

CUTS = int(os.environ.get("LCC_CUTS", "6"))
LONG = CUTS > 50
SETS = 20 if LONG else 8
CRAWLS = 12 if LONG else 1
SEARCHED = 60 if LONG else 100
"""Cuts among which those are looked for that break a promise: with an fsync left out some must."""
ENOUGH = 1 << 20 if LONG else 1
WAYS = tuple(Loss) if LONG else (Loss.ALL,)

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.timeout(1800 + 20 * CUTS)]


@contextmanager
def recorded(folder: Path, care: str = "", *, wal: bool = False) -> Iterator[Recording]:
    folder.mkdir(exist_ok=True)
    nginx = Nginx(folder)
    started = time.monotonic()
    try:
        recording = record(folder, nginx, SETS, care, wal=wal)
        size = (folder / "record").stat().st_size
        print(f"{care or 'as it is'}: {len(recording.calls)} calls, {size:,} bytes of record, "
              f"{time.monotonic() - started:.1f} s")  # fmt: skip
        yield recording
    finally:
        nginx.stop()


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    with recorded(tmp_path_factory.mktemp("powercut")) as made:
        yield made


@pytest.fixture(scope="module")
def by_syncfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    """Give a run whose content files are synced together, however few there are."""
    with recorded(tmp_path_factory.mktemp("together"), TOGETHER) as made:
        if not any(call.name == "syncfs" for call in made.calls):
            pytest.skip("the temporary folder is on a file system whose syncfs is not relied upon")
        yield made


@pytest.fixture
def chance() -> random.Random:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    return random.Random(seed)


def broken(
    recording: Recording,
    chance: random.Random,
    target: Path,
    cuts: int = CUTS,
    *,
    ways: Sequence[Loss] = tuple(Loss),
    enough: int = 1 << 20,
    lazily: Callable[[str], bool] = lambda _path: False,
) -> Counter[str]:
    """Cut the power and count the cuts that broke a promise, by what became of unsynced data."""
    found: Counter[str] = Counter()
    made, started = 0, time.monotonic()
    for index, disk, promises in recording.replay(recording.cuts(cuts, chance), lazily):
        for loss in ways:
            shutil.rmtree(target, ignore_errors=True)
            disk.lay_out(target, Cut(loss, chance))
            lost = losses(lcc_in(target), promises, recording.site, recording.sets)
            if lost:
                found[loss.name] += 1
                print(
                    f"cut after call {index} ({recording.calls[index].name}), {loss.value}: {lost[0][:150]}"
                )
        made += 1
        if found.total() >= enough:
            break
    print(f"{made} cuts, {time.monotonic() - started:.1f} s, promises broken in {dict(found) or 'none'}")
    return found


def test_replaying_every_call_gives_the_very_files_of_the_run(recording: Recording, tmp_path: Path) -> None:
    last = len(recording.calls) - 1
    ((_, disk, promises),) = recording.replay([last])
    print(f"{disk.writes} writes, {disk.syncs} syncs, {promises.accepted} sets accepted")
    assert promises.accepted == SETS
    assert promises.cursor
    disk.lay_out(tmp_path / "replayed")
    assert _files(tmp_path / "replayed" / "lcc-data") == _files(recording.data)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_power_cut_loses_nothing_that_was_promised(
    recording: Recording, chance: random.Random, tmp_path: Path
) -> None:
    assert not broken(recording, chance, tmp_path / "left")


def test_a_power_cut_loses_no_content_that_was_synced_together(
    by_syncfs: Recording, chance: random.Random, tmp_path: Path
) -> None:
    assert not broken(by_syncfs, chance, tmp_path / "left")


@pytest.mark.parametrize("care", ["content files", "content folders"] if LONG else ["content files"])
def test_what_is_synced_together_needs_it(
    care: str, by_syncfs: Recording, chance: random.Random, tmp_path: Path
) -> None:
    def lazily(path: str) -> bool:
        return forgets(care, path, is_folder=Path(path).is_dir())

    assert broken(by_syncfs, chance, tmp_path / "left", SEARCHED, ways=WAYS, enough=ENOUGH, lazily=lazily)


@pytest.mark.skipif(
    not LONG, reason="the way of a SQLite that is newer than the one linked: in the long run only"
)
def test_a_power_cut_loses_nothing_from_the_write_ahead_log(
    chance: random.Random, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", WAL_FIXED_IN)
    with recorded(tmp_path / "run", wal=True) as recording:
        assert any(call.is_about(f"{recording.data}/lcc.sqlite-wal") for call in recording.calls)
        assert not broken(recording, chance, tmp_path / "left")


def test_a_crawl_after_a_power_cut_fetches_what_the_accepted_sets_say(
    recording: Recording, chance: random.Random, tmp_path: Path
) -> None:
    states = contents(recording.sets)
    told = recording.first_acceptance()
    later = [index for index in recording.cuts(4 * CRAWLS, chance) if index > told] or [told]
    for index, disk, promises in recording.replay(chance.sample(later, min(len(later), CRAWLS))):
        loss = chance.choice(list(Loss))
        print(f"cut after call {index} of {len(recording.calls)}, {loss.value}: {promises.accepted} accepted")
        disk.lay_out(tmp_path / str(index), Cut(loss, chance))
        lcc = lcc_in(tmp_path / str(index))
        lcc.start_once_more()
        assert cached_documents(lcc, recording.site) in states[promises.accepted :][:2]
        assert lcc.lcc("verify", check=False).returncode == 0, lcc.lcc("verify", check=False).stdout


@pytest.mark.parametrize("care", [*SYNCHRONOUS, *FORGOTTEN] if LONG else ["NORMAL"])
def test_a_run_that_syncs_less_is_seen_to_lose(care: str, chance: random.Random, tmp_path: Path) -> None:
    with recorded(tmp_path / "run", care) as careless:
        assert broken(careless, chance, tmp_path / "left", SEARCHED, ways=WAYS, enough=ENOUGH)


@pytest.mark.parametrize("care", FORGOTTEN if LONG else [*FORGOTTEN][::4])
def test_every_fsync_is_needed(
    care: str, recording: Recording, chance: random.Random, tmp_path: Path
) -> None:
    """An fsync that the replay leaves out keeps as little as one that the program never called."""

    def lazily(path: str) -> bool:
        return forgets(care, path, is_folder=Path(path).is_dir())

    assert broken(recording, chance, tmp_path / "left", SEARCHED, ways=WAYS, enough=ENOUGH, lazily=lazily)


def test_the_name_of_the_data_folder_is_synced_too(
    recording: Recording, chance: random.Random, tmp_path: Path
) -> None:
    def lazily(path: str) -> bool:
        return path == str(recording.folder)

    assert broken(recording, chance, tmp_path / "left", SEARCHED, ways=WAYS, enough=ENOUGH, lazily=lazily)
