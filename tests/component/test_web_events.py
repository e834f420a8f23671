"""The HTTP API: changes as server-sent events."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from harness import wait_for
from test_web_changes import problem
from web_house import SITE, WebHouse

from lcc_scrapy.domain.cursor import Position
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.selection import Selection
from lcc_scrapy.domain.shares import Share
from lcc_scrapy.feed.reader import Reader
from lcc_scrapy.web import events


@pytest.fixture
def house():
    made = WebHouse()
    made.shelf.add("a")
    made.shelf.add("b", pid=8)
    return made


@pytest.fixture
def client(house):
    with house.client() as made:
        yield made


def read(text):
    """Return what a browser makes of a stream (HTML, section 9.2.6): (type, data, last id), and the last id."""
    told, last = [], ""
    for block in text.split("\n\n"):
        kind, data = "message", []
        for line in block.split("\n"):
            name, _, value = line.partition(": ")
            last = value if name == "id" else last
            kind = value if name == "event" else kind
            data += [value] if name == "data" else []
        if data:
            told.append((kind, json.loads("\n".join(data)), last))
    return told, last


def get(client, **params):
    answer = client.get("/v1/events", params={"wait": 0, **params})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    return read(answer.text)


def names(told):
    return [data["curl"].removeprefix(SITE) for _, data, _ in told]


def test_each_change_is_an_event_whose_id_is_the_cursor_behind_it(client):
    told, last = get(client)
    assert names(told) == ["a", "b"]
    assert [row for _, row, _ in told] == client.get("/v1/changes").json()["changes"]
    assert [Position.parse(cursor).seq for _, _, cursor in told] == [1, 2]
    assert names(get(client, since=told[0][2])[0]) == ["b"]
    assert get(client, since=last)[0] == []


def test_who_connects_again_goes_on_behind_the_last_event_whatever_its_url_says(client):
    told, _ = get(client)
    begun = client.get("/v1/changes?limit=0").json()["cursor"]
    shown = {"Last-Event-ID": told[0][2]}
    answer = client.get("/v1/events", params={"wait": 0, "since": begun}, headers=shown)
    assert names(read(answer.text)[0]) == ["b"]


def test_who_begins_has_a_cursor_before_the_first_change(client):
    first = client.get("/v1/events?wait=0").text.split("\n\n")[0]
    assert "retry: 2000" in first
    assert Position.parse(first.partition("id: ")[2]).seq == 0


def test_what_is_not_selected_moves_the_id_only(house, client):
    told, last = get(client, provider=99)
    assert (told, Position.parse(last).seq) == ([], 2)
    house.shelf.add("c", pid=8)
    assert names(get(client, since=last, provider=99)[0]) == []


def test_a_selection_and_a_token_hold_for_events_too(house, client):
    assert names(get(client, provider=8)[0]) == ["b"]
    with house.client(house.token(providers="7")) as narrow:
        assert names(get(narrow)[0]) == ["a"]
    with house.client(token="") as nobody:
        problem(nobody.get("/v1/events"), 401, "unauthorized")


def test_what_cannot_be_followed_is_told_before_the_stream_begins(client):
    problem(client.get("/v1/events?since=x"), 422, "bad-cursor")
    problem(client.get("/v1/events", headers={"Last-Event-ID": "x"}), 422, "bad-cursor")
    foreign = str(replace(Position.parse(get(client)[1]), lcc="another"))
    problem(client.get("/v1/events", headers={"Last-Event-ID": foreign}), 410, "start-over")
    problem(client.get("/v1/events?mimetypes=x"), 422, "bad-parameter")


class Streaming:
    """A stream that is read in a thread, as far as it came."""

    def __init__(self, client, **params):
        self.answer = None
        self._thread = threading.Thread(target=self._read, args=(client, params))
        self._thread.start()

    def _read(self, client, params):
        self.answer = client.get("/v1/events", params=params)

    def ended(self):
        self._thread.join(60)
        assert not self._thread.is_alive()
        return read(self.answer.text)[0]


def test_a_change_is_told_when_it_comes_and_the_stream_ends_with_the_server(house, client):
    stream = Streaming(client)
    wait_for(lambda: house.app.state.watcher._waiting, 60, "the stream waits")
    looks = house.shelf.pages
    house.shelf.add("c")
    wait_for(lambda: house.shelf.pages > looks + 1, 60, "the change is read")
    client.portal.call(house.app.state.watcher.close)
    assert names(stream.ended()) == ["a", "b", "c"]


def test_where_nothing_changes_a_comment_keeps_the_connection_open(house, client, monkeypatch):
    monkeypatch.setattr(events, "HEARTBEAT", 0.05)
    stream, watcher, beats = Streaming(client), house.app.state.watcher, []
    monkeypatch.setattr(watcher, "wait", lambda *how, wait=watcher.wait: beats.append(how) or wait(*how))
    wait_for(lambda: len(beats) > 3, 60, "some heartbeats")
    client.portal.call(watcher.close)
    stream.ended()
    assert stream.answer.text.count(": no change\n\n") >= 3


def test_a_token_that_is_revoked_ends_its_streams_at_the_next_heartbeat(house, monkeypatch):
    monkeypatch.setattr(events, "HEARTBEAT", 0.05)
    with house.client(house.token("one")) as client:
        stream = Streaming(client)
        wait_for(lambda: house.app.state.watcher._waiting, 60, "the stream waits")
        house.tokens.revoke(house.tokens.all()[0].tokenid)
        assert [(kind, data["error"]) for kind, data, _ in stream.ended()[2:]] == [
            ("problem", "unauthorized")
        ]


def test_a_database_that_goes_away_is_told_as_the_last_event(house, client):
    stream = Streaming(client)
    wait_for(lambda: house.app.state.watcher._waiting, 60, "the stream waits")
    house.shelf.look = lambda after, limit: (_ for _ in ()).throw(StoreUnavailable("at db.internal"))
    house.shelf.add("c")
    (kind, data, _) = stream.ended()[-1]
    assert (kind, data["error"], data["status"]) == ("problem", "database-away", 503)
    assert "db.internal" not in stream.answer.text


def test_nothing_is_read_ahead_for_a_client_that_does_not_take_it(house):
    for name in "cdef":
        house.shelf.add(name)

    async def taken():
        reader = Reader(house.shelf, Selection(), rows=2)
        written = events._Stream(reader, None, None, None, 0.0).written()
        pieces = [await anext(written) for _ in range(4)]  # retry, the first cursor, two pages
        await written.aclose()
        return b"".join(pieces).decode(), house.shelf.pages

    with ThreadPoolExecutor(1) as apart:  # where no loop runs
        text, pages = apart.submit(lambda: asyncio.run(taken())).result()
    assert (names(read(text)[0]), pages) == (["a", "b", "c", "d"], 2)


def test_a_client_has_so_many_streams_and_no_more():
    house = WebHouse(share=Share(streams=1))
    with house.client() as client:
        stream = Streaming(client)
        wait_for(lambda: house.app.state.watcher._waiting, 60, "the stream waits")
        problem(client.get("/v1/events"), 429, "share-used-up")
        assert client.get("/v1/changes").status_code == 200
        client.portal.call(house.app.state.watcher.close)
        stream.ended()


def test_more_streams_than_may_wait_are_sent_away_with_a_problem():
    house = WebHouse(waiters=1)
    with house.client() as client:
        stream = Streaming(client)
        wait_for(lambda: house.app.state.watcher._waiting, 60, "the stream waits")
        ((kind, data, _),) = read(client.get("/v1/events?wait=60").text)[0]
        assert (kind, data["error"]) == ("problem", "busy")
        client.portal.call(house.app.state.watcher.close)
        stream.ended()
