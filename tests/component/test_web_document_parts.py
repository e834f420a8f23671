"""The HTTP API: links, meta-information, versions and owners of a document, and confirmations."""

import io
import json
from contextlib import contextmanager
from dataclasses import replace

import pytest
from starlette.testclient import TestClient
from test_web_changes import problem

from lcc_scrapy.content_user import ContentGone
from lcc_scrapy.db.records import DocumentLink, Ownership
from lcc_scrapy.domain.entries import Declared, furlkey
from lcc_scrapy.domain.tokens import METRICS, READ, Token, digest_of, new_secret
from lcc_scrapy.domain.versions import Keep
from lcc_scrapy.feed.named_cursors import StoreCursors
from lcc_scrapy.feed.store_feed import GENERATION, LCC_ID, StoreFeed
from lcc_scrapy.feed.tokens import StoreTokens
from lcc_scrapy.web.app import make_app
from lcc_scrapy.web.ports import Lcc
from tests.contract.alerting import alert
from tests.contract.little_lcc import PID, SITE, LittleLcc, key, removal, update, url
from tests.memory_store import MemoryStore


class House(LittleLcc):
    """A little LCC in memory behind the HTTP API."""

    def app(self):
        store = self.store
        return make_app(Lcc(StoreFeed(store), self.open, StoreTokens(store), StoreCursors(store)))

    def open(self, row):
        if row.fetched_fileid not in self.files:
            raise ContentGone("read on")
        return io.BytesIO(self.files[row.fetched_fileid])

    @contextmanager
    def client(self, scopes=READ, **narrowed):
        secret = new_secret()
        values = {"providers": "", "mimetypes": "", **narrowed}
        token = Token(digest_of(secret), "indexer", scopes, created=0, **values)
        StoreTokens(self.store).add(token)
        with TestClient(self.app(), headers={"Authorization": f"Bearer {secret}"}) as made:
            yield made

    def change(self, name, times):
        for number in range(times):
            self.now += 10
            self.push(update(name))
            self.fetch(name, b"%d" % number, headers=json.dumps([["X-Number", str(number)]]))


@pytest.fixture
def house():
    made = House(MemoryStore())
    made.policy = replace(made.policy, versions=Keep(3), max_removal=1.0)
    made.add()
    with made.store.begin() as tx:
        tx.set_info(LCC_ID, "an-lcc")
        tx.set_info(GENERATION, "1")
    made.change("a", 5)
    with made.store.begin() as tx:
        links = [DocumentLink(url(str(n)), "a", nofollow=n == 2) for n in range(5)]
        tx.put_links({key("a"): links})
        tx.put_owners(
            [Ownership(furlkey(PID, url("a")), owner, PID) for owner in ("zoe", "bert", "anna", "")]
        )
    return made


@pytest.fixture
def client(house):
    with house.client() as made:
        yield made


def path(name="a", part=""):
    return f"/v1/documents/{key(name).hex()}{part}"


def test_links_come_in_the_order_of_the_page_and_in_pages(client):
    found = client.get(path(part="/links?limit=3")).json()
    assert [one["url"] for one in found["links"]] == [SITE + "0", SITE + "1", SITE + "2"]
    assert found["links"][2] == {"position": 3, "url": SITE + "2", "relation": "a", "nofollow": True}
    assert found["more"]
    rest = client.get(path(part="/links?limit=3&after=3")).json()
    assert ([one["position"] for one in rest["links"]], rest["more"]) == ([4, 5], False)
    assert client.get(path(part="/links?after=5")).json() == {"links": [], "more": False}


def test_meta_tells_what_the_site_answered(house, client):
    found = client.get(path(part="/meta")).json()
    assert found["header"] == ["HTTP/1.1 200 OK", "X-Number: 4"]
    assert (found["peer"], found["status"]) == ("192.0.2.1", "HTTP/1.1 200 OK")
    assert (found["docid"], found["seq"]) == (key("a").hex(), house.cached("a").seq)
    assert found["path"] == path(part="/content")
    assert found["burl"] == url("a")
    assert "owners" not in found


def test_versions_are_listed_newest_first_and_their_contents_read(client):
    found = client.get(path(part="/versions?limit=2")).json()
    assert (len(found["versions"]), found["more"]) == (2, True)
    before = found["versions"][-1]["seq"]
    rest = client.get(path(part=f"/versions?before={before}")).json()
    assert (len(rest["versions"]), rest["more"]) == (1, False)
    paths = [one["path"] for one in found["versions"] + rest["versions"]]
    assert [client.get(one).content for one in paths] == [b"3", b"2", b"1"]


def test_a_version_is_served_as_a_document_is(client):
    one = client.get(path(part="/versions")).json()["versions"][0]
    whole = client.get(one["path"])
    assert whole.headers["etag"] == f'"{one["sha256"]}"'
    assert whole.headers["content-disposition"] == f'attachment; filename="{key("a").hex()}.html"'
    same = client.get(one["path"], headers={"If-None-Match": whole.headers["etag"]})
    assert (same.status_code, client.head(one["path"]).content) == (304, b"")
    assert client.get(one["path"], headers={"Range": "bytes=0-0"}).status_code == 206


def test_a_version_that_is_not_kept_is_404(house, client):
    for seq in (house.cached("a").seq, 1, 99):
        problem(client.get(path(part=f"/versions/{seq}/content")), 404, "not-there")


def test_versions_of_a_removed_document_are_there_while_an_alert_waits(house, client):
    alert(house.store, key("a"), house.cached("a").seq)
    house.push(removal("a"))
    (one,) = client.get(path(part="/versions")).json()["versions"]
    assert client.get(one["path"]).content == b"4"
    assert client.get(path(part="/owners")).json()["owners"] == ["anna", "bert", "zoe"]
    for part in ("", "/content", "/links", "/meta"):
        problem(client.get(path(part=part)), 404, "not-there")


def test_owners_come_by_name_and_in_pages(client):
    assert client.get(path(part="/owners?limit=2")).json() == {"owners": ["anna", "bert"], "more": True}
    assert client.get(path(part="/owners?after=bert")).json() == {"owners": ["zoe"], "more": False}


def test_rows_have_their_owners(client):
    assert client.get(path()).json()["owners"] == ["anna", "bert", "zoe"]
    (row,) = client.get("/v1/changes").json()["changes"]
    assert (row["owners"], row["owners_seq"]) == (["anna", "bert", "zoe"], None)
    events = client.get("/v1/events?wait=0").text
    assert '"owners": ["anna", "bert", "zoe"]' in events


@pytest.mark.parametrize("part", ["/links", "/meta", "/versions", "/owners", "/versions/4/content"])
@pytest.mark.parametrize("narrowed", [{"providers": "8"}, {"mimetypes": "image/*"}])
@pytest.mark.parametrize("gone", [False, True])
def test_a_narrowed_token_sees_its_own_documents_only(house, part, narrowed, gone):
    if gone:
        alert(house.store, key("a"), 4)
        house.push(removal("a"))
    with house.client(**narrowed) as client:
        problem(client.get(path(part=part)), 404, "not-there")
        assert client.get("/v1/confirmations").json()["confirmations"] == []


@pytest.mark.parametrize("part", ["/links", "/meta", "/versions", "/owners", "/versions/4/content"])
def test_a_token_for_something_else_reads_nothing(house, part):
    with house.client(scopes=METRICS) as client:
        problem(client.get(path(part=part)), 403, "not-allowed")
    with house.client() as client:
        problem(client.get(f"/v1/documents/{'0' * 32}{part}"), 404, "not-there")


@pytest.mark.parametrize(
    "asked",
    ["/links?limit=0", "/links?limit=1001", "/links?after=-1", "/versions?before=x", "/owners?prefix=a",
     "/versions/0/content", "/versions/99999999999999999999/content", f"/owners?after={'a' * 65}"],
)  # fmt: skip
def test_what_is_out_of_bounds_or_unknown_is_refused(client, asked):
    assert client.get(path(part=asked)).status_code == 422


def test_confirmations_are_read_behind_a_cursor_of_their_own(house, client):
    begun = client.get("/v1/confirmations?limit=0").json()
    assert (begun["confirmations"], begun["more"]) == ([], False)
    house.push(update("a", declared=Declared(5)))
    house.settle(house.not_modified(house.ticket("a")))
    found = client.get(f"/v1/confirmations?since={begun['cursor']}").json()
    (one,) = found["confirmations"]
    assert (one["op"], one["docid"], one["seq"]) == ("confirm", key("a").hex(), 1)
    assert (one["confirmed_time"], one["owners"]) == (house.now, ["anna", "bert", "zoe"])
    again = client.get(f"/v1/confirmations?since={found['cursor']}").json()
    assert again["confirmations"] == []
    problem(client.get(f"/v1/changes?since={found['cursor']}"), 422, "bad-cursor")
    problem(client.get(f"/v1/confirmations?since={found['cursor']}&provider=7"), 422, "bad-cursor")
