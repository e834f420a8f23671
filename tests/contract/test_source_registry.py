"""Sources on every store: what is remembered of them, and what becomes of what they list."""

import gc
from dataclasses import replace
from datetime import UTC

import pytest
from sqlalchemy import Alias

from lcc_scrapy.apps.sources.providers import REMOVAL
from lcc_scrapy.apps.sources.registry import Registry
from lcc_scrapy.apps.sources.rules import CLAIM, Role, Source, SourceFile
from lcc_scrapy.apps.sources.store import rows_in
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.providers.registration import add, remove

pytestmark = pytest.mark.parametrize("store", ["sqlite", "mariadb", "postgresql"], indirect=True)


def source(number, pid=7, **values):
    return Source(number, pid, "sitemap", f"http://s{number}/", 3600, **values)


def file(number, sourceid=1, role=Role.LIST):
    return SourceFile(number, sourceid, f"http://f{number}/", 0, role)


def key(number):
    return number.to_bytes(16, "big")


def test_sources_are_kept_by_number_and_found_by_provider_due_time_and_callback(store):
    with store.begin() as tx:
        for one in (source(2, due=50, callback="c"), source(1, due=60), source(3, pid=8, due=50)):
            rows_in(tx).put_source(one)
        rows_in(tx).put_source(source(3, pid=8, due=70, error="é"))
    with store.read() as tx:
        assert [one.sourceid for one in rows_in(tx).sources()] == [1, 2, 3]
        assert rows_in(tx).sources(8) == [source(3, pid=8, due=70, error="é")]
        assert rows_in(tx).source(1) == source(1, due=60)
        assert rows_in(tx).source(9) is None
        assert [one.sourceid for one in rows_in(tx).due_sources(60, 5)] == [2, 1]
        assert [one.sourceid for one in rows_in(tx).due_sources(60, 1)] == [2]
        assert rows_in(tx).source_called_back("c").sourceid == 2
        assert rows_in(tx).source_called_back("") is None
        assert rows_in(tx).source_called_back("d") is None


def test_asking_which_sources_may_start_leaves_nothing_for_the_garbage_collector(store):
    def aliases():
        return sum(isinstance(one, Alias) for one in gc.get_objects())

    gc.collect()
    before = aliases()
    gc.disable()
    try:
        with store.read() as tx:
            rows_in(tx).startable_sources(60, 5)
        assert aliases() == before
    finally:
        gc.enable()


def test_what_a_clock_that_was_ahead_put_off_is_made_due(store):
    now, ahead = 10_000, 13_600
    put_off = [
        source(1, at=ahead, due=ahead + 1),
        source(2, at=now - 9, claimed=ahead + CLAIM, due=ahead + CLAIM),
    ]
    right = [
        source(3, at=now - 9, due=now + 50_000),
        source(4, at=now - 9, claimed=now + CLAIM, due=now + CLAIM),
        source(5, at=now + 5, due=now + 60),
        source(6, at=ahead, due=now - 1),
    ]
    with store.begin() as tx:
        for one in (*put_off, *right):
            rows_in(tx).put_source(one)
        rows_in(tx).wake_sources(now)
    with store.read() as tx:
        assert [one.due for one in rows_in(tx).sources()] == [
            now + CLAIM,
            now + CLAIM,
            *(one.due for one in right),
        ]


def test_nobody_is_robbed_of_a_run_by_a_clock_that_is_behind(store):
    now, ahead = 10_000, 10_300
    add(store, Provider(7, "x"), [])
    with store.begin() as tx:
        rows_in(tx).put_source(source(1, at=now - 9, due=now))
    here, there = (Registry(store, name, UTC) for name in ("here/1", "there/2"))
    run = there.claim_due(ahead)
    with store.begin() as tx:
        rows_in(tx).wake_sources(now)
    assert here.claim_due(now) is None
    assert there.keep(run, ahead + CLAIM // 3)


def test_urls_of_a_file_come_by_key_with_their_newest_stamps(store):
    with store.begin() as tx:
        rows_in(tx).put_source_urls(1, {key(n): n for n in (5, 3, 4)})
        rows_in(tx).put_source_urls(2, {key(3): 30})
        rows_in(tx).put_source_urls(1, {key(4): 44, key(6): 1 << 62})
    with store.read() as tx:
        assert rows_in(tx).source_urls(1, b"", 2) == [(key(3), 3), (key(4), 44)]
        assert rows_in(tx).source_urls(1, key(4), 5) == [(key(5), 5), (key(6), 1 << 62)]
    with store.begin() as tx:
        rows_in(tx).delete_source_urls(1, [key(3), key(5), key(9)])
        assert rows_in(tx).source_urls(1, b"", 9) == [(key(4), 44), (key(6), 1 << 62)]
        assert rows_in(tx).source_urls(2, b"", 9) == [(key(3), 30)]


def test_stamps_of_some_urls_are_those_of_one_file(store):
    with store.begin() as tx:
        rows_in(tx).put_source_urls(1, {key(n): n for n in (3, 4, 5)})
        rows_in(tx).put_source_urls(2, {key(6): 6})
    with store.read() as tx:
        assert rows_in(tx).source_stamps(1, [key(5), key(3), key(6), key(9)]) == {key(3): 3, key(5): 5}
        assert rows_in(tx).source_stamps(1, []) == {}


def test_of_one_provider_one_source_runs_at_a_time(store):
    """A site that drips does not take all places, nor several times its bandwidth."""
    now = 10_000
    for pid in (7, 8):
        add(store, Provider(pid, "x"), [])
    with store.begin() as tx:
        for number in range(1, 9):
            rows_in(tx).put_source(source(number, due=now - 9))
        rows_in(tx).put_source(replace(source(9, due=now - 5), kind="redis"))
        rows_in(tx).put_source(source(10, pid=8, due=now - 1))
    here, there = (Registry(store, name, UTC) for name in ("here/1", "there/2"))
    claimed = [registry.claim_due(now) for registry in (here, there, here, there)]
    assert [one and one.sourceid for one in claimed] == [1, 9, 10, None]
    with store.read() as tx:
        assert [one.sourceid for one in rows_in(tx).due_sources(now, 99)] == list(range(2, 9))
    here.released(claimed[0], now)
    assert there.claim_due(now).sourceid == 2
    assert here.claim_due(now + CLAIM).sourceid == 3  # whoever ran the other one is silent


def test_only_complete_lists_tell_that_a_url_is_listed_elsewhere(store):
    with store.begin() as tx:
        rows_in(tx).put_source_files([file(1), file(2, sourceid=2), file(3, role=Role.NEWS)])
        for fileid, numbers in ((1, (1, 2, 3)), (2, (2,)), (3, (3,))):
            rows_in(tx).put_source_urls(fileid, {key(n): 0 for n in numbers})
        assert rows_in(tx).listed_elsewhere(1, [key(1), key(2), key(3)]) == {key(2)}
        assert rows_in(tx).listed_elsewhere(2, [key(2)]) == {key(2)}
        assert rows_in(tx).listed_elsewhere(1, []) == set()


@pytest.mark.parametrize("whole", [True, False])
def test_a_source_goes_with_its_files_and_urls_and_with_its_provider(store, whole):
    with store.begin() as tx:
        for number, pid in ((1, 7), (2, 8)):
            rows_in(tx).put_source(source(number, pid))
            rows_in(tx).put_source_files([file(number, sourceid=number)])
            rows_in(tx).put_source_urls(number, {key(1): 5})
    with store.begin() as tx:
        assert not REMOVAL.removed(tx, 7, 100) if whole else rows_in(tx).delete_source(1) is None
    with store.read() as tx:
        assert [one.sourceid for one in rows_in(tx).sources()] == [2]
        assert (rows_in(tx).source_files(1), rows_in(tx).source_urls(1, b"", 9)) == ([], [])
        assert (rows_in(tx).source_files(2), rows_in(tx).source_urls(2, b"", 9)) == (
            [file(2, sourceid=2)],
            [(key(1), 5)],
        )


def test_sources_of_a_provider_that_goes_go_in_portions(store):
    with store.begin() as tx:
        rows = rows_in(tx)
        for number, pid in ((1, 7), (2, 7), (3, 8)):
            rows.put_source(source(number, pid))
            rows.put_source_files([file(10 * number + n, sourceid=number) for n in range(3)])
            for n in range(3):
                rows.put_source_urls(10 * number + n, {key(one): 5 for one in range(n + 2)})
    left, portions = [9 * 2], 0
    while left[-1] >= 0:
        with store.begin() as tx:
            more = REMOVAL.removed(tx, 7, 4)
            rows = rows_in(tx)
            files = [one for number in (1, 2) for one in rows.source_files(number)]
            left.append(sum(len(rows.source_urls(one.fileid, b"", 99)) for one in files) if more else -1)
            assert len(rows.sources(7)) == (2 if more else 0)
        portions += 1
        assert left[-2] - left[-1] <= 5
    with store.read() as tx:
        rows = rows_in(tx)
        assert [len(rows.source_urls(30 + n, b"", 99)) for n in range(3)] == [2, 3, 4]
        assert [len(rows.source_files(number)) for number in (1, 2, 3)] == [0, 0, 3]


def test_a_provider_is_removed_with_its_sources(lcc):
    with lcc.store.begin() as tx:
        rows_in(tx).put_source(source(1))
        rows_in(tx).put_source_files([file(1)])
        rows_in(tx).put_source_urls(1, {key(n): 5 for n in range(2500)})
    lcc.store_pages("a")
    assert remove(lcc.store, 7, lcc.now, lcc.policy, hooks=[REMOVAL]) == 1
    with lcc.store.read() as tx:
        assert rows_in(tx).sources() == rows_in(tx).source_urls(1, b"", 9) == []
        assert tx.provider(7) is None
