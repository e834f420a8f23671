"""A machine that loses its power closes no connection: its transaction must not stop the others for long."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from sqlalchemy import text

from lcc_scrapy.db.records import FEED
from lcc_scrapy.db.schema import tables_of
from lcc_scrapy.db.sql.snapshot import snapshot
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.db.tables import lccinfo
from lcc_scrapy.domain.errors import LccError, StoreUnavailable
from lcc_scrapy.domain.providers import Provider
from tests.conftest import wipe
from tests.harness import wait_for
from tests.relay import Relay, relay

PAUSE = 1


@pytest.fixture(params=["mariadb", "postgresql"])
def store(request: pytest.FixtureRequest, sql_stores: Any) -> SqlStore:
    """The store of a machine that goes on, with one provider."""
    made: SqlStore = sql_stores(request.param)
    wipe(made)
    with made.begin() as tx:
        tx.insert_provider(Provider(7, ""), [])
        tx.set_info("fact", "before")
    return made


@contextmanager
def machine(store: SqlStore) -> Iterator[tuple[SqlStore, Relay]]:
    """Run another machine, whose connections may be lost."""
    port = store.url.port or {"mysql": 3306, "postgresql": 5432}[store.url.get_backend_name()]
    with relay(port) as way:
        url = store.url.set(host="127.0.0.1", port=way.port)
        theirs = SqlStore(url, pause=PAUSE, silence=None)
        try:
            yield theirs, way
        finally:
            theirs.close()


def locked(store: SqlStore) -> None:
    with store.begin() as tx:
        tx.lock_providers([7])


def committed(store: SqlStore) -> None:
    with store.begin() as tx:
        tx.lock_providers([7])
        tx.set_info("fact", "never")
        tx.take(FEED, 1)


@pytest.mark.parametrize(
    ("work", "last_word"), [(locked, b"COMMIT"), (committed, b"COMMIT"), (committed, b"lccinfo")]
)
def test_the_transaction_of_a_lost_machine_is_ended_by_the_server(
    store: SqlStore, work: Callable[[SqlStore], None], last_word: bytes
) -> None:
    with machine(store) as (theirs, way):
        way.lose_at(last_word)
        lost = threading.Thread(target=_ignoring_errors, args=(work, theirs), daemon=True)
        lost.start()
        assert way.lost.wait(240)
        with store.begin() as tx:  # waits for the locks, for ever without a bound
            assert set(tx.lock_providers([7])) == {7}
            tx.take(FEED, 1)
            assert tx.info("fact") == "before"
    lost.join(240)


def _ignoring_errors(work: Callable[[SqlStore], None], store: SqlStore) -> None:
    with suppress(LccError):  # its machine is gone
        work(store)


def ended_by_the_server(store: SqlStore) -> None:
    """Return when a transaction of a store was ended that has done nothing for as long as it may."""
    who = "connection_id()" if store.engine.dialect.name == "mysql" else "pg_backend_pid()"
    sessions = {
        "mysql": "SELECT count(*) FROM information_schema.processlist WHERE id = :id",
        "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE pid = :id",
    }[store.engine.dialect.name]
    with pytest.raises(StoreUnavailable), store.begin() as tx:  # noqa: PT012 - which of them notices is open
        tx.info("fact")
        number = tx._c.execute(text(f"SELECT {who}")).scalar_one()
        with store.engine.connect() as watching:
            asked = lambda: watching.execute(text(sessions), {"id": number}).scalar_one()  # noqa: E731
            wait_for(lambda: _committed(watching, asked) == 0)
        tx.info("fact")


def _committed(connection: Any, ask: Callable[[], int]) -> int:
    found = ask()
    connection.commit()
    return found


def test_a_snapshot_may_last_three_times_as_long(store: SqlStore) -> None:
    own = SqlStore(store.url, pause=PAUSE)
    try:
        with snapshot(own, tables_of()) as seen:
            for _ in range(3):
                ended_by_the_server(own)
            assert next(seen.pages(lccinfo)) == [{"name": "fact", "value": "before"}]
        ended_by_the_server(own)
    finally:
        own.close()


def test_a_server_whose_sessions_are_bounded_gives_no_doubt_of_that(store: SqlStore) -> None:
    assert not [doubt for doubt in store.describe().doubts if "transaction" in doubt]
    unbounded = SqlStore(store.url, pause=0)
    try:
        assert [doubt for doubt in unbounded.describe().doubts if "idle" in doubt.partition("=")[0]]
    finally:
        unbounded.close()
