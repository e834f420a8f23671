"""Content users of a replica that lags: here a copy of the database file, of an earlier moment."""

import json
import shutil
import time

import pytest
from fastapi.testclient import TestClient
from test_cli import House, one_error, small
from test_query_socket import Served

from lcc_scrapy.apps.query.wire.messages import Query, Row
from lcc_scrapy.cli.web_api import make_api
from lcc_scrapy.config.config import config_of
from lcc_scrapy.content_user import ContentUser
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.tokens import READ, Token, digest_of, new_secret
from lcc_scrapy.feed.tokens import StoreTokens

__all__ = ["small"]


@pytest.fixture
def replica(small):
    """The URL of a replica that has documents a and b; the primary has c, too."""
    small.documents("a", "b")
    file = small.folder / "replica.sqlite"
    shutil.copy(small.data / "lcc.sqlite", file)
    small.documents("c")
    return f"sqlite:///{file}"


def reads(small, replica, *words):
    done = small.lcc("-s", f"LCC_READ_DATABASE_URL={replica}", *words)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [row["curl"][-1] for row in rows if "curl" in row], done.stderr.split()[-1]


@pytest.mark.parametrize("command", [["select", "--format", "jsonl"], ["follow", "--once"]])
def test_a_replica_tells_what_it_has_and_a_cursor_that_is_ahead_of_it_comes_back(small, replica, command):
    told, cursor = reads(small, replica, *command)
    assert told == ["a", "b"]
    ahead = small.lcc("select", "--since", cursor, "--format", "jsonl")
    assert [json.loads(line)["curl"][-1] for line in ahead.stdout.splitlines()] == ["c"]
    newest = ahead.stderr.split()[-1]
    assert reads(small, replica, *command, "--since", newest) == ([], newest)


def test_who_reads_a_replica_needs_no_primary(small, replica):
    small.data.joinpath("lcc.sqlite").rename(small.folder / "away")
    assert reads(small, replica, "select", "--format", "jsonl")[0] == ["a", "b"]
    with ContentUser({**small.settings, "LCC_READ_DATABASE_URL": replica}) as user:
        assert [row.curl[-1] for row in user.select()] == ["a", "b"]
        listed = user.documents()
        assert sorted(row.curl[-1] for row in user.rows(row.docid for row in listed)) == ["a", "b"]


def test_over_http_the_feed_is_read_of_the_replica_and_written_cursors_go_to_the_primary(small, replica):
    config = config_of({**small.settings, "LCC_READ_DATABASE_URL": replica, "LCC_WEB_URL": "http://lcc.test"})
    store, copy, secret = small.store(), SqlStore(replica), new_secret()
    StoreTokens(store).add(Token(digest_of(secret), "indexer", READ, "", "", int(time.time()), 0))
    newest = small.lcc("select", "--format", "jsonl").stderr.split()[-1]
    with TestClient(make_api(config, store, copy).app, headers={"Authorization": f"Bearer {secret}"}) as web:
        first = web.get("/v1/changes", params={"name": "here"}).json()
        assert [row["curl"][-1] for row in first["changes"]] == ["a", "b"]
        ahead = web.get("/v1/changes", params={"since": newest}).json()
        assert (ahead["changes"], ahead["cursor"], ahead["more"]) == ([], newest, False)
        waited = web.get("/v1/changes", params={"since": newest, "wait": 1}).json()
        assert waited["cursor"] == newest
        assert web.put("/v1/cursors/here", json={"cursor": newest}).status_code == 200
        assert b'example.org/c"' in web.get("/resourcesync/resourcelist-00-0000.xml").content
    store.close()
    copy.close()
    assert len(small.query("select name from cursors where name = 'here'")) == 1


def test_queries_are_answered_of_the_replica(small, replica):
    newest = small.lcc("select", "--format", "jsonl").stderr.split()[-1]
    small.settings["LCC_READ_DATABASE_URL"] = replica
    served = Served(small)
    try:
        told = [row.values["curl"][-1] for row in served.asked() if isinstance(row, Row)]
        end = served.asked(Query(since=newest))[-1]
    finally:
        assert served.end() == 0
    assert told == ["a", "b"]
    assert (end.position, end.documents) == (newest, 0)


def test_a_replica_of_another_lcc_is_refused(small, tmp_path_factory):
    other = House(tmp_path_factory.mktemp("other"))
    other.lcc("init")
    url = f"sqlite:///{other.data / 'lcc.sqlite'}"
    error = one_error(small.lcc("-s", f"LCC_READ_DATABASE_URL={url}", "select", status=1))
    assert "LCC_READ_DATABASE_URL: the database belongs to LCC" in str(error)
    with pytest.raises(ConfigurationError, match="LCC_READ_DATABASE_URL"):
        ContentUser({**small.settings, "LCC_READ_DATABASE_URL": url})


def test_a_replica_that_does_not_answer_is_named(small):
    nowhere = "mysql://root@127.0.0.1:1/lcc"
    error = one_error(small.lcc("-s", f"LCC_READ_DATABASE_URL={nowhere}", "select", status=1))
    assert "LCC_READ_DATABASE_URL: the database does not answer" in str(error)
