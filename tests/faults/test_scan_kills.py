"""A scan that is killed anywhere leaves what the server had, or what it has: never half of it.

``LCC_TRACKER_KILLS=all`` kills at each moment; otherwise it is some moments, spread over a scan.
"""

import os
import time
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from lcc_scrapy.apps.tracker.loading import CLAIM, clear
from lcc_scrapy.apps.tracker.registry import Registry
from lcc_scrapy.apps.tracker.rules.scans import ScanRules
from lcc_scrapy.apps.tracker.store import rows_in
from lcc_scrapy.apps.tracker.tasks import Tasks
from lcc_scrapy.db.sql.store import SqlStore
from tests.killed_scans import scan_killed_at
from tests.little_ftp import LittleFtp
from tests.mirrors import kept

pytestmark = pytest.mark.slow

MOMENTS = 400
"""More than a scan has."""

KINDS = ("sqlite", "mariadb", "postgresql")
STEP = 1 if os.environ.get("LCC_TRACKER_KILLS") == "all" else 11
"""Every how manieth moment of a scan is one to be killed at."""


def listing(letter: str, directories: int = 25) -> bytes:
    """Return a listing whose every directory has a file, and half of them a link, of that letter."""
    lines = [f"drwxr-xr-x 2 f f 4096 Jan  1 2020 d{number}\r\n" for number in range(directories)]
    for number in range(directories):
        lines.append(f"\r\nd{number}:\r\n-rw-r--r-- 1 f f {number + 1} Jan  1 2020 {letter}{number}\r\n")
        if number % 2:
            lines.append(f"lrwxrwxrwx 1 f f 1 Jan  1 2020 link -> {letter}\r\n")
    return "".join(lines).encode()


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def store(kind, databases):
    made = SqlStore(databases.url(kind))
    with made.engine.begin() as connection:
        for table in (
            "tr_host",
            "tr_domain",
            "tr_rules",
            "tr_dir",
            "tr_link",
            "tr_hash",
            "tr_load",
            "counters",
        ):
            connection.exec_driver_sql(f"DELETE FROM {table}")
    yield made
    made.close()


def shown(store):
    """Return what the server shows: identities of directories, and links."""
    with store.read() as tx:
        (host,) = rows_in(tx).hosts()
        rows, links, _ = kept(tx, host.first, host.first + host.dirs)
        return host, {row.name: (row.md5, row.sha) for row in rows}, sorted(target for *_, target in links)


def made_due(store):
    with store.begin() as tx:
        (host,) = rows_in(tx).hosts()
        rows_in(tx).put_host(replace(host, due=1))


@pytest.mark.soak_of("sqlite", "mariadb")
def test_a_killed_scan_shows_the_old_or_the_new_listing(kind, store, databases, tmp_path):
    url = databases.url(kind)
    with LittleFtp({"LIST -lR": listing("a")}) as server:
        registry = Registry(store)
        registry.add_domain("de", 1)
        hostid = registry.add_server(server.url, "de", 1).hostid
        Tasks(store, "me", ZoneInfo("UTC"), 60.0, 3600.0).put_rules(ScanRules(hostid, private=True))
        states = {}
        for letter in "ab":
            server.data["LIST -lR"] = listing(letter)
            made_due(store)
            assert scan_killed_at(0, url, tmp_path)
            states[letter] = shown(store)[1:]
        assert states["a"] != states["b"]
        now, kills, changes = "b", 0, 0
        for moment in range(1, MOMENTS, STEP):
            wanted = "ab".replace(now, "")
            server.data["LIST -lR"] = listing(wanted)
            made_due(store)
            done = scan_killed_at(moment, url, tmp_path)
            host, *found = shown(store)
            assert tuple(found) in states.values(), moment
            changes += tuple(found) == states[wanted]
            now = wanted if tuple(found) == states[wanted] else now
            kills += not done
            if done:
                break
        assert done
        assert tuple(found) == states[wanted]
        assert kills > 50 // STEP
        assert changes > 1, "some kills came after the commit"
        with store.read() as tx:
            (host,) = rows_in(tx).hosts()
        assert (host.owner, host.failures, host.error) == ("", 0, "")
    assert list(os.scandir(tmp_path)) == []
    clear(store, time.time() + 2 * CLAIM)
    with store.engine.connect() as connection:
        counted = connection.exec_driver_sql("SELECT COUNT(*) FROM tr_dir").scalar()
        assert counted == shown(store)[0].dirs
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM tr_load").scalar() == 0
    print(f"{kind}: killed at {kills} places; {changes - 1} times the new listing was there")
