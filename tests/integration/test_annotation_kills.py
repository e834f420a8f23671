"""``lcc annotate``: ``kill -9`` at any moment loses no ACI and no alert, and repeats none (LCC_AE_KILLS: 20)."""

import os
import signal
from contextlib import closing
from dataclasses import replace

import pytest

from lcc_scrapy.annotation import queueing
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.acis import Channel, Recipient
from lcc_scrapy.domain.urds import Process
from tests.annotated_lcc import Site, acis, found, processors, urd
from tests.forkserver import popen
from tests.harness import BIN, wait_for
from tests.killed_annotation import annotated_until

KILLS = int(os.environ.get("LCC_AE_KILLS", "20"))
ANNA = Recipient(0, "anna", Channel.WEBHOOK, "https://hook.example.org/", "json", False, "s", False, 1, "")


def site_of(lcc):
    return Site(SqlStore(lcc.shared_url), lcc.folder / "lcc-data" / "content")


def furnish(site):
    """Put what there is to be annotated: pages with versions, new profiles for old pages, removals."""
    site.cache(*(f"old{number}" for number in range(8)), text="old java")
    with site.store.begin() as tx:
        queueing.begin(tx)
        tx.insert_recipient(ANNA)
        tx.add_urds(
            [urd("anna"), urd("bert", words=["perl"]), urd("carl", processtype=Process.CHANGE, words=[])]
        )
    site.cache(*(f"new{number}" for number in range(8)), text="perl and java")
    for number in range(3):
        site.cache(f"old{number}", text="other java")
    site.remove("new7")


def recorded(store):
    """Return all that was recorded, without the numbers."""
    with store.read() as tx:
        rows = tx.acis_after(0, None, 1000)
        alerts = tx.alerts_told(None, None, 10**9, 1000)
    told = {one.number: recipient.owner for one, recipient in alerts}
    return sorted(str((replace(row, number=0, urlkey=b""), told.get(row.number))) for row in rows)


@pytest.mark.slow
def test_a_coordinator_killed_anywhere_loses_and_repeats_nothing(make_lcc):
    calm = make_lcc()
    with closing(site_of(calm).store) as store:
        furnish(site_of(calm))
        assert annotated_until(calm.shared_url, str(calm.folder / "lcc-data" / "content"), 0) is not None
        expected = recorded(store)
    assert len(expected) > 20
    lcc = make_lcc()
    with closing(site_of(lcc).store) as store:
        furnish(site_of(lcc))
        content = str(lcc.folder / "lcc-data" / "content")
        for kill in range(KILLS):
            if annotated_until(lcc.shared_url, content, 5 + 23 * kill % 61):
                break
        assert kill > min(KILLS - 2, 8)
        assert annotated_until(lcc.shared_url, content, 0)
        assert recorded(store) == expected
        numbers = [one.number for one in acis(store)]
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.slow
def test_processes_killed_at_random_lose_and_repeat_nothing(make_lcc):
    lcc = make_lcc(LCC_AE_PAGE_TIMEOUT="300s")
    site, command = site_of(lcc), [str(BIN / "lcc"), "annotate", "--only", "engine", "--processors", "2"]

    def start():
        with (lcc.folder / "annotate.log").open("ab") as log:
            return popen(command, env=lcc.environment, cwd=lcc.cwd, log=log)

    with closing(site.store) as store:
        with store.begin() as tx:
            queueing.begin(tx)
            tx.add_urds([urd("anna"), urd("bert")])
        process, expected = start(), []

        def all_found():
            return found(store) == sorted(expected)

        try:
            for kill in range(KILLS):
                names = [f"{kill}-{number}" for number in range(8)]
                site.cache(*names, text="<p>java " * 200)
                expected += [(name, owner) for name in names for owner in ("anna", "bert")]
                if kill % 3 == 0:
                    process.kill()
                    process.wait()
                    process = start()
                else:
                    for one in processors(process.pid)[:1]:
                        os.kill(one, signal.SIGKILL)
                if kill % 4 == 3:
                    wait_for(all_found, what="all ACIs so far")
            wait_for(all_found, what="all ACIs")
            process.send_signal(signal.SIGTERM)
            assert process.wait(300) == 0
        finally:
            process.kill()
            process.wait()
    assert "not annotated" not in (lcc.folder / "annotate.log").read_text()
