"""A Galera cluster whose nodes are killed one after the other while an LCC works on it.

``LCC_GALERA_SECONDS`` says for how long (default 40: two kills; ``make soak`` takes 300); a node is killed every
20 seconds and comes back.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle

import pytest

from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.errors import StoreUnavailable
from tests.acceptance.test_database_away import SETTINGS, everybody_at_work
from tests.followed import following
from tests.galera_cluster import Node, galera_cluster, url_of
from tests.harness import BIN, Lcc, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SECONDS = float(os.environ.get("LCC_GALERA_SECONDS", "10"))
APART = min(20.0, SECONDS / 2)
"""Seconds between two kills."""

BACK = 60.0
"""Seconds after a kill within which providers are let in again and fetching goes on."""


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[Node]]:
    with galera_cluster() as made:
        made[0].url("lcc")
        yield made


@contextmanager
def second_crawl(lcc: Lcc, url: str) -> Iterator[None]:
    """Run a crawl beside, which writes to another node."""
    environment = {**lcc.environment, "LCC_DATABASE_URL": url, "LCC_UNS_ENDPOINTS": ""}
    with (lcc.folder / "second.log").open("ab") as log:
        process = subprocess.Popen(
            [BIN / "scrapy", "crawl", "lcc_push"], env=environment, cwd=lcc.cwd, stdout=log, stderr=log
        )
    try:
        yield
        assert process.poll() is None, (lcc.folder / "second.log").read_text()[-3000:]
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
    finally:
        process.kill()
        process.wait(60)


def test_nodes_are_killed_and_nothing_is_lost_or_told_twice(
    nodes: list[Node], make_lcc: Callable[..., Lcc]
) -> None:
    first, second, third = nodes
    lcc = make_lcc(url_of("lcc", first, second, third), **SETTINGS)
    assert without_primary_key(first) == []
    reads = url_of("lcc", third, first, second)
    with following(lcc, LCC_READ_DATABASE_URL=reads) as followed:
        with everybody_at_work(lcc) as scene, second_crawl(lcc, url_of("lcc", second, third, first)):
            wait_for(scene.is_busy, 60, "work")
            end, kills = time.monotonic() + SECONDS, 0
            for node in cycle(nodes):
                begun = time.monotonic()
                node.stop(signal.SIGKILL)
                kills += 1
                scene.goes_on(BACK)
                node.rejoin(nodes)
                time.sleep(max(0.0, begun + APART - time.monotonic()))
                if time.monotonic() > end:
                    break
        followed.see_that_nothing_was_missed_or_told_twice()
        print(f"{kills} kills, {len(followed.rows())} changes told, {len(followed.state())} documents")


def test_a_node_that_is_apart_from_its_cluster_is_left_for_another(nodes: list[Node]) -> None:
    nodes[0].url("apart")
    nodes[0].execute("create table apart.counters (name varchar(40) primary key, value bigint)")
    store = SqlStore(url_of("apart", *nodes))

    def port() -> int:
        with store.engine.connect() as connection:
            return int(connection.exec_driver_sql("select @@port").scalar_one())

    try:
        assert port() == nodes[0].port
        cluster = nodes[0].execute("select @@wsrep_cluster_address")[0][0]
        nodes[0].execute("set global wsrep_cluster_address = ''")
        alone = SqlStore(url_of("apart", nodes[0]))
        with pytest.raises(StoreUnavailable, match="WSREP"), alone.begin():
            pass
        with store.begin() as tx:
            assert tx.take("fileid", 1) == 1
        assert port() == nodes[1].port
        nodes[0].execute(f"set global wsrep_cluster_address = '{cluster}'")
        wait_for(nodes[0].is_ready, 120, "the node to take part again")
        assert "wsrep_cluster_size=3" in alone.describe().what
        alone.close()
    finally:
        store.close()


def without_primary_key(node: Node) -> list[tuple[object, ...]]:
    """Return the tables that Galera could not replicate."""
    return node.execute(
        "select table_name from information_schema.tables t where table_schema = 'lcc'"
        " and table_type = 'BASE TABLE' and not exists (select 1 from information_schema.table_constraints c"
        " where c.table_schema = t.table_schema and c.table_name = t.table_name"
        " and constraint_type = 'PRIMARY KEY')"
    )
