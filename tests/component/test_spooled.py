"""Information that was lost must be asked for again, whatever fails in between."""

from pathlib import Path

import pytest

from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.storage.spooled import AbsorbableSpool
from lcc_scrapy.uns.spool import ReadySet, SpoolFolder


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
