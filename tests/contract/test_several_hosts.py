"""Several servers behind one URL: the first that works is taken, and one that cannot write is left."""

import pytest
import sqlalchemy

from lcc_scrapy.db.sql.failover import hosts_of
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.errors import ConfigurationError, StoreUnavailable


@pytest.mark.parametrize(
    ("query", "hosts"),
    [
        ("", []),
        ("?host=db1", [("db1", 3306)]),
        ("?host=db1:3307&charset=utf8mb4&host=db2", [("db1", 3307), ("db2", 3306)]),
        ("?host=[::1]:3307&host=[::1]", [("::1", 3307), ("::1", 3306)]),
    ],
)
def test_a_url_names_hosts_in_their_order(query, hosts):
    url, found = hosts_of(sqlalchemy.make_url(f"mysql+pymysql://root:secret@/lcc{query}"))
    assert found == hosts
    assert "host" not in url.query
    assert (url.username, url.password, url.database) == ("root", "secret", "lcc")


def test_a_port_that_is_no_number_is_refused():
    with pytest.raises(ConfigurationError, match="port of a host is no number"):
        SqlStore("mysql+pymysql://root@/lcc?host=db1:my")


@pytest.mark.parametrize("store", ["mariadb"], indirect=True)
def test_the_first_host_that_answers_is_taken(store):
    where = f"127.0.0.1:{store.url.port or 3306}"
    several = SqlStore(
        store.url.set(host=None, port=None).update_query_dict({"host": ["127.0.0.1:1", where]})
    )
    nobody = SqlStore(store.url.set(host=None, port=None).update_query_dict({"host": ["127.0.0.1:1"] * 2}))
    try:
        with several.begin() as tx:
            assert tx.take("fileid", 1) == 1
        with pytest.raises(StoreUnavailable, match="Can't connect"), nobody.read():
            pass
    finally:
        several.close()
        nobody.close()


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_a_server_that_cannot_write_is_unavailable_and_its_connections_are_not_used_again(store):
    standby = SqlStore(store.url.update_query_dict({"options": "-cdefault_transaction_read_only=on"}))

    def backend():
        with standby.engine.connect() as connection:
            return connection.exec_driver_sql("select pg_backend_pid()").scalar_one()

    try:
        before = backend()
        assert backend() == before
        with pytest.raises(StoreUnavailable, match="read-only"), standby.begin() as tx:
            tx.take("fileid", 1)
        assert backend() != before
    finally:
        standby.close()
