"""What owners fetch themselves: ACIs as JSON and Atom, and how they say where alerts go."""

import re
import threading
import warnings

import pytest
from lxml import etree

from lcc_scrapy.domain.tokens import ANNOTATE, READ
from tests.alert_house import aci
from tests.owner_house import OwnerHouse

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import feedparser


@pytest.fixture
def house():
    return OwnerHouse(web_url="http://testserver")


@pytest.fixture
def client(house):
    with house.client(house.owner()) as made:
        yield made


def numbers(told):
    assert told.status_code == 200, told.text
    return [one["number"] for one in told.json()["acis"]]


# --- JSON ----------------------------------------------------------------------------------------


def test_acis_come_by_number_and_only_those_of_the_owner(house, client):
    house.found(aci(1), aci(2, "bob"), aci(3), aci(4))
    first = client.get("/v1/acis?limit=2")
    assert (numbers(first), first.json()["last"], first.json()["more"]) == ([1, 3], 3, True)
    then = client.get("/v1/acis?after=3")
    assert (numbers(then), then.json()["last"], then.json()["more"]) == ([4], 4, False)
    nothing = client.get("/v1/acis?after=4").json()
    assert nothing == {"acis": [], "last": 4, "more": False}


def test_one_aci_is_told_to_its_owner_only(house, client):
    house.found(aci(1), aci(2, "bob"))
    said = client.get("/v1/acis/1").json()
    assert (said["uri"], said["detail"]["keywords"][0]["key"]) == ("http://www.example.org/1", "lamps")
    for number in (2, 3):
        assert client.get(f"/v1/acis/{number}").status_code == 404


def test_who_waits_hears_of_a_new_aci(house, client):
    told = []
    waiting = threading.Thread(target=lambda: told.append(client.get("/v1/acis?wait=60")))
    waiting.start()
    house.found(aci(1, "bob"))
    house.found(aci(2))
    waiting.join(300)
    assert numbers(told[0]) == [2]


@pytest.mark.parametrize(
    "path", ["/v1/acis", "/v1/acis/1", "/v1/acis/atom", "/v1/acis/feed", "/v1/recipients"]
)
def test_a_token_of_the_scope_is_needed(house, path):
    with house.client("") as nobody:
        assert nobody.get(path).status_code == 401
    with house.client(house.token("alice", READ)) as reader:
        assert reader.get(path).status_code == 403


def test_what_cannot_be_asked_is_refused(client):
    for query in ("after=x", "after=-1", "limit=0", "limit=1001", "wait=61", "owner=bob"):
        assert client.get(f"/v1/acis?{query}").status_code == 422, query


# --- Atom ----------------------------------------------------------------------------------------


def test_a_feed_has_pages_newest_first_and_ids_that_stay(house, client):
    house.found(*(aci(n) for n in range(1, 121)), aci(121, "bob"))
    seen, address, ids = [], "/v1/acis/atom", set()
    while address:
        told = client.get(address)
        assert told.headers["content-type"] == "application/atom+xml"
        feed = feedparser.parse(told.content)
        assert not feed.bozo, feed.get("bozo_exception")
        assert feed.version == "atom10"
        ids.add(feed.feed.id)
        seen += [(one.title, one.id, one.link, one.updated) for one in feed.entries]
        links = {one.rel: one.href for one in feed.feed.links}
        address = links.get("next")
        assert links["first"].endswith("/v1/acis/atom")
    assert [title for title, *_ in seen] == [f"Page {n}" for n in range(120, 0, -1)]
    assert len({one for _, one, *_ in seen}) == 120
    assert len(ids) == 1
    again = feedparser.parse(client.get("/v1/acis/atom").content)
    assert [one.id for one in again.entries] == [one for _, one, *_ in seen[:50]]


def test_a_feed_is_atom_by_its_grammar(house, client):
    """What RFC 4287 demands of a feed and of each entry (sections 4.1.1 and 4.1.2)."""
    house.found(aci(1), aci(2, title="a\x00b <b>"))
    atom = "{http://www.w3.org/2005/Atom}"
    root = etree.fromstring(client.get("/v1/acis/atom").content)
    for parent in (root, *root.findall(f"{atom}entry")):
        for name in ("id", "title", "updated"):
            assert len(parent.findall(atom + name)) == 1
        assert re.fullmatch(r"\d{4}(-\d\d){2}T\d\d(:\d\d){2}Z", parent.findtext(f"{atom}updated"))
    assert root.find(f"{atom}author/{atom}name").text
    assert root.findtext(f"{atom}entry/{atom}title").endswith("b <b>")


def test_an_empty_feed_is_one(client):
    feed = feedparser.parse(client.get("/v1/acis/atom").content)
    assert (feed.bozo, feed.entries, feed.feed.title) == (False, [], "Alerts of alice")


def test_html_of_a_site_is_text_in_a_feed(house, client):
    house.found(aci(1, title="<script>alert(1)</script>", uri="javascript:alert(1)"))
    (entry,) = feedparser.parse(client.get("/v1/acis/atom").content, sanitize_html=False).entries
    assert "<script" not in entry.content[0].value
    assert "javascript" not in entry.link


def test_a_feed_that_has_not_changed_is_not_sent_again(house, client):
    house.found(aci(1))
    told = client.get("/v1/acis/atom")
    assert client.get("/v1/acis/atom", headers={"If-None-Match": told.headers["etag"]}).status_code == 304
    house.found(aci(2))
    assert client.get("/v1/acis/atom", headers={"If-None-Match": told.headers["etag"]}).status_code == 200


def test_a_feed_reader_needs_no_token_but_an_address_that_nobody_can_guess(house):
    secret = house.owner()
    house.found(aci(1), aci(2, "bob"))
    with house.client(secret) as alice:
        address = alice.get("/v1/acis/feed").json()["url"]
    assert secret not in address
    with house.client("") as reader:
        feed = feedparser.parse(reader.get(address).content)
        assert [one.title for one in feed.entries] == ["Page 1"]
        links = {one.rel: one.href for one in feed.feed.links}
        assert links["self"] == address
        key = address.partition("key=")[2]
        for forged in (
            "",
            "x",
            key[:-1],
            key[:-1] + ("0" if key[-1] != "0" else "1"),
            ("1" if key[0] == "0" else "0") + key[1:],
        ):
            assert reader.get("/v1/acis/atom", params={"key": forged}).status_code == 401
        assert reader.get("/v1/acis", headers={"Authorization": f"Bearer {key}"}).status_code == 401
        house.tokens.revoke(key[:12])
        assert reader.get(address).status_code == 401


def test_an_address_ends_with_its_token(house):
    token = house.token("alice", ANNOTATE, expires=house.now + 10)
    with house.client(token) as alice:
        address = alice.get("/v1/acis/feed").json()["url"]
        assert alice.get(address).status_code == 200
        house.now += 10
        assert alice.get(address).status_code == 401


def test_behind_a_proxy_a_feed_has_the_address_that_others_see():
    house = OwnerHouse(web_url="https://lcc.example.org")
    with house.client(house.owner()) as alice:
        assert (
            alice.get("/v1/acis/feed").json()["url"].startswith("https://lcc.example.org/v1/acis/atom?key=")
        )


# --- recipients ----------------------------------------------------------------------------------

HOOK = {"channel": "webhook", "address": "https://example.org/hook"}


def test_an_owner_says_where_alerts_go(client):
    told = client.post("/v1/recipients", json={"channel": "mail", "address": "a@Example.org", "digest": True})
    assert told.status_code == 201
    made = told.json()
    assert (made["address"], made["format"], made["digest"]) == ("a@example.org", "html", True)
    assert "secret" not in made
    hook = client.post("/v1/recipients", json=HOOK).json()
    assert hook["secret"].startswith("whsec_")
    listed = client.get("/v1/recipients").json()["recipients"]
    assert [one["id"] for one in listed] == [made["id"], hook["id"]]
    assert "whsec_" not in str(listed)
    path = told.headers["location"]
    assert client.get(path).json() == made
    changed = client.patch(path, json={"off": True, "format": "text"}).json()
    assert (changed["off"], changed["format"], changed["digest"]) == (True, "text", True)
    fresh = client.patch(f"/v1/recipients/{hook['id']}", json={"new_secret": True}).json()
    assert fresh["secret"] not in {hook["secret"], None}
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {"channel": "mail", "address": "a@example.org\r\nBcc: b@example.org"},
        {"channel": "mail", "address": "a@example.org,b@example.org"},
        {"channel": "mail", "address": "https://example.org/"},
        {"channel": "webhook", "address": "http://example.org/"},
        {"channel": "webhook", "address": "file:///etc/passwd"},
        {"channel": "webhook", "address": "https://user:pw@example.org/"},
        {"channel": "sms", "address": "1"},
        {**HOOK, "format": "pdf"},
        {**HOOK, "owner": "bob"},
        {"channel": "mail"},
    ],
)
def test_what_is_no_recipient_is_refused_in_a_line(client, wrong):
    told = client.post("/v1/recipients", json=wrong)
    assert told.status_code == 422
    assert "\n" not in told.json()["detail"]
    assert client.get("/v1/recipients").json()["recipients"] == []


def test_an_owner_has_so_many_recipients_and_no_more(client):
    assert [client.post("/v1/recipients", json=HOOK).status_code for _ in range(4)] == [201, 201, 201, 409]


def test_nobody_sees_or_changes_the_recipients_of_others(house, client):
    path = client.post("/v1/recipients", json=HOOK).headers["location"]
    with house.client(house.owner("bob")) as bob:
        assert bob.get("/v1/recipients").json()["recipients"] == []
        assert bob.get(path).status_code == 404
        assert bob.patch(path, json={"off": True}).status_code == 404
        assert bob.delete(path).status_code == 404
    assert client.get(path).json()["off"] is False


def test_a_refused_address_is_tried_again_after_a_change(house, client):
    from dataclasses import replace

    path = client.post("/v1/recipients", json={"channel": "mail", "address": "a@example.org"}).headers[
        "location"
    ]

    def refuse():
        with house.store.begin() as tx:
            tx.update_recipient(replace(tx.recipient(1), refused="550 no"))

    for change, refused in (
        ({"format": "text"}, "550 no"),
        ({"off": False}, ""),
        ({"address": "b@example.org"}, ""),
    ):
        refuse()
        assert client.patch(path, json=change).json()["refused"] == refused
