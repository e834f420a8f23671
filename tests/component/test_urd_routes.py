"""Interests over HTTP: an owner's own, checked and bounded; and what one would find among cached pages."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest
from starlette.testclient import TestClient
from test_web_changes import problem
from web_house import NOW, WebHouse

from lcc_scrapy.annotation import try_out, urd_routes
from lcc_scrapy.annotation.interests import Interests
from lcc_scrapy.annotation.try_out import TryOut
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.tokens import ANNOTATE, READ, digest_of
from lcc_scrapy.domain.urds import EVERYTHING, Keyword, Urd
from lcc_scrapy.feed.content import ContentElsewhere
from lcc_scrapy.web.app import make_app
from tests.memory_store import MemoryStore

SITE = "http://www.example.org/"
SENT = {"uri": SITE, "keywords": [{"key": "ibm", "weight": 3}, {"key": "java"}]}
STORED = {
    "id": 1, "owner": "anna", "uri": SITE, "timing": 0, "lastcheck": 0, "port": 80, "protocol": "http",
    "method": "pull", "processtype": "filter", "rule": "", "depth": 0, "urgency": 1, "threshold": 1,
    "expires": None, "keywords": [{"key": "ibm", "weight": 3}, {"key": "java", "weight": 1}], "revision": 1,
}  # fmt: skip


class Shelf:
    """What the house's shelf lacks of a feed."""

    def __init__(self, shelf):
        self._shelf = shelf
        self.owned = {}

    def __getattr__(self, name):
        return getattr(self._shelf, name)

    def find(self, url):
        return [row for row in self._shelf.told if url in {row.curl, row.furl}]

    def owners(self, rows, seen=0):
        return {row.urlkey: self.owned[row.urlkey] for row in rows if row.urlkey in self.owned}


@pytest.fixture
def house():
    made = WebHouse()
    made.shelf = Shelf(made.shelf)
    made.interests = Interests(MemoryStore())
    made.lcc = replace(made.lcc, feed=made.shelf)
    made.app = make_app(made.lcc, [urd_routes.make_router(made.interests.store)])
    return made


@contextmanager
def client_of(house, owner="anna"):
    headers = {"Authorization": f"Bearer {house.token(owner, ANNOTATE)}"}
    with TestClient(house.app, headers=headers) as client:
        yield client


@pytest.fixture
def client(house):
    with client_of(house) as made:
        yield made


def test_a_urd_is_added_read_changed_and_removed(client, house):
    made = client.post("/v1/urds", json=SENT)
    assert (made.status_code, made.json(), made.headers["location"]) == (201, STORED, "/v1/urds/1")
    assert client.get("/v1/urds/1").json() == STORED
    changed = client.put("/v1/urds/1", json={**made.json(), "threshold": 9, "uri": "HTTP://www.example.org"})
    assert changed.json() == {**STORED, "threshold": 9, "revision": 2}
    assert client.put("/v1/urds/1", json=changed.json()).json() == changed.json()
    removed = client.delete("/v1/urds/1")
    assert (removed.status_code, removed.content) == (204, b"")
    problem(client.get("/v1/urds/1"), 404, "not-there")
    problem(client.delete("/v1/urds/1"), 404, "not-there")
    problem(client.put("/v1/urds/1", json=SENT), 404, "not-there")
    assert house.interests.count() == 0


def test_what_the_lcc_says_is_ignored_when_it_is_sent(client, house):
    told = {"id": 77, "owner": "bert", "lastcheck": 5, "port": 99, "protocol": "ftp", "revision": 3}
    assert client.post("/v1/urds", json={**SENT, **told}).json() == STORED
    with house.interests.store.begin() as tx:
        tx.note_checks([1], 5000)
    assert client.put("/v1/urds/1", json={**SENT, "lastcheck": 1}).json()["lastcheck"] == 5000


def test_owners_see_and_change_their_own_only(house, client):
    theirs = house.interests.add(Urd(0, "bert", SITE, keywords=(Keyword("ibm"),)))
    client.post("/v1/urds", json=SENT)
    assert [one["id"] for one in client.get("/v1/urds").json()["urds"]] == [2]
    problem(client.get("/v1/urds/1"), 404, "not-there")
    problem(client.put("/v1/urds/1", json=SENT), 404, "not-there")
    problem(client.delete("/v1/urds/1"), 404, "not-there")
    assert house.interests.get(1) == theirs
    with client_of(house, "bert") as other:
        assert [one["id"] for one in other.get("/v1/urds").json()["urds"]] == [1]


def test_a_token_of_another_scope_or_none_or_a_revoked_one_is_of_no_use(house):
    for token, status, error in ((house.token(scopes=READ), 403, "not-allowed"), ("", 401, "unauthorized")):
        with house.client(token) as client:
            for method, path in (
                ("GET", ""),
                ("POST", ""),
                ("POST", "/try"),
                ("GET", "/1"),
                ("DELETE", "/1"),
            ):
                body = {"json": SENT} if method == "POST" else {}
                problem(client.request(method, f"/v1/urds{path}", **body), status, error)
    secret = house.token("anna", ANNOTATE)
    with house.client(secret) as client:
        problem(client.get("/v1/changes"), 403, "not-allowed")
        assert client.get("/v1/urds").status_code == 200
        house.tokens.revoke(digest_of(secret)[:12])
        problem(client.get("/v1/urds"), 401, "unauthorized")
    assert house.interests.count() == 0


def test_they_come_page_by_page(client):
    for _ in range(5):
        client.post("/v1/urds", json=SENT)
    first = client.get("/v1/urds?limit=2").json()
    assert ([one["id"] for one in first["urds"]], first["more"]) == ([1, 2], True)
    last = client.get("/v1/urds?limit=3&after=2").json()
    assert ([one["id"] for one in last["urds"]], last["more"]) == ([3, 4, 5], False)
    for query in ("limit=0", "limit=1001", "after=-1", "owner=bert"):
        problem(client.get(f"/v1/urds?{query}"), 422, "bad-parameter")


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"uri": "ftp://www.example.org/"}, "bad-urd"),
        ({"uri": "x" * 2049}, "bad-parameter"),
        ({"keywords": []}, "bad-urd"),
        ({"keywords": [{"key": "!"}]}, "bad-urd"),
        ({"keywords": [{"key": "a\n"}]}, "bad-urd"),
        ({"keywords": [{"key": "a\ud800"}]}, "bad-parameter"),
        ({"keywords": [{"key": "a"}] * 1001}, "bad-parameter"),
        ({"keywords": [{"key": "a" * 201}]}, "bad-parameter"),
        ({"keywords": [{"key": "a", "wait": 1}]}, "bad-parameter"),
        ({"keywords": [{"key": "a", "weight": 0}]}, "bad-parameter"),
        ({"timing": 1}, "bad-urd"),
        ({"timing": -1}, "bad-parameter"),
        ({"urgency": 3}, "bad-parameter"),
        ({"depth": 101}, "bad-parameter"),
        ({"processtype": "guess"}, "bad-parameter"),
        ({"processtype": "rule"}, "bad-urd"),
        ({"processtype": "rule", "rule": "any("}, "bad-urd"),
        ({"threshhold": 5}, "bad-parameter"),
        ({"uri": EVERYTHING, "depth": 1}, "bad-urd"),
    ],
    ids=lambda value: str(value)[:50].encode("ascii", "backslashreplace").decode(),
)
def test_what_is_no_urd_is_told_and_changes_nothing(client, house, values, error):
    client.post("/v1/urds", json=SENT)
    body = json.dumps({**SENT, **values})
    sent = {"content": body, "headers": {"Content-Type": "application/json"}}
    for method, path in (("POST", ""), ("PUT", "/1"), ("POST", "/try")):
        answer = client.request(method, f"/v1/urds{path}", **sent)
        assert "\n" not in problem(answer, 422, error)
    assert [one.revision for one in house.interests.of(None, 0, 9)] == [1]


def test_a_body_is_bounded_and_the_longest_urd_fits(client, house):
    longest = [{"key": f"{n:03}" + "\U0001f600" * 196 + "x", "weight": 1_000_000} for n in range(1000)]
    body = json.dumps({**SENT, "keywords": longest}, ensure_ascii=False).encode()
    assert len(body) > urd_routes.BODY_BYTES
    headers = {"Content-Type": "application/json"}
    assert client.post("/v1/urds", content=body, headers=headers).status_code == 413
    fits = [{"key": f"{n:03}" + "ä" * 197} for n in range(1000)]
    assert client.post("/v1/urds", json={**SENT, "keywords": fits}).status_code == 201
    assert len(house.interests.get(1).keywords) == 1000


def test_an_owner_has_no_more_than_so_many(client, house, monkeypatch):
    monkeypatch.setattr(urd_routes, "URDS_MAX", 1)
    client.post("/v1/urds", json=SENT)
    problem(client.post("/v1/urds", json=SENT), 409, "too-many")
    assert house.interests.count() == 1


def test_a_label_that_names_no_owner_is_told(house):
    with client_of(house, "search engine") as client:
        assert "owner 'search engine'" in problem(client.post("/v1/urds", json=SENT), 422, "bad-urd")


def test_the_database_may_be_away(client, house, monkeypatch):
    def away():
        raise StoreUnavailable("gone: password=x")

    monkeypatch.setattr(house.interests.store, "read", away)
    assert "password" not in str(problem(client.get("/v1/urds"), 503, "database-away"))


# --- trying ------------------------------------------------------------------------------------------

PAGE = b"<html><title>IBM</title><body><p>Java by IBM, research by IBM.</p></body></html>"


@pytest.fixture
def pages(house):
    for name in ("news/a", "news/b", "c"):
        house.shelf.add(name, PAGE.replace(b"Java", name.encode()))
    house.shelf.add("none", b"<p>nothing of interest</p>")
    house.shelf.add("picture", b"\x89PNG ibm", mimetype="image/png")
    house.shelf.remove("c")
    return house.shelf


def tried(client, **values):
    answer = client.post("/v1/urds/try", json={**SENT, **values})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_try_tells_what_would_have_been_found_and_keeps_nothing(client, house, pages):
    told = tried(client)
    assert [one["uri"] for one in told["found"]] == [SITE + "news/b", SITE + "news/a"]
    found = told["found"][0]
    assert (found["relevance"] >= 6, found["title"], found["fetched_time"]) == (True, "IBM", NOW)
    assert "research by" in found["summary"]
    assert told["complete"]
    assert house.interests.count() == 0


@pytest.mark.parametrize(
    ("uri", "names", "count"),
    [
        (EVERYTHING, ["news/b", "news/a"], 4),
        (SITE + "news/", ["news/b", "news/a"], 2),
        (SITE + "news/a", ["news/a"], 1),
        (SITE + "nothing", [], 0),
        ("https://www.example.org/news/a", [], 0),
    ],
    ids=["everything", "folder", "page", "no page", "other scheme"],
)
def test_only_pages_in_scope_are_read(client, pages, uri, names, count):
    told = tried(client, uri=uri)
    assert (told["pages"], told["complete"]) == (count, True)
    assert [one["uri"] for one in told["found"]] == [SITE + name for name in names]


def test_pages_that_links_lead_to_are_in_scope(client, pages):
    row = pages.find(SITE + "news/b")[0]
    pages.owned[row.urlkey] = ["anna"]
    told = tried(client, uri=SITE + "start", depth=2)
    assert [one["uri"] for one in told["found"]] == [row.furl]
    assert tried(client, uri=SITE + "start/")["found"] == []


def test_one_page_is_found_however_old_it_is_its_newest_document_first(client, pages, monkeypatch):
    monkeypatch.setattr(try_out, "LOOKED_AT", 1)
    pages.add("news/a", b"IBM as text", mimetype="text/plain")
    told = tried(client, uri=SITE + "news/a")
    newer, older = told["found"]
    assert (newer["title"] == "IBM", older["title"], told["complete"]) == (False, "IBM", True)


def test_only_the_newest_pages_are_read_and_it_says_so(client, pages, monkeypatch):
    monkeypatch.setattr(try_out, "PAGES", 3)
    told = tried(client)
    assert (told["pages"], told["complete"]) == (3, False)
    assert [one["uri"] for one in told["found"]] == [SITE + "news/b"]


def test_only_the_newest_changes_are_looked_at_and_it_says_so(client, pages, monkeypatch):
    monkeypatch.setattr(try_out, "LOOKED_AT", 5)
    told = tried(client)
    assert ([one["uri"] for one in told["found"]], told["complete"]) == ([SITE + "news/b"], False)


def test_portions_of_the_feed_join_without_a_gap(client, pages, monkeypatch):
    whole = tried(client)
    for portion in (1, 2, 3):
        monkeypatch.setattr(try_out, "_PORTION", portion)
        assert tried(client) == whole


def test_pages_that_are_long_or_gone_are_passed_over(client, pages, monkeypatch):
    longest = pages.contents[pages.find(SITE + "news/b")[0].urlkey]
    monkeypatch.setattr(try_out, "BODY_MAX", len(longest))
    pages.add("long", longest + b" ")
    del pages.contents[pages.find(SITE + "news/a")[0].urlkey]
    told = tried(client)
    assert [one["uri"] for one in told["found"]] == [SITE + "news/b"]
    assert (told["pages"], told["complete"]) == (3, True)


def test_a_machine_that_does_not_answer_is_told(house, pages):
    def elsewhere(_row):
        raise ContentElsewhere("http://10.0.0.2 is away")

    house.app.state.lcc = replace(house.lcc, open=elsewhere)
    with client_of(house) as client:
        answer = client.post("/v1/urds/try", json=SENT)
    assert "10.0.0.2" not in str(problem(answer, 503, "content-elsewhere"))


def test_a_try_ends_after_some_seconds(pages):
    moments = iter(range(0, 10**6, 3))
    trying = TryOut(pages, pages.open, lambda: next(moments))
    urd = Urd(0, "anna", SITE, keywords=(Keyword("ibm"),))
    tried_out = trying.run(urd, NOW * 1000)
    assert not tried_out.complete
    assert tried_out.pages < 4


def test_the_description_tells_of_urds(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert {path: sorted(paths[path]) for path in paths if "urds" in path} == {
        "/v1/urds": ["get", "post"],
        "/v1/urds/try": ["post"],
        "/v1/urds/{urdid}": ["delete", "get", "put"],
    }
