"""The HTTP API: who gets in, what changed, and how to go on."""

import json
import threading
import time
from dataclasses import replace

import pytest
from web_house import NOW, SITE, WebHouse

from lcc_scrapy.domain.cache import UrlMeta
from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.tokens import FILES, METRICS, new_secret
from lcc_scrapy.feed.row_formats import COLUMNS
from lcc_scrapy.web.watching import Watcher

READING = ["/v1/changes", "/v1/ids"]


@pytest.fixture
def house():
    made = WebHouse()
    made.shelf.add("a")
    made.shelf.add("b", pid=8)
    made.shelf.add("c", mimetype="application/pdf")
    return made


@pytest.fixture
def client(house):
    with house.client() as made:
        yield made


def problem(answer, status, error):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert (told["status"], told["error"]) == (status, error)
    return told["detail"]


def names(answer):
    assert answer.status_code == 200, answer.text
    return [row["curl"].removeprefix(SITE) for row in answer.json()["changes"]]


# --- who gets in --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", READING)
def test_who_shows_no_good_token_gets_nothing(house, path):
    expired = house.token(expires=NOW)
    with house.client(token="") as client:
        for shown in (
            None,
            "",
            "Bearer",
            "Bearer x",
            f"Bearer {new_secret()}",
            f"Bearer {expired}",
            "Basic eDp5",
        ):
            answer = client.get(path, headers={"Authorization": shown} if shown is not None else {})
            problem(answer, 401, "unauthorized")
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert SITE not in answer.text


def test_a_token_is_taken_from_its_header_only(house):
    with house.client(token="") as client:
        good = house.token()
        for params in ({"token": good}, {"access_token": good}):
            problem(client.get("/v1/changes", params=params), 401, "unauthorized")
        problem(client.get("/v1/changes", headers={"Cookie": f"token={good}"}), 401, "unauthorized")


def test_a_token_for_something_else_is_not_for_reading(house):
    with house.client(house.token(scopes=f"{FILES} {METRICS}")) as client:
        answer = client.get("/v1/changes")
        assert "`read`" in problem(answer, 403, "not-allowed")
        assert "insufficient_scope" in answer.headers["www-authenticate"]


def test_a_token_for_one_provider_sees_nothing_of_others(house):
    with house.client(house.token(providers="8")) as client:
        assert names(client.get("/v1/changes")) == ["b"]
        assert names(client.get("/v1/changes?provider=8")) == ["b"]
        assert "provider 8 only" in problem(client.get("/v1/changes?provider=7"), 403, "not-allowed")
        assert client.get("/v1/ids").text.count("docid") == 1


def test_a_token_for_some_mimetypes_sees_nothing_of_others(house):
    with house.client(house.token(mimetypes="text/*")) as client:
        assert names(client.get("/v1/changes")) == ["a", "b"]
        assert names(client.get("/v1/changes?mimetype=text/html")) == ["a", "b"]
        for wider in ("*/*", "application/pdf"):
            problem(client.get("/v1/changes", params={"mimetype": wider}), 403, "not-allowed")


def test_a_revoked_token_is_good_no_more(house):
    with house.client(house.token("one")) as client:
        assert client.get("/v1/changes").status_code == 200
        house.tokens.revoke(house.tokens.all()[0].tokenid)
        problem(client.get("/v1/changes"), 401, "unauthorized")


# --- changes ------------------------------------------------------------------------------------------


def test_changes_are_the_rows_of_lcc_select(house, client):
    house.shelf.remove("b", pid=8)
    told = client.get("/v1/changes").json()
    assert [(row["op"], row["seq"]) for row in told["changes"]] == [
        ("upsert", 1),
        ("upsert", 3),
        ("remove", 4),
    ]
    assert all(tuple(row) == COLUMNS for row in told["changes"])
    row = told["changes"][0]
    assert row["path"] == f"/v1/documents/{row['docid']}/content"
    assert told["changes"][-1]["path"] is None
    assert (told["more"], Position.parse(told["cursor"]).seq) == (False, 4)


def test_a_cursor_goes_on_where_it_ended(house, client):
    first = client.get("/v1/changes?limit=2")
    assert (names(first), first.json()["more"]) == (["a", "b"], True)
    second = client.get("/v1/changes", params={"since": first.json()["cursor"]})
    assert (names(second), second.json()["more"]) == (["c"], False)
    assert names(client.get("/v1/changes", params={"since": second.json()["cursor"]})) == []


def test_who_begins_can_have_the_cursor_first(house, client):
    begun = client.get("/v1/changes?limit=0").json()
    assert begun["changes"] == []
    house.shelf.remove("a")
    assert names(client.get("/v1/changes", params={"since": begun["cursor"]})) == ["b", "c", "a"]


def test_where_nothing_is_selected_the_cursor_tells_how_far_the_reading_came(house, client, monkeypatch):
    from lcc_scrapy.web import changes

    monkeypatch.setattr(changes, "READING", -1.0)
    monkeypatch.setattr("lcc_scrapy.feed.reader.PAGE", 1)
    told = client.get("/v1/changes?provider=99").json()
    assert (told["changes"], told["more"], Position.parse(told["cursor"]).seq) == ([], True, 1)


@pytest.mark.parametrize("cursor", ["x", "é", "", "e30", "A" * 1000])
def test_a_cursor_that_is_none_does_not_make_a_client_throw_its_copy_away(client, cursor):
    for path in ("/v1/changes?limit=1", "/v1/export?format=zip"):
        said = problem(client.get(path, params={"since": cursor}), 422, "bad-cursor")
        assert "start over" not in said
        assert "cursor" in said


def test_a_cursor_of_other_filters_is_a_mistake_and_no_reason_to_start_over(client):
    cursor = client.get("/v1/changes?provider=8").json()["cursor"]
    assert "filters" in problem(client.get("/v1/changes", params={"since": cursor}), 422, "bad-cursor")


def test_a_cursor_of_another_life_means_to_start_over(house, client):
    cursor = client.get("/v1/changes").json()["cursor"]
    foreign = str(replace(Position.parse(cursor), lcc="another"))
    assert "start over" in problem(client.get("/v1/changes", params={"since": foreign}), 410, "start-over")
    house.shelf.generation = 2
    assert "start over" in problem(client.get("/v1/changes", params={"since": cursor}), 410, "start-over")


def test_a_cursor_from_before_removals_that_are_forgotten_means_to_start_over(house, client):
    old = client.get("/v1/changes?limit=1").json()["cursor"]
    house.shelf.add("d")
    house.shelf.forgot = 4
    assert "start over" in problem(client.get("/v1/changes", params={"since": old}), 410, "start-over")


def test_a_misspelt_filter_is_named_and_not_taken_for_none(client):
    for path in ("/v1/changes", "/v1/ids", "/v1/export"):
        said = problem(client.get(f"{path}?mimetypes=text/html&format=zip&a=1"), 422, "bad-parameter")
        assert "mimetypes: no such parameter" in said


@pytest.mark.parametrize(
    "query",
    [
        "limit=-1", "limit=1001", "limit=x", "wait=61", "wait=-1", "provider=0", "provider=x", "mimetype=text",
        "mimetype=TEXT/HTML", "since_time=-1", "since_time=1e9", "name=", "name=..", "name=a/b", "since=" + "A" * 1001,
        "provider=" + "9" * 30, "url_prefix=" + "x" * 2049,
    ],
)  # fmt: skip
def test_a_parameter_that_cannot_be_used_is_named(client, query):
    assert problem(client.get(f"/v1/changes?{query}"), 422, "bad-parameter").startswith(
        query.partition("=")[0]
    )


def test_a_database_that_is_away_is_to_be_waited_for_and_nothing_is_told_about_it(house, client):
    house.shelf.trouble = StoreUnavailable("lost connection to db.internal")
    answer = client.get("/v1/changes")
    assert "db.internal" not in problem(answer, 503, "database-away")
    assert int(answer.headers["retry-after"]) > 0


# --- waiting ------------------------------------------------------------------------------------------


def later(seconds, act):
    timer = threading.Timer(seconds, act)
    timer.start()
    return timer


def test_who_waits_is_told_of_a_change_when_it_comes(house, client):
    cursor = client.get("/v1/changes").json()["cursor"]
    begun = time.monotonic()
    timer = later(0.2, lambda: house.shelf.add("d"))
    assert names(client.get("/v1/changes", params={"since": cursor, "wait": 60})) == ["d"]
    assert time.monotonic() - begun < 50, "not at the end of the wait"
    timer.join()


def test_who_waits_for_nothing_gets_a_cursor_behind_what_was_not_selected(house, client):
    cursor = client.get("/v1/changes?provider=8").json()["cursor"]
    timer = later(0.1, lambda: house.shelf.add("d", pid=7))
    told = client.get("/v1/changes", params={"since": cursor, "wait": 1, "provider": 8}).json()
    assert (told["changes"], Position.parse(told["cursor"]).seq) == ([], 4)
    timer.join()


def test_more_than_may_wait_are_sent_away(house):
    house = WebHouse(waiters=1)
    with house.client() as client:
        cursor = client.get("/v1/changes").json()["cursor"]
        asked = threading.Thread(
            target=client.get, args=("/v1/changes",), kwargs={"params": {"since": cursor, "wait": 3}}
        )
        asked.start()
        while not house.app.state.watcher._waiting:
            time.sleep(0.01)
        answer = client.get("/v1/changes", params={"since": cursor, "wait": 3})
        problem(answer, 503, "busy")
        house.shelf.add("d")
        asked.join()


def test_an_answer_that_waits_ends_when_the_server_does(house):
    with house.client() as client:
        cursor = client.get("/v1/changes").json()["cursor"]
        begun = time.monotonic()
        told = []
        asked = threading.Thread(
            target=lambda: told.append(client.get("/v1/changes", params={"since": cursor, "wait": 60}))
        )
        asked.start()
        while not house.app.state.watcher._waiting:
            time.sleep(0.01)
        client.portal.call(house.app.state.watcher.close)
        asked.join()
    assert told[0].json()["changes"] == []
    assert time.monotonic() - begun < 50, "not at the end of the wait"


# --- ids ----------------------------------------------------------------------------------------------


def test_the_ids_of_what_is_there_end_with_the_cursor(house, client):
    lines = [json.loads(line) for line in client.get("/v1/ids").text.splitlines()]
    here = sorted(house.shelf.told, key=lambda row: row.docid)
    assert lines[:-1] == [{"docid": row.docid, "seq": row.seq} for row in here]
    assert (lines[-1]["op"], lines[-1]["documents"]) == ("end", 3)
    house.shelf.add("d")
    assert names(client.get("/v1/changes", params={"since": lines[-1]["cursor"]})) == ["d"]


def test_a_front_is_told_which_rows_came_from_another_sub_lcc(house, client):
    house.shelf.came = {2: ((1, 70), (4, 9)), 99: ((4, 8),)}
    assert client.get("/v1/changes?moves=true").json()["moved"] == {"2": [[1, 70], [4, 9]]}
    assert client.get("/v1/changes?moves=true&provider=7").json()["moved"] == {}
    assert "moved" not in client.get("/v1/changes").json()


def test_a_front_is_told_all_that_is_kept_of_documents_with_their_answers(house, client):
    row = house.shelf.add("e", etag='"x"', len=9, md5="0" * 32, final_url=SITE + "to")
    house.shelf.heads = {row.urlkey: UrlMeta(row.urlkey, "HTTP/1.1 200 OK", '[["A", "b"]]', "192.0.2.1", 7)}
    house.shelf.remove("a")
    *others, whole, removed = client.get("/v1/changes?whole=true").json()["changes"]
    assert whole["whole"] == {
        "len": 9, "md5": "0" * 32, "final_url": SITE + "to", "etag": '"x"', "last_modified": "",
        "confirmed_time": row.confirmed_time, "origin": "push",
        "answer": {
            "status_line": "HTTP/1.1 200 OK", "headers": '[["A", "b"]]', "peer": "192.0.2.1", "answered": 7,
        },
    }  # fmt: skip
    assert {one["whole"]["answer"] for one in others} == {None}
    assert "whole" not in removed
    assert all("whole" not in one for one in client.get("/v1/changes").json()["changes"])


@pytest.mark.parametrize(
    ("position", "beyond"),
    [
        (Position("l", 1, 99), True),
        (Position("l", 1, 100), False),
        (Position("l", 1, 50, began=101), False),
        (Position("l", 2, 1), False),
        (Position("l", 0, 100), True),
    ],
)
def test_who_is_ahead_of_a_replica_waits_until_it_has_come_so_far(position, beyond):
    watcher = Watcher(lambda: Position("l", 1, 100), 1.0, 1)
    watcher._tell(Position("l", 1, 100))
    assert watcher._is_beyond(position) is beyond
