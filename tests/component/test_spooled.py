"""Information that was lost must be asked for again, whatever fails in between."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.intake.spooled import AbsorbableSpool
from lcc_scrapy.uns.spool import ReadySet, SpoolFolder
from lcc_scrapy.uns.spool_file import SpoolHeader


def test_a_damaged_set_is_not_forgotten_when_the_database_is_away_at_that_moment(tmp_path: Path) -> None:
    folder = SpoolFolder(tmp_path / "spool")
    folder.lock()
    (folder.path / "000001700000000-7-1.set").write_bytes(b"damaged\n")
    told: list[int] = []
    away = [True]

    def lost(waiting: ReadySet, _reason: str) -> None:
        if away:
            away.clear()
            raise StoreUnavailable("gone away")
        told.append(waiting.pid)

    spool = AbsorbableSpool(folder, lost)
    with pytest.raises(StoreUnavailable):
        spool.open(folder.ready()[0])
    assert spool.open(folder.ready()[0]) is None  # the absorber tries again
    assert told == [7]
    assert folder.ready() == []
    folder.unlock()


def test_absorbed_sets_of_several_steps_are_removed_together(tmp_path: Path) -> None:
    folder = SpoolFolder(tmp_path / "spool")
    folder.lock()
    for pid in range(1, 7):
        folder.begin(SpoolHeader(pid, 1, 1), 1.0).commit()
    jobs: list[Callable[[], None]] = []
    removed: list[int] = []
    remove = folder.remove
    folder.remove = lambda sets: (removed.append(len(sets)), remove(sets))  # type: ignore[method-assign,assignment,arg-type,func-returns-value]
    spool = AbsorbableSpool(folder, lambda *_: None, jobs.append)
    sets = folder.ready()
    spool.remove(sets[:2])
    spool.remove(sets[2:5])
    assert folder.ready() == sets
    jobs.pop(0)()
    assert folder.ready() == sets[5:]
    spool.remove(sets[5:])
    for job in jobs:
        job()
    assert (folder.ready(), folder.used, removed) == ([], 0, [5, 1])
    folder.unlock()
