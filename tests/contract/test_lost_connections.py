"""A server ends a connection, or lets one of two transactions fail: one line, nothing changed, and again."""

import gc
import threading
from contextlib import ExitStack
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from lcc_scrapy.db import retrying, schema
from lcc_scrapy.db.retrying import repeated
from lcc_scrapy.db.sql import store as sql_store
from lcc_scrapy.db.sql.store import SqlStore, make_engine
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.providers import Provider
from tests.conftest import wipe


class Server:
    """A database server and a store on it; ``end`` is what its administrator says to end a connection."""

    def __init__(self, store: SqlStore, who_am_i: str, end: str) -> None:
        self.store = store
        self._who_am_i = who_am_i
        self._end = end

    def number_of(self, tx: Any) -> int:
        return tx._c.execute(text(self._who_am_i)).scalar()

    def end(self, number: int) -> None:
        engine = make_engine(self.store.url.render_as_string(hide_password=False))
        with engine.connect() as connection:
            connection.execute(text(self._end % number))
        engine.dispose()


QUESTIONS = {
    "mariadb": ("select connection_id()", "kill %d"),
    "postgresql": ("select pg_backend_pid()", "select pg_terminate_backend(%d)"),
}


@pytest.fixture(params=QUESTIONS)
def server(request: pytest.FixtureRequest, sql_stores: Any) -> Server:
    store = sql_stores(request.param)
    wipe(store)
    return Server(store, *QUESTIONS[request.param])


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrying, "PAUSES", (0.01,) * 4)


def info(store: SqlStore) -> str | None:
    with store.read() as tx:
        return tx.info("fact")


def test_a_connection_that_is_lost_after_its_commit_leaves_no_traceback_in_the_log(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with server.store.engine.connect() as connection:
        number = connection.execute(text(server._who_am_i)).scalar_one()
        connection.commit()
        server.end(number)
    assert caplog.records == []
    assert info(server.store) is None


def test_a_connection_that_is_ended_between_two_transactions_is_replaced_unnoticed(server: Server) -> None:
    with server.store.read() as tx:
        number = server.number_of(tx)
    server.end(number)
    with server.store.begin() as tx:
        assert server.number_of(tx) != number
        tx.set_info("fact", "stored")
    assert info(server.store) == "stored"


def write_and_lose_the_connection(server: Server, before: str) -> None:
    with server.store.begin() as tx:
        tx.set_info("fact", "stored")
        server.end(server.number_of(tx))
        if before == "a statement":
            tx.set_info("fact", "never")


@pytest.mark.parametrize("before", ["a statement", "the commit"])
def test_a_connection_that_is_ended_in_a_transaction_is_one_line_and_changes_nothing(
    server: Server, before: str
) -> None:
    with pytest.raises(StoreUnavailable, match=r"\A[^\n]+\Z"):
        write_and_lose_the_connection(server, before)
    assert info(server.store) is None


def test_a_server_that_has_become_a_read_only_one_counts_as_away(sql_stores: Any) -> None:
    def write() -> None:
        with sql_stores("postgresql").begin() as tx:
            tx._c.execute(text("set transaction read only"))
            tx.set_info("fact", "never")

    with pytest.raises(StoreUnavailable, match="read-only transaction"):
        write()


@pytest.mark.usefixtures("quick")
def test_repeated_work_survives_the_end_of_its_connection(server: Server) -> None:
    tries = []

    def work() -> int:
        with server.store.begin() as tx:
            tries.append(server.number_of(tx))
            tx.set_info("fact", f"try {len(tries)}")
            if len(tries) < 3:
                server.end(tries[-1])
        return len(tries)

    assert repeated(work) == 3
    assert info(server.store) == "try 3"


@pytest.mark.usefixtures("quick")
def test_repeated_work_survives_a_deadlock(server: Server) -> None:
    with server.store.begin() as tx:
        for pid in (1, 2):
            tx.insert_provider(Provider(pid, ""), [])
    together = threading.Barrier(2)
    tries: list[int] = []

    def work(first: int, second: int) -> None:
        with server.store.begin() as tx:
            tries.append(first)
            tx.add_to_provider(first, {"nurlerrs": 1})
            if len(tries) <= 2:
                together.wait(300)
            tx.add_to_provider(second, {"nurlerrs": 1})

    other = threading.Thread(target=repeated, args=(work, 2, 1))
    other.start()
    repeated(work, 1, 2)
    other.join(300)
    assert len(tries) == 3, "one of the two failed once"
    with server.store.read() as tx:
        assert [tx.provider(pid).nurlerrs for pid in (1, 2)] == [2, 2]


def test_a_connection_that_waited_for_sqlite_in_vain_waits_again_the_next_time(tmp_path, monkeypatch) -> None:
    address = f"sqlite:///{tmp_path}/lcc.sqlite"
    schema.upgrade(address)
    monkeypatch.setattr(sql_store, "BUSY_TIMEOUT", 0.05)
    holder, waiting = SqlStore(address), SqlStore(address)
    try:
        with holder.begin(), pytest.raises(StoreUnavailable), waiting.begin():
            pass
        with waiting.read() as tx:
            assert tx._c.exec_driver_sql("PRAGMA busy_timeout").scalar() == 50
    finally:
        holder.close()
        waiting.close()


def test_waiting_for_sqlite_leaves_nothing_for_the_garbage_collector(tmp_path, monkeypatch) -> None:
    address = f"sqlite:///{tmp_path}/lcc.sqlite"
    schema.upgrade(address)
    holder, waiting, held = SqlStore(address), SqlStore(address), ExitStack()
    naps = iter([lambda: None, lambda: None, held.close])
    monkeypatch.setattr(sql_store.time, "sleep", lambda _: next(naps)())
    gc.collect()
    gc.disable()
    try:
        held.enter_context(holder.begin())
        with waiting.begin():
            pass
        assert [one for one in gc.get_objects() if isinstance(one, OperationalError)] == []
    finally:
        gc.enable()
        holder.close()
        waiting.close()
